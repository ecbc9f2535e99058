//! How fast a Turn hears, and how fast the stream of a model is read. `cargo bench --bench turn`.
#![expect(clippy::unwrap_used, reason = "a bench that cannot be set up may stop")]

use std::{collections::HashSet, hint::black_box, sync::Arc};

use antiphon::{
    model::sse::{SseLimits, SseReader},
    protocol::{Settings, Tool, ToolChoice},
    text::{rescue::Reading, think::ThinkMode},
    turn::{Catalog, Delta, Rules, Turn},
};
use criterion::{BatchSize, Criterion, Throughput};

const SETTINGS: &str = r#"{
    "model": "m", "previous_response_id": null, "conversation": null, "instructions": null, "tools": [],
    "tool_choice": "auto", "parallel_tool_calls": true, "max_tool_calls": null, "max_output_tokens": null,
    "text": {}, "reasoning": null, "truncation": "disabled", "temperature": 1.0, "top_p": 1.0,
    "presence_penalty": 0.0, "frequency_penalty": 0.0, "top_logprobs": 0, "store": true, "background": false,
    "service_tier": "default", "metadata": {}, "safety_identifier": null, "prompt_cache_key": null
}"#;

fn begin(think: ThinkMode) -> Turn {
    let settings: Settings = serde_json::from_str(SETTINGS).unwrap();
    let tools: Vec<Tool> =
        serde_json::from_str(r#"[{"type":"function","name":"write_file"}]"#).unwrap();
    let catalog = Catalog::new(&tools, &ToolChoice::default(), Vec::new(), &[]).unwrap();
    let rules = Rules {
        open_responses: false,
        think,
        reading: Reading::default(),
        logprobs: false,
        seal: None,
        seal_data: None,
        max_rounds: 32,
        used_call_ids: HashSet::new(),
    };
    Turn::begin("resp_00", 0, Arc::new(settings), Arc::new(catalog), rules)
}

fn text(deltas: usize) -> Vec<Delta> {
    let piece = || Delta::Text { text: " token".to_owned(), logprobs: Vec::new() };
    (0..deltas).map(|_| piece()).collect()
}

fn call(pieces: usize) -> Vec<Delta> {
    let begin =
        Delta::Call { position: 0, id: Some("c".to_owned()), name: "write_file".to_owned() };
    let piece = |piece: &str| Delta::Arguments { position: 0, piece: piece.to_owned() };
    let middle = (0..pieces).map(|_| piece("some\\nlines "));
    [begin, piece(r#"{"text":""#)].into_iter().chain(middle).chain([piece(r#""}"#)]).collect()
}

/// The arguments of two calls, piece by piece in turns: the second waits for the first.
fn interleaved(pieces: usize) -> Vec<Delta> {
    let begin = |position: u32| Delta::Call {
        position,
        id: Some(format!("c{position}")),
        name: "write_file".to_owned(),
    };
    let both =
        |piece: &str| [0, 1].map(|position| Delta::Arguments { position, piece: piece.to_owned() });
    let middle = (0..pieces).flat_map(|_| both("some\\nlines "));
    [begin(0), begin(1)]
        .into_iter()
        .chain(both(r#"{"text":""#))
        .chain(middle)
        .chain(both(r#""}"#))
        .collect()
}

fn hear(mut turn: Turn, deltas: Vec<Delta>) -> Turn {
    for delta in deltas {
        turn.feed(delta);
        black_box(turn.take_events());
    }
    turn.end_round();
    turn
}

const CHUNK: &str = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]}"#;

fn stream(chunks: usize) -> Vec<u8> {
    let mut stream = format!("{CHUNK}\n\n").repeat(chunks).into_bytes();
    stream.extend_from_slice(b"data: [DONE]\n\n");
    stream
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("turn");
    for (name, think, deltas) in [
        ("text, 500 deltas", ThinkMode::Off, text(500)),
        ("text, 500 deltas, tags looked for", ThinkMode::On, text(500)),
        ("text, 5000 deltas", ThinkMode::Off, text(5000)),
        ("call, 200 pieces", ThinkMode::Off, call(200)),
        ("call, 2000 pieces", ThinkMode::Off, call(2000)),
        ("two calls interleaved, 2000 pieces", ThinkMode::Off, interleaved(1000)),
    ] {
        group.throughput(Throughput::Elements(deltas.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || (begin(think), deltas.clone()),
                |(turn, deltas)| hear(turn, deltas),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();

    let bytes = stream(500);
    let mut group = criterion.benchmark_group("sse");
    for (name, size) in [
        ("whole frames", CHUNK.len() + 2),
        ("pieces of 16 KiB", 16 * 1024),
        ("pieces of 100 B", 100),
    ] {
        group.throughput(Throughput::Elements(501));
        group.bench_function(format!("500 chunks in {name}"), |bencher| {
            bencher.iter(|| {
                let mut frames = 0_usize;
                let mut reader = SseReader::new(SseLimits::default());
                for piece in bytes.chunks(size) {
                    reader.push(black_box(piece), |frame| frames += frame.data.len()).unwrap();
                }
                frames
            });
        });
    }
    group.finish();
    criterion.final_summary();
}
