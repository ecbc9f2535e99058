//! What is wrong with a request is said in one form, with the field that is wrong.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::rows;
use crate::support::{
    model::{Script, text},
    schema,
    server::{Server, Setup, start, start_with},
};

async fn send(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> (u16, Value) {
    let mut request = server.request(method, path).body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    assert!(response.headers().contains_key("x-request-id"));
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

#[tokio::test]
async fn the_door_refuses() {
    let server = start(Script::new([])).await;
    let json = ("content-type", "application/json");
    for (method, path, headers, body, expected) in [
        ("GET", "/", &[][..], "", (404, "unknown_url")),
        ("GET", "/v1/nothing", &[], "", (404, "unknown_url")),
        ("POST", "/v2/responses", &[json], "{}", (404, "unknown_url")),
        ("PUT", "/v1/responses", &[json], "{}", (405, "method_not_supported")),
        ("PATCH", "/v1/responses/resp_x", &[json], "{}", (405, "method_not_supported")),
        ("POST", "/healthz", &[], "", (405, "method_not_supported")),
        (
            "POST",
            "/v1/responses",
            &[("content-type", "text/plain")],
            "{}",
            (415, "unsupported_media_type"),
        ),
        (
            "POST",
            "/v1/responses",
            &[("content-type", "application/x-www-form-urlencoded")],
            "a=b",
            (415, "unsupported_media_type"),
        ),
        (
            "POST",
            "/v1/responses",
            &[json, ("content-encoding", "br")],
            "{}",
            (415, "unsupported_media_type"),
        ),
        (
            "POST",
            "/v1/responses",
            &[json, ("content-encoding", "deflate")],
            "{}",
            (415, "unsupported_media_type"),
        ),
        (
            "POST",
            "/v1/responses",
            &[json, ("content-encoding", "gzip")],
            "{}",
            (400, "invalid_body"),
        ),
        ("POST", "/v1/responses", &[json], "", (400, "invalid_json")),
        ("POST", "/v1/responses", &[json], "{\"model\":", (400, "invalid_json")),
        ("POST", "/v1/responses", &[json], "{\"model\":\"\u{1}", (400, "invalid_json")),
    ] {
        let (status, body) = send(&server, method, path, headers, body.into()).await;
        schema::check_error(&body);
        assert_eq!(
            (status, body["error"]["code"].as_str().unwrap()),
            expected,
            "{method} {path} {headers:?} {body}"
        );
    }
    let (status, body) =
        send(&server, "POST", "/v1/responses", &[json], b"{\"model\":\"\xff\"}".to_vec()).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_json")), "{body}");
}

#[tokio::test]
async fn a_wrong_field_is_named() {
    let server = start(Script::new([])).await;
    let user = |content: Value| json!([{ "role": "user", "content": content }]);
    for (field, value, code, param) in [
        ("model", Value::Null, "missing_required_parameter", "model"),
        ("model", json!(7), "invalid_type", "model"),
        ("input", json!(7), "invalid_type", "input"),
        (
            "input",
            json!([{ "type": "message", "role": "nobody", "content": "x" }]),
            "invalid_value",
            "input[0].role",
        ),
        (
            "input",
            user(json!([{ "type": "input_text" }])),
            "missing_required_parameter",
            "input[0].content[0].text",
        ),
        (
            "input",
            json!([{ "type": "function_call_output", "call_id": "call_x", "output": "x" }]),
            "invalid_value",
            "input",
        ),
        ("temperature", json!(3), "decimal_above_max_value", "temperature"),
        ("top_p", json!(-1), "decimal_below_min_value", "top_p"),
        ("max_output_tokens", json!(0), "integer_below_min_value", "max_output_tokens"),
        ("metadata", json!({ "a": 1 }), "invalid_type", "metadata.a"),
        ("tools", json!([{ "type": "function" }]), "missing_required_parameter", "tools[0].name"),
        ("tools", json!([{ "type": "web_search" }]), "unsupported_value", "tools[0]"),
        (
            "tool_choice",
            json!({ "type": "function", "name": "none" }),
            "invalid_value",
            "tool_choice",
        ),
        ("background", json!(true), "unsupported_parameter", "background"),
        ("truncation", json!("auto"), "unsupported_parameter", "truncation"),
        (
            "previous_response_id",
            json!("resp_none"),
            "previous_response_not_found",
            "previous_response_id",
        ),
        ("reasoning", json!({ "effort": "enormous" }), "invalid_value", "reasoning.effort"),
    ] {
        let mut body = json!({ "model": "m", "input": "Hi" });
        body[field] = value;
        let (status, answer) = server.post("/v1/responses", body.clone()).await;
        schema::check_error(&answer);
        let error = &answer["error"];
        assert_eq!(
            (status, error["code"].as_str(), error["param"].as_str()),
            (400, Some(code), Some(param)),
            "{body}: {error}"
        );
    }
    let body = json!({ "model": "m", "input": "Hi", "conversation": "conv_none" });
    let (status, answer) = server.post("/v1/responses", body).await;
    assert_eq!((status, &answer["error"]["param"]), (404, &json!("conversation")));
    assert_eq!(rows(&server).await, (0, 0));
}

#[tokio::test]
async fn a_body_may_be_packed_but_not_too_large() {
    let mut setup = Setup::default();
    setup.door.body_limit = 64 << 10;
    let server = start_with(Script::new(["A", "B", "C"].map(text)), setup).await;
    let body = |length: usize| {
        json!({ "model": "m", "input": "x".repeat(length) }).to_string().into_bytes()
    };
    let gzip = |bytes: Vec<u8>| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, &bytes).unwrap();
        packed.finish().unwrap()
    };
    let zstd = |bytes: Vec<u8>| zstd::encode_all(bytes.as_slice(), 1).unwrap();
    let json = ("content-type", "application/json");
    for (headers, small, large) in [
        (vec![json], body(100), body(70_000)),
        (vec![json, ("content-encoding", "gzip")], gzip(body(100)), gzip(body(1 << 24))),
        (vec![json, ("content-encoding", "zstd")], zstd(body(100)), zstd(body(1 << 24))),
    ] {
        let (status, answer) = send(&server, "POST", "/v1/responses", &headers, small).await;
        assert_eq!((status, &answer["status"]), (200, &json!("completed")), "{answer}");
        let (status, answer) = send(&server, "POST", "/v1/responses", &headers, large).await;
        schema::check_error(&answer);
        assert_eq!(
            (status, &answer["error"]["code"]),
            (413, &json!("request_too_large")),
            "{headers:?}: {answer}"
        );
    }
}
