//! `POST /v1/responses/input_tokens` over the real router.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    model::{Script, text},
    server::{Server, start},
};

async fn count(server: &Server, body: Value) -> u64 {
    let (status, counted) = server.post("/v1/responses/input_tokens", body).await;
    assert_eq!(status, 200, "{counted}");
    assert_eq!(counted["object"], "response.input_tokens");
    assert_eq!(counted.as_object().unwrap().len(), 2, "{counted}");
    counted["input_tokens"].as_u64().unwrap()
}

#[tokio::test]
async fn all_that_the_model_would_be_shown_is_counted() {
    let server = start(Script::new([])).await;
    let base = json!({ "model": "gpt-4o", "input": "hello world" });
    assert_eq!(
        count(&server, base.clone()).await,
        9,
        "two tokens, a message, the answer's opening"
    );
    for (field, value, more) in [
        ("instructions", json!("hello"), 5),
        (
            "input",
            json!([{ "role": "user", "content": "hello world" }, { "role": "assistant", "content": "hello" }]),
            5,
        ),
        (
            "input",
            json!([{ "role": "user", "content": [{ "type": "input_text", "text": "hello world" },
            { "type": "input_image", "image_url": "https://a.example/b.png", "detail": "low" }] }]),
            85,
        ),
        ("tool_choice", json!("auto"), 0),
    ] {
        let mut body = base.clone();
        body[field] = value;
        assert_eq!(count(&server, body.clone()).await, 9 + more, "{body}");
    }
    for (field, value) in [
        (
            "tools",
            json!([{ "type": "function", "name": "f", "description": "does something", "parameters": { "type": "object", "properties": {} } }]),
        ),
        (
            "text",
            json!({ "format": { "type": "json_schema", "name": "n", "schema": { "type": "object" } } }),
        ),
    ] {
        let mut body = base.clone();
        body[field] = value;
        assert!(count(&server, body.clone()).await > 15, "{body}");
    }
}

#[tokio::test]
async fn history_counts_as_when_it_is_sent() {
    let server = start(Script::new([text("hello")])).await;
    let (_, first) =
        server.post("/v1/responses", json!({ "model": "gpt-4o", "input": "hello world" })).await;
    let chained =
        json!({ "model": "gpt-4o", "previous_response_id": first["id"], "input": "again" });
    let whole = json!({ "model": "gpt-4o", "input": [
        { "role": "user", "content": "hello world" },
        { "role": "assistant", "content": "hello" },
        { "role": "user", "content": "again" },
    ] });
    let (_, conversation) = server
        .post("/v1/conversations", json!({ "items": whole["input"].as_array().unwrap()[..2] }))
        .await;
    let talked = json!({ "model": "gpt-4o", "conversation": conversation["id"], "input": "again" });
    let expected = count(&server, whole).await;
    assert_eq!(count(&server, chained).await, expected);
    assert_eq!(count(&server, talked).await, expected);
}

#[tokio::test]
async fn what_could_not_be_asked_cannot_be_counted() {
    let server = start(Script::new([])).await;
    for (body, code) in [
        (json!({ "input": "x" }), json!("missing_required_parameter")),
        (
            json!({ "model": "m", "input": "x", "previous_response_id": "resp_x" }),
            json!("previous_response_not_found"),
        ),
        (
            json!({ "model": "m", "input": [{ "type": "function_call_output", "call_id": "c", "output": "x" }] }),
            json!("invalid_value"),
        ),
        (
            json!({ "model": "m", "input": "x", "tools": [{ "type": "web_search" }] }),
            json!("unsupported_value"),
        ),
    ] {
        let (status, refused) = server.post("/v1/responses/input_tokens", body).await;
        assert_eq!((status, &refused["error"]["code"]), (400, &code), "{refused}");
    }
}
