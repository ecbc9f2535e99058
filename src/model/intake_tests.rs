use super::*;
use crate::model::{chat, responses};

const CHAT: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    ": a comment\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Let me think.\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Grüße, \"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\ud83d\\ude00 w\\u00f6rld\"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\n",
    "data: [DONE]\n\n",
);

const RESPONSES: &str = concat!(
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Grüße, \"}\n\n",
    "event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"\"}}\n\n",
    "event: response.function_call_arguments.delta\ndata: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":1,\"delta\":\"{}\"}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[],\"usage\":{\"input_tokens\":5,\"output_tokens\":2,\"total_tokens\":7}}}\n\n",
);

fn chat_reading() -> Box<dyn Reading> {
    Box::new(chat::ChatReading::new(chat::ChatExpected {
        model: "m".to_owned(),
        key: None,
        reasoning_in: vec!["reasoning_content".to_owned()],
        wants_logprobs: false,
        tools: vec!["f".to_owned()],
    }))
}

fn responses_reading() -> Box<dyn Reading> {
    Box::new(responses::ResponsesReading::new("m".to_owned(), None))
}

/// What an answer says up to here, all texts of a kind in one.
fn said(deltas: &[Delta]) -> String {
    let text = |delta: &Delta| match delta {
        Delta::Text { text, .. } => text.clone(),
        Delta::Reasoning(text) => format!("<{text}>"),
        Delta::Call { name, .. } => name.clone(),
        Delta::Arguments { piece, .. } => piece.clone(),
        _ => String::new(),
    };
    deltas.iter().map(text).collect()
}

#[test]
fn an_answer_that_dies_at_any_byte_is_broken_unless_it_was_finished() {
    for (stream, reading) in
        [(CHAT, chat_reading as fn() -> Box<dyn Reading>), (RESPONSES, responses_reading)]
    {
        let whole = {
            let mut intake = Intake::new(reading());
            let (mut deltas, error) = intake.push(stream.as_bytes());
            assert_eq!(error, None);
            let (more, error) = intake.end();
            assert_eq!(error, None);
            deltas.extend(more);
            said(&deltas)
        };
        let mut finished_at = None;
        for cut in 0..=stream.len() {
            let mut intake = Intake::new(reading());
            let (mut deltas, error) = intake.push(&stream.as_bytes()[..cut]);
            assert_eq!(error, None, "cut at {cut}");
            let (more, error) = intake.end();
            deltas.extend(more);
            let finished = deltas.iter().any(|delta| matches!(delta, Delta::Finish(_)));
            assert_eq!(error.is_none(), finished, "cut at {cut}: {error:?}");
            assert!(error.is_none_or(|error| error.kind == ModelErrorKind::BrokenStream));
            assert!(whole.starts_with(&said(&deltas)), "cut at {cut}: {deltas:?}");
            finished_at = finished_at.or(finished.then_some(cut));
        }
        assert!(finished_at.is_some_and(|at| at + 2 <= stream.len()));
    }
}
