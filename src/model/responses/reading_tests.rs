use pretty_assertions::assert_eq;

use super::*;
use crate::model::intake::Intake;

fn read(stream: &str) -> (Vec<Delta>, Option<String>) {
    let run = |pieces: &[&[u8]]| {
        let mut intake = Intake::new(ResponsesReading::new("m".to_owned(), None));
        let (mut all, mut failed) = (Vec::new(), None);
        for piece in pieces {
            let (deltas, error) = intake.push(piece);
            all.extend(deltas);
            failed = failed.or(error);
        }
        if failed.is_none() {
            let (deltas, error) = intake.end();
            all.extend(deltas);
            failed = error;
        }
        (all, failed.map(|error: ModelError| format!("{:?}: {}", error.kind, error.message)))
    };
    let bytes = stream.as_bytes();
    let whole = run(&[bytes]);
    for cut in 0..=bytes.len() {
        assert_eq!(run(&[&bytes[..cut], &bytes[cut..]]), whole, "cut at {cut}");
    }
    whole
}

fn sse(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<Vec<_>>().concat()
}

#[test]
fn a_whole_run() {
    let sealed = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"S"}],"encrypted_content":"E"}"#;
    let (deltas, error) = read(&sse(&[
        r#"{"type":"response.created","response":{"status":"in_progress","error":null}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"S"}"#,
        &format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{sealed}}}"#),
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}"#,
        r#"{"type":"response.output_text.delta","output_index":2,"content_index":0,"delta":"hi"}"#,
        r#"{"type":"response.refusal.delta","output_index":2,"delta":"no"}"#,
        r#"{"type":"response.vendor.thing","output_index":9}"#,
        r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":1},"output_tokens":3,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":8}}}"#,
    ]));
    assert_eq!(error, None);
    let mut usage =
        Usage { input_tokens: 5, output_tokens: 3, total_tokens: 8, ..Usage::default() };
    usage.input_tokens_details.cached_tokens = 1;
    usage.output_tokens_details.reasoning_tokens = 2;
    assert_eq!(
        deltas,
        [
            Delta::Summary { part: 0, text: "S".to_owned() },
            Delta::ReasoningData(Raw::parse(&format!("[{sealed}]")).unwrap()),
            Delta::Call { position: 0, id: Some("c".to_owned()), name: "f".to_owned() },
            Delta::Arguments { position: 0, piece: "{}".to_owned() },
            Delta::Text { text: "hi".to_owned(), logprobs: vec![] },
            Delta::Refusal("no".to_owned()),
            Delta::Usage(usage),
            Delta::Finish(Finish::Length),
        ]
    );
}

#[test]
fn an_answer_that_is_no_stream_and_every_failure() {
    let (deltas, error) = read(
        r#"{"status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}],"usage":null}"#,
    );
    assert_eq!(error, None);
    assert_eq!(
        deltas,
        [
            Delta::Text { text: "x".to_owned(), logprobs: vec![] },
            Delta::Call { position: 0, id: Some("c".to_owned()), name: "f".to_owned() },
            Delta::Arguments { position: 0, piece: "{}".to_owned() },
            Delta::Finish(Finish::Stop),
        ]
    );
    for (event, expected) in [
        (
            r#"{"type":"error","error":{"code":"rate_limit_exceeded","message":"slow"}}"#,
            "RateLimited(None): slow",
        ),
        (r#"{"type":"error","code":"server_error","message":"flat"}"#, "Failed: flat"),
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"long"}}}"#,
            "ContextOverflow: long",
        ),
        (
            r#"{"type":"response.failed","response":{"status":"failed"}}"#,
            "BrokenStream: The upstream failed without saying why.",
        ),
        (
            r#"{"type":"response.created"}"#,
            "BrokenStream: The upstream ended without a terminal event.",
        ),
    ] {
        let (_, error) = read(&sse(&[event]));
        assert_eq!(error.as_deref(), Some(expected), "{event}");
    }
}
