//! Servers of the Rust SDK, in process.

use std::sync::Arc;

use antiphon::{mcp::McpError, tasks::Tasks};
use pretty_assertions::assert_eq;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam,
        ContentBlock, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
        Tool,
    },
    service::{NotificationContext, RequestContext},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify};

use super::{bench, endpoint};

/// Adds numbers, counts its calls, hangs until it is cancelled, fails.
#[derive(Clone, Default)]
pub(crate) struct Calculator {
    calls: Arc<std::sync::atomic::AtomicUsize>,
    pub(crate) cancelled: Arc<Notify>,
    pub(crate) hanging: Arc<Notify>,
}

impl ServerHandler for Calculator {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object", "properties": { "b": { "type": "number" }, "a": { "type": "number" } } });
        let tools = ["add", "hang", "fail", "refuse"];
        let tools = tools.map(|name| {
            Tool::new(name, format!("does {name}"), schema.as_object().unwrap().clone())
        });
        Ok(ListToolsResult::with_all_items(tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let count = 1 + self.calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let result = match &*request.name {
            "add" => {
                let arguments = Value::from(request.arguments.unwrap_or_default());
                let number = |name: &str| arguments[name].as_f64().unwrap_or_default();
                let text = format!("{} (call {count})", number("a") + number("b"));
                CallToolResult::success(vec![ContentBlock::text(text)])
            }
            "hang" => {
                self.hanging.notify_one();
                std::future::pending().await
            }
            "fail" => CallToolResult::error(vec![ContentBlock::text("no such city")]),
            _ => return Err(ErrorData::invalid_params("bad params here", None)),
        };
        Ok(result.into())
    }

    async fn on_cancelled(
        &self,
        _: CancelledNotificationParam,
        _: NotificationContext<RoleServer>,
    ) {
        self.cancelled.notify_one();
    }
}

pub(crate) struct Real {
    pub(crate) url: String,
    pub(crate) sessions: Arc<LocalSessionManager>,
    pub(crate) calculator: Calculator,
}

/// A server; with `sessions` each one has a calculator of its own that starts to count at one.
pub(crate) async fn real(sessions: bool, json: bool) -> Real {
    let manager = Arc::new(LocalSessionManager::default());
    let calculator = Calculator::default();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(sessions)
        .with_json_response(json);
    let (cancelled, hanging) = (calculator.cancelled.clone(), calculator.hanging.clone());
    let make = move || {
        Ok(Calculator {
            cancelled: cancelled.clone(),
            hanging: hanging.clone(),
            ..Calculator::default()
        })
    };
    let service = StreamableHttpService::new(make, manager.clone(), config);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = axum::Router::new().nest_service("/mcp", service);
    Tasks::default().spawn(async move { axum::serve(listener, router).await.unwrap() });
    Real { url, sessions: manager, calculator }
}

#[tokio::test]
async fn tools_are_listed_and_called_whatever_the_server_keeps() {
    for (sessions, json) in [(true, false), (false, false), (false, true)] {
        let (bench, server) = (bench(), real(sessions, json).await);
        let endpoint = endpoint(&server.url);
        assert_eq!(bench.names(&endpoint, "a").await, ["add", "hang", "fail", "refuse"]);
        let list = bench.pool.list_tools(&endpoint, &super::scope("a")).await.unwrap();
        assert_eq!(
            list.tools[0].input_schema.json(),
            r#"{"type":"object","properties":{"b":{"type":"number"},"a":{"type":"number"}}}"#
        );
        let first = bench.text(&endpoint, "a", "add", r#"{"a":2,"b":40}"#).await;
        assert_eq!(first, "42 (call 1)", "{sessions} {json}");
        let failed = bench.call(&endpoint, "a", "fail", "{}").await.unwrap();
        assert_eq!((failed.is_error, &*failed.text()), (true, "no such city"));
        let refused = bench.call(&endpoint, "a", "refuse", "{}").await.unwrap_err();
        let message = "bad params here".to_owned();
        assert_eq!(refused, McpError::Rpc { code: -32602, message });
        bench.end().await;
    }
}

#[tokio::test]
async fn state_stays_in_its_chain_and_no_session_is_left_at_the_server() {
    let (bench, server) = (bench(), real(true, false).await);
    let endpoint = endpoint(&server.url);
    for (chain, expected) in [("a", "1 (call 1)"), ("b", "1 (call 1)"), ("a", "1 (call 2)")] {
        assert_eq!(bench.text(&endpoint, chain, "add", r#"{"a":1}"#).await, expected);
    }
    assert_eq!(server.sessions.sessions.read().await.len(), 2);
    bench.pool.close_chain("t", "a").await;
    assert_eq!(server.sessions.sessions.read().await.len(), 1);
    bench.end().await;
    assert_eq!(server.sessions.sessions.read().await.len(), 0);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let (bench, server) = (bench(), real(true, false).await);
    let endpoint = endpoint(&server.url);
    tokio::select! {
        answer = bench.text(&endpoint, "a", "hang", "{}") => panic!("{answer}"),
        () = server.calculator.hanging.notified() => (),
    }
    server.calculator.cancelled.notified().await;
    assert_eq!(bench.text(&endpoint, "a", "add", "{}").await, "0 (call 2)");
    bench.end().await;
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_renewed() {
    let (bench, server) = (bench(), real(true, false).await);
    let endpoint = endpoint(&server.url);
    assert_eq!(bench.text(&endpoint, "a", "add", "{}").await, "0 (call 1)");
    server.sessions.sessions.write().await.clear();
    assert_eq!(bench.text(&endpoint, "a", "add", "{}").await, "0 (call 1)");
    assert_eq!(bench.pool.stats().opened, 2);
    bench.end().await;
}
