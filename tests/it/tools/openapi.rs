//! `antiphon:openapi`.

use std::sync::Arc;

use antiphon::{
    config::OpenApi,
    net::{self, GuardedSettings, Policy, Reach},
    tasks::Tasks,
    tools::{Toolbox, openapi::Documents, openapi_server::Apis},
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{after, calls, create, item, kinds, refused, request};
use crate::{
    support::{
        model::{Script, text},
        server::{Server, Setup, start_with},
        stream::Listener,
    },
    web::site::{Reply, Site},
};

const TOKEN: &str = "tok-5EcReT";

async fn server(script: &Arc<Script>) -> Server {
    let policy = Policy { reach: Reach::Any, ..Policy::default() };
    let settings = Arc::new(OpenApi::default());
    let apis = Apis {
        client: net::guarded(GuardedSettings::new(policy)).unwrap(),
        documents: Documents::new(&settings, Tasks::default()),
        settings,
    };
    let tools = Toolbox { apis: Some(apis), ..Toolbox::default() };
    start_with(script.clone(), Setup { tools, ..Setup::default() }).await
}

/// An API at this site with two operations.
fn document(site: &Site) -> Value {
    let name = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    json!({
        "openapi": "3.1.0", "info": { "title": "Pets", "version": "1" },
        "servers": [{ "url": site.url("/v1") }],
        "paths": {
            "/pets/{id}": { "get": {
                "operationId": "getPet", "summary": "Gets a pet",
                "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }],
                "responses": {},
            } },
            "/pets": { "post": {
                "operationId": "addPet", "summary": "Adds a pet",
                "requestBody": { "required": true, "content": { "application/json": { "schema": name } } },
                "responses": {},
            } },
        },
    })
}

fn tool(schema: &Value) -> Value {
    json!({
        "type": "antiphon:openapi", "server_label": "pets", "schema": schema,
        "headers": { "Authorization": format!("Bearer {TOKEN}") },
    })
}

#[tokio::test]
async fn what_reads_is_run_and_what_writes_asks_first() {
    let site = Site::start().await;
    site.on("/v1/pets/a%2F7", [Reply::json(200, r#"{"name":"Rex"}"#)]);
    site.on("/v1/pets", [Reply::json(201, r#"{"id":8}"#)]);
    let script = Script::new([
        calls(&[
            ("getPet", r#"{"id":"a/7"}"#),
            ("addPet", r#"{"requestBody":{"name":"Tom"}}"#),
            ("getPet", r#"{"id":"none"}"#),
        ]),
        text("Added."),
        text("Yes."),
    ]);
    let ours = server(&script).await;
    let tools = [tool(&document(&site))];
    let heard = Listener::open(&ours, &request("Go.", &tools)).await.whole().await;
    let first = heard.response;
    assert_eq!(kinds(&first), ["mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_call"]);
    assert_eq!(script.asked()[0].tools, ["getPet", "addPet"]);
    let list = &first["output"][0]["tools"];
    assert_eq!((&list[0]["name"], &list[1]["name"]), (&json!("getPet"), &json!("addPet")));
    let got = &first["output"][1];
    assert_eq!((&got["server_label"], &got["status"]), (&json!("pets"), &json!("completed")));
    assert!(got["output"].as_str().unwrap().contains("Rex"), "{got}");
    let failed = &first["output"][3];
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!(404)));
    let lines = |site: &Site| {
        let mut lines: Vec<String> = site.asked().into_iter().map(|asked| asked.line).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&site), ["GET /v1/pets/a%2F7", "GET /v1/pets/none"]);

    // Another API behind the label, or other arguments, is not what was asked for.
    let asked = item(&first, "mcp_approval_request");
    let consent = json!([{ "type": "mcp_approval_response", "approval_request_id": asked["id"], "approve": true }]);
    let elsewhere = Site::start().await;
    let error =
        refused(&ours, &after(&first, consent.clone(), &[tool(&document(&elsewhere))])).await;
    assert_eq!(error["code"], "invalid_approval");
    assert_eq!(elsewhere.asked().len(), 0);

    site.forget();
    let second = create(&ours, &after(&first, consent.clone(), &tools)).await;
    assert_eq!(kinds(&second), ["mcp_call", "message"]);
    let call = item(&second, "mcp_call");
    assert_eq!((&call["name"], &call["approval_request_id"]), (&json!("addPet"), &asked["id"]));
    assert!(call["output"].as_str().unwrap().contains(r#"{"id":8}"#), "{call}");
    assert_eq!(lines(&site), ["POST /v1/pets"]);
    assert_eq!(site.asked()[0].json(), json!({ "name": "Tom" }));
    assert_eq!(site.asked()[0].header("authorization"), Some(&*format!("Bearer {TOKEN}")));
    assert_eq!(refused(&ours, &after(&first, consent, &tools)).await["code"], "invalid_approval");

    let third = create(&ours, &after(&second, "Is it there?", &tools)).await;
    assert_eq!(kinds(&third), ["message"]);
    assert_eq!(site.asked().len(), 1);
    for told in [&first, &second, &third] {
        assert!(!told.to_string().contains(TOKEN), "{told}");
    }
    let kept: String = sqlx::query_scalar("select string_agg(r::text, ' ') from responses r")
        .fetch_one(&ours.pool)
        .await
        .unwrap();
    assert!(kept.contains("getPet") && !kept.contains(TOKEN), "{kept}");
}

#[tokio::test]
async fn a_document_that_cannot_be_had_fails_its_list_and_nothing_else() {
    let site = Site::start().await;
    site.on("/bad.json", [Reply::json(200, "{")]);
    site.on("/good.json", [Reply::json(200, document(&site).to_string())]);
    site.on("/v1/pets/7", [Reply::json(200, r#"{"name":"Rex"}"#)]);
    let at = |label: &str, path: &str| json!({ "type": "antiphon:openapi", "server_label": label, "schema_url": site.url(path), "allowed_operations": ["getPet"] });
    let tools = [at("gone", "/gone.json"), at("bad", "/bad.json"), at("good", "/good.json")];
    let script = Script::new([
        calls(&[("getPet", r#"{"id":"7"}"#)]),
        text("Rex."),
        calls(&[("getPet", r#"{"id":"7"}"#)]),
        text("Rex."),
    ]);
    let ours = server(&script).await;
    let first = create(&ours, &request("Go.", &tools)).await;
    assert_eq!(
        kinds(&first),
        ["mcp_list_tools", "mcp_list_tools", "mcp_list_tools", "mcp_call", "message"]
    );
    let errors: Vec<bool> = (0..3).map(|at| first["output"][at]["error"].is_string()).collect();
    assert_eq!(errors, [true, true, false], "{first}");
    assert_eq!(script.asked()[0].tools, ["getPet"]);

    // The list of the one that answered serves on; the others are asked again.
    let second = create(&ours, &after(&first, "Again.", &tools)).await;
    assert_eq!(kinds(&second), ["mcp_list_tools", "mcp_list_tools", "mcp_call", "message"]);
    assert_eq!(second["output"][2]["status"], "completed");
    let fetched = site.asked().iter().filter(|asked| asked.line == "GET /good.json").count();
    assert_eq!(fetched, 1);
}
