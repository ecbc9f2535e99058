//! What stands at the edges: odd addresses, deep bodies, and bytes that must not change on their way through the store.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    model::{Script, text},
    server::start,
};

#[tokio::test]
async fn what_is_kept_is_what_was_answered_key_for_key() {
    let server = start(Script::new([text("hello")])).await;
    let request = json!({
        "model": "m",
        "input": [{ "role": "user", "content": "hi" }, { "type": "nope", "z": 1.0, "a": 2 }],
        "tools": [{ "type": "function", "name": "f", "parameters": { "z": 1.0, "b": { "b": 2, "a": 1 } } }],
    });
    let (status, made) = server.post("/v1/responses", request).await;
    assert_eq!(status, 200, "{made}");
    let path = format!("/v1/responses/{}", made["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.1.to_string(), made.to_string());

    let (_, items) = server.get(&format!("{path}/input_items")).await;
    let item = items["data"][0].to_string();
    assert!(item.ends_with(r#","type":"nope","z":1.0,"a":2}"#), "{item}");
}

#[tokio::test]
async fn pages_go_on_after_items_of_unknown_type() {
    let server = start(Script::new([text("hello")])).await;
    let input: Vec<Value> =
        (0..3).map(|number| json!({ "type": "nope", "number": number })).collect();
    let (_, made) = server.post("/v1/responses", json!({ "model": "m", "input": input })).await;
    let path =
        format!("/v1/responses/{}/input_items?order=asc&limit=1", made["id"].as_str().unwrap());
    let (mut numbers, mut after) = (Vec::new(), String::new());
    loop {
        let (_, page) = server.get(&format!("{path}{after}")).await;
        numbers.push(page["data"][0]["number"].clone());
        assert_eq!(page["data"][0]["id"], page["last_id"]);
        if page["has_more"] == false || numbers.len() > 3 {
            break;
        }
        after = format!("&after={}", page["last_id"].as_str().unwrap());
    }
    assert_eq!(numbers, [0, 1, 2]);
}

#[tokio::test]
async fn addresses_that_are_no_text_are_refused_in_the_envelope() {
    let server = start(Script::new([])).await;
    for path in [
        "/v1/responses/a%00b",
        "/v1/responses/%ff",
        "/v1/responses/a%00b/input_items",
        "/v1/responses?after=%00",
        "/v1/conversations/%00",
        "/v1/conversations/%ff/items/x",
        "/v1/models/%ff",
    ] {
        let (status, body) = server.get(path).await;
        assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_url")), "{path}");
    }
}

#[tokio::test]
async fn namespaces_in_namespaces_are_refused_however_deep() {
    let server = start(Script::new([])).await;
    for levels in [2, 20, 60, 400] {
        let tool = (0..levels).fold(json!({ "type": "function", "name": "f" }), |tool, _| {
            json!({ "type": "namespace", "name": "n", "description": "d", "tools": [tool] })
        });
        let body = json!({ "model": "m", "input": "x", "tools": [tool] });
        let (status, told) = server.post("/v1/responses", body).await;
        assert_eq!(status, 400, "{levels}: {told}");
    }
}
