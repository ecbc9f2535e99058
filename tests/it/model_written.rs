//! Calls that a model writes as text, from the dialect's keys to the next question.

use antiphon::model::Patience;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    server::{PATIENCE, Server, Setup, start_before, upstreams},
    upstream::{Upstream, says},
};

async fn before(upstream: &Upstream, keys: &Value) -> Server {
    let router = upstreams(
        vec![upstream.settings("u", &json!({ "(dialect keys)": keys }))],
        Patience { ..PATIENCE },
    );
    start_before(router, Setup::default()).await
}

fn weather() -> Value {
    let parameters = json!({ "type": "object", "properties": { "days": { "type": "integer" } } });
    json!({ "model": "m", "input": "Hi", "tools": [{ "type": "function", "name": "weather", "parameters": parameters }] })
}

#[tokio::test]
async fn a_declared_grammar_makes_calls_and_the_model_is_told_of_them_as_such() {
    let written = "<tool_call>\n<function=weather>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>";
    let upstream = Upstream::start([says(&["I ", "look.</s>", written]), says(&["Sun."])]).await;
    let keys = json!({ "call_grammar": "qwen_xml", "rescue": "off", "strip_tokens": ["</s>"] });
    let server = before(&upstream, &keys).await;
    let (status, first) = server.post("/v1/responses", weather()).await;
    assert_eq!(status, 200, "{first}");
    let (said, call) = (&first["output"][0], &first["output"][1]);
    assert_eq!(said["content"][0]["text"], "I look.");
    assert_eq!((&call["name"], &call["arguments"]), (&json!("weather"), &json!(r#"{"days":3}"#)));

    let output =
        json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "sun" });
    let mut body = weather();
    body["previous_response_id"] = first["id"].clone();
    body["input"] = json!([output]);
    assert_eq!(server.post("/v1/responses", body).await.0, 200);
    let asked = upstream.asked()[1].json();
    let told = &asked["messages"][1];
    assert_eq!(told["content"], "I look.");
    assert_eq!(told["tool_calls"][0]["function"]["arguments"], r#"{"days":3}"#);
}

#[tokio::test]
async fn guessing_is_on_until_it_is_switched_off() {
    let written = r#"{"name": "weather", "arguments": {}}"#;
    for (keys, kind) in [(json!({}), "function_call"), (json!({ "rescue": "off" }), "message")] {
        let upstream = Upstream::start([says(&[written])]).await;
        let server = before(&upstream, &keys).await;
        let (status, response) = server.post("/v1/responses", weather()).await;
        assert_eq!(status, 200, "{response}");
        assert_eq!(response["output"].as_array().unwrap().len(), 1, "{response}");
        assert_eq!(response["output"][0]["type"], kind, "{keys}");
    }
}
