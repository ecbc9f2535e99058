//! What belongs to somebody else does not exist.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    model::{Script, text},
    server::{Server, Setup, start, start_with},
};

/// A Response of this key's holder; its id and that of its first output item.
async fn made_by(server: &Server, key: &str) -> (String, String) {
    let body = json!({ "model": "m", "input": "Hi" });
    let (status, body) = server.send("POST", "/v1/responses", Some(body), Some(key)).await;
    assert_eq!(status, 200, "{body}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&body["id"]), text(&body["output"][0]["id"]))
}

/// What a holder of this key is answered about a Response and an item, with their ids blotted out.
async fn about(server: &Server, key: &str, id: &str, item: &str) -> Vec<(u16, String)> {
    let ask = |body: Value| Some(body);
    let reference = json!([{ "type": "item_reference", "id": item }]);
    let mut answers = Vec::new();
    for (method, path, body) in [
        ("GET", format!("/v1/responses/{id}"), None),
        ("GET", format!("/v1/responses/{id}?stream=false"), None),
        ("GET", format!("/v1/responses/{id}/input_items"), None),
        ("POST", format!("/v1/responses/{id}/cancel"), None),
        ("GET", format!("/v1/responses?after={id}"), None),
        ("DELETE", format!("/v1/responses/{id}"), None),
        ("DELETE", format!("/v1/responses/{id}?cascade=true"), None),
        (
            "POST",
            "/v1/responses".to_owned(),
            ask(json!({ "model": "m", "input": "x", "previous_response_id": id })),
        ),
        (
            "POST",
            "/v1/responses/input_tokens".to_owned(),
            ask(json!({ "model": "m", "input": "x", "previous_response_id": id })),
        ),
        ("POST", "/v1/responses".to_owned(), ask(json!({ "model": "m", "input": reference }))),
        ("POST", "/v1/conversations".to_owned(), ask(json!({ "items": reference }))),
    ] {
        let (status, body) = server.send(method, &path, body, Some(key)).await;
        answers.push((status, body.to_string().replace(id, "ID").replace(item, "ITEM")));
    }
    answers
}

#[tokio::test]
async fn a_foreign_response_and_an_absent_one_look_alike() {
    let server = start(Script::new([text("A")])).await;
    let (mine, yours) = (server.key("a", "one").await, server.key("b", "two").await);
    let (id, item) = made_by(&server, &mine).await;
    let foreign = about(&server, &yours, &id, &item).await;
    assert_eq!(foreign, about(&server, &yours, "resp_none", "msg_none").await);
    assert!(foreign.iter().all(|(status, _)| matches!(status, 400 | 404)), "{foreign:#?}");
    let (_, page) = server.send("GET", "/v1/responses", None, Some(&yours)).await;
    assert_eq!(page["data"], json!([]));
    // It is still there.
    let path = format!("/v1/responses/{id}");
    assert_eq!(server.send("GET", &path, None, Some(&mine)).await.0, 200);
}

#[tokio::test]
async fn a_tenant_shares_or_does_not() {
    for (share_in_tenant, expected) in [(true, 200), (false, 404)] {
        let setup = Setup { share_in_tenant, ..Setup::default() };
        let server = start_with(Script::new([text("A")]), setup).await;
        let (mine, theirs) = (server.key("a", "one").await, server.key("b", "one").await);
        let (id, item) = made_by(&server, &mine).await;
        let path = format!("/v1/responses/{id}");
        assert_eq!(server.send("GET", &path, None, Some(&theirs)).await.0, expected);
        if !share_in_tenant {
            let foreign = about(&server, &theirs, &id, &item).await;
            assert_eq!(foreign, about(&server, &theirs, "resp_none", "msg_none").await);
        }
        assert_eq!(server.send("GET", &path, None, Some(&mine)).await.0, 200);
    }
}

#[tokio::test]
async fn idempotency_keys_of_tenants_do_not_meet() {
    let server = start(Script::new([text("A"), text("B")])).await;
    let (mine, yours) = (server.key("a", "one").await, server.key("b", "two").await);
    let mut ids = Vec::new();
    for key in [mine, yours] {
        let request = server.request("POST", "/v1/responses").header("idempotency-key", "k");
        let body = json!({ "model": "m", "input": "Hi" });
        let response = request.bearer_auth(key).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("x-idempotent-replay"));
        ids.push(response.json::<Value>().await.unwrap()["id"].clone());
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn without_a_key_nothing_is_told() {
    let server = start(Script::new([text("A")])).await;
    let key = server.key("a", "one").await;
    let (id, _) = made_by(&server, &key).await;
    for token in [None, Some("ak_wrong")] {
        for (method, path) in [
            ("GET", format!("/v1/responses/{id}")),
            ("POST", "/v1/responses".to_owned()),
            ("GET", "/v1/models".to_owned()),
            ("POST", "/v1/embeddings".to_owned()),
            ("GET", "/v1/conversations".to_owned()),
        ] {
            let body = (method == "POST").then(|| json!({ "model": "m", "input": "x" }));
            let (status, body) = server.send(method, &path, body, token).await;
            assert_eq!(
                (status, &body["error"]["type"]),
                (401, &json!("authentication_error")),
                "{path}"
            );
        }
    }
}

#[tokio::test]
async fn what_a_tenant_shares_only_its_owner_changes() {
    let server = start(Script::new([text("A"), text("B")])).await;
    let (ann, bob) = (server.key("ann", "one").await, server.key("bob", "one").await);
    let (parent, _) = made_by(&server, &ann).await;
    let body = json!({ "model": "m", "input": "more", "previous_response_id": parent });
    let (_, child) = server.send("POST", "/v1/responses", Some(body), Some(&bob)).await;
    let child = child["id"].as_str().unwrap();
    let (_, made) = server.send("POST", "/v1/conversations", Some(json!({})), Some(&ann)).await;
    let conversation = format!("/v1/conversations/{}", made["id"].as_str().unwrap());
    let metadata = || Some(json!({ "metadata": { "a": "b" } }));
    for (method, path, body) in [
        ("DELETE", format!("/v1/responses/{parent}"), None),
        ("POST", conversation.clone(), metadata()),
        ("DELETE", conversation.clone(), None),
    ] {
        let (status, told) = server.send(method, &path, body, Some(&bob)).await;
        assert_eq!((status, &told["error"]["type"]), (403, &json!("permission_error")), "{path}");
    }
    assert_eq!(server.send("POST", &conversation, metadata(), Some(&ann)).await.0, 200);
    // A branch is deleted as far as it is one's own.
    let branch = format!("/v1/responses/{parent}?cascade=true");
    assert_eq!(server.send("DELETE", &branch, None, Some(&ann)).await.0, 200);
    let of_child = format!("/v1/responses/{child}");
    assert_eq!(server.send("GET", &of_child, None, Some(&bob)).await.0, 200);
}
