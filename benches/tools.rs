//! What the runner costs per call, beside what a tool does: a Round of calls of a tool that answers at once.

use std::{hint::black_box, sync::Arc};

use antiphon::{
    clock::Clock,
    protocol::Principal,
    telemetry::Metrics,
    tools::{Context, Registry, clock_tool::ClockTool, runner},
    turn::{HostedRef, ToolCall},
};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

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

fn calls(count: usize) -> Vec<ToolCall> {
    let tool = HostedRef { label: "antiphon".to_owned(), name: "get_current_time".to_owned() };
    let call = |slot| ToolCall {
        slot,
        tool: tool.clone(),
        arguments: r#"{"utc_offset":"+02:00"}"#.to_owned(),
        item_id: "mcp_1".into(),
    };
    (0..count).map(call).collect()
}

fn run(criterion: &mut Criterion) {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else {
        return;
    };
    let mut registry = Registry::default();
    registry.add(Arc::new(ClockTool::new(Clock::fixed(0))));
    let (context, limits, metrics) = (context(), runner::Limits::default(), Metrics::default());
    let mut group = criterion.benchmark_group("tools/runner");
    for count in [1, 8, 64] {
        let calls = calls(count);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(count.to_string(), |bencher| {
            bencher.iter_batched(
                || (),
                |()| {
                    runtime.block_on(async {
                        let mut running =
                            runner::run(&registry, &calls, &context, &limits, &metrics);
                        while let Some(news) = running.next().await {
                            black_box(news);
                        }
                    });
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, run);
criterion_main!(benches);
