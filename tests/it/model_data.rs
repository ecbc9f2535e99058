//! What a backend wants back with its calls: kept beside a stored Response, carried by the client, sealed, when nothing is stored.

use antiphon::model::Patience;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    server::{PATIENCE, Setup, start_before, upstreams},
    upstream::{Answer, Upstream, chunk, finish, says},
};

/// A call with what Gemini-compatible servers put on it.
fn signed_call() -> Answer {
    let call = json!({
        "index": 0, "id": "c1", "type": "function",
        "extra_content": { "google": { "thought_signature": "sig-1" } },
        "function": { "name": "f", "arguments": "{}" },
    });
    let mut frames = vec![chunk(&json!({ "tool_calls": [call] }), None)];
    frames.extend(finish("tool_calls"));
    Answer::stream(&frames)
}

#[tokio::test]
async fn it_comes_back_to_the_backend_from_the_store_and_from_the_client() {
    for store in [true, false] {
        let upstream = Upstream::start([signed_call(), says(&["Done."])]).await;
        let router = upstreams(vec![upstream.settings("u", &json!({}))], Patience { ..PATIENCE });
        let server = start_before(router, Setup::default()).await;
        let tools = json!([{ "type": "function", "name": "f" }]);
        let body = json!({ "model": "m", "input": "Hi", "store": store, "tools": tools });
        let (status, first) = server.post("/v1/responses", body).await;
        assert_eq!(status, 200, "{first}");
        assert!(!first.to_string().contains("sig-1"), "{first}");

        let output = json!({ "type": "function_call_output", "call_id": "c1", "output": "1" });
        let body = if store {
            json!({ "model": "m", "previous_response_id": first["id"], "input": [output], "tools": tools })
        } else {
            let call = first["output"][0].clone();
            let input = json!([{ "role": "user", "content": "Hi" }, call, output]);
            json!({ "model": "m", "input": input, "store": false, "tools": tools })
        };
        let (status, second) = server.post("/v1/responses", body).await;
        assert_eq!(status, 200, "{second}");
        let asked: Value = upstream.asked()[1].json();
        let sent = &asked["messages"][1]["tool_calls"][0]["extra_content"];
        assert_eq!(sent, &json!({ "google": { "thought_signature": "sig-1" } }), "{asked}");
    }
}
