//! What goes wrong outside: whatever it is, each Response ends once, what was told is what is stored, and the server goes on.

mod client;
mod postgres;
mod stop;
mod upstream;

use serde_json::{Value, json};
use sqlx::PgPool;

use crate::support::{
    schema,
    server::Server,
    stream::{Heard, Listener, streaming},
    upstream::{Answer, chunk, finish},
};

/// What a client heard.
#[derive(Debug)]
enum Answered {
    /// An HTTP error.
    Refused { status: u16, retry_after: Option<String> },
    /// A Response, whole.
    Heard(Heard),
}

impl Answered {
    fn status(&self) -> &str {
        match self {
            Self::Refused { .. } => "refused",
            Self::Heard(heard) => heard.response["status"].as_str().unwrap(),
        }
    }
}

/// Asks for a stream and reads it to its end.
async fn stream(server: &Server, body: &Value) -> Answered {
    answered(server.request("POST", "/v1/responses").json(&streaming(body)).send().await.unwrap())
        .await
}

async fn answered(response: reqwest::Response) -> Answered {
    if response.status() == 200 {
        return Answered::Heard(Listener::of(response).whole().await);
    }
    let retry_after = response.headers().get("retry-after");
    let retry_after = retry_after.map(|after| after.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    schema::check_error(&body);
    Answered::Refused { status, retry_after }
}

/// How many Responses the store has of each status.
async fn stored(pool: &PgPool) -> Vec<(String, i64)> {
    let sql = "select status, count(*) from responses group by status order by status";
    sqlx::query_as(sql).fetch_all(pool).await.unwrap()
}

/// A stream with reasoning, text and a call; and its frames.
fn rich() -> (Answer, Vec<String>) {
    let call = |function: &Value| {
        let call = json!({ "index": 0, "id": "call_1", "type": "function", "function": function });
        chunk(&json!({ "tool_calls": [call] }), None)
    };
    let mut frames = vec![
        chunk(&json!({ "role": "assistant", "content": "" }), None),
        chunk(&json!({ "reasoning_content": "Let me " }), None),
        chunk(&json!({ "reasoning_content": "think." }), None),
        chunk(&json!({ "content": "Grüße, " }), None),
        chunk(&json!({ "content": "wörld" }), None),
        call(&json!({ "name": "weather", "arguments": "" })),
        call(&json!({ "arguments": "{\"city\":" })),
        call(&json!({ "arguments": "\"Paris\"}" })),
    ];
    frames.extend(finish("tool_calls"));
    (Answer::stream(&frames), frames)
}

/// A request that such a stream answers.
fn question() -> Value {
    json!({
        "model": "m",
        "input": "How is the weather?",
        "tools": [{ "type": "function", "name": "weather", "parameters": { "type": "object" }, "strict": false }],
    })
}
