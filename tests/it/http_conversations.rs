//! `/v1/conversations` over the real router.

use antiphon::store::{
    Viewer,
    conversations::{self, Lock},
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    model::{Gate, Round, Script, Step, say, stop, text},
    server::{NOW, Server, Setup, start, start_with},
};

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// Makes a conversation with these items; its id.
async fn conversation(server: &Server, items: Vec<Value>) -> String {
    let (status, body) = server.post("/v1/conversations", json!({ "items": items })).await;
    assert_eq!(status, 200, "{body}");
    body["id"].as_str().unwrap().to_owned()
}

/// The texts of the messages in a page.
fn texts(page: &Value) -> Vec<&str> {
    page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["content"][0]["text"].as_str().unwrap())
        .collect()
}

fn error(code: Option<&str>, param: Option<&str>, message: &str) -> Value {
    json!({ "error": { "message": message, "type": "invalid_request_error", "param": param, "code": code } })
}

#[tokio::test]
async fn a_conversation_is_made_changed_and_deleted() {
    let server = start(Script::new([])).await;
    let (status, made) =
        server.post("/v1/conversations", json!({ "metadata": { "topic": "x" } })).await;
    let id = made["id"].as_str().unwrap().to_owned();
    let expected = json!({ "id": id, "object": "conversation", "created_at": NOW, "metadata": { "topic": "x" } });
    assert_eq!((status, &made), (200, &expected));
    assert!(id.starts_with("conv_"), "{id}");

    let path = format!("/v1/conversations/{id}");
    assert_eq!(server.get(&path).await, (200, expected));

    let changed =
        json!({ "id": id, "object": "conversation", "created_at": NOW, "metadata": { "a": "b" } });
    assert_eq!(
        server.post(&path, json!({ "metadata": { "a": "b" } })).await,
        (200, changed.clone())
    );
    assert_eq!(server.get(&path).await, (200, changed));
    let (status, refused) = server.post(&path, json!({ "metadata": null })).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("missing_required_parameter")));

    let deleted = json!({ "id": id, "object": "conversation.deleted", "deleted": true });
    assert_eq!(server.delete(&path).await, (200, deleted));
    let absent = error(None, None, &format!("Conversation with id '{id}' not found."));
    assert_eq!(server.get(&path).await, (404, absent.clone()));
    assert_eq!(server.delete(&path).await, (404, absent));
}

#[tokio::test]
async fn nothing_is_needed_to_make_one() {
    let server = start(Script::new([])).await;
    let (status, body) = server.send("POST", "/v1/conversations", None, None).await;
    assert_eq!((status, &body["metadata"]), (200, &json!({})));
    let (status, body) =
        server.post("/v1/conversations", json!({ "metadata": null, "items": null })).await;
    assert_eq!((status, &body["metadata"]), (200, &json!({})));
}

#[tokio::test]
async fn items_get_ids_and_a_status_and_come_back_as_they_are() {
    let server = start(Script::new([])).await;
    let id = conversation(&server, vec![]).await;
    let path = format!("/v1/conversations/{id}/items");
    let items = json!([
        user("one"),
        { "type": "message", "role": "assistant", "id": "msg_mine", "content": [{ "type": "output_text", "text": "two" }] },
    ]);
    let (status, added) = server
        .post(&format!("{path}?include[]=message.output_text.logprobs"), json!({ "items": items }))
        .await;
    assert_eq!(status, 200, "{added}");
    let first = added["data"][0]["id"].as_str().unwrap();
    assert!(first.starts_with("msg_"), "{first}");
    let expected = json!({
        "object": "list",
        "data": [
            { "type": "message", "id": first, "status": "completed", "role": "user", "content": [{ "type": "input_text", "text": "one" }] },
            { "type": "message", "id": "msg_mine", "status": "completed", "role": "assistant",
              "content": [{ "type": "output_text", "text": "two", "annotations": [], "logprobs": [] }] },
        ],
        "first_id": first, "last_id": "msg_mine", "has_more": false,
    });
    assert_eq!(added, expected);
    assert_eq!(server.get(&format!("{path}?order=asc")).await, (200, expected.clone()));
    assert_eq!(server.get(&format!("{path}/{first}")).await, (200, expected["data"][0].clone()));

    let (status, conversation) = server.delete(&format!("{path}/{first}")).await;
    assert_eq!(
        (status, &conversation["id"], &conversation["object"]),
        (200, &json!(id), &json!("conversation"))
    );
    let gone =
        error(None, None, &format!("Item with id '{first}' not found in this conversation."));
    assert_eq!(server.get(&format!("{path}/{first}")).await, (404, gone.clone()));
    assert_eq!(server.delete(&format!("{path}/{first}")).await, (404, gone));
    assert_eq!(texts(&server.get(&path).await.1), ["two"]);
}

#[tokio::test]
async fn items_are_listed_newest_first_and_page_by_page() {
    let server = start(Script::new([])).await;
    let id = conversation(&server, (0..5).map(|n| user(&n.to_string())).collect()).await;
    let path = format!("/v1/conversations/{id}/items");
    for (order, pages) in [
        ("", [vec!["4", "3"], vec!["2", "1"], vec!["0"]]),
        ("&order=asc", [vec!["0", "1"], vec!["2", "3"], vec!["4"]]),
    ] {
        let mut after = String::new();
        for (at, expected) in pages.iter().enumerate() {
            let (status, page) = server.get(&format!("{path}?limit=2{order}{after}")).await;
            assert_eq!((status, &texts(&page), &page["has_more"]), (200, expected, &json!(at < 2)));
            assert_eq!(page["last_id"], page["data"].as_array().unwrap().last().unwrap()["id"]);
            after = format!("&after={}", page["last_id"].as_str().unwrap());
        }
        let (status, end) = server.get(&format!("{path}?limit=2{order}{after}")).await;
        let empty = json!({ "object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false });
        assert_eq!((status, end), (200, empty));
    }
    let unknown = error(
        Some("invalid_value"),
        Some("after"),
        "`after` is `msg_x`, and this list has no such id.",
    );
    assert_eq!(server.get(&format!("{path}?after=msg_x")).await, (400, unknown));
}

#[tokio::test]
async fn conversations_are_listed_too() {
    let server = start(Script::new([])).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(conversation(&server, vec![]).await);
        server.clock.advance(time::Duration::SECOND);
    }
    let (_, page) = server.get("/v1/conversations?limit=2").await;
    assert_eq!(
        (&page["first_id"], &page["last_id"], &page["has_more"]),
        (&json!(ids[2]), &json!(ids[1]), &json!(true))
    );
    let (_, page) = server.get(&format!("/v1/conversations?after={}", ids[1])).await;
    assert_eq!(
        (&page["first_id"], &page["last_id"], &page["has_more"]),
        (&json!(ids[0]), &json!(ids[0]), &json!(false))
    );
    assert_eq!(server.get("/v1/conversations?after=conv_x").await.0, 400);
}

#[tokio::test]
async fn what_is_wrong_is_said_with_its_path() {
    let server = start(Script::new([])).await;
    let id =
        conversation(&server, vec![json!({ "role": "user", "content": "x", "id": "msg_known" })])
            .await;
    let items = format!("/v1/conversations/{id}/items");
    let pairs: Value =
        (0..17).map(|n| (n.to_string(), json!("x"))).collect::<serde_json::Map<_, _>>().into();
    let many: Vec<Value> = (0..21).map(|_| user("x")).collect();
    let twice = json!({ "role": "user", "content": "x", "id": "msg_twice" });
    for (path, body, code, param) in [
        (
            "/v1/conversations",
            json!({ "metadata": pairs }),
            "object_above_max_properties",
            "metadata",
        ),
        (
            "/v1/conversations",
            json!({ "metadata": { "k": "x".repeat(513) } }),
            "string_above_max_length",
            "metadata.k",
        ),
        (
            "/v1/conversations",
            json!({ "metadata": { "k".repeat(65): "x" } }),
            "string_above_max_length",
            "metadata",
        ),
        ("/v1/conversations", json!({ "metadata": { "k": 7 } }), "invalid_type", "metadata.k"),
        ("/v1/conversations", json!({ "items": many }), "array_above_max_length", "items"),
        (&items, json!({ "items": many }), "array_above_max_length", "items"),
        (&items, json!({ "items": [] }), "empty_array", "items"),
        (&items, json!({}), "missing_required_parameter", "items"),
        (
            &items,
            json!({ "items": [user("x"), { "content": "x" }] }),
            "missing_required_parameter",
            "items[1].type",
        ),
        (
            &items,
            json!({ "items": [{ "role": "wizard", "content": "x" }] }),
            "invalid_value",
            "items[0].role",
        ),
        (&items, json!({ "items": [twice, twice] }), "invalid_value", "items"),
        (
            &items,
            json!({ "items": [{ "role": "user", "content": "x", "id": "msg_known" }] }),
            "invalid_value",
            "items",
        ),
        (
            &items,
            json!({ "items": [{ "type": "item_reference", "id": "msg_nowhere" }] }),
            "invalid_value",
            "items[0].id",
        ),
    ] {
        let (status, refused) = server.post(path, body).await;
        let found = (status, refused["error"]["code"].as_str(), refused["error"]["param"].as_str());
        assert_eq!(found, (400, Some(code), Some(param)), "{refused}");
    }
    assert_eq!(texts(&server.get(&items).await.1), ["x"], "nothing was added");
}

#[tokio::test]
async fn what_is_not_theirs_is_absent() {
    let setup = Setup { share_in_tenant: false, ..Setup::default() };
    let server = start_with(Script::new([]), setup).await;
    let (ada, bob, eve) = (
        server.key("ada", "acme").await,
        server.key("bob", "acme").await,
        server.key("eve", "other").await,
    );
    let body = json!({ "items": [{ "role": "user", "content": "x", "id": "msg_1" }] });
    let (_, made) = server.send("POST", "/v1/conversations", Some(body.clone()), Some(&ada)).await;
    let path = format!("/v1/conversations/{}", made["id"].as_str().unwrap());
    let nobody = "/v1/conversations/conv_nowhere".to_owned();
    let add = json!({ "items": [user("x")] });
    let requests = [
        ("GET", "", None),
        ("POST", "", Some(json!({ "metadata": {} }))),
        ("GET", "/items", None),
        ("POST", "/items", Some(add)),
        ("GET", "/items/msg_1", None),
        ("DELETE", "/items/msg_1", None),
        ("DELETE", "", None),
    ];
    for (method, rest, body) in requests {
        for stranger in [&bob, &eve] {
            let (status, foreign) =
                server.send(method, &format!("{path}{rest}"), body.clone(), Some(stranger)).await;
            let (_, absent) =
                server.send(method, &format!("{nobody}{rest}"), body.clone(), Some(stranger)).await;
            assert_eq!(status, 404, "{method} {rest}: {foreign}");
            let foreign = foreign.to_string().replace(made["id"].as_str().unwrap(), "conv_nowhere");
            assert_eq!(foreign, absent.to_string());
        }
    }
    let (_, theirs) = server.send("GET", "/v1/conversations", None, Some(&bob)).await;
    assert_eq!(theirs["data"], json!([]));
    assert_eq!(server.send("GET", &path, None, Some(&ada)).await.0, 200);
    assert_eq!(server.get(&path).await.0, 401);
}

#[tokio::test]
async fn a_response_reads_the_conversation_and_writes_into_it() {
    let model = Script::new([text("hello ada"), text("your name is ada")]);
    let server = start(model.clone()).await;
    let id =
        conversation(&server, vec![json!({ "role": "developer", "content": "be kind" })]).await;
    for ask in ["i am ada", "who am i?"] {
        let body = json!({ "model": "m", "conversation": id, "input": ask });
        let (status, response) = server.post("/v1/responses", body).await;
        assert_eq!((status, &response["status"]), (200, &json!("completed")), "{response}");
    }
    assert_eq!(
        model.asked()[1].messages,
        ["system: be kind", "user: i am ada", "assistant: hello ada", "user: who am i?"]
    );
    let items = format!("/v1/conversations/{id}/items");
    let (_, page) = server.get(&format!("{items}?order=asc")).await;
    assert_eq!(texts(&page), ["be kind", "i am ada", "hello ada", "who am i?", "your name is ada"]);

    // What is taken out of the conversation stays with its Response.
    let output = page["data"][2]["id"].as_str().unwrap();
    assert_eq!(server.delete(&format!("{items}/{output}")).await.0, 200);
    assert_eq!(
        texts(&server.get(&items).await.1),
        ["your name is ada", "who am i?", "i am ada", "be kind"]
    );
    let (_, list) = server.get("/v1/responses?order=asc").await;
    let first = list["data"][0]["id"].as_str().unwrap();
    let (_, response) = server.get(&format!("/v1/responses/{first}")).await;
    assert_eq!(response["output"][0]["content"][0]["text"], "hello ada");
}

#[tokio::test]
async fn items_cannot_be_added_while_a_response_is_written() {
    let gate = Gate::closed();
    let slow = Round::Play(vec![say("he"), Step::Wait(gate.clone()), say("llo"), stop()]);
    let server = start(Script::new([slow])).await;
    let id = conversation(&server, vec![]).await;
    let items = format!("/v1/conversations/{id}/items");
    let ask =
        server.post("/v1/responses", json!({ "model": "m", "conversation": id, "input": "hi" }));
    let meanwhile = async {
        gate.reached().await;
        let refused = server.post(&items, json!({ "items": [user("in between")] })).await;
        let locked = error(
            Some("conversation_locked"),
            Some("conversation"),
            "Another process is currently operating on this conversation. Please retry in a few seconds.",
        );
        assert_eq!(refused, (400, locked));
        // Reading and its metadata are nobody's business but its owner's.
        assert_eq!(texts(&server.get(&items).await.1), [""; 0]);
        let path = format!("/v1/conversations/{id}");
        assert_eq!(server.post(&path, json!({ "metadata": { "a": "b" } })).await.0, 200);
        gate.open();
    };
    let ((status, _), ()) = tokio::join!(ask, meanwhile);
    assert_eq!(status, 200);
    assert_eq!(server.post(&items, json!({ "items": [user("after")] })).await.0, 200);
    assert_eq!(texts(&server.get(&items).await.1), ["after", "hello", "hi"]);
}

#[tokio::test]
async fn a_response_whose_lease_ran_out_cannot_write_after_what_was_added() {
    let server = start(Script::new([])).await;
    let id = conversation(&server, vec![]).await;
    let viewer = Viewer { tenant_id: "local", only_owner: None };
    let now = server.clock.now();
    let until = now + time::Duration::minutes(1);
    let lock = conversations::lock(&server.pool, viewer, &id, "resp_1", now, until).await.unwrap();
    assert_eq!(lock, Lock::Ours);
    let add = async || {
        let body = json!({ "items": [user("x")] });
        server.post(&format!("/v1/conversations/{id}/items"), body).await.0
    };
    assert_eq!(add().await, 400);
    assert!(
        conversations::renew(&server.pool, &id, "resp_1", until).await.unwrap(),
        "still theirs"
    );
    server.clock.advance(time::Duration::minutes(1));
    assert_eq!(add().await, 200);
    assert!(!conversations::unlock(&server.pool, &id, "resp_1").await.unwrap(), "it is lost");
}
