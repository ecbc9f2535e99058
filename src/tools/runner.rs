//! Runs the calls of a Round side by side. One that fails, panics or takes too long answers for itself only, and as soon as it has.

use std::{collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use serde_json::{Map, Value};
use tokio::{
    sync::{RwLock, Semaphore, mpsc},
    time::Instant,
};

use crate::{
    protocol::Part,
    telemetry::{Metrics, ToolEnd},
    text::cap::cap_tokens,
    turn::{HostedRef, ToolCall, ToolFailure, ToolOutcome, ToolOutput},
};

use super::{Call, Context, OWN_LABEL, Picture, Progress, Registry, Tool, ToolError, arguments};

/// How many unfinished pictures may wait for the client.
const PICTURES: usize = 8;

/// How calls are run.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Calls of one Response that run at once; more wait their turn.
    pub parallel: usize,
    /// Calls of all Responses that run at once; more wait their turn.
    pub everywhere: Arc<Semaphore>,
    /// The longest that any call may take, whatever its tool allows.
    pub time: Duration,
    /// The longest that the calls of one Round may take, waiting included.
    pub round: Duration,
    /// The most tokens of a result that the model is shown, roughly.
    pub result_tokens: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            parallel: 8,
            everywhere: Arc::new(Semaphore::new(256)),
            time: Duration::from_mins(5),
            round: Duration::from_mins(10),
            result_tokens: 32_000,
        }
    }
}

/// What is heard of calls while they run.
#[derive(Debug)]
pub enum Heard {
    /// A picture that is not finished.
    Picture(Picture),
    /// What became of a call.
    Outcome(ToolOutcome),
}

/// The calls of a Round, running. Dropping it cancels all of them.
pub struct Running<'a> {
    batches: FuturesUnordered<BoxFuture<'a, Vec<ToolOutcome>>>,
    pictures: mpsc::Receiver<Picture>,
    deadline: Instant,
    limit: Duration,
    /// The calls that nothing was heard of yet.
    open: Vec<usize>,
}

/// Calls of one tool that run together, mostly one.
struct Batch<'a> {
    tool: &'a Arc<dyn Tool>,
    calls: Vec<&'a ToolCall>,
}

/// Begins to run calls; nothing happens until the result is polled.
pub fn run<'a>(
    registry: &'a Registry,
    calls: &'a [ToolCall],
    context: &'a Context,
    limits: &'a Limits,
    metrics: &'a Metrics,
) -> Running<'a> {
    let (heard, pictures) = mpsc::channel(PICTURES);
    let here = Arc::new(Semaphore::new(limits.parallel.max(1)));
    // Held shared by calls that may run beside others, alone by those that must not.
    let alone = Arc::new(RwLock::new(()));
    let runner = Runner { context, limits, metrics, heard, here, alone };
    let batches = FuturesUnordered::new();
    for batch in batches_of(registry, calls, &batches, metrics) {
        batches.push(runner.clone().run(batch).boxed());
    }
    Running {
        batches,
        pictures,
        deadline: Instant::now() + limits.round,
        limit: limits.round,
        open: calls.iter().map(|call| call.slot).collect(),
    }
}

impl Running<'_> {
    /// What is heard next; nothing once all calls have ended.
    pub async fn next(&mut self) -> Option<Vec<Heard>> {
        if self.open.is_empty() {
            return None;
        }
        tokio::select! {
            biased;
            Some(picture) = self.pictures.recv() => Some(vec![Heard::Picture(picture)]),
            Some(outcomes) = self.batches.next() => {
                self.open.retain(|slot| outcomes.iter().all(|outcome| outcome.slot != *slot));
                Some(outcomes.into_iter().map(Heard::Outcome).collect())
            }
            () = tokio::time::sleep_until(self.deadline) => {
                self.batches.clear();
                let open = std::mem::take(&mut self.open);
                let seconds = self.limit.as_secs();
                Some(open.into_iter().map(|slot| Heard::Outcome(failed(slot, ToolFailure::new(format!(
                    "The tools of this step took longer than {seconds} seconds together, and this one was stopped."
                ))))).collect())
            }
        }
    }
}

/// Puts calls together that run as one. A call of a tool that is not there is answered at once.
fn batches_of<'a>(
    registry: &'a Registry,
    calls: &'a [ToolCall],
    answered: &FuturesUnordered<BoxFuture<'a, Vec<ToolOutcome>>>,
    metrics: &'a Metrics,
) -> Vec<Batch<'a>> {
    let mut batches: Vec<Batch<'a>> = Vec::new();
    let mut open: HashMap<&HostedRef, usize> = HashMap::new();
    for call in calls {
        let Some(tool) = registry.get(&call.tool) else {
            metrics.tool_call(counted(&call.tool), ToolEnd::refused);
            let why = format!("The tool `{}` is not available any more.", call.tool.name);
            let outcome = failed(call.slot, ToolFailure::new(why));
            answered.push(std::future::ready(vec![outcome]).boxed());
            continue;
        };
        if let Some(at) = open.get(&call.tool) {
            batches[*at].calls.push(call);
            continue;
        }
        if tool.spec().batched_over.is_some() {
            open.insert(&call.tool, batches.len());
        }
        batches.push(Batch { tool, calls: vec![call] });
    }
    batches
}

/// What the calls of a Round have in common.
#[derive(Clone)]
struct Runner<'a> {
    context: &'a Context,
    limits: &'a Limits,
    metrics: &'a Metrics,
    heard: mpsc::Sender<Picture>,
    here: Arc<Semaphore>,
    alone: Arc<RwLock<()>>,
}

impl<'a> Runner<'a> {
    /// Runs a batch when its turn has come.
    async fn run(self, batch: Batch<'a>) -> Vec<ToolOutcome> {
        let spec = batch.tool.spec();
        let mut outcomes = Vec::with_capacity(batch.calls.len());
        let mut ready: Vec<(&ToolCall, Map<String, Value>)> = Vec::new();
        for call in &batch.calls {
            match arguments::read(&call.arguments, spec) {
                Ok(arguments) => ready.push((call, arguments)),
                Err(why) => {
                    self.metrics.tool_call(counted(&call.tool), ToolEnd::refused);
                    outcomes.push(failed(call.slot, ToolFailure::new(why)));
                }
            }
        }
        if ready.is_empty() {
            return outcomes;
        }
        // They are never closed.
        let _here = self.here.acquire().await;
        let _everywhere = self.limits.everywhere.acquire().await;
        let (mut _shared, mut _alone) = (None, None);
        if spec.is_exclusive {
            _alone = Some(self.alone.write().await);
        } else {
            _shared = Some(self.alone.read().await);
        }
        let time = spec.time_limit.min(self.limits.time);
        let began = Instant::now();
        let results = self.results(batch.tool, &ready, time).await;
        self.metrics.tool_time(counted(&ready[0].0.tool), began.elapsed());
        for ((call, _), result) in ready.iter().zip(results) {
            outcomes.push(self.outcome(call, result, time));
        }
        outcomes
    }

    async fn results(
        &self,
        tool: &Arc<dyn Tool>,
        ready: &[(&ToolCall, Map<String, Value>)],
        time: Duration,
    ) -> Vec<Result<ToolOutput, Trouble>> {
        let mut calls: Vec<Call<'_>> = ready
            .iter()
            .map(|(call, arguments)| Call {
                arguments,
                context: self.context,
                progress: Progress::new(call.slot, self.heard.clone()),
            })
            .collect();
        let work = async {
            match calls.pop() {
                Some(only) if calls.is_empty() => vec![tool.run(only).await],
                Some(last) => {
                    calls.push(last);
                    tool.run_batch(calls).await
                }
                None => Vec::new(),
            }
        };
        match tokio::time::timeout(time, AssertUnwindSafe(work).catch_unwind()).await {
            Ok(Ok(results)) => {
                let mut results: Vec<_> =
                    results.into_iter().map(|result| result.map_err(Trouble::Tool)).collect();
                // A batch that forgets a call.
                results.resize_with(ready.len(), || Err(Trouble::Silent));
                results
            }
            Ok(Err(_panic)) => ready.iter().map(|_| Err(Trouble::Panic)).collect(),
            Err(_elapsed) => ready.iter().map(|_| Err(Trouble::TooLong)).collect(),
        }
    }

    fn outcome(
        &self,
        call: &ToolCall,
        result: Result<ToolOutput, Trouble>,
        time: Duration,
    ) -> ToolOutcome {
        let (tool, item) = (&call.tool.name, &call.item_id);
        let response = &self.context.response_id;
        let (kind, output) = match result {
            Ok(output) => (ToolEnd::completed, Ok(self.capped(output))),
            Err(Trouble::Tool(ToolError::ForModel(mut failure))) => {
                cap_tokens(&mut failure.told, self.limits.result_tokens);
                (ToolEnd::failed, Err(failure))
            }
            Err(Trouble::Tool(ToolError::Internal(error))) => {
                tracing::error!(%tool, %item, %response, error = format!("{error:#}"), "tool failed");
                (ToolEnd::broken, Err(neutral(call)))
            }
            Err(Trouble::Panic) => {
                tracing::error!(%tool, %item, %response, "tool panicked");
                (ToolEnd::broken, Err(neutral(call)))
            }
            Err(Trouble::Silent) => {
                tracing::error!(%tool, %item, %response, "tool left a call of a batch out");
                (ToolEnd::broken, Err(neutral(call)))
            }
            Err(Trouble::TooLong) => {
                let seconds = time.as_secs();
                tracing::warn!(%tool, %item, %response, seconds, "tool timed out");
                let why = format!("The tool took longer than {seconds} seconds and was stopped.");
                (ToolEnd::timeout, Err(ToolFailure::new(why)))
            }
        };
        self.metrics.tool_call(counted(&call.tool), kind);
        ToolOutcome { slot: call.slot, output }
    }

    /// The output with no more text than the model is to be shown.
    fn capped(&self, mut output: ToolOutput) -> ToolOutput {
        let mut left = self.limits.result_tokens;
        for part in &mut output.told {
            if let Part::InputText(text) = part {
                left = left.saturating_sub(cap_tokens(&mut text.text, left));
            }
        }
        output
    }
}

/// Why a call has no output.
enum Trouble {
    Tool(ToolError),
    Panic,
    Silent,
    TooLong,
}

/// The name under which calls are counted. Labels of servers are the clients' to choose, and not for everybody to read.
fn counted(tool: &HostedRef) -> &str {
    if tool.label == OWN_LABEL { &tool.name } else { "server" }
}

fn failed(slot: usize, failure: ToolFailure) -> ToolOutcome {
    ToolOutcome { slot, output: Err(failure) }
}

fn neutral(call: &ToolCall) -> ToolFailure {
    let reference = &call.item_id;
    ToolFailure::new(format!(
        "The tool failed on the server's side (reference {reference}). Go on without it."
    ))
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
