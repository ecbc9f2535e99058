//! `/v1/connectors`, and what requests make of connectors.

use std::{collections::BTreeMap, sync::Arc};

use antiphon::{
    clock::Ids,
    config::{Mcp, McpConnector},
    mcp::{Connectors, McpTool, Server as Resolved, ToolInfo},
    net::Policy,
    protocol::{ApiError, Raw},
    seal::Sealer,
    store::Viewer,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    model::Script,
    server::{NOW, Server, Setup, start, start_with},
};

const PATH: &str = "/v1/connectors";

fn dice() -> Value {
    json!({
        "server_label": "dice",
        "server_url": "https://dice.example/mcp",
        "authorization": "tok_SECRET",
        "headers": { "X-Key": "hdr_SECRET" },
        "allowed_tools": ["roll"],
    })
}

async fn id_of(server: &Server, body: Value, key: Option<&str>) -> String {
    let (status, made) = server.send("POST", PATH, Some(body), key).await;
    assert_eq!(status, 200, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_connector_is_made_shown_changed_and_deleted_and_never_tells_its_secrets() {
    let server = start(Script::new([])).await;
    let (status, made) = server.post(PATH, dice()).await;
    let shown = json!({
        "id": made["id"],
        "object": "connector",
        "created_at": NOW,
        "server_label": "dice",
        "server_url": "https://dice.example/mcp",
        "server_description": null,
        "allowed_tools": ["roll"],
        "require_approval": "always",
        "has_authorization": true,
        "headers": ["X-Key"],
    });
    assert_eq!((status, &made), (200, &shown));
    assert!(made["id"].as_str().unwrap().starts_with("conn_"));
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await, (200, shown.clone()));
    let (status, page) = server.get(PATH).await;
    assert_eq!((status, &page["data"], &page["object"]), (200, &json!([shown]), &json!("list")));

    // What is not named stays; `null` takes away.
    let change = json!({ "server_description": "rolls", "allowed_tools": null, "headers": null });
    let (status, changed) = server.post(&path, change).await;
    assert_eq!(status, 200, "{changed}");
    assert_eq!(changed["server_description"], "rolls");
    assert_eq!((&changed["allowed_tools"], &changed["headers"]), (&Value::Null, &json!([])));
    assert_eq!(changed["has_authorization"], true);
    let (_, changed) =
        server.post(&path, json!({ "authorization": null, "server_label": "die" })).await;
    assert_eq!(
        (&changed["has_authorization"], &changed["server_label"]),
        (&json!(false), &json!("die"))
    );

    let everything = format!("{made}{page}{changed}");
    assert!(!everything.contains("SECRET"), "{everything}");
    let stored: Vec<(String,)> = sqlx::query_as("select connectors::text from connectors")
        .fetch_all(&server.pool)
        .await
        .unwrap();
    assert!(!stored[0].0.contains("SECRET"), "{stored:?}");

    let gone = json!({ "id": made["id"], "object": "connector.deleted", "deleted": true });
    assert_eq!(server.delete(&path).await, (200, gone));
    assert_eq!(server.get(&path).await.0, 404);
    assert_eq!(server.delete(&path).await.0, 404);
}

#[tokio::test]
async fn wrong_bodies_are_named() {
    let mcp = Mcp {
        connectors: BTreeMap::from([(
            "ours".to_owned(),
            McpConnector {
                url: Some("https://ours.example/mcp".parse().unwrap()),
                ..McpConnector::default()
            },
        )]),
        ..Mcp::default()
    };
    let server = start_with(Script::new([]), Setup { mcp, ..Setup::default() }).await;
    id_of(&server, dice(), None).await;
    let with = |field: &str, value: Value| {
        let mut body = dice();
        body["server_label"] = "other".into();
        body[field] = value;
        body
    };
    for (body, param) in [
        (json!({ "server_url": "https://a.example" }), "server_label"),
        (json!({ "server_label": "x" }), "server_url"),
        (dice(), "server_label"),
        (with("server_label", json!("ours")), "server_label"),
        (with("server_url", json!("ftp://a.example")), "server_url"),
        (with("server_url", json!("http://169.254.169.254/mcp")), "server_url"),
        (with("server_url", json!("http://169.254.169.254/")), "server_url"),
        (with("server_url", json!("https://user:pw@a.example/")), "server_url"),
        (with("authorization", json!(7)), "authorization"),
        (with("headers", json!({ "X-Key": 1 })), "headers.X-Key"),
        (
            with("require_approval", json!({ "never": { "tool_names": "x" } })),
            "require_approval.never.tool_names",
        ),
        (with("allowed_tools", json!("roll")), "allowed_tools"),
        (with("require_aproval", json!("never")), "require_aproval"),
    ] {
        let (status, error) = server.post(PATH, body.clone()).await;
        assert_eq!(
            (status, error["error"]["param"].as_str()),
            (400, Some(param)),
            "{body}: {error}"
        );
    }
    assert_eq!(server.post(PATH, json!([])).await.0, 400);
    let id = id_of(&server, with("server_label", json!("second")), None).await;
    let (status, error) =
        server.post(&format!("{PATH}/{id}"), json!({ "server_label": "dice" })).await;
    assert_eq!((status, &error["error"]["param"]), (400, &json!("server_label")), "{error}");
}

#[tokio::test]
async fn what_is_foreign_is_absent_and_only_owners_change() {
    let server = start(Script::new([])).await;
    let (mine, ours, theirs) =
        (server.key("a", "one").await, server.key("b", "one").await, server.key("c", "two").await);
    let id = id_of(&server, dice(), Some(&mine)).await;
    let path = format!("{PATH}/{id}");
    let ask = async |method: &str, path: &str, key: &str| {
        let body = (method == "POST").then(|| json!({ "server_description": "x" }));
        server.send(method, path, body, Some(key)).await.0
    };
    for (method, in_tenant) in [("GET", 200), ("POST", 403), ("DELETE", 403)] {
        assert_eq!(ask(method, &path, &ours).await, in_tenant, "{method}");
        assert_eq!(ask(method, &path, &theirs).await, 404, "{method}");
    }
    let (status, _) = server.send("GET", &format!("{PATH}?after={id}"), None, Some(&theirs)).await;
    assert_eq!(status, 400);
    // A label belongs to its tenant.
    id_of(&server, dice(), Some(&theirs)).await;
    let (status, _) = server.send("POST", PATH, Some(dice()), Some(&ours)).await;
    assert_eq!(status, 400);
    assert_eq!(ask("POST", &path, &mine).await, 200);
    assert_eq!(ask("DELETE", &path, &mine).await, 200);
}

#[tokio::test]
async fn lists_come_in_pages() {
    let server = start(Script::new([])).await;
    let mut ids = Vec::new();
    for n in 0..3 {
        let mut body = dice();
        body["server_label"] = format!("dice {n}").into();
        ids.push(id_of(&server, body, None).await);
        server.clock.advance(time::Duration::SECOND);
    }
    let shown = |page: &Value| -> Vec<String> {
        let rows = page["data"].as_array().unwrap();
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    let (_, page) = server.get(&format!("{PATH}?limit=2")).await;
    assert_eq!(
        (shown(&page), &page["has_more"]),
        (vec![ids[2].clone(), ids[1].clone()], &json!(true))
    );
    let (_, page) = server.get(&format!("{PATH}?limit=2&after={}", ids[1])).await;
    assert_eq!((shown(&page), &page["has_more"]), (vec![ids[0].clone()], &json!(false)));
    let (_, page) = server.get(&format!("{PATH}?order=asc&after={}", ids[0])).await;
    assert_eq!(shown(&page), ids[1..]);
}

const VIEWER: Viewer<'_> = Viewer { tenant_id: "acme", only_owner: None };

/// Connectors with one of the operator's, on a server's database.
async fn connectors() -> (Server, Connectors) {
    let server = start(Script::new([])).await;
    let secret = |text: &str| text.to_owned().into();
    let ours = McpConnector {
        url: Some("http://10.0.0.7:9000/mcp".parse().unwrap()),
        authorization: Some(secret("operator_token")),
        headers: BTreeMap::from([("x-key".to_owned(), secret("operator_key"))]),
        allowed_tools: Some(json!(["read", "write"])),
        require_approval: Some(json!({ "never": { "tool_names": ["read"] } })),
        description: Some("ours".to_owned()),
        aliases: vec!["alias".to_owned()],
        ..McpConnector::default()
    };
    let program = McpConnector { command: Some("server".to_owned()), ..McpConnector::default() };
    let config = Mcp {
        connectors: BTreeMap::from([("ours".to_owned(), ours), ("program".to_owned(), program)]),
        ..Mcp::default()
    };
    assert_eq!(Connectors::places(&config), ["10.0.0.7:9000".parse().unwrap()]);
    let connectors = Connectors::new(
        &config,
        Policy::default(),
        server.pool.clone(),
        Arc::new(Sealer::from_keys(&["A".repeat(43)]).unwrap()),
        server.clock.clone(),
        Ids::seeded(1),
    )
    .unwrap();
    (server, connectors)
}

async fn resolve(connectors: &Connectors, tool: Value) -> Result<Resolved, ApiError> {
    let tool = McpTool::parse(&Raw::of(&tool)).unwrap();
    connectors.resolve(VIEWER, tool, "tools[1]").await
}

/// Which of `read` and `write` may be used; those that need approval have a mark.
fn rules(server: &Resolved) -> String {
    let tool = |name: &str| -> ToolInfo {
        ToolInfo {
            name: name.to_owned(),
            title: None,
            description: None,
            input_schema: Raw::parse("{}").unwrap(),
            annotations: None,
        }
    };
    [tool("read"), tool("write"), tool("other")]
        .iter()
        .filter(|tool| server.allowed.allows(tool))
        .flat_map(|tool| [&*tool.name, if server.approval.is_needed(tool) { "! " } else { " " }])
        .collect()
}

#[tokio::test]
async fn a_request_narrows_a_connector_of_the_configuration() {
    let (_server, connectors) = connectors().await;
    for (tool, expected) in [
        (json!({ "server_label": "ours" }), "read write! "),
        (json!({ "server_label": "mine", "connector_id": "ours" }), "read write! "),
        (json!({ "server_label": "alias" }), "read write! "),
        (json!({ "server_label": "ours", "require_approval": "never" }), "read write! "),
        (json!({ "server_label": "ours", "require_approval": "always" }), "read! write! "),
        (json!({ "server_label": "ours", "allowed_tools": ["read", "other"] }), "read "),
        (json!({ "server_label": "ours", "allowed_tools": [] }), ""),
        (json!({ "server_label": "program", "require_approval": "never" }), "read! write! other! "),
        (
            json!({ "server_label": "x", "server_url": "https://x.example/mcp" }),
            "read! write! other! ",
        ),
        (
            json!({ "server_label": "x", "server_url": "https://x.example/mcp", "require_approval": "never" }),
            "read write other ",
        ),
    ] {
        assert_eq!(rules(&resolve(&connectors, tool.clone()).await.unwrap()), expected, "{tool}");
    }
    let server = resolve(&connectors, json!({ "server_label": "mine", "connector_id": "ours", "headers": { "X-Key": "theirs", "x-more": "m" } })).await.unwrap();
    assert_eq!((&*server.label, server.description.as_deref()), ("mine", Some("ours")));
    assert_eq!(server.endpoint.url().unwrap().as_str(), "http://10.0.0.7:9000/mcp");
    assert_eq!(
        server.endpoint.mask("operator_key operator_token theirs"),
        "[secret] [secret] theirs"
    );
}

#[tokio::test]
async fn a_request_narrows_a_connector_of_its_tenant() {
    let (_server, connectors) = connectors().await;
    let body = json!({ "server_label": "kept", "server_url": "https://kept.example/mcp", "authorization": "kept_token",
                       "allowed_tools": { "tool_names": ["read"] }, "require_approval": "never" });
    let made = connectors.create("acme", "ana", &body.to_string()).await.unwrap();
    for tool in [
        json!({ "server_label": "kept" }),
        json!({ "server_label": "k", "connector_id": made.id() }),
    ] {
        let server = resolve(&connectors, tool).await.unwrap();
        assert_eq!(rules(&server), "read ");
        assert_eq!(server.endpoint.mask("kept_token"), "[secret]");
    }
    let server = resolve(&connectors, json!({ "server_label": "kept", "authorization": "own_token", "require_approval": "always" })).await.unwrap();
    assert_eq!(rules(&server), "read! ");
    assert_eq!(server.endpoint.mask("kept_token own_token"), "kept_token [secret]");
}

#[tokio::test]
async fn what_names_no_server_or_a_forbidden_one_is_a_400() {
    let (server, connectors) = connectors().await;
    let body = json!({ "server_label": "kept", "server_url": "https://kept.example/mcp" });
    connectors.create("rival", "bob", &body.to_string()).await.unwrap();
    for (tool, param, says) in [
        (json!({ "server_label": "nobody" }), "tools[1].server_url", "nobody"),
        (json!({ "server_label": "kept" }), "tools[1].server_url", "kept"),
        (
            json!({ "server_label": "x", "connector_id": "connector_gmail" }),
            "tools[1].connector_id",
            "connector_gmail",
        ),
        (
            json!({ "server_label": "x", "server_url": "http://10.0.0.7:9000/mcp" }),
            "tools[1].server_url",
            "`x`",
        ),
        (
            json!({ "server_label": "meta", "server_url": "http://169.254.169.254/" }),
            "tools[1].server_url",
            "`meta`",
        ),
    ] {
        let error = resolve(&connectors, tool.clone()).await.unwrap_err();
        assert_eq!(error.param.as_deref(), Some(param), "{tool}: {error}");
        assert!(error.kind.status() == 400 && error.message.contains(says), "{error}");
    }
    // Without its seal key a connector says so.
    let body = json!({ "server_label": "mine", "server_url": "https://mine.example/mcp" });
    connectors.create("acme", "ana", &body.to_string()).await.unwrap();
    sqlx::query("update connectors set secrets = 'antiphon1_AAAA' where tenant_id = 'acme'")
        .execute(&server.pool)
        .await
        .unwrap();
    let error = resolve(&connectors, json!({ "server_label": "mine" })).await.unwrap_err();
    assert!(error.kind.status() == 500 && error.message.contains("`mine`"), "{error}");
}
