//! Tools that antiphon runs, through whole Responses: what the client is shown, what the model is told, what the servers behind the tools
//! hear, and what is kept.

mod approvals;
mod mcp;
mod openapi;
mod parallel;
mod secrets;
mod web;

use antiphon::turn::Delta;
use axum::response::Response;
use serde_json::{Value, json};

use crate::{
    mcp::mock::{Asked, Mock, mock},
    support::{
        model::{Round, Step, stop, usage},
        schema,
        server::Server,
    },
};

/// Asks, and gets a Response as published.
async fn create(server: &Server, body: &Value) -> Value {
    let (status, response) = server.post("/v1/responses", body.clone()).await;
    assert_eq!(status, 200, "{response}");
    schema::check("Response", &response);
    response
}

/// Asks, and is refused; the error.
async fn refused(server: &Server, body: &Value) -> Value {
    let (status, answer) = server.post("/v1/responses", body.clone()).await;
    assert_eq!(status, 400, "{answer}");
    schema::check_error(&answer);
    answer["error"].clone()
}

/// What is asked, with these tools.
fn request(input: impl Into<Value>, tools: &[Value]) -> Value {
    json!({ "model": "m", "input": input.into(), "tools": tools })
}

/// The same after a Response.
fn after(previous: &Value, input: impl Into<Value>, tools: &[Value]) -> Value {
    let mut body = request(input, tools);
    body["previous_response_id"] = previous["id"].clone();
    body
}

/// One Round of a model that calls these, by name and arguments.
fn calls(calls: &[(&str, &str)]) -> Round {
    let steps = called(calls).into_iter().map(Step::Say);
    Round::Play(steps.chain([usage(), stop()]).collect())
}

/// What a model says that calls these.
fn called(calls: &[(&str, &str)]) -> Vec<Delta> {
    let one = |(position, (name, arguments)): (u32, &(&str, &str))| {
        let id = Some(format!("call_{position}"));
        [
            Delta::Call { position, id, name: (*name).to_owned() },
            Delta::Arguments { position, piece: (*arguments).to_owned() },
        ]
    };
    (0..).zip(calls).flat_map(one).collect()
}

/// The types of a Response's items.
fn kinds(response: &Value) -> Vec<&str> {
    response["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["type"].as_str().unwrap())
        .collect()
}

/// The only item of this type.
fn item<'a>(response: &'a Value, kind: &str) -> &'a Value {
    let items = response["output"].as_array().unwrap();
    let found: Vec<&Value> = items.iter().filter(|item| item["type"] == kind).collect();
    assert_eq!(found.len(), 1, "{kind} in {response:#}");
    found[0]
}

/// The value without ids, which differ between Responses.
fn anonymous(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "id");
            Value::Object(fields.map(|(name, value)| (name.clone(), anonymous(value))).collect())
        }
        Value::Array(list) => list.iter().map(anonymous).collect(),
        other => other.clone(),
    }
}

/// An MCP server as a request names it, whose calls need no consent.
fn free(server: &Mock) -> Value {
    let mut tool = guarded(server);
    tool["require_approval"] = json!("never");
    tool
}

/// An MCP server as a request names it, whose calls all need consent.
fn guarded(server: &Mock) -> Value {
    json!({ "type": "mcp", "server_label": "srv", "server_url": server.url })
}

/// An MCP server with these tools, each of which answers with its name and its arguments.
async fn echo(names: &'static [&'static str]) -> Mock {
    mock(move |asked| async move { echoed(&asked, names) }).await
}

/// What such a server answers.
fn echoed(asked: &Asked, names: &[&str]) -> Option<Response> {
    match &*asked.method {
        "tools/list" => Some(listed(asked, names)),
        "tools/call" => {
            let name = asked.params["name"].as_str().unwrap();
            Some(said(asked, &format!("{name} {}", asked.params["arguments"])))
        }
        _ => None,
    }
}

/// These tools.
fn listed(asked: &Asked, names: &[&str]) -> Response {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "number" } } });
    let tools = names.iter().map(|name| {
        json!({ "name": name, "description": format!("does {name}"), "inputSchema": schema })
    });
    asked.result(&json!({ "tools": tools.collect::<Vec<_>>() }))
}

/// This text as the result of a call.
fn said(asked: &Asked, text: &str) -> Response {
    asked.result(&json!({ "content": [{ "type": "text", "text": text }] }))
}
