use futures::future::BoxFuture;
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::sync::{Barrier, Notify};

use super::*;
use crate::{protocol::Principal, tools::Spec};

/// A tool that behaves in one way.
struct Odd {
    spec: Spec,
    way: Way,
}

enum Way {
    /// Ends only when as many calls run at once as the barrier waits for.
    Together(Arc<Barrier>),
    /// Says what it was asked, all calls of a batch at once.
    Echoes,
    /// Ends when it is let go, and says whether another ran beside it.
    Alone(Arc<Notify>, Arc<std::sync::atomic::AtomicUsize>),
    Panics,
    Hangs(Arc<std::sync::atomic::AtomicUsize>),
    Breaks,
    Complains,
    Shouts,
}

/// Counts those who are inside.
struct Inside(Arc<std::sync::atomic::AtomicUsize>);

impl Inside {
    fn enter(count: &Arc<std::sync::atomic::AtomicUsize>) -> (Self, usize) {
        let others = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        (Self(count.clone()), others)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
    }
}

fn odd(name: &str, way: Way) -> Arc<dyn Tool> {
    let parameters = json!({
        "type": "object",
        "properties": { "n": { "type": "integer" }, "words": { "type": "array", "items": { "type": "string" } } },
    });
    let mut spec = Spec::own(name, name, "", &parameters);
    spec.batched_over = matches!(way, Way::Echoes).then_some("words");
    spec.is_exclusive = matches!(way, Way::Alone(..));
    Arc::new(Odd { spec, way })
}

impl Tool for Odd {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match &self.way {
                Way::Together(barrier) => {
                    barrier.wait().await;
                    Ok(ToolOutput::text(call.arguments["n"].to_string()))
                }
                Way::Echoes => Ok(ToolOutput::text(call.arguments["words"].to_string())),
                Way::Alone(gate, count) => {
                    let (_inside, others) = Inside::enter(count);
                    gate.notified().await;
                    Ok(ToolOutput::text(others.to_string()))
                }
                Way::Panics => panic!("boom"),
                Way::Hangs(count) => {
                    let _inside = Inside::enter(count);
                    std::future::pending().await
                }
                Way::Breaks => Err(anyhow::anyhow!("secret of the house").into()),
                Way::Complains => Err(ToolError::told("say please")),
                Way::Shouts => Ok(ToolOutput::text("A".repeat(1000))),
            }
        })
    }

    fn run_batch<'a>(
        &'a self,
        calls: Vec<Call<'a>>,
    ) -> BoxFuture<'a, Vec<Result<ToolOutput, ToolError>>> {
        let together = calls.len();
        let said = |call: Call<'_>| {
            Ok(ToolOutput::text(format!("{} of {together}", call.arguments["words"])))
        };
        // The last one is forgotten.
        let said = calls.into_iter().take(2).map(said).collect();
        Box::pin(std::future::ready(said))
    }
}

fn call(slot: usize, name: &str, arguments: &str) -> ToolCall {
    let tool = HostedRef { label: OWN_LABEL.to_owned(), name: name.to_owned() };
    let item_id = format!("mcp_{slot}").into();
    ToolCall { slot, tool, arguments: arguments.to_owned(), item_id }
}

fn context() -> Context {
    Context {
        principal: Principal::local(),
        response_id: "resp_1".to_owned(),
        chain_id: "resp_1".to_owned(),
        is_stored: true,
        include: Arc::default(),
        history: Arc::from([]),
        traceparent: None,
    }
}

fn limits() -> Limits {
    Limits {
        parallel: 8,
        everywhere: Arc::new(Semaphore::new(64)),
        time: Duration::from_secs(5),
        round: Duration::from_mins(1),
        result_tokens: 100,
    }
}

fn registry(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Registry {
    let mut registry = Registry::default();
    for tool in tools {
        registry.add(tool);
    }
    registry
}

/// What was heard, in the order in which it was heard.
async fn heard(registry: &Registry, calls: &[ToolCall], limits: &Limits) -> Vec<(usize, String)> {
    let (context, metrics) = (context(), Metrics::default());
    let mut running = run(registry, calls, &context, limits, &metrics);
    let mut all = Vec::new();
    while let Some(batch) = running.next().await {
        for news in batch {
            let Heard::Outcome(ToolOutcome { slot, output }) = news else { continue };
            let text = match output {
                Ok(output) => output.told[0].text().unwrap_or_default().to_owned(),
                Err(failure) => format!("failed: {}", failure.told),
            };
            all.push((slot, text));
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn calls_run_side_by_side_and_each_answers_for_itself() {
    let inside = Arc::default();
    let registry = registry([
        odd("together", Way::Together(Arc::new(Barrier::new(3)))),
        odd("panics", Way::Panics),
        odd("hangs", Way::Hangs(Arc::clone(&inside))),
        odd("breaks", Way::Breaks),
        odd("complains", Way::Complains),
    ]);
    let names =
        ["together", "panics", "together", "hangs", "breaks", "together", "complains", "gone"];
    let calls: Vec<ToolCall> = names
        .iter()
        .enumerate()
        .map(|(slot, name)| call(slot, name, &format!(r#"{{"n":{slot}}}"#)))
        .collect();
    let heard = heard(&registry, &calls, &limits()).await;
    // The one that hangs does not hold up the others.
    assert_eq!(heard.last().unwrap().0, 3);
    let mut by_slot = heard;
    by_slot.sort();
    let failed = |slot| {
        format!(
            "failed: The tool failed on the server's side (reference mcp_{slot}). Go on without it."
        )
    };
    let expected = [
        (0, "0".to_owned()),
        (1, failed(1)),
        (2, "2".to_owned()),
        (3, "failed: The tool took longer than 5 seconds and was stopped.".to_owned()),
        (4, failed(4)),
        (5, "5".to_owned()),
        (6, "failed: say please".to_owned()),
        (7, "failed: The tool `gone` is not available any more.".to_owned()),
    ];
    assert_eq!(by_slot, expected);
    // A timeout really cancels.
    assert_eq!(inside.load(std::sync::atomic::Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn the_round_has_a_limit_and_dropping_it_cancels() {
    let inside = Arc::default();
    let registry = registry([odd("hangs", Way::Hangs(Arc::clone(&inside)))]);
    let calls = [call(0, "hangs", "{}"), call(1, "hangs", "{}")];
    let count = || inside.load(std::sync::atomic::Ordering::SeqCst);
    let limits = Limits { round: Duration::from_secs(2), ..limits() };
    let all = heard(&registry, &calls, &limits).await;
    let why = "failed: The tools of this step took longer than 2 seconds together, and this one was stopped.";
    assert_eq!(all, [(0, why.to_owned()), (1, why.to_owned())]);
    assert_eq!(count(), 0);

    let (context, metrics) = (context(), Metrics::default());
    let mut running = run(&registry, &calls, &context, &limits, &metrics);
    let waited = tokio::time::timeout(Duration::from_millis(1), running.next()).await;
    assert!(waited.is_err());
    assert_eq!(count(), 2);
    drop(running);
    assert_eq!(count(), 0);
}

#[tokio::test(start_paused = true)]
async fn more_calls_than_may_run_wait_their_turn() {
    // Two at a time can meet; a third would be one too many.
    let registry = registry([odd("together", Way::Together(Arc::new(Barrier::new(2))))]);
    let calls: Vec<ToolCall> = (0..6).map(|slot| call(slot, "together", r#"{"n":1}"#)).collect();
    for limits in [
        Limits { parallel: 2, ..limits() },
        Limits { everywhere: Arc::new(Semaphore::new(2)), ..limits() },
    ] {
        assert_eq!(heard(&registry, &calls, &limits).await.len(), 6);
    }
    // One at a time can never meet.
    let all = heard(&registry, &calls[..1], &limits()).await;
    assert_eq!(all[0].1, "failed: The tool took longer than 5 seconds and was stopped.");
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_tool_runs_alone() {
    let (gate, count) = (Arc::new(Notify::new()), Arc::default());
    let registry = registry([odd("alone", Way::Alone(Arc::clone(&gate), Arc::clone(&count)))]);
    let calls = [call(0, "alone", "{}"), call(1, "alone", "{}")];
    let opening = async {
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            gate.notify_one();
        }
    };
    let limits = limits();
    let (heard, ()) = tokio::join!(heard(&registry, &calls, &limits), opening);
    assert_eq!(heard, [(0, "0".to_owned()), (1, "0".to_owned())]);
}

#[tokio::test]
async fn repeated_calls_of_a_tool_that_batches_run_as_one() {
    let registry = registry([odd("echo", Way::Echoes), odd("complains", Way::Complains)]);
    let words = |word: &str| format!(r#"{{"words":["{word}"]}}"#);
    let one = [call(0, "echo", &words("a"))];
    assert_eq!(heard(&registry, &one, &limits()).await, [(0, r#"["a"]"#.to_owned())]);
    let calls = [
        call(0, "echo", &words("a")),
        call(1, "complains", "{}"),
        call(2, "echo", "not json"),
        call(3, "echo", &words("b")),
        call(4, "echo", &words("c")),
    ];
    let mut heard = heard(&registry, &calls, &limits()).await;
    heard.sort();
    assert_eq!(heard[0].1, r#"["a"] of 3"#);
    assert_eq!(heard[1].1, "failed: say please");
    assert!(heard[2].1.starts_with("failed: "), "{heard:?}");
    assert_eq!(heard[3].1, r#"["b"] of 3"#);
    // One that the batch forgot has an outcome all the same.
    assert!(heard[4].1.contains("reference mcp_4"), "{heard:?}");
}

#[tokio::test]
async fn a_long_result_is_cut_and_says_so() {
    let registry = registry([odd("shouts", Way::Shouts)]);
    let heard = heard(&registry, &[call(0, "shouts", "{}")], &limits()).await;
    assert!(heard[0].1.contains("600 characters left out"), "{heard:?}");
}
