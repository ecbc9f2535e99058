//! An answer that is being read: the body's bytes, the limits on its silence, and what was read ahead.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use tokio::time::Instant;

use super::{
    Deltas, ModelError, ModelErrorKind,
    intake::{Intake, Progress, Reading, Taken, broken},
};
use crate::{clock::Patience, turn::Delta};

/// How long the usage is waited for once the model has stopped.
const AFTER_FINISH: Duration = Duration::from_secs(10);

/// How many pieces of a burst are one batch at most.
const BURST: usize = 32;

/// A piece of the body; `None` at its end.
type Heard = Option<Result<Bytes, reqwest::Error>>;

/// The body of an answer. Dropping it closes the connection.
pub(crate) struct Answer {
    body: BoxStream<'static, Result<Bytes, reqwest::Error>>,
    intake: Intake<Box<dyn Reading>>,
    /// What was read and not handed on.
    ready: VecDeque<Result<Vec<Delta>, ModelError>>,
    /// The longest silence.
    silence: Duration,
    patience: Patience,
    ended: bool,
}

impl Answer {
    pub(crate) fn new(
        response: reqwest::Response,
        reading: Box<dyn Reading>,
        silence: Duration,
    ) -> Self {
        Self {
            body: response.bytes_stream().boxed(),
            intake: Intake::new(reading),
            ready: VecDeque::new(),
            silence,
            patience: Patience::new(silence),
            ended: false,
        }
    }

    /// Reads until the model has said something, so that an error before it can still be tried again.
    pub(crate) async fn begin(&mut self, deadline: Instant) -> Result<(), ModelError> {
        let mut held = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.next(left).await {
                Some(Ok(batch)) => {
                    held.extend(batch);
                    if held.iter().any(|delta| !matches!(delta, Delta::Usage(_))) {
                        break;
                    }
                }
                Some(Err(error)) => return Err(error),
                None => break,
            }
        }
        self.ready.push_front(Ok(held));
        Ok(())
    }

    /// What the model says, from here on.
    pub(crate) fn deltas(self) -> Deltas {
        let silence = self.silence;
        futures::stream::unfold(self, move |mut answer| async move {
            let next = answer.next(silence).await?;
            Some((next, answer))
        })
        .boxed()
    }

    /// The next batch that is not empty, or the error that ends the answer.
    async fn next(&mut self, silence: Duration) -> Option<Result<Vec<Delta>, ModelError>> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            if self.ended {
                return None;
            }
            let finished = match self.intake.progress() {
                Progress::Open => false,
                Progress::Finished => true,
                Progress::Done => return None,
            };
            let limit = if finished { silence.min(AFTER_FINISH) } else { silence };
            let Some(heard) = self.patience.wait(limit, self.body.next()).await else {
                // The model has said all: how the connection ends is of no interest.
                if finished {
                    return None;
                }
                let message = format!("The upstream said nothing for {} seconds.", limit.as_secs());
                self.ended = true;
                return Some(Err(ModelError::new(ModelErrorKind::Timeout, message)));
            };
            if let (Some(Err(_)), true) = (&heard, finished) {
                return None;
            }
            let (mut batch, mut error) = self.take(heard);
            for _ in 1..BURST {
                if self.ended || error.is_some() || self.intake.progress() != Progress::Open {
                    break;
                }
                let Some(heard) = self.at_hand().await else { break };
                let (more, failed) = self.take(heard);
                batch.extend(more);
                error = failed;
            }
            if !batch.is_empty() {
                self.ready.push_back(Ok(batch));
            }
            if let Some(error) = error {
                self.ended = true;
                self.ready.push_back(Err(error));
            }
        }
    }

    /// What the connection has read already. It is a task of its own and hands over one piece when it is asked for it, so it is given its
    /// turn once: else every piece of a burst would be a batch, and a write to the client, of its own.
    async fn at_hand(&mut self) -> Option<Heard> {
        match self.body.next().now_or_never() {
            None => {
                tokio::task::yield_now().await;
                self.body.next().now_or_never()
            }
            heard => heard,
        }
    }

    fn take(&mut self, heard: Heard) -> Taken {
        match heard {
            Some(Ok(bytes)) => self.intake.push(&bytes),
            None => {
                self.ended = true;
                self.intake.end()
            }
            Some(Err(_)) => {
                let lost = "The connection to the upstream was lost within its answer.";
                (Vec::new(), Some(broken(lost)))
            }
        }
    }
}
