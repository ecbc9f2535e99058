//! What lets us in at a server leaves us only towards that server.

use std::slice;

use pretty_assertions::assert_eq;
use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool};

use super::{after, calls, create, echoed, free, guarded, item, request, said};
use crate::{
    mcp::mock::mock,
    support::{
        model::{Script, text},
        server::start,
        stream::Listener,
    },
};

const TOKEN: &str = "tok-5EcReT-of-the-client";
const HEADER: &str = "hdr-5EcReT-of-the-client";

/// Everything that is in the database, as text.
async fn everything(pool: &PgPool) -> String {
    let tables =
        "select table_name::text from information_schema.tables where table_schema = 'public'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(pool).await.unwrap();
    let mut all = String::new();
    for table in tables {
        let rows = format!("select coalesce(string_agg(t::text, ' '), '') from \"{table}\" t");
        let rows: String = sqlx::query_scalar(AssertSqlSafe(rows)).fetch_one(pool).await.unwrap();
        all.push_str(&rows);
    }
    all
}

#[tokio::test]
async fn tokens_and_headers_are_neither_told_nor_kept() {
    // It says back what it was sent.
    let server = mock(|asked| async move {
        if asked.method != "tools/call" {
            return echoed(&asked, &["whoami"]);
        }
        let sent = |name: &str| asked.headers[name].to_str().unwrap().to_owned();
        Some(said(&asked, &format!("{} and {}", sent("authorization"), sent("x-api-key"))))
    })
    .await;
    let with_secrets = |mut tool: serde_json::Value| {
        tool["authorization"] = json!(TOKEN);
        tool["headers"] = json!({ "X-Api-Key": HEADER });
        tool
    };
    let (open, asking) = (with_secrets(free(&server)), with_secrets(guarded(&server)));
    let rounds = || [calls(&[("whoami", "{}")]), text("Done.")];
    let script = Script::new(
        rounds().into_iter().chain(rounds()).chain([calls(&[("whoami", "{}")]), text("Done.")]),
    );
    let ours = start(script.clone()).await;

    let response = create(&ours, &request("Who?", slice::from_ref(&open))).await;
    let heard = Listener::open(&ours, &request("Who?", &[open])).await.whole().await;
    let asking_first = create(&ours, &request("Who?", slice::from_ref(&asking))).await;
    let id = &item(&asking_first, "mcp_approval_request")["id"];
    let consent =
        json!([{ "type": "mcp_approval_response", "approval_request_id": id, "approve": true }]);
    let approved = create(&ours, &after(&asking_first, consent, &[asking])).await;
    // The server did get them, with each request.
    for asked in server.seen() {
        assert_eq!(asked.headers["authorization"], format!("Bearer {TOKEN}"), "{}", asked.what());
        assert_eq!(asked.headers["x-api-key"], HEADER, "{}", asked.what());
    }
    assert_eq!(server.count("POST tools/call"), 3);

    let path = |of: &serde_json::Value| format!("/v1/responses/{}", of["id"].as_str().unwrap());
    let mut told = vec![
        response.to_string(),
        format!("{:?}", heard.events),
        asking_first.to_string(),
        approved.to_string(),
        format!("{:?}", script.asked()),
    ];
    for of in [&response, &heard.response, &asking_first, &approved] {
        told.push(ours.get(&path(of)).await.1.to_string());
        told.push(ours.get(&format!("{}/input_items", path(of))).await.1.to_string());
    }
    let kept = everything(&ours.pool).await;
    assert!(kept.contains("whoami"), "the database was read");
    told.push(kept);
    for secret in [TOKEN, HEADER] {
        let hex: String = secret
            .bytes()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .map(|digit| char::from_digit(digit.into(), 16).unwrap())
            .collect();
        for told in &told {
            assert!(!told.contains(secret) && !told.contains(&hex), "{told}");
        }
    }
    assert_eq!(response["output"][1]["output"], "Bearer [secret] and [secret]");
    assert_eq!(response["tools"][0].get("authorization"), None);
}
