//! What every request gets: an id, and leave for pages of other origins.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::support::{
    model::{Script, text},
    server::{Setup, start, start_with},
};

#[tokio::test]
async fn a_request_has_an_id() {
    let server = start(Script::new([text("A")])).await;
    for (sent, kept) in [
        (Some("proxy-7.x_Y"), true),
        (Some("with space"), false),
        (Some("semi;colon"), false),
        (Some(""), false),
        (None, false),
    ] {
        let mut request = server.request("GET", "/v1/nothing");
        if let Some(id) = sent {
            request = request.header("x-request-id", id);
        }
        let response = request.send().await.unwrap();
        let told = response.headers()["x-request-id"].to_str().unwrap();
        if kept {
            assert_eq!(Some(told), sent);
        } else {
            assert!(told.starts_with("req_") && Some(told) != sent, "{told}");
        }
        assert!(response.headers().contains_key("openai-processing-ms"));
    }
}

#[tokio::test]
async fn pages_of_named_origins_may_call() {
    let mut setup = Setup::default();
    setup.door.cors = vec!["https://chat.example".to_owned()];
    let server = start_with(Script::new([text("A")]), setup).await;
    for (origin, allowed) in [("https://chat.example", true), ("https://other.example", false)] {
        let preflight = server
            .request("OPTIONS", "/v1/responses")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,content-type,x-stainless-os");
        let preflight = preflight.send().await.unwrap();
        assert_eq!(preflight.status(), 200);
        let told = preflight.headers().get("access-control-allow-origin");
        assert_eq!(told.is_some_and(|told| told == origin), allowed);
        if allowed {
            let headers = preflight.headers()["access-control-allow-headers"].to_str().unwrap();
            assert_eq!(headers, "authorization,content-type,x-stainless-os");
        }
    }
    let body = json!({ "model": "m", "input": "Hi" });
    let request = server.request("POST", "/v1/responses").header("origin", "https://chat.example");
    let response = request.json(&body).send().await.unwrap();
    assert_eq!(response.headers()["access-control-allow-origin"], "https://chat.example");
    let exposed = response.headers()["access-control-expose-headers"].to_str().unwrap();
    assert_eq!(exposed, "x-request-id,openai-processing-ms,retry-after");
    // A page reads an error only when that, too, carries the leave.
    let request = server.request("GET", "/v1/nothing").header("origin", "https://chat.example");
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["access-control-allow-origin"], "https://chat.example");
}
