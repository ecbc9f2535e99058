//! MCP servers: their lists and calls.

use axum::{http::StatusCode, response::IntoResponse as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{after, anonymous, calls, create, echo, echoed, free, item, kinds, refused, request};
use crate::{
    mcp::mock::mock,
    support::{
        model::{Script, text},
        server::start,
        stream::Listener,
    },
};

#[tokio::test]
async fn a_tool_is_listed_called_and_answered_alike_as_json_and_as_events() {
    let server = echo(&["add", "sub"]).await;
    let rounds = || [calls(&[("add", r#"{"n":1}"#)]), text("It is 1.")];
    let script = Script::new(rounds().into_iter().chain(rounds()));
    let ours = start(script.clone()).await;
    let body = request("Add.", &[free(&server)]);

    let response = create(&ours, &body).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call", "message"]);
    let schema = json!({ "type": "object", "properties": { "n": { "type": "number" } } });
    let tool = |name: &str| {
        let (name, description) = (name.to_owned(), format!("does {name}"));
        json!({ "name": name, "description": description, "input_schema": schema, "annotations": null })
    };
    let list = item(&response, "mcp_list_tools");
    assert_eq!(
        anonymous(list),
        json!({ "type": "mcp_list_tools", "server_label": "srv", "tools": [tool("add"), tool("sub")] })
    );
    assert_eq!(
        anonymous(item(&response, "mcp_call")),
        json!({
            "type": "mcp_call", "status": "completed", "approval_request_id": null, "server_label": "srv",
            "name": "add", "arguments": r#"{"n":1}"#, "output": r#"add {"n":1}"#, "error": null,
        })
    );
    let asked = script.asked();
    assert_eq!(asked[0].tools, ["add", "sub"]);
    let told = asked[1].messages.last().unwrap();
    assert!(told.starts_with("tool mcp_") && told.ends_with(r#"add {"n":1}"#), "{told}");
    assert_eq!(response["usage"]["total_tokens"], 14);

    let heard = Listener::open(&ours, &body).await.whole().await;
    assert_eq!(anonymous(&heard.response), anonymous(&response));
    let told: Vec<&str> =
        heard.events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        told[..12],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.mcp_list_tools.in_progress",
            "response.mcp_list_tools.completed",
            "response.output_item.done",
            "response.output_item.added",
            "response.mcp_call.in_progress",
            "response.mcp_call_arguments.delta",
            "response.mcp_call_arguments.done",
            "response.mcp_call.completed",
            "response.output_item.done",
        ]
    );
    for told in [&response, &heard.response] {
        let path = format!("/v1/responses/{}", told["id"].as_str().unwrap());
        assert_eq!(ours.get(&path).await, (200, told.clone()));
    }
    // Each had a chain of its own.
    assert_eq!(server.sessions("POST tools/call"), ["s1", "s2"]);
}

#[tokio::test]
async fn a_list_serves_its_chain_until_it_is_asked_for_otherwise() {
    let server = echo(&["add", "sub"]).await;
    let script = Script::new([
        text("Hello."),
        calls(&[("add", "{}")]),
        text("Done."),
        calls(&[("sub", "{}")]),
        text("Done."),
        text("Bye."),
    ]);
    let ours = start(script.clone()).await;
    let first = create(&ours, &request("Hi", &[free(&server)])).await;
    assert_eq!(kinds(&first), ["mcp_list_tools", "message"]);

    let second = create(&ours, &after(&first, "Add.", &[free(&server)])).await;
    assert_eq!(kinds(&second), ["mcp_call", "message"]);
    assert_eq!(script.asked()[1].tools, ["add", "sub"]);
    assert_eq!(server.count("POST tools/list"), 1);
    assert_eq!(server.count("POST initialize"), 1, "the session of the chain is used on");

    // Other terms, another list.
    let mut narrower = free(&server);
    narrower["allowed_tools"] = json!(["sub"]);
    let third = create(&ours, &after(&second, "Subtract.", &[narrower.clone()])).await;
    assert_eq!(kinds(&third), ["mcp_list_tools", "mcp_call", "message"]);
    assert_eq!(third["output"][0]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(script.asked()[3].tools, ["sub"]);

    // The newest list is of those terms.
    let fourth = create(&ours, &after(&third, "Bye.", &[narrower])).await;
    assert_eq!(kinds(&fourth), ["message"]);
    assert_eq!(server.count("POST tools/list"), 2);
}

#[tokio::test]
async fn a_client_that_keeps_the_history_brings_the_list_along() {
    let server = echo(&["add"]).await;
    let script = Script::new([text("Hello."), calls(&[("add", "{}")]), text("Done.")]);
    let ours = start(script.clone()).await;
    let mut body = request("Hi", &[free(&server)]);
    body["store"] = json!(false);
    let first = create(&ours, &body).await;
    let mut input = vec![json!({ "role": "user", "content": "Hi" })];
    input.extend(first["output"].as_array().unwrap().iter().cloned());
    input.push(json!({ "role": "user", "content": "Add." }));
    body["input"] = input.into();
    let second = create(&ours, &body).await;
    assert_eq!(kinds(&second), ["mcp_call", "message"]);
    assert_eq!(script.asked()[1].messages, ["user: Hi", "assistant: Hello.", "user: Add."]);
    assert_eq!(server.count("POST tools/list"), 1);
    let rows = "select (select count(*) from responses) + (select count(*) from items)";
    assert_eq!(sqlx::query_scalar::<_, i64>(rows).fetch_one(&ours.pool).await.unwrap(), 0);
}

#[tokio::test]
async fn a_server_that_is_down_fails_its_list_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let down = json!({ "type": "mcp", "server_label": "down", "server_url": url, "require_approval": "never" });
    let up = echo(&["add"]).await;
    let rounds = || [calls(&[("add", "{}")]), text("Done.")];
    let script = Script::new(rounds().into_iter().chain(rounds()));
    let ours = start(script.clone()).await;
    let body = request("Add.", &[down, free(&up)]);

    let response = create(&ours, &body).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_list_tools", "mcp_call", "message"]);
    let failed = &response["output"][0];
    assert_eq!((&failed["server_label"], &failed["tools"]), (&json!("down"), &json!([])));
    assert!(!failed["error"].as_str().unwrap().is_empty(), "{failed}");
    assert_eq!(response["output"][1].get("error"), None);
    assert_eq!(script.asked()[0].tools, ["add"]);

    let heard = Listener::open(&ours, &body).await.whole().await;
    assert_eq!(anonymous(&heard.response), anonymous(&response));
    let lists = |end: &str| {
        let kind = format!("response.mcp_list_tools.{end}");
        heard.events.iter().filter(|event| event["type"] == kind).count()
    };
    assert_eq!((lists("in_progress"), lists("completed"), lists("failed")), (2, 1, 1));
}

#[tokio::test]
async fn a_list_that_failed_is_asked_for_again() {
    let server = mock(|asked| async move {
        if asked.method == "tools/list" && asked.nth == 1 {
            return Some(StatusCode::INTERNAL_SERVER_ERROR.into_response());
        }
        echoed(&asked, &["add"])
    })
    .await;
    let script = Script::new([text("I cannot."), calls(&[("add", "{}")]), text("Done.")]);
    let ours = start(script.clone()).await;
    let first = create(&ours, &request("Add.", &[free(&server)])).await;
    assert!(first["output"][0]["error"].is_string(), "{first}");
    let second = create(&ours, &after(&first, "Again.", &[free(&server)])).await;
    assert_eq!(kinds(&second), ["mcp_list_tools", "mcp_call", "message"]);
    assert_eq!(second["output"][0].get("error"), None);
    assert_eq!(
        [&script.asked()[0].tools[..], &script.asked()[1].tools],
        [&[][..], &["add".to_owned()]]
    );
}

#[tokio::test]
async fn a_call_that_fails_is_told_to_the_model_and_shown_as_failed() {
    let server = mock(|asked| async move {
        let name = asked.params["name"].as_str().unwrap_or_default();
        match (&*asked.method, name) {
            ("tools/call", "sad") => Some(asked.result(&json!({
                "content": [{ "type": "text", "text": "no such city" }], "isError": true,
            }))),
            ("tools/call", "broken") => Some(
                axum::Json(json!({
                    "jsonrpc": "2.0", "id": asked.id, "error": { "code": -32603, "message": "out of order" },
                }))
                .into_response(),
            ),
            _ => echoed(&asked, &["sad", "broken", "well"]),
        }
    })
    .await;
    let script = Script::new([
        calls(&[("sad", "{}"), ("broken", "{}"), ("well", "{}"), ("well", r#"{"n":"x"}"#)]),
        text("Sorry."),
    ]);
    let ours = start(script.clone()).await;
    let heard = Listener::open(&ours, &request("Go.", &[free(&server)])).await.whole().await;
    let items = &heard.response["output"].as_array().unwrap()[1..5];
    let statuses: Vec<&Value> = items.iter().map(|item| &item["status"]).collect();
    assert_eq!(statuses, ["failed", "failed", "completed", "failed"]);
    assert_eq!(items[0]["error"]["type"], "mcp_tool_execution_error");
    assert_eq!(items[1]["error"]["type"], "mcp_protocol_error");
    assert_eq!(items[1]["error"]["code"], -32603);
    let asked = script.asked();
    let told = &asked[1].messages[2..];
    for (told, part) in told.iter().zip(["no such city", "out of order", "well {}", "n"]) {
        assert!(told.starts_with("tool mcp_") && told.contains(part), "{told}");
    }
    assert_eq!(told.len(), 4);
    assert_eq!(server.count("POST tools/call"), 3, "arguments that do not fit are not sent");
}

#[tokio::test]
async fn servers_whose_tools_have_one_name_are_told_apart() {
    let (one, two) = (echo(&["add"]).await, echo(&["add"]).await);
    let mut second = free(&two);
    second["server_label"] = json!("other");
    let script = Script::new([calls(&[("mcp_other_add", "{}"), ("add", "{}")]), text("Done.")]);
    let ours = start(script.clone()).await;
    let response = create(&ours, &request("Add.", &[free(&one), second])).await;
    assert_eq!(script.asked()[0].tools, ["add", "mcp_other_add"]);
    let called: Vec<&Value> = (2..4).map(|at| &response["output"][at]["server_label"]).collect();
    assert_eq!(called, ["other", "srv"]);
    assert_eq!((one.count("POST tools/call"), two.count("POST tools/call")), (1, 1));
}

#[tokio::test]
async fn a_choice_may_name_a_tool_that_is_not_known_yet() {
    let server = echo(&["add", "sub"]).await;
    let script = Script::new([calls(&[("sub", "{}")]), text("Done."), text("I cannot.")]);
    let ours = start(script.clone()).await;
    let mut body = request("Go.", &[free(&server)]);
    body["tool_choice"] = json!({ "type": "mcp", "server_label": "srv", "name": "sub" });
    let response = create(&ours, &body).await;
    assert_eq!(kinds(&response), ["mcp_list_tools", "mcp_call", "message"]);
    assert_eq!(response["tool_choice"], body["tool_choice"]);

    // One that its server does not have is only known to be wrong once it was asked.
    body["tool_choice"]["name"] = json!("mul");
    let error = refused(&ours, &body).await;
    assert!(error["param"].as_str().unwrap().starts_with("tool_choice"), "{error}");
    body["tool_choice"]["server_label"] = json!("other");
    let error = refused(&ours, &body).await;
    assert!(error["param"].as_str().unwrap().starts_with("tool_choice"), "{error}");
    assert_eq!(server.count("POST tools/list"), 2);
}

#[tokio::test]
async fn the_limit_of_calls_holds_for_the_whole_response() {
    let server = echo(&["add"]).await;
    let script = Script::new([
        calls(&[("add", r#"{"n":1}"#), ("add", r#"{"n":2}"#), ("add", r#"{"n":3}"#)]),
        calls(&[("add", r#"{"n":4}"#)]),
        text("Enough."),
    ]);
    let ours = start(script.clone()).await;
    let mut body = request("Go.", &[free(&server)]);
    body["max_tool_calls"] = json!(2);
    let heard = Listener::open(&ours, &body).await.whole().await;
    let items = &heard.response["output"].as_array().unwrap()[1..5];
    let statuses: Vec<&Value> = items.iter().map(|item| &item["status"]).collect();
    assert_eq!(statuses, ["completed", "completed", "failed", "failed"]);
    assert_eq!(server.count("POST tools/call"), 2);
    assert!(script.asked()[1].messages[4].contains("max_tool_calls"));
}
