//! Runs the calls of a Round side by side. One that fails, panics or takes too long answers for itself only.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::{FutureExt as _, StreamExt as _, stream};

use crate::turn::{ToolCall, ToolOutcome};

use super::{Call, Context, Registry, ToolError};

/// How calls are run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many at once; the rest waits its turn.
    pub parallel: usize,
    /// The longest that any call may take, whatever its tool allows.
    pub time: Duration,
}

/// Runs calls. The outcomes are in the order of the calls. Dropping the future cancels all of them.
pub async fn run(
    registry: &Registry,
    calls: &[ToolCall],
    context: &Context,
    limits: Limits,
) -> Vec<ToolOutcome> {
    let runs: Vec<_> = calls.iter().map(|call| one(registry, call, context, limits)).collect();
    stream::iter(runs).buffered(limits.parallel.max(1)).collect().await
}

/// Runs one call.
async fn one(
    registry: &Registry,
    call: &ToolCall,
    context: &Context,
    limits: Limits,
) -> ToolOutcome {
    let output = output(registry, call, context, limits).await;
    ToolOutcome { slot: call.slot, output }
}

/// The output of one call, or why there is none. Both texts are for the model.
async fn output(
    registry: &Registry,
    call: &ToolCall,
    context: &Context,
    limits: Limits,
) -> Result<String, String> {
    let name = &call.tool.name;
    let Some(tool) = registry.get(name) else {
        return Err(format!("The tool `{name}` is not available any more."));
    };
    let time = tool.time_limit().min(limits.time);
    let run = tool.run(Call { arguments: &call.arguments, context });
    match tokio::time::timeout(time, AssertUnwindSafe(run).catch_unwind()).await {
        Ok(Ok(Ok(output))) => Ok(output),
        Ok(Ok(Err(ToolError::ForModel(sentence)))) => Err(sentence),
        Ok(Ok(Err(ToolError::Internal(error)))) => {
            tracing::error!(tool = %name, response = %context.response_id, error = format!("{error:#}"), "tool failed");
            Err(neutral(context))
        }
        Ok(Err(_panic)) => {
            tracing::error!(tool = %name, response = %context.response_id, "tool panicked");
            Err(neutral(context))
        }
        Err(_elapsed) => {
            tracing::warn!(tool = %name, response = %context.response_id, seconds = time.as_secs(), "tool timed out");
            Err(format!("The tool took longer than {} seconds and was stopped.", time.as_secs()))
        }
    }
}

fn neutral(context: &Context) -> String {
    format!(
        "The tool failed on the server's side (reference {}). Go on without it.",
        context.response_id
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::future::BoxFuture;
    use tokio::sync::Barrier;

    use crate::{
        protocol::{Principal, Raw},
        tools::Tool,
        turn::HostedRef,
    };

    use super::*;

    enum Odd {
        /// Ends only when as many calls run at once as the barrier waits for.
        Together(Arc<Barrier>),
        Panics,
        Hangs,
        Breaks,
        Complains,
    }

    impl Tool for Odd {
        fn name(&self) -> &'static str {
            match self {
                Self::Together(_) => "together",
                Self::Panics => "panics",
                Self::Hangs => "hangs",
                Self::Breaks => "breaks",
                Self::Complains => "complains",
            }
        }

        fn description(&self) -> &'static str {
            ""
        }

        fn parameters(&self) -> Raw {
            Raw::null()
        }

        fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<String, ToolError>> {
            Box::pin(async move {
                match self {
                    Self::Together(barrier) => {
                        barrier.wait().await;
                        Ok(call.arguments.to_owned())
                    }
                    Self::Panics => panic!("boom"),
                    Self::Hangs => std::future::pending().await,
                    Self::Breaks => Err(anyhow::anyhow!("secret of the house").into()),
                    Self::Complains => Err(ToolError::ForModel("say please".to_owned())),
                }
            })
        }
    }

    fn call(slot: usize, name: &str) -> ToolCall {
        let tool = HostedRef { label: "antiphon".to_owned(), name: name.to_owned() };
        ToolCall { slot, tool, arguments: slot.to_string() }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_run_side_by_side_and_each_answers_for_itself() {
        let barrier = Arc::new(Barrier::new(2));
        let registry = Registry::new(vec![
            Arc::new(Odd::Together(barrier)),
            Arc::new(Odd::Panics),
            Arc::new(Odd::Hangs),
            Arc::new(Odd::Breaks),
            Arc::new(Odd::Complains),
        ]);
        let names = ["together", "panics", "together", "hangs", "breaks", "complains", "gone"];
        let calls: Vec<ToolCall> =
            names.iter().enumerate().map(|(slot, name)| call(slot, name)).collect();
        let context = Context { principal: Principal::local(), response_id: "resp_1".to_owned() };
        let limits = Limits { parallel: 8, time: Duration::from_secs(5) };
        let outcomes = run(&registry, &calls, &context, limits).await;
        let heard: Vec<_> = outcomes.into_iter().map(|o| (o.slot, o.output)).collect();
        let failed =
            Err("The tool failed on the server's side (reference resp_1). Go on without it."
                .to_owned());
        assert_eq!(
            heard,
            [
                (0, Ok("0".to_owned())),
                (1, failed.clone()),
                (2, Ok("2".to_owned())),
                (3, Err("The tool took longer than 5 seconds and was stopped.".to_owned())),
                (4, failed),
                (5, Err("say please".to_owned())),
                (6, Err("The tool `gone` is not available any more.".to_owned())),
            ]
        );
    }
}
