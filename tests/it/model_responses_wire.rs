//! An upstream that speaks Responses itself.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    server::{PATIENCE, Server, Setup, start_before, upstreams},
    stream::Listener,
    upstream::{Answer, End, Framing, Request, Upstream},
};

async fn before(upstream: &Upstream) -> Server {
    let settings = upstream.settings("u", &json!({ "wire": "responses", "dialect": "openai" }));
    start_before(upstreams(vec![settings], PATIENCE), Setup::default()).await
}

fn frames(events: &[Value]) -> Vec<String> {
    let frame =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(frame).collect()
}

fn ended(status: &str, output: &Value, more: &Value) -> Value {
    let usage = json!({
        "input_tokens": 5, "input_tokens_details": { "cached_tokens": 1 },
        "output_tokens": 2, "output_tokens_details": { "reasoning_tokens": 1 }, "total_tokens": 7,
    });
    let mut response =
        json!({ "id": "resp_up", "status": status, "output": output, "usage": usage });
    response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "type": format!("response.{status}"), "sequence_number": 9, "response": response })
}

fn text() -> Vec<String> {
    let part = json!({ "type": "output_text", "text": "Hello", "annotations": [] });
    let message = json!({ "type": "message", "id": "msg_up", "role": "assistant", "status": "completed", "content": [part] });
    let delta = |text: &str| json!({ "type": "response.output_text.delta", "item_id": "msg_up", "output_index": 0, "content_index": 0, "delta": text });
    frames(&[
        json!({ "type": "response.created", "response": { "id": "resp_up", "status": "in_progress" } }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "message", "id": "msg_up", "role": "assistant", "content": [] } }),
        delta("Hel"),
        delta("lo"),
        json!({ "type": "response.output_text.done", "item_id": "msg_up", "output_index": 0, "content_index": 0, "text": "Hello" }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": message }),
        ended("completed", &json!([message]), &json!({})),
    ])
}

fn call() -> Vec<String> {
    let call = |arguments: &str| json!({ "type": "function_call", "id": "fc_up", "call_id": "call_1", "name": "weather", "arguments": arguments });
    let delta = |text: &str| json!({ "type": "response.function_call_arguments.delta", "item_id": "fc_up", "output_index": 0, "delta": text });
    frames(&[
        json!({ "type": "response.output_item.added", "output_index": 0, "item": call("") }),
        delta("{\"city\":"),
        delta("\"Paris\"}"),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": call("{\"city\":\"Paris\"}") }),
        ended("completed", &json!([call("{\"city\":\"Paris\"}")]), &json!({})),
    ])
}

#[tokio::test]
async fn text_and_calls_are_ours() {
    let upstream = Upstream::start([
        Answer::stream(&text()),
        Answer::stream(&call()),
        Answer::stream(&text()),
    ])
    .await;
    let server = before(&upstream).await;
    let tools =
        json!([{ "type": "function", "name": "weather", "parameters": { "type": "object" } }]);
    let body = json!({ "model": "m", "input": "Hi", "instructions": "Be short.", "tools": tools });
    let first = Listener::open(&server, &body).await.whole().await.response;
    assert_eq!(first["output"][0]["content"][0]["text"], "Hello");
    assert_eq!(first["usage"]["total_tokens"], 7);
    assert!(!first.to_string().contains("_up"), "{first}");

    let body = json!({ "model": "m", "input": "Weather?", "tools": tools, "previous_response_id": first["id"] });
    let second = Listener::open(&server, &body).await.whole().await.response;
    let call = &second["output"][0];
    assert_eq!(
        (&call["type"], &call["arguments"]),
        (&json!("function_call"), &json!("{\"city\":\"Paris\"}"))
    );

    let output =
        json!([{ "type": "function_call_output", "call_id": call["call_id"], "output": "22" }]);
    let body = json!({ "model": "m", "input": output, "tools": tools, "previous_response_id": second["id"] });
    assert_eq!(server.post("/v1/responses", body).await.0, 200);

    let asked: Vec<Value> = upstream.asked().iter().map(Request::json).collect();
    assert_eq!(upstream.asked()[0].path, "/v1/responses");
    for body in &asked {
        assert_eq!((&body["store"], &body["stream"]), (&json!(false), &json!(true)));
        assert_eq!(body.get("previous_response_id"), None);
    }
    let input = asked[2]["input"].as_array().unwrap();
    let kinds: Vec<&Value> = input.iter().rev().take(2).map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["function_call_output", "function_call"]);
}

#[tokio::test]
async fn it_fails_in_its_own_words() {
    let error = json!({ "error": { "code": "server_error", "message": "It broke." } });
    let mut after_text = text();
    after_text.pop();
    after_text.extend(frames(&[ended("failed", &json!([]), &error)]));
    let upstream = Upstream::start([Answer::stream(&after_text)]).await;
    let server = before(&upstream).await;
    let body = json!({ "model": "m", "input": "Hi" });
    let heard = Listener::open(&server, &body).await.whole().await;
    assert_eq!(heard.response["status"], "failed");
    assert_eq!(heard.response["error"], json!({ "code": "server_error", "message": "It broke." }));

    let limit = json!({ "incomplete_details": { "reason": "max_output_tokens" } });
    let mut cut_short = text();
    cut_short.pop();
    cut_short.extend(frames(&[ended("incomplete", &json!([]), &limit)]));
    upstream.push(Answer::stream(&cut_short));
    let heard = Listener::open(&server, &body).await.whole().await;
    assert_eq!(heard.response["incomplete_details"]["reason"], "max_output_tokens");
}

#[tokio::test]
async fn it_dies_at_each_frame() {
    for frames in [text(), call()] {
        let upstream = Upstream::start([]).await;
        let server = before(&upstream).await;
        let mut end = 0;
        for frame in &frames[..frames.len() - 1] {
            end += frame.len();
            for framing in [Framing::Chunked, Framing::Eof] {
                upstream.push(Answer::stream(&frames).first(end).ends(framing, End::Cut));
                let body = json!({ "model": "m", "input": "Hi", "tools": [{ "type": "function", "name": "weather", "parameters": {} }], "stream": true });
                let response =
                    server.request("POST", "/v1/responses").json(&body).send().await.unwrap();
                if response.status() == 200 {
                    let heard = Listener::of(response).whole().await;
                    assert_eq!(heard.response["status"], "failed", "{framing:?} at {end}");
                } else {
                    assert_eq!(response.status(), 502, "{framing:?} at {end}");
                }
            }
        }
    }
}
