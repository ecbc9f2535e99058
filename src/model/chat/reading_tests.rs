use pretty_assertions::assert_eq;

use super::*;
use crate::model::intake::Intake;

fn reading() -> ChatReading {
    ChatReading::new(ChatExpected {
        model: "m".to_owned(),
        key: Some("sk-secret".to_owned()),
        reasoning_in: ["reasoning_content", "reasoning", "reasoning_details"]
            .map(str::to_owned)
            .to_vec(),
        wants_logprobs: true,
        tools: vec!["get_weather".to_owned(), "get_time".to_owned()],
    })
}

/// What an answer says, neighbours of one kind joined: one line for each.
fn lines(pieces: &[&[u8]]) -> Vec<String> {
    let mut intake = Intake::new(reading());
    let mut lines: Vec<String> = Vec::new();
    let mut failed = false;
    let mut take = |(deltas, error): (Vec<Delta>, Option<ModelError>)| {
        for delta in deltas {
            let (head, text) = match delta {
                Delta::Text { text, logprobs } if logprobs.is_empty() => ("text ".to_owned(), text),
                Delta::Text { text, logprobs } => (format!("text({}) ", logprobs.len()), text),
                Delta::Refusal(text) => ("refusal ".to_owned(), text),
                Delta::Reasoning(text) => ("reasoning ".to_owned(), text),
                Delta::Summary { .. } => panic!("no such thing on this wire"),
                Delta::ReasoningData(data) => (format!("data {}", data.json()), String::new()),
                Delta::Call { position, id, name } => {
                    (format!("call {position} {} {name}", id.unwrap_or_default()), String::new())
                }
                Delta::Arguments { position, piece } => (format!("arguments {position} "), piece),
                Delta::CallData { position, data } => {
                    (format!("calldata {position} {}", data.json()), String::new())
                }
                Delta::Usage(usage) => (
                    format!(
                        "usage {} {} {} {} {}",
                        usage.input_tokens,
                        usage.input_tokens_details.cached_tokens,
                        usage.output_tokens,
                        usage.output_tokens_details.reasoning_tokens,
                        usage.total_tokens
                    ),
                    String::new(),
                ),
                Delta::Finish(finish) => (format!("{finish:?}"), String::new()),
            };
            match lines.last_mut() {
                Some(last) if !text.is_empty() && last.starts_with(&head) => last.push_str(&text),
                _ => lines.push(head + &text),
            }
        }
        if let Some(error) = error {
            failed = true;
            lines.push(format!("{:?}: {}", error.kind, error.message));
        }
        failed
    };
    for piece in pieces {
        if take(intake.push(piece)) {
            return lines;
        }
    }
    take(intake.end());
    lines
}

/// Reads a stream of chunks' `choices[0]` (or whole chunks), wherever it is cut.
fn read(frames: &[&str]) -> Vec<String> {
    let stream: String = frames
        .iter()
        .map(|frame| match *frame {
            frame if frame.starts_with("raw:") => frame[4..].to_owned(),
            frame => format!("data: {frame}\n\n"),
        })
        .collect();
    read_bytes(stream.as_bytes())
}

fn read_bytes(stream: &[u8]) -> Vec<String> {
    let whole = lines(&[stream]);
    for cut in 0..=stream.len() {
        assert_eq!(lines(&[&stream[..cut], &stream[cut..]]), whole, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(lines(&bytes), whole, "byte by byte");
    whole
}

fn delta(json: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{json},"finish_reason":null}}]}}"#)
}

fn stop(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":{reason}}}]}}"#)
}

#[test]
fn text_reasoning_refusal_and_usage() {
    let got = read(&[
        r#"{"id":"","choices":[],"prompt_filter_results":[{"prompt_index":0}]}"#,
        &delta(r#"{"role":"assistant","content":"","tool_calls":null,"refusal":null}"#),
        &delta(r#"{"reasoning":"a","reasoning_content":"a"}"#),
        &delta(r#"{"reasoning_content":"b","content":null}"#),
        &delta(r#"{"reasoning_details":[{"type":"reasoning.text","text":"c","index":0}]}"#),
        &delta(r#"{"content":"hi","tool_calls":[]}"#),
        &delta(r#"{"content":{"vendor":1}}"#),
        &delta(r#"{"refusal":"no"}"#),
        r#"{"id":"usage-1","usage":{"prompt_tokens":3,"completion_tokens":1.0,"prompt_tokens_details":null,"prompt_cache_hit_tokens":2,"completion_tokens_details":{"reasoning_tokens":1}}}"#,
        &stop("\"stop\""),
        &delta(r#"{"content":"late"}"#),
        r#"{"error":{"message":"late"}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2,"total_tokens":7}}"#,
        "[DONE]",
        "[DONE]",
    ]);
    assert_eq!(
        got,
        ["reasoning abc", "text hi", "refusal no", "usage 3 2 1 1 4", "Stop", "usage 4 0 2 0 7"]
    );
}

#[test]
fn halves_of_pairs_and_bytes_that_are_no_text() {
    let frames = [
        &delta(r#"{"content":"hi \ud83d"}"#),
        &delta(r#"{"content":"\ude00!"}"#),
        &delta(r#"{"content":" \ud83d x \u0000"}"#),
        &delta(r#"{"reasoning":"\ud83d"}"#),
        &delta(r#"{"content":"y\ud83d"}"#),
        &stop("\"stop\""),
    ];
    let got = read(&frames.map(String::as_str));
    assert_eq!(
        got,
        ["text hi 😀! \u{fffd} x \u{fffd}y", "reasoning \u{fffd}", "text \u{fffd}", "Stop"]
    );
    let got = read_bytes(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xffb\"},\"finish_reason\":\"stop\"}]}\n\n");
    assert_eq!(got, ["text a\u{fffd}b", "Stop"]);
}

#[test]
fn calls() {
    let got = read(&[
        &delta(
            r#"{"content":"so","tool_calls":[{"index":0,"id":"c1","function":{"name":"get_weather","arguments":"{\"city\":\"\ud83d"}}]}"#,
        ),
        &delta(r#"{"reasoning_content":"hmm"}"#),
        &delta(
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\"}"},"extra_content":{"google":{"thought_signature":"s"}}}]}"#,
        ),
        &delta(
            r#"{"tool_calls":[{"index":1,"id":"","function":{"name":"get_time","arguments":null}}]}"#,
        ),
        &delta(
            r#"{"tool_calls":[{"index":2,"id":7,"function":{"name":"get_time","arguments":{"a":1}}}]}"#,
        ),
        &stop("\"stop\""),
    ]);
    assert_eq!(
        got,
        [
            "text so",
            "call 0 c1 get_weather",
            r#"arguments 0 {"city":""#,
            "reasoning hmm",
            r#"arguments 0 😀"}"#,
            r#"calldata 0 {"google":{"thought_signature":"s"}}"#,
            "call 1  get_time",
            "call 2 7 get_time",
            r#"arguments 2 {"a":1}"#,
            "Stop"
        ]
    );
    let legacy = read(&[
        &delta(r#"{"function_call":{"name":"get_time","arguments":""}}"#),
        &delta(r#"{"function_call":{"arguments":"{}"}}"#),
        &stop("\"function_call\""),
    ]);
    assert_eq!(legacy, ["call 0  get_time", "arguments 0 {}", "Stop"]);
}

#[test]
fn every_reason_to_stop() {
    let call = delta(
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"get_time","arguments":"{}"}}]}"#,
    );
    let text = delta(r#"{"content":"t"}"#);
    for (said, reason, done, expected) in [
        (&text, "\"stop\"", false, "Stop"),
        (&text, "\"tool_calls\"", false, "Stop"),
        (&text, "\"length\"", false, "Length"),
        (&text, "\"MAX_TOKENS\"", false, "Length"),
        (&text, "\"content_filter\"", false, "ContentFilter"),
        (
            &text,
            "\"error\"",
            false,
            "BrokenStream: The upstream broke off its answer and gave `error` as the reason.",
        ),
        (
            &text,
            "\"moon\"",
            true,
            "BrokenStream: The upstream ended its answer for a reason that is not known: `moon`.",
        ),
        (
            &text,
            "\"insufficient_system_resource\"",
            false,
            "Unavailable(None): The upstream ran out of resources.",
        ),
        (&text, "null", false, "BrokenStream: The upstream ended without a finish reason."),
        (&text, "null", true, "Stop"),
        (&text, "\"\"", true, "Stop"),
        (&text, "17", true, "Stop"),
        (&call, "\"stop\"", false, "Stop"),
        (&call, "\"moon\"", false, "Stop"),
        (&call, "\"\"", true, "Stop"),
        (&call, "null", true, "Stop"),
        (&call, "null", false, "BrokenStream: The upstream ended without a finish reason."),
    ] {
        let mut frames = vec![said.clone(), stop(reason)];
        if done {
            frames.push("[DONE]".to_owned());
        }
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        assert_eq!(read(&frames).last().unwrap(), expected, "{reason} {done}");
    }
    assert_eq!(read(&["[DONE]"]), ["BrokenStream: The upstream ended without a finish reason."]);
    assert_eq!(read(&[]), ["BrokenStream: The upstream ended without a finish reason."]);
    assert_eq!(
        read(&[r#"raw:data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#]),
        ["text x", "Stop"],
        "the last event needs no blank line"
    );
}

#[test]
fn errors_within_a_stream() {
    let par = delta(r#"{"content":"par"}"#);
    for (frame, expected) in [
        (
            r#"{"id":"u","choices":[],"error":{"code":502,"message":"worker request limit reached"}}"#,
            "Failed: worker request limit reached",
        ),
        (r#"{"error":"text only"}"#, "Failed: text only"),
        (
            r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#,
            "RateLimited(None): slow down",
        ),
        (
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens, exceeded","code":400}}"#,
            "ContextOverflow: This model's maximum context length is 8192 tokens, exceeded",
        ),
        (
            r#"{"object":"error","message":"bad","type":"BadRequestError","code":400}"#,
            "Rejected: bad",
        ),
        (r#"{"detail":"Not there"}"#, "Failed: Not there"),
        (r#"{"choices":[{"delta":{},"error":{"message":"choice","code":500}}]}"#, "Failed: choice"),
        (r#"{"error":{"message":"key sk-secret is bad"}}"#, "Failed: key [key] is bad"),
        (
            "raw:event: error\ndata: {\"message\":\"backend broke\",\"code\":500}\n\n",
            "Failed: backend broke",
        ),
        ("raw:event: error\ndata: it broke\n\n", "Failed: it broke"),
        (r#""just words""#, "Failed: just words"),
    ] {
        assert_eq!(read(&[frame, &stop("\"stop\""), "[DONE]"]), [expected], "{frame}");
        assert_eq!(
            read(&[&par, frame, &stop("\"stop\""), "[DONE]"]),
            ["text par", expected],
            "{frame}"
        );
    }
    let torn = read(&[&par, r#"{"choices":[{"delta":{"content":"x"#]);
    assert_eq!(torn.len(), 2, "{torn:?}");
    assert!(torn[1].starts_with("BrokenStream"), "{torn:?}");
    assert_eq!(
        read(&["raw:: ping\n\n", "raw:event: ping\ndata: x\n\n", &par, &stop("\"stop\"")]),
        ["text par", "Stop"]
    );
}

#[test]
fn answers_that_are_no_stream() {
    let whole = br#" {"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_content":"r",
        "tool_calls":[{"id":"c","function":{"name":"get_time","arguments":"{}"}},{"id":"c","function":{"name":"get_time","arguments":"{\"a\":1}"}}]},
        "finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#;
    assert_eq!(
        read_bytes(whole),
        [
            "reasoning r",
            "call 0 c get_time",
            "arguments 0 {}",
            "call 1 c get_time",
            r#"arguments 1 {"a":1}"#,
            "usage 1 0 2 0 3",
            "Stop"
        ]
    );
    assert_eq!(
        read_bytes(br#"{"error":{"message":"slow","type":"rate_limit_error"}}"#),
        ["RateLimited(None): slow"]
    );
    assert_eq!(
        read_bytes(br#"[{"error":{"message":"slow","code":429}}]"#),
        ["RateLimited(None): slow"]
    );
    assert_eq!(read_bytes(br"{}"), ["BrokenStream: The upstream's answer holds no choice."]);
    assert_eq!(
        read_bytes(b"<html>busy</html>"),
        ["BrokenStream: The upstream ended without a finish reason."]
    );
    assert_eq!(
        read(&[r#"{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}"#]),
        ["text x", "Stop"],
        "a whole message in a stream"
    );
}

#[test]
fn thoughts_as_parts_and_what_wants_to_go_back() {
    let got = read(&[
        &delta(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}"#),
        &delta(r#"{"content":[{"type":"text","text":"b"}]}"#),
        &stop("\"stop\""),
    ]);
    assert_eq!(got, ["reasoning a", "text b", "Stop"]);
    let got = read(&[
        &delta(
            r#"{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}"#,
        ),
        &delta(
            r#"{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","index":0,"signature":"s"}]}"#,
        ),
        &delta(r#"{"content":"t"}"#),
        &stop("\"stop\""),
    ]);
    assert_eq!(
        got,
        [
            "reasoning ab",
            r#"data [{"type":"reasoning.text","text":"ab","index":0,"signature":"s"}]"#,
            "text t",
            "Stop"
        ]
    );
}

#[test]
fn log_probabilities_go_with_their_text() {
    let got = read(&[
        r#"{"choices":[{"delta":{"content":"a"},"logprobs":{"content":[{"token":"a","logprob":-0.5,"bytes":null,"top_logprobs":[]}]}}]}"#,
        r#"{"choices":[{"delta":{"content":""},"logprobs":{"content":[{"token":"b","logprob":-0.5}]}}]}"#,
        r#"{"choices":[{"delta":{"content":"c"},"logprobs":{"content":[{"token":"c","logprob":-1,"bytes":[99]}]}}]}"#,
        &stop("\"stop\""),
    ]);
    assert_eq!(got, ["text(1) a", "text(2) c", "Stop"]);
}

#[test]
fn only_the_first_choice_counts() {
    let got = read(&[
        r#"{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"x"},"finish_reason":"length"}]}"#,
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    ]);
    assert_eq!(got, ["text a", "Stop"]);
}
