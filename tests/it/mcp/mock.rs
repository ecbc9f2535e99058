//! An MCP server by hand: it keeps what it was asked, and answers as the test says.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use antiphon::tasks::Tasks;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode},
    response::{IntoResponse, Response},
};
use futures::{FutureExt as _, future::BoxFuture};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) http: Method,
    /// The JSON-RPC method; empty for GET and DELETE.
    pub(crate) method: String,
    pub(crate) id: Value,
    pub(crate) params: Value,
    pub(crate) session: Option<String>,
    pub(crate) headers: HeaderMap,
    /// Which of its method this is, from 1.
    pub(crate) nth: usize,
}

impl Asked {
    /// `POST tools/call`, `DELETE`.
    pub(crate) fn what(&self) -> String {
        format!("{} {}", self.http, self.method).trim_end().to_owned()
    }

    /// A JSON answer to it.
    pub(crate) fn result(&self, result: &Value) -> Response {
        axum::Json(json!({ "jsonrpc": "2.0", "id": self.id, "result": result })).into_response()
    }
}

/// What is done instead of what a good server would do; `None`: the good thing.
type Rule = Arc<dyn Fn(Asked) -> BoxFuture<'static, Option<Response>> + Send + Sync>;

/// A server that runs until the test ends.
pub(crate) struct Mock {
    pub(crate) url: String,
    inner: Arc<Inner>,
}

struct Inner {
    rule: Rule,
    seen: Mutex<Vec<Asked>>,
    counts: Mutex<HashMap<String, usize>>,
    sessions: bool,
}

/// A server that gives sessions `s1`, `s2`, …
pub(crate) async fn mock<F>(rule: impl Fn(Asked) -> F + Send + Sync + 'static) -> Mock
where
    F: Future<Output = Option<Response>> + Send + 'static,
{
    start(rule, true).await
}

/// A server that gives none.
pub(crate) async fn stateless<F>(rule: impl Fn(Asked) -> F + Send + Sync + 'static) -> Mock
where
    F: Future<Output = Option<Response>> + Send + 'static,
{
    start(rule, false).await
}

/// Does the good thing.
pub(crate) async fn good(_: Asked) -> Option<Response> {
    None
}

async fn start<F>(rule: impl Fn(Asked) -> F + Send + Sync + 'static, sessions: bool) -> Mock
where
    F: Future<Output = Option<Response>> + Send + 'static,
{
    let inner = Arc::new(Inner {
        rule: Arc::new(move |asked| rule(asked).boxed()),
        seen: Mutex::default(),
        counts: Mutex::default(),
        sessions,
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(inner.clone());
    Tasks::default().spawn(async move { axum::serve(listener, router).await.unwrap() });
    Mock { url, inner }
}

impl Mock {
    pub(crate) fn seen(&self) -> Vec<Asked> {
        self.inner.seen.lock().unwrap().clone()
    }

    /// What was asked, in order: `POST initialize`, …
    pub(crate) fn log(&self) -> Vec<String> {
        self.seen().iter().map(Asked::what).collect()
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.log().iter().filter(|line| *line == what).count()
    }

    /// The sessions in which this was asked.
    pub(crate) fn sessions(&self, what: &str) -> Vec<String> {
        let seen = self.seen();
        let asked = seen.iter().filter(|asked| asked.what() == what);
        asked.map(|asked| asked.session.clone().unwrap_or_default()).collect()
    }

    /// Waits until this was asked so often.
    pub(crate) async fn until(&self, what: &str, times: usize) {
        for _ in 0..1000 {
            if self.count(what) >= times {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("{what} was not asked {times} times: {:?}", self.log());
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let nth = {
        let mut counts = inner.counts.lock().unwrap();
        let count = counts.entry(format!("{} {method}", parts.method)).or_default();
        *count += 1;
        *count
    };
    let session = parts.headers.get("mcp-session-id");
    let asked = Asked {
        http: parts.method,
        method,
        id: message["id"].clone(),
        params: message["params"].clone(),
        session: session.map(|id| id.to_str().unwrap().to_owned()),
        headers: parts.headers,
        nth,
    };
    inner.seen.lock().unwrap().push(asked.clone());
    match (inner.rule)(asked.clone()).await {
        Some(response) => response,
        None => well(&inner, &asked),
    }
}

fn well(inner: &Inner, asked: &Asked) -> Response {
    match (asked.http.as_str(), &*asked.method) {
        ("DELETE", _) => StatusCode::OK.into_response(),
        ("POST", "initialize") => {
            let result = json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "mock", "version": "1" },
            });
            let mut response = asked.result(&result);
            if inner.sessions {
                let id = format!("s{}", asked.nth).parse().unwrap();
                response.headers_mut().insert("mcp-session-id", id);
            }
            response
        }
        ("POST", "tools/list") => asked.result(&json!({ "tools": [{ "name": "ping" }] })),
        ("POST", "tools/call") => {
            asked.result(&json!({ "content": [{ "type": "text", "text": "pong" }] }))
        }
        // A notification, or an answer to what we asked.
        ("POST", method) if method.starts_with("notifications/") || method.is_empty() => {
            StatusCode::ACCEPTED.into_response()
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, Body::empty()).into_response(),
    }
}
