//! A Response that ended before, told again: as JSON, or as a short stream to a client that asked for one.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use crate::protocol::{ApiError, Raw};

/// Says that nothing was run for this answer.
const MARK: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-idempotent-replay"), HeaderValue::from_static("true"));

/// The whole Response.
pub fn whole(body: &Raw) -> Response {
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    ([kind, MARK], body.json().to_owned()).into_response()
}

/// The events that a reader needs: the beginning, each item whole, the end.
pub fn streamed(body: &Raw) -> Result<Response, ApiError> {
    let response: Map<String, Value> = body.to().map_err(|error| {
        tracing::error!(%error, "a remembered response is no JSON object");
        ApiError::server()
    })?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        MARK,
    ];
    Ok((headers, text(&events(response))).into_response())
}

fn events(response: Map<String, Value>) -> Vec<(&'static str, Map<String, Value>)> {
    let mut begun = response.clone();
    for (field, value) in [
        ("status", json!("in_progress")),
        ("completed_at", Value::Null),
        ("error", Value::Null),
        ("incomplete_details", Value::Null),
        ("output", json!([])),
        ("usage", Value::Null),
    ] {
        begun.insert(field.to_owned(), value);
    }
    let items = match response.get("output") {
        Some(Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    let last = match response.get("status").and_then(Value::as_str) {
        Some("completed") => "response.completed",
        Some("incomplete") => "response.incomplete",
        _ => "response.failed",
    };
    let of_response = |response: Map<String, Value>| {
        Map::from_iter([("response".to_owned(), Value::Object(response))])
    };
    let mut events = vec![
        ("response.created", of_response(begun.clone())),
        ("response.in_progress", of_response(begun)),
    ];
    for (index, item) in items.into_iter().enumerate() {
        for name in ["response.output_item.added", "response.output_item.done"] {
            let fields = [("output_index", json!(index)), ("item", item.clone())];
            events.push((
                name,
                fields.map(|(field, value)| (field.to_owned(), value)).into_iter().collect(),
            ));
        }
    }
    events.push((last, of_response(response)));
    events
}

fn text(events: &[(&'static str, Map<String, Value>)]) -> String {
    let mut text = String::new();
    for (number, (name, fields)) in events.iter().enumerate() {
        let mut event = Map::new();
        event.insert("type".to_owned(), json!(name));
        event.insert("sequence_number".to_owned(), json!(number));
        event.extend(fields.clone());
        text.push_str("event: ");
        text.push_str(name);
        text.push_str("\ndata: ");
        text.push_str(&Value::Object(event).to_string());
        text.push_str("\n\n");
    }
    text + "data: [DONE]\n\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_hears_the_beginning_each_item_and_the_end() {
        let body = r#"{"id":"resp_1","status":"completed","completed_at":5,"output":[{"id":"msg_1"}],"usage":{}}"#;
        let response = Raw::parse(body).unwrap().to().unwrap();
        insta::assert_snapshot!(text(&events(response)), @r#"
        event: response.created
        data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","completed_at":null,"output":[],"usage":null,"error":null,"incomplete_details":null}}

        event: response.in_progress
        data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","completed_at":null,"output":[],"usage":null,"error":null,"incomplete_details":null}}

        event: response.output_item.added
        data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1"}}

        event: response.output_item.done
        data: {"type":"response.output_item.done","sequence_number":3,"output_index":0,"item":{"id":"msg_1"}}

        event: response.completed
        data: {"type":"response.completed","sequence_number":4,"response":{"id":"resp_1","status":"completed","completed_at":5,"output":[{"id":"msg_1"}],"usage":{}}}

        data: [DONE]
        "#);
    }
}
