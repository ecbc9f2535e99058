//! One Response running. A [`Run`] is polled by whoever reads it; nothing runs on when it is dropped.

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context as TaskContext, Poll},
    time::Duration,
};

use futures::{FutureExt as _, Stream, StreamExt as _, future::BoxFuture};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

use crate::{
    model::{Ask, Choice, Deltas, ModelError, ModelErrorKind},
    protocol::{
        ApiError, CreateResponse, ErrorKind, Event, Include, Item, Numbered, Principal, Response,
        SharedItem, Status,
    },
    telemetry::{CallError, RescueGround, TokenKind, traceparent},
    tools::{self, read_file::Previews, toolbox::Assembly},
    turn::{
        Next, Turn,
        catalog::FirstChoice,
        render::render,
        written::{Ground, Rescued},
    },
};

use super::{
    Engine, Remembered, approvals::Approved, idempotency::Key, lease::Lease, prepare::plain,
};

/// How many batches may wait for a reader who is slow.
const WAITING: usize = 32;
/// How long a run that must end is left to its reader. One who does not read does not drive it either.
const OVERDUE: Duration = Duration::from_secs(1);

/// One Response running: a stream of event batches. The last batch holds the terminal event.
pub struct Run {
    events: mpsc::Receiver<Vec<Numbered>>,
    rest: Arc<Mutex<Rest>>,
    _released_on_drop: DropGuard,
}

/// What is left to do of a run, or how it ended.
#[derive(Default)]
struct Rest {
    work: Option<BoxFuture<'static, Outcome>>,
    outcome: Option<Outcome>,
}

/// How a run ended.
struct Outcome {
    response: Arc<Response>,
    /// Why it failed, when it failed before its first Round had ended: a JSON client is told by the HTTP status.
    early_failure: Option<ApiError>,
    chain_id: String,
    items: Vec<SharedItem>,
    stored: bool,
}

/// What a run works with.
pub(super) struct Work {
    pub(super) turn: Turn,
    pub(super) model: String,
    pub(super) request: CreateResponse,
    pub(super) history: Vec<SharedItem>,
    /// Whether the store does not have that history, because only a connection remembered it.
    pub(super) carried: bool,
    pub(super) input: Vec<SharedItem>,
    pub(super) lease: Option<Lease>,
    pub(super) principal: Principal,
    pub(super) idempotency: Option<Key>,
    pub(super) assembly: Assembly,
    /// What the model is shown in the place of items with long files.
    pub(super) previews: Previews,
    /// Calls that the client approved, to be run first.
    pub(super) approved: Vec<Approved>,
    pub(super) context: tools::Context,
}

/// Why the Rounds came to an end before the Turn was finished.
pub(super) enum Stop {
    /// The Response fails.
    Failed(ApiError),
    /// Nobody listens any more.
    Deserted,
}

impl From<ModelError> for Stop {
    fn from(error: ModelError) -> Self {
        Self::Failed(error.into())
    }
}

impl Run {
    pub(super) fn new(engine: Engine, work: Work) -> Self {
        let (heard, events) = mpsc::channel(WAITING);
        let rest = Arc::new(Mutex::new(Rest::default()));
        let released = CancellationToken::new();
        let guard = released.clone().drop_guard();
        let (watched, end) = (Arc::downgrade(&rest), heard.downgrade());
        let watching = engine.clone().watch(watched, end, released);
        engine.parts().tasks.spawn(watching);
        let span = tracing::info_span!("response", response = %work.context.response_id, model = ?work.model);
        lock(&rest).work = Some(engine.respond(work, heard).instrument(span).boxed());
        Self { events, rest, _released_on_drop: guard }
    }

    /// Runs to the end and gives the Response; the error of a run that failed before its first Round had ended.
    pub async fn drain(mut self) -> Result<Arc<Response>, ApiError> {
        while self.next().await.is_some() {}
        match lock(&self.rest).outcome.take() {
            Some(Outcome { early_failure: Some(error), .. }) => Err(error),
            Some(Outcome { response, .. }) => Ok(response),
            None => Err(ApiError::server()),
        }
    }

    /// Why the run failed, once it has ended before its first Round was over.
    pub fn early_failure(&self) -> Option<ApiError> {
        lock(&self.rest).outcome.as_ref()?.early_failure.clone()
    }

    /// The Response with its whole history, once it has ended well.
    pub fn remember(&self) -> Option<Remembered> {
        let rest = lock(&self.rest);
        let Outcome { response, chain_id, items, stored, .. } = rest.outcome.as_ref()?;
        (response.status != Status::Failed).then(|| Remembered {
            response_id: response.id.clone(),
            chain_id: chain_id.clone(),
            items: items.iter().chain(&response.output).cloned().collect(),
            stored: *stored,
        })
    }
}

impl Stream for Run {
    type Item = Vec<Numbered>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(Some(batch)) = self.events.poll_recv(cx) {
            return Poll::Ready(Some(batch));
        }
        let rest = Arc::clone(&self.rest);
        {
            let mut rest = lock(&rest);
            if let Some(work) = rest.work.as_mut()
                && let Poll::Ready(outcome) = work.poll_unpin(cx)
            {
                *rest = Rest { work: None, outcome: Some(outcome) };
            }
        }
        // The other end is dropped with the work.
        self.events.poll_recv(cx)
    }
}

impl Engine {
    /// Drives a run to its end when it must end and its reader does not.
    async fn watch(
        self,
        rest: Weak<Mutex<Rest>>,
        end: mpsc::WeakSender<Vec<Numbered>>,
        released: CancellationToken,
    ) {
        let parts = self.parts();
        let due = async {
            tokio::select! {
                () = tokio::time::sleep(parts.rules.total) => (),
                () = parts.cut.cancelled() => (),
            }
            tokio::time::sleep(OVERDUE).await;
        };
        if released.run_until_cancelled(due).await.is_none() {
            return;
        }
        // The reader hears of the end only when the outcome is there.
        let _end = end.upgrade();
        let Some(work) = rest.upgrade().and_then(|rest| lock(&rest).work.take()) else { return };
        if let Some(outcome) = released.run_until_cancelled(work).await
            && let Some(rest) = rest.upgrade()
        {
            lock(&rest).outcome = Some(outcome);
        }
    }

    /// Writes one Response, whatever happens.
    async fn respond(self, mut work: Work, heard: mpsc::Sender<Vec<Numbered>>) -> Outcome {
        let mut rounds = 0;
        let cut = self.parts().cut.clone();
        let limit = self.parts().rules.total;
        let ended = tokio::select! {
            biased;
            ended = tokio::time::timeout(
                limit,
                AssertUnwindSafe(self.rounds(&mut work, &heard, &mut rounds)).catch_unwind(),
            ) => ended,
            () = cut.cancelled() => Ok(Ok(Err(Stop::Failed(stopping())))),
        };
        let failure = match ended {
            Ok(Ok(Ok(()))) => None,
            Ok(Ok(Err(Stop::Deserted))) => Some(ApiError::server()),
            Ok(Ok(Err(Stop::Failed(error)))) => Some(error),
            Ok(Err(_panic)) => {
                tracing::error!(response = %work.context.response_id, "a run panicked");
                Some(ApiError::server())
            }
            Err(_elapsed) => Some(too_long(limit)),
        };
        if let Some(error) = &failure {
            work.turn.fail(error);
        }
        self.end(work, heard, failure.filter(|_| rounds == 0)).await
    }

    /// Commits the Response, then lets its terminal event leave.
    async fn end(
        &self,
        mut work: Work,
        heard: mpsc::Sender<Vec<Numbered>>,
        mut early_failure: Option<ApiError>,
    ) -> Outcome {
        let parts = self.parts();
        // Nothing was done for it: the same request may be made again under its key.
        let mut unused_key = work.idempotency.take_if(|_| early_failure.is_some());
        let mut response = work.turn.conclude(parts.clock.unix());
        if let Err(error) = self.commit(&work, &response).await {
            tracing::warn!(response = %response.id, %error, "a response could not be stored");
            if response.status != Status::Failed {
                work.turn.fail(&error);
                response = work.turn.conclude(parts.clock.unix());
                // What the database refuses of a success it may take of a failure.
                if error.kind != ErrorKind::Unavailable
                    && let Err(error) = self.commit(&work, &response).await
                {
                    tracing::warn!(response = %response.id, %error, "nor as a failed one");
                    unused_key = unused_key.or(work.idempotency.take());
                }
                early_failure = Some(error);
            }
        }
        if let Some(key) = unused_key {
            key.release(self, &work.principal, &response.id).await;
        }
        parts.metrics.response(response.status.word());
        if let Some(usage) = &response.usage {
            parts.metrics.tokens(&work.model, TokenKind::Input, usage.input_tokens);
            parts.metrics.tokens(&work.model, TokenKind::Output, usage.output_tokens);
        }
        // A reader that is slow does not hold up others.
        drop(work.lease);
        work.turn.terminal(Arc::clone(&response));
        // A reader that is gone has dropped this future already; one that is full will read.
        let _ = heard.send(work.turn.take_events()).await;
        let mut items = work.history;
        items.append(&mut work.input);
        let (chain_id, stored) = (work.context.chain_id, work.request.store);
        Outcome { response, early_failure, chain_id, items, stored }
    }

    /// Rounds and tools, until the Turn is finished.
    async fn rounds(
        &self,
        work: &mut Work,
        heard: &mpsc::Sender<Vec<Numbered>>,
        rounds: &mut u32,
    ) -> Result<(), Stop> {
        send(heard, &mut work.turn).await?;
        let mut next = self.open_tools(work, heard).await?;
        loop {
            next = match next {
                Next::Finish => return Ok(()),
                Next::RunTools(calls) => self.run_tools(work, &calls, heard).await?,
                Next::Ask => {
                    let round = tracing::info_span!("round", number = *rounds);
                    self.hear(work, heard).instrument(round).await?;
                    *rounds += 1;
                    let next = work.turn.end_round();
                    if let Some(rescued) = work.turn.take_rescue() {
                        self.tell_rescue(rescued);
                    }
                    next
                }
            };
            send(heard, &mut work.turn).await?;
        }
    }

    /// Lets the operator see that a model writes calls as text.
    fn tell_rescue(&self, Rescued { ground, calls }: Rescued) {
        let ground = match ground {
            Ground::Declared => RescueGround::declared,
            Ground::Guessed => RescueGround::guessed,
        };
        match ground {
            RescueGround::declared => tracing::info!(calls, "the model wrote calls as text"),
            RescueGround::guessed => tracing::info!(
                calls,
                "the text of the model was read for calls; if it always writes them so, set its `call_grammar`"
            ),
        }
        self.parts().metrics.rescue(ground, calls);
    }

    /// One Round: asks the model and hears it out.
    async fn hear(&self, work: &mut Work, heard: &mpsc::Sender<Vec<Numbered>>) -> Result<(), Stop> {
        let metrics = &self.parts().metrics;
        let call = tracing::info_span!("model_call", otel.kind = "client", model = ?work.model);
        let asked = Instant::now();
        let mut deltas = self
            .ask(work, traceparent(&call))
            .instrument(call)
            .await
            .inspect_err(|error| metrics.call_error(class(error.kind)))?;
        metrics.first_token(&work.model, asked.elapsed());
        while let Some(batch) = deltas.next().await {
            let batch = batch.inspect_err(|error| metrics.call_error(class(error.kind)))?;
            for delta in batch {
                work.turn.feed(delta);
            }
            send(heard, &mut work.turn).await?;
        }
        Ok(())
    }

    /// Asks the model for the next Round.
    async fn ask(&self, work: &Work, traceparent: Option<String>) -> Result<Deltas, ModelError> {
        let Work { turn, model, request, history, input, assembly, previews, .. } = work;
        let plan = turn.plan();
        let own = turn.items().map(|item| &**item);
        let given = plain(history).chain(plain(input)).map(|item| previews.of(item));
        let items: Vec<&Item> = given.chain(own).collect();
        let instructions = assembly.instructions(request.instructions.as_deref());
        let ask = Ask {
            model,
            messages: render(instructions.as_deref(), items.iter().copied(), turn.catalog()),
            tools: if plan.tools { turn.catalog().offered() } else { &[] },
            choice: match &plan.choice {
                FirstChoice::None => Choice::None,
                FirstChoice::Auto => Choice::Auto,
                FirstChoice::Required => Choice::Required,
                FirstChoice::Named(name) => Choice::Named(name),
            },
            parallel_calls: request.parallel_tool_calls,
            max_output_tokens: plan.max_output_tokens,
            temperature: request.temperature,
            top_p: request.top_p,
            presence_penalty: request.presence_penalty,
            frequency_penalty: request.frequency_penalty,
            logprobs: request
                .include
                .contains(&Include::OutputTextLogprobs)
                .then(|| request.top_logprobs.unwrap_or(0)),
            format: &request.text.format,
            verbosity: request.text.verbosity,
            effort: request.reasoning.as_ref().and_then(|reasoning| reasoning.effort),
            prompt_cache_key: request.prompt_cache_key.as_deref(),
            safety_identifier: request.safety_identifier.as_deref(),
            traceparent,
        };
        self.parts().metrics.round(model);
        self.parts().model.ask(&ask).await
    }
}

fn lock(rest: &Mutex<Rest>) -> MutexGuard<'_, Rest> {
    rest.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets the reader hear what has happened; waits while it is full.
pub(super) async fn send(heard: &mpsc::Sender<Vec<Numbered>>, turn: &mut Turn) -> Result<(), Stop> {
    let events = turn.take_events();
    if events.is_empty() {
        return Ok(());
    }
    heard.send(events).await.map_err(|_| Stop::Deserted)
}

/// The class under which a failed call of a model is counted.
fn class(kind: ModelErrorKind) -> CallError {
    match kind {
        ModelErrorKind::Unreachable => CallError::connect,
        ModelErrorKind::Timeout => CallError::timeout,
        ModelErrorKind::RateLimited(_) | ModelErrorKind::QuotaExceeded => CallError::rate_limit,
        ModelErrorKind::ContextOverflow
        | ModelErrorKind::ModelNotFound
        | ModelErrorKind::Rejected
        | ModelErrorKind::Unauthorized => CallError::refused,
        ModelErrorKind::Unavailable(_) | ModelErrorKind::Failed => CallError::server,
        ModelErrorKind::BrokenStream => CallError::protocol,
    }
}

fn stopping() -> ApiError {
    ApiError::new(
        ErrorKind::Unavailable,
        "The server was stopped while it worked on this. Please ask again.",
    )
    .code("server_error")
}

fn too_long(limit: Duration) -> ApiError {
    ApiError::new(
        ErrorKind::Timeout,
        format!("The response took longer than {} seconds and was stopped.", limit.as_secs()),
    )
    .code("server_error")
}

/// Whether a batch of events ends the Response.
pub fn ends(batch: &[Numbered]) -> bool {
    batch.last().is_some_and(|last| Event::terminal(&last.event).is_some())
}
