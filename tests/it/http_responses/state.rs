//! What is kept: chains, branches, deletion, input items, references.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{create, id, rows, say_after, text_of};
use crate::support::{
    model::{Gate, Round, Script, Step, say, stop, text, usage},
    schema,
    server::{Server, start},
};

#[tokio::test]
async fn a_chain_of_three_and_a_branch() {
    let script = Script::new(["A", "B", "C", "D"].map(text));
    let server = start(script.clone()).await;
    let first = say_after(&server, None, "one").await;
    let second = say_after(&server, Some(&first), "two").await;
    let third = say_after(&server, Some(&second), "three").await;
    let branch = say_after(&server, Some(&first), "other two").await;
    assert_eq!([&first, &second, &third, &branch].map(text_of), ["A", "B", "C", "D"]);
    assert_eq!(third["previous_response_id"], second["id"]);
    let asked: Vec<Vec<String>> = script.asked().into_iter().map(|asked| asked.messages).collect();
    assert_eq!(asked[2], ["user: one", "assistant: A", "user: two", "assistant: B", "user: three"]);
    assert_eq!(asked[3], ["user: one", "assistant: A", "user: other two"]);
    let (status, page) = server.get("/v1/responses?limit=3&order=asc").await;
    assert_eq!(status, 200);
    assert_eq!(page["data"][0]["id"], first["id"]);
    assert_eq!((&page["has_more"], page["data"].as_array().unwrap().len()), (&json!(true), 3));
}

#[tokio::test]
async fn instructions_are_not_inherited() {
    let script = Script::new(["A", "B"].map(text));
    let server = start(script.clone()).await;
    let body = json!({ "model": "m", "input": "one", "instructions": "Rhyme." });
    let first = create(&server, body).await;
    let second = say_after(&server, Some(&first), "two").await;
    assert_eq!(second["instructions"], Value::Null);
    assert_eq!(script.asked()[0].messages, ["system: Rhyme.", "user: one"]);
    assert_eq!(script.asked()[1].messages, ["user: one", "assistant: A", "user: two"]);
}

#[tokio::test]
async fn a_child_outlives_its_parent() {
    let script = Script::new(["A", "B", "C"].map(text));
    let server = start(script.clone()).await;
    let first = say_after(&server, None, "one").await;
    let second = say_after(&server, Some(&first), "two").await;
    assert_eq!(rows(&server).await, (2, 4));

    let path = |response: &Value| format!("/v1/responses/{}", id(response));
    let deleted = json!({ "id": first["id"], "object": "response.deleted", "deleted": true });
    assert_eq!(server.delete(&path(&first)).await, (200, deleted));
    for (method, tail) in
        [("GET", ""), ("DELETE", ""), ("GET", "/input_items"), ("POST", "/cancel")]
    {
        let answer = server.send(method, &format!("{}{tail}", path(&first)), None, None).await;
        assert_eq!(answer.0, 404, "{method} {tail}: {}", answer.1);
    }
    // Its content is still needed.
    assert_eq!(rows(&server).await, (2, 4));
    let body = json!({ "model": "m", "input": "x", "previous_response_id": first["id"] });
    let (status, refusal) = server.post("/v1/responses", body).await;
    assert_eq!((status, &refusal["error"]["code"]), (400, &json!("previous_response_not_found")));
    let third = say_after(&server, Some(&second), "three").await;
    let all = ["user: one", "assistant: A", "user: two", "assistant: B", "user: three"];
    assert_eq!(script.asked()[2].messages, all);

    // Now it is needed by nobody any more, step by step.
    assert_eq!(server.delete(&path(&second)).await.0, 200);
    assert_eq!(rows(&server).await, (3, 6));
    assert_eq!(server.delete(&path(&third)).await.0, 200);
    assert_eq!(rows(&server).await, (0, 0));
}

#[tokio::test]
async fn a_branch_is_deleted_as_a_whole() {
    let server = start(Script::new(["A", "B", "C", "D"].map(text))).await;
    let root = say_after(&server, None, "root").await;
    let branch = say_after(&server, Some(&root), "branch").await;
    let leaf = say_after(&server, Some(&branch), "leaf").await;
    let other = say_after(&server, Some(&root), "other").await;
    let path = format!("/v1/responses/{}?cascade=true", id(&branch));
    assert_eq!(server.delete(&path).await.0, 200);
    for (response, expected) in [(&root, 200), (&branch, 404), (&leaf, 404), (&other, 200)] {
        assert_eq!(server.get(&format!("/v1/responses/{}", id(response))).await.0, expected);
    }
    assert_eq!(rows(&server).await, (2, 4));
}

/// The texts of a page of input items, and whether there are more.
async fn page(server: &Server, path: &str) -> (Vec<String>, bool) {
    let (status, page) = server.get(path).await;
    assert_eq!(status, 200, "{page}");
    let data = page["data"].as_array().unwrap();
    assert_eq!(page["first_id"], data.first().map_or(Value::Null, |item| item["id"].clone()));
    assert_eq!(page["last_id"], data.last().map_or(Value::Null, |item| item["id"].clone()));
    if !data.is_empty() {
        schema::check("ResponseItemList", &page);
    }
    let text = |item: &Value| item["content"][0]["text"].as_str().unwrap().to_owned();
    (data.iter().map(text).collect(), page["has_more"].as_bool().unwrap())
}

#[tokio::test]
async fn input_items_page_by_page() {
    let server = start(Script::new([text("A")])).await;
    let message = |text: &str| json!({ "role": "user", "content": text });
    let input: Vec<Value> = ["1", "2", "3", "4", "5"].map(message).into();
    let response = create(&server, json!({ "model": "m", "input": input })).await;
    let path = format!("/v1/responses/{}/input_items", id(&response));
    let (_, all) = server.get(&format!("{path}?order=asc")).await;
    let cursor = |at: usize| all["data"][at]["id"].as_str().unwrap();
    for (query, expected, more) in [
        (String::new(), &["5", "4", "3", "2", "1"][..], false),
        ("?order=asc".to_owned(), &["1", "2", "3", "4", "5"], false),
        ("?order=asc&limit=2".to_owned(), &["1", "2"], true),
        (format!("?order=asc&limit=2&after={}", cursor(1)), &["3", "4"], true),
        (format!("?order=asc&limit=2&after={}", cursor(3)), &["5"], false),
        (format!("?order=asc&limit=2&after={}", cursor(4)), &[], false),
        (format!("?limit=2&after={}", cursor(3)), &["3", "2"], true),
        (format!("?order=desc&limit=1&after={}", cursor(1)), &["1"], false),
    ] {
        let (texts, has_more) = page(&server, &format!("{path}{query}")).await;
        assert_eq!(
            (texts.as_slice(), has_more),
            (&*expected.iter().map(ToString::to_string).collect::<Vec<_>>(), more),
            "{query}"
        );
    }
    for (query, param) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=x", "limit"),
        ("order=up", "order"),
        ("after=msg_x", "after"),
    ] {
        let (status, body) = server.get(&format!("{path}?{query}")).await;
        assert_eq!((status, &body["error"]["param"]), (400, &json!(param)), "{query}: {body}");
    }
}

#[tokio::test]
async fn what_is_not_to_be_stored_is_not() {
    let server = start(Script::new([text("A")])).await;
    let response = create(&server, json!({ "model": "m", "input": "Hi", "store": false })).await;
    assert_eq!(response["store"], false);
    assert_eq!(server.get(&format!("/v1/responses/{}", id(&response))).await.0, 404);
    let body = json!({ "model": "m", "input": "x", "previous_response_id": response["id"] });
    let (status, refusal) = server.post("/v1/responses", body).await;
    assert_eq!((status, &refusal["error"]["code"]), (400, &json!("previous_response_not_found")));
    assert_eq!(rows(&server).await, (0, 0));
}

#[tokio::test]
async fn an_item_is_named_instead_of_sent() {
    let script = Script::new(["The answer", "B"].map(text));
    let server = start(script.clone()).await;
    let first = say_after(&server, None, "one").await;
    let reference = json!({ "type": "item_reference", "id": first["output"][0]["id"] });
    let input = json!([{ "role": "user", "content": "You said:" }, reference, { "role": "user", "content": "Sure?" }]);
    create(&server, json!({ "model": "m", "input": input })).await;
    let expected = ["user: You said:", "assistant: The answer", "user: Sure?"];
    assert_eq!(script.asked()[1].messages, expected);

    let input = json!([{ "type": "item_reference", "id": "msg_none" }]);
    let (status, body) =
        server.post("/v1/responses", json!({ "model": "m", "input": input })).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("input[0].id")), "{body}");
}

#[tokio::test]
async fn a_parent_that_is_deleted_meanwhile_costs_its_child_nothing() {
    let gate = Gate::closed();
    let slow = vec![say("B"), Step::Wait(gate.clone()), usage(), stop()];
    let script = Script::new([text("A"), Round::Play(slow), text("C")]);
    let server = start(script.clone()).await;
    let first = say_after(&server, None, "one").await;
    let delete = async {
        gate.reached().await;
        assert_eq!(server.delete(&format!("/v1/responses/{}", id(&first))).await.0, 200);
        gate.open();
    };
    let (second, ()) = tokio::join!(say_after(&server, Some(&first), "two"), delete);
    assert_eq!(text_of(&second), "B");
    say_after(&server, Some(&second), "three").await;
    let messages = &script.asked()[2].messages;
    let all = ["user: one", "assistant: A", "user: two", "assistant: B", "user: three"];
    assert_eq!(*messages, all);
}

#[tokio::test]
async fn a_conversation_that_is_deleted_meanwhile_is_said_to_be_gone() {
    let gate = Gate::closed();
    let slow = vec![say("A"), Step::Wait(gate.clone()), usage(), stop()];
    let server = start(Script::new([Round::Play(slow)])).await;
    let (_, conversation) = server.post("/v1/conversations", json!({})).await;
    let body = json!({ "model": "m", "input": "one", "conversation": id(&conversation) });
    let delete = async {
        gate.reached().await;
        let path = format!("/v1/conversations/{}", id(&conversation));
        assert_eq!(server.delete(&path).await.0, 200);
        gate.open();
    };
    let ((status, told), ()) = tokio::join!(server.post("/v1/responses", body), delete);
    assert_eq!((status, &told["error"]["param"]), (404, &json!("conversation")), "{told}");
    // What the model said is not lost: it is kept as a failed Response.
    let (_, page) = server.get("/v1/responses").await;
    let kept = server.get(&format!("/v1/responses/{}", id(&page["data"][0]))).await.1;
    assert_eq!((&kept["status"], text_of(&kept)), (&json!("failed"), "A"));
}

#[tokio::test]
async fn going_on_from_a_conversation_takes_it_along() {
    let script = Script::new(["A", "B"].map(text));
    let server = start(script.clone()).await;
    let zero = json!({ "items": [{ "role": "user", "content": "zero" }] });
    let (_, conversation) = server.post("/v1/conversations", zero).await;
    let body = json!({ "model": "m", "input": "one", "conversation": id(&conversation) });
    let first = create(&server, body).await;
    say_after(&server, Some(&first), "two").await;
    let messages = &script.asked()[1].messages;
    assert_eq!(*messages, ["user: zero", "user: one", "assistant: A", "user: two"]);
}

#[tokio::test]
async fn an_id_that_is_there_already_stands_once_in_every_list() {
    let script = Script::new(["A", "B"].map(text));
    let server = start(script.clone()).await;
    let first = say_after(&server, None, "one").await;
    let body = json!({
        "model": "m", "previous_response_id": id(&first),
        "input": [{ "type": "item_reference", "id": id(&first["output"][0]) }, { "role": "user", "content": "two" }],
    });
    let second = create(&server, body).await;
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/v1/responses/{}/input_items?limit=1{after}", id(&second));
        let (_, page) = server.get(&path).await;
        seen.push(id(&page["data"][0]).to_owned());
        if page["has_more"] == false {
            break;
        }
        assert!(seen.len() < 10, "it never ends: {seen:?}");
        after = format!("&after={}", page["last_id"].as_str().unwrap());
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
}
