//! Calls that wait for the client's consent.

use antiphon::config::{Mcp, McpConnector};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{after, calls, create, echo, free, guarded, item, kinds, refused, request};
use crate::http_socket::Socket;
use crate::support::{
    model::{Script, text},
    server::{Server, Setup, start, start_with},
    stream::Listener,
};

const WIPE: (&str, &str) = ("wipe", r#"{"n":7}"#);

/// The consent to this call.
fn consent(asked: &Value) -> Value {
    json!({ "type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": true })
}

/// What a client that keeps its history sends: what it said, what it was answered, and this.
fn carried(response: &Value, more: Value) -> Value {
    let mut input = vec![json!({ "role": "user", "content": "Wipe it." })];
    input.extend(response["output"].as_array().unwrap().iter().cloned());
    input.push(more);
    input.into()
}

/// How many approvals there are, used and not.
async fn approvals(server: &Server) -> (i64, i64) {
    let sql = "select count(used_at), count(*) - count(used_at) from approvals";
    sqlx::query_as(sql).fetch_one(&server.pool).await.unwrap()
}

#[tokio::test]
async fn an_approved_call_is_run_as_it_was_approved() {
    let server = echo(&["wipe"]).await;
    let script = Script::new([calls(&[WIPE]), text("Wiped."), text("Yes.")]);
    let ours = start(script.clone()).await;
    let tools = [guarded(&server)];
    let first = Listener::open(&ours, &request("Wipe it.", &tools)).await.whole().await.response;
    assert_eq!(kinds(&first), ["mcp_list_tools", "mcp_approval_request"]);
    let asked = item(&first, "mcp_approval_request");
    assert_eq!((&asked["name"], &asked["arguments"]), (&json!("wipe"), &json!(WIPE.1)));
    assert_eq!(server.count("POST tools/call"), 0);
    assert_eq!(approvals(&ours).await, (0, 1));

    let body = after(&first, json!([consent(asked)]), &tools);
    let heard = Listener::open(&ours, &body).await.whole().await;
    assert_eq!(kinds(&heard.response), ["mcp_call", "message"]);
    let call = item(&heard.response, "mcp_call");
    assert_eq!(call["approval_request_id"], asked["id"]);
    assert_eq!((&call["arguments"], &call["status"]), (&json!(WIPE.1), &json!("completed")));
    assert_eq!(call["output"], r#"wipe {"n":7}"#);
    assert_eq!((server.count("POST tools/call"), server.count("POST tools/list")), (1, 1));
    let messages = &script.asked()[1].messages;
    assert_eq!(messages.len(), 3, "one call, one result: {messages:?}");
    assert_eq!(messages[1], r#"assistant:  wipe({"n":7})"#);
    assert!(messages[2].ends_with(r#"wipe {"n":7}"#), "{messages:?}");
    assert_eq!(approvals(&ours).await, (1, 0));

    // What follows sees the call, and nothing is run again.
    let third = create(&ours, &after(&heard.response, "Is it?", &tools)).await;
    assert_eq!(kinds(&third), ["message"]);
    assert_eq!(script.asked()[2].messages[..3], messages[..]);
    assert_eq!(server.count("POST tools/call"), 1);
}

#[tokio::test]
async fn one_that_keeps_its_own_history_approves_too() {
    let server = echo(&["wipe"]).await;
    let script = Script::new([calls(&[WIPE]), text("Wiped."), text("Yes.")]);
    let ours = start(script.clone()).await;
    let mut body = request("Wipe it.", &[guarded(&server)]);
    body["store"] = json!(false);
    let first = create(&ours, &body).await;
    let asked = item(&first, "mcp_approval_request").clone();
    assert_eq!(approvals(&ours).await, (0, 1));
    body["input"] = carried(&first, consent(&asked));
    let second = create(&ours, &body).await;
    assert_eq!(kinds(&second), ["mcp_call", "message"]);
    assert_eq!(server.count("POST tools/call"), 1);
    let rows = "select (select count(*) from responses) + (select count(*) from items)";
    assert_eq!(sqlx::query_scalar::<_, i64>(rows).fetch_one(&ours.pool).await.unwrap(), 0);

    // Once more without what came of it.
    let error = refused(&ours, &body).await;
    assert_eq!(
        (&error["code"], &error["param"]),
        (&json!("invalid_approval"), &json!("input[3].approval_request_id"))
    );
    assert!(error["message"].as_str().unwrap().contains("used already"), "{error}");

    // With it, the conversation goes on.
    let mut input = body["input"].as_array().unwrap().clone();
    input.extend(second["output"].as_array().unwrap().iter().cloned());
    input.push(json!({ "role": "user", "content": "Is it?" }));
    body["input"] = input.into();
    assert_eq!(kinds(&create(&ours, &body).await), ["message"]);
    assert_eq!(script.asked()[2].messages.len(), 5);
    assert_eq!(server.count("POST tools/call"), 1);
}

#[tokio::test]
async fn a_refusal_and_its_reason_are_told_to_the_model() {
    let server = echo(&["wipe"]).await;
    let script = Script::new([calls(&[WIPE]), text("Then not."), text("Fine.")]);
    let ours = start(script.clone()).await;
    let tools = [guarded(&server)];
    let first = create(&ours, &request("Wipe it.", &tools)).await;
    let mut answer = consent(item(&first, "mcp_approval_request"));
    answer["approve"] = json!(false);
    answer["reason"] = json!("It is the wrong disk.");
    let second = create(&ours, &after(&first, json!([&answer]), &tools)).await;
    assert_eq!(kinds(&second), ["message"]);
    let messages = &script.asked()[1].messages;
    assert_eq!(messages[1], r#"assistant:  wipe({"n":7})"#);
    assert!(
        messages[2].contains("did not allow") && messages[2].contains("It is the wrong disk."),
        "{messages:?}"
    );
    // What was refused cannot be approved any more, neither later nor in the same request.
    let given = consent(item(&first, "mcp_approval_request"));
    for late in
        [after(&second, json!([&given]), &tools), after(&first, json!([answer, given]), &tools)]
    {
        assert_eq!(refused(&ours, &late).await["code"], "invalid_approval");
    }
    assert_eq!(server.count("POST tools/call"), 0);

    // One that nobody answered counts as not run.
    create(&ours, &after(&first, "Never mind.", &tools)).await;
    let messages = &script.asked()[2].messages;
    assert!(
        messages[2].starts_with("tool mcpr_") && !messages[2].contains("allow"),
        "{messages:?}"
    );
}

#[tokio::test]
async fn an_approval_is_good_once_and_only_for_what_was_asked() {
    let (server, other) = (echo(&["wipe", "burn"]).await, echo(&["wipe"]).await);
    let script = Script::new([calls(&[WIPE]), text("Wiped.")]);
    let ours = start(script.clone()).await;
    let tools = [guarded(&server)];
    let first = create(&ours, &request("Wipe it.", &tools)).await;
    let asked = item(&first, "mcp_approval_request").clone();
    let chained = after(&first, json!([consent(&asked)]), &tools);

    let mut elsewhere = chained.clone();
    elsewhere["tools"] = json!([guarded(&other)]);
    let without = after(&first, json!([consent(&asked)]), &[]);
    let unknown = after(&first, json!([consent(&json!({ "id": "mcpr_none" }))]), &tools);
    let changed = |field: &str, value: &str| {
        let mut carried = carried(&first, consent(&asked));
        carried[2][field] = json!(value);
        request(carried, &tools)
    };
    for (body, param, part) in [
        (elsewhere, "input[0].approval_request_id", "another server"),
        (without, "tools", "`srv`"),
        (unknown, "input[0].approval_request_id", "mcpr_none"),
        (changed("arguments", r#"{"n":8}"#), "input[3].approval_request_id", "other arguments"),
        (changed("name", "burn"), "input[3].approval_request_id", "other arguments"),
        (changed("id", "mcpr_forged"), "input[3].approval_request_id", "No approval request"),
        (
            request(json!([consent(&asked)]), &tools),
            "input[0].approval_request_id",
            "previous_response_id",
        ),
    ] {
        let error = refused(&ours, &body).await;
        assert_eq!(error["param"], param, "{error}");
        assert!(error["message"].as_str().unwrap().contains(part), "{error}");
    }
    // A request that was never asked, with an id of its own.
    let mut forged = carried(&first, consent(&json!({ "id": "mcpr_forged" })));
    forged[2]["id"] = json!("mcpr_forged");
    let error = refused(&ours, &request(forged, &tools)).await;
    assert!(error["message"].as_str().unwrap().contains("did not ask for it"), "{error}");
    assert_eq!((server.count("POST tools/call"), other.log().len()), (0, 0));
    assert_eq!(approvals(&ours).await, (0, 1), "none of that used it up");

    create(&ours, &chained).await;
    let error = refused(&ours, &chained).await;
    assert_eq!(error["code"], "invalid_approval");
    assert!(error["message"].as_str().unwrap().contains("used already"), "{error}");
    assert_eq!(server.count("POST tools/call"), 1);
}

#[tokio::test]
async fn a_refused_request_uses_no_approval_up() {
    let server = echo(&["wipe"]).await;
    let script = Script::new([calls(&[WIPE]), text("Wiped.")]);
    let ours = start(script.clone()).await;
    let tools = [guarded(&server)];
    let first = create(&ours, &request("Wipe it.", &tools)).await;
    let good = consent(item(&first, "mcp_approval_request"));
    let mut forged = item(&first, "mcp_approval_request").clone();
    forged["id"] = json!("mcpr_forged");
    for wrong in [
        vec![good.clone(), consent(&json!({ "id": "mcpr_none" }))],
        vec![forged.clone(), good.clone(), consent(&forged)],
        vec![good.clone(), good.clone()],
    ] {
        let error = refused(&ours, &after(&first, wrong, &tools)).await;
        assert!(error["param"].as_str().unwrap().ends_with("approval_request_id"), "{error}");
        assert_eq!(approvals(&ours).await, (0, 1), "{error}");
    }
    create(&ours, &after(&first, json!([good]), &tools)).await;
    assert_eq!(server.count("POST tools/call"), 1);
}

#[tokio::test]
async fn of_two_who_approve_at_the_same_time_one_runs_the_call() {
    let server = echo(&["wipe"]).await;
    let ours = start(Script::new([calls(&[WIPE]), text("Wiped.")])).await;
    let tools = [guarded(&server)];
    let first = create(&ours, &request("Wipe it.", &tools)).await;
    let body = after(&first, json!([consent(item(&first, "mcp_approval_request"))]), &tools);
    let post = || ours.post("/v1/responses", body.clone());
    let (a, b) = tokio::join!(post(), post());
    let mut statuses = [a.0, b.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400], "{a:?} {b:?}");
    assert_eq!(server.count("POST tools/call"), 1);
}

#[tokio::test]
async fn an_approval_of_another_tenant_does_not_exist() {
    let server = echo(&["wipe"]).await;
    let ours = start(Script::new([calls(&[WIPE])])).await;
    let (mine, yours) = (ours.key("a", "one").await, ours.key("b", "two").await);
    let tools = [guarded(&server)];
    let body = request("Wipe it.", &tools);
    let (status, first) = ours.send("POST", "/v1/responses", Some(body), Some(&mine)).await;
    assert_eq!(status, 200, "{first}");
    let body = request(carried(&first, consent(item(&first, "mcp_approval_request"))), &tools);
    let (status, answer) = ours.send("POST", "/v1/responses", Some(body), Some(&yours)).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("invalid_approval")), "{answer}");
    assert_eq!(approvals(&ours).await, (0, 1));
}

#[tokio::test]
async fn what_needs_no_consent_runs_beside_what_does() {
    let server = echo(&["read", "wipe"]).await;
    let mut tool = free(&server);
    tool["require_approval"] = json!({ "never": { "tool_names": ["read"] } });
    let script = Script::new([
        calls(&[("read", r#"{"n":1}"#), WIPE, ("read", r#"{"n":2}"#)]),
        text("Wiped."),
    ]);
    let ours = start(script.clone()).await;
    let tools = [tool];
    let first = Listener::open(&ours, &request("Go.", &tools)).await.whole().await.response;
    assert_eq!(first["status"], "completed");
    assert_eq!(kinds(&first), ["mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_call"]);
    assert_eq!(first["output"][1]["output"], r#"read {"n":1}"#);
    assert_eq!(first["output"][3]["output"], r#"read {"n":2}"#);
    assert_eq!(server.count("POST tools/call"), 2);
    assert_eq!(script.asked().len(), 1, "the model waits for the consent");

    let body = after(&first, json!([consent(item(&first, "mcp_approval_request"))]), &tools);
    let second = create(&ours, &body).await;
    assert_eq!(kinds(&second), ["mcp_call", "message"]);
    assert_eq!(server.count("POST tools/call"), 3);
    // Every call has one result.
    let asked = script.asked();
    let messages = &asked[1].messages;
    let called: usize = messages.iter().map(|message| message.matches("({\"n\":").count()).sum();
    let told = messages.iter().filter(|message| message.starts_with("tool ")).count();
    assert_eq!((called, told), (3, 3), "{messages:#?}");
}

#[tokio::test]
async fn several_calls_are_approved_at_once_and_run_in_the_order_of_the_consents() {
    let server = echo(&["wipe"]).await;
    let script = Script::new([
        calls(&[("wipe", r#"{"n":1}"#), ("wipe", r#"{"n":2}"#), ("wipe", r#"{"n":3}"#)]),
        text("Two of three."),
    ]);
    let ours = start(script.clone()).await;
    let (_, conversation) = ours.post("/v1/conversations", json!({})).await;
    let tools = [guarded(&server)];
    let mut body = request("Wipe them.", &tools);
    body["conversation"] = conversation["id"].clone();
    let first = create(&ours, &body).await;
    let asked = &first["output"].as_array().unwrap()[1..];
    let mut refusal = consent(&asked[1]);
    refusal["approve"] = json!(false);
    body["input"] = json!([consent(&asked[2]), refusal, consent(&asked[0])]);
    let second = create(&ours, &body).await;
    assert_eq!(kinds(&second), ["mcp_call", "mcp_call", "message"]);
    let called: Vec<&Value> = (0..2).map(|at| &second["output"][at]["arguments"]).collect();
    assert_eq!(called, [r#"{"n":3}"#, r#"{"n":1}"#]);
    // The refusal has used one up as well.
    assert_eq!(approvals(&ours).await, (3, 0));
    assert_eq!((server.count("POST tools/call"), server.count("POST tools/list")), (2, 1));
    let asked = script.asked();
    let messages = asked[1].messages.join("\n");
    assert_eq!(messages.matches("wipe({").count(), 3, "{messages}");
    assert_eq!(messages.matches("did not allow").count(), 1, "{messages}");
    assert_eq!(messages.matches("wipe {\"n\":").count(), 2, "{messages}");
}

#[tokio::test]
async fn a_request_cannot_do_without_the_consent_that_a_connector_wants() {
    let server = echo(&["wipe", "read"]).await;
    let connector = McpConnector {
        url: Some(server.url.parse().unwrap()),
        require_approval: Some(json!({ "never": { "tool_names": ["read"] } })),
        ..McpConnector::default()
    };
    let connectors = [("disks".to_owned(), connector)].into();
    let mcp = Mcp { connectors, ..Mcp::default() };
    let script = Script::new([calls(&[WIPE, ("read", "{}")])]);
    let ours = start_with(script, Setup { mcp, ..Setup::default() }).await;
    let tool = json!({ "type": "mcp", "server_label": "disks", "require_approval": "never" });
    let first = create(&ours, &request("Go.", &[tool])).await;
    assert_eq!(kinds(&first), ["mcp_list_tools", "mcp_approval_request", "mcp_call"]);
    assert_eq!(server.count("POST tools/call"), 1);
}

#[tokio::test]
async fn a_connection_that_remembers_approves_too() {
    let server = echo(&["wipe"]).await;
    let script = Script::new([calls(&[WIPE]), text("Wiped."), text("Yes.")]);
    let ours = start(script.clone()).await;
    let mut socket = Socket::open(&ours).await;
    let fields = |input: Value, previous: Option<&Value>| {
        let mut fields = json!({ "store": false, "input": input, "tools": [guarded(&server)] });
        if let Some(previous) = previous {
            fields["previous_response_id"] = previous["id"].clone();
        }
        fields
    };
    let first = socket.response(fields(json!("Wipe it."), None)).await;
    let asked = item(&first, "mcp_approval_request");
    let approval = fields(json!([consent(asked)]), Some(&first));
    let second = socket.response(approval).await;
    assert_eq!(kinds(&second), ["mcp_call", "message"]);
    let again = socket.response(fields(json!([consent(asked)]), Some(&second))).await;
    assert_eq!(kinds(&again), ["message"], "the history has the call already");
    assert_eq!((server.count("POST tools/call"), server.count("POST tools/list")), (1, 1));
    assert_eq!(server.count("POST initialize"), 1, "it is one chain");
    assert_eq!(approvals(&ours).await, (1, 0));

    // Elsewhere it is not remembered, but used all the same.
    let body = request(carried(&first, consent(asked)), &[guarded(&server)]);
    assert_eq!(refused(&ours, &body).await["code"], "invalid_approval");
}
