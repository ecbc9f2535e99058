//! An answer that is being read: the body's bytes, the limits on its silence, and what was read ahead.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use tokio::time::{Instant, timeout};

use super::{
    Deltas, ModelError, ModelErrorKind,
    intake::{Intake, Progress, Reading, broken},
};
use crate::turn::Delta;

/// How long the usage is waited for once the model has stopped.
const AFTER_FINISH: Duration = Duration::from_secs(10);

/// The body of an answer. Dropping it closes the connection.
pub(crate) struct Answer {
    body: BoxStream<'static, Result<Bytes, reqwest::Error>>,
    intake: Intake<Box<dyn Reading>>,
    /// What was read and not handed on.
    ready: VecDeque<Result<Vec<Delta>, ModelError>>,
    /// The longest silence.
    silence: Duration,
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
            let (batch, error) = match timeout(limit, self.body.next()).await {
                Ok(Some(Ok(bytes))) => self.intake.push(&bytes),
                Ok(None) => {
                    self.ended = true;
                    self.intake.end()
                }
                // The model has said all: how the connection ends is of no interest.
                Ok(Some(Err(_))) | Err(_) if finished => return None,
                Ok(Some(Err(_))) => (
                    Vec::new(),
                    Some(broken("The connection to the upstream was lost within its answer.")),
                ),
                Err(_) => {
                    let message =
                        format!("The upstream said nothing for {} seconds.", limit.as_secs());
                    (Vec::new(), Some(ModelError::new(ModelErrorKind::Timeout, message)))
                }
            };
            if !batch.is_empty() {
                self.ready.push_back(Ok(batch));
            }
            if let Some(error) = error {
                self.ended = true;
                self.ready.push_back(Err(error));
            }
        }
    }
}
