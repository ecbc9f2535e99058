//! How fast calls are found in text, and that twice the text takes twice the time. `cargo bench --bench rescue`.

use std::{hint::black_box, sync::Arc};

use antiphon::{
    protocol::Raw,
    text::{
        markup::{Channel, Markup, Segment},
        rescue::{CallGrammar, KnownTool, Reading, Rescue, Tools, guess, parse},
    },
};
use criterion::{BenchmarkId, Criterion, Throughput};

/// What may be read again and again by a careless parser.
const HOSTILE: [(&str, &str); 8] = [
    ("open objects", "{\"a\":"),
    ("open strings", "{\"a\":\""),
    ("open calls", "<tool_call>{\"name\":\""),
    ("open tags", "<invoke name=\"weather\"><parameter name=\"city\">"),
    ("closing tags", "</parameter>"),
    ("quotes astray", "{\"x {"),
    ("headers", "<|channel|>commentary to=functions.x"),
    ("calls", "{\"name\":\"weather\",\"arguments\":{\"city\":\"Oslo\"}}\n"),
];

fn tools() -> Tools {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
    Tools::new(
        Raw::parse(schema)
            .ok()
            .map(|parameters| KnownTool { name: "weather".to_owned(), parameters }),
    )
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    let tools = Arc::new(tools());
    for (name, piece) in HOSTILE {
        let mut group = criterion.benchmark_group(format!("rescue: {name}"));
        for size in [100_000, 200_000] {
            let text = piece.repeat(size / piece.len());
            group.throughput(Throughput::Bytes(text.len() as u64));
            group.bench_with_input(BenchmarkId::new("guess", size), &text, |b, text| {
                b.iter(|| black_box(guess(text, &tools)));
            });
            group.bench_with_input(BenchmarkId::new("parse hermes", size), &text, |b, text| {
                b.iter(|| black_box(parse(CallGrammar::Hermes, text, &tools)));
            });
        }
        group.finish();
    }
    let mut group = criterion.benchmark_group("markup");
    let reading = Reading { rescue: Rescue::Auto, ..Reading::default() };
    for (name, token) in [("plain tokens", " token"), ("brackets", " a[i] <"), ("spaces", " ")] {
        group.throughput(Throughput::Elements(10_000));
        group.bench_function(name, |b| {
            b.iter(|| {
                let channel = Channel::Text { call_is_required: false };
                let Some(mut markup) = Markup::new(&reading, &tools, channel) else { return 0 };
                let mut shown = 0;
                for _ in 0..10_000 {
                    if markup.passes(token) {
                        shown += token.len();
                    } else {
                        markup.push(token, &mut |segment| {
                            let (Segment::Text(text)
                            | Segment::Reasoning(text)
                            | Segment::Hidden(text)) = segment;
                            shown += black_box(text.len());
                        });
                    }
                }
                shown
            });
        });
    }
    group.finish();
    criterion.final_summary();
}
