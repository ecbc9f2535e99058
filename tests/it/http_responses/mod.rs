//! `/v1/responses` over the real router: whole bodies, exact bytes.

mod bodies;
mod door;
mod idempotency;
mod refusals;
mod state;
mod streams;
mod tenants;

use serde_json::{Value, json};

use crate::support::{schema, server::Server};

/// The id that a seeded server gives to its Response number `n`, when each takes `step` ids.
fn id(response: &Value) -> &str {
    response["id"].as_str().unwrap()
}

/// Asks and is answered; the Response.
async fn create(server: &Server, body: Value) -> Value {
    let (status, response) = server.post("/v1/responses", body).await;
    assert_eq!(status, 200, "{response}");
    schema::check("Response", &response);
    response
}

/// Says something, after a Response when there is one.
async fn say_after(server: &Server, previous: Option<&Value>, input: &str) -> Value {
    let mut body = json!({ "model": "m", "input": input });
    if let Some(previous) = previous {
        body["previous_response_id"] = previous["id"].clone();
    }
    create(server, body).await
}

/// The text of a Response.
fn text_of(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap()
}

/// How many rows there are, of Responses and items.
async fn rows(server: &Server) -> (i64, i64) {
    let sql = "select (select count(*) from responses), (select count(*) from items)";
    sqlx::query_as(sql).fetch_one(&server.pool).await.unwrap()
}
