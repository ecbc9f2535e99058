//! How a server speaks, and how that is found out.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use antiphon::{
    mcp::{Endpoint, McpError, Transport, headers::merge},
    tasks::Tasks,
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use futures::{StreamExt as _, channel::mpsc};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{
    bench, endpoint,
    mock::{Asked, mock, stateless},
};

fn events(body: impl Into<Body>) -> Response {
    ([("content-type", "text/event-stream; charset=utf-8")], body.into()).into_response()
}

fn pong(asked: &Asked) -> Value {
    json!({ "jsonrpc": "2.0", "id": asked.id, "result": { "content": [{ "type": "text", "text": "pong" }] } })
}

#[tokio::test]
async fn an_answer_may_be_a_stream_with_other_things_before_it() {
    let server = mock(async |asked| {
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} });
        let ping = json!({ "jsonrpc": "2.0", "id": "p1", "method": "ping" });
        let list = json!({ "jsonrpc": "2.0", "id": 7, "method": "roots/list" });
        (asked.method == "tools/call").then(|| {
            events(format!(
                ": hello\n\nid: 0\ndata: \n\ndata: {note}\n\nevent: message\r\ndata: {ping}\r\n\r\ndata: {list}\n\ndata: {}\n\n",
                pong(&asked)
            ))
        })
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    assert_eq!(bench.text(&endpoint, "a", "ping", "{}").await, "pong");
    // What the server asked has been answered, in POSTs of their own that have no method.
    assert_eq!(server.count("POST"), 2);
    bench.end().await;
}

#[tokio::test]
async fn a_stream_that_ends_early_is_resumed_where_it_has_ids() {
    let server = mock(async |asked| match asked.what().as_str() {
        "POST tools/call" => Some(events("id: e1\nretry: 1\ndata: \n\n")),
        "GET" if asked.nth == 1 => Some(events("id: e2\ndata: \n\n")),
        "GET" => Some(events(
            "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"late\"}]}}\n\n",
        )),
        _ => None,
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    assert_eq!(bench.text(&endpoint, "a", "ping", "{}").await, "late");
    let resumed: Vec<String> = server
        .seen()
        .iter()
        .filter(|asked| asked.http == Method::GET)
        .map(|asked| asked.headers["last-event-id"].to_str().unwrap().to_owned())
        .collect();
    assert_eq!(resumed, ["e1", "e2"]);
    assert_eq!(server.count("POST tools/call"), 1);
    bench.end().await;
}

#[tokio::test]
async fn a_stream_that_ends_early_without_ids_is_a_broken_connection() {
    let server =
        mock(async |asked| (asked.method == "tools/call").then(|| events(": nothing\n\n"))).await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    let error = bench.call(&endpoint, "a", "ping", "{}").await.unwrap_err();
    assert_eq!(error, McpError::Ended);
    assert_eq!(server.count("POST tools/call"), 1);
    bench.end().await;
}

#[tokio::test]
async fn tools_come_in_pages() {
    let server = stateless(async |asked| {
        let page = |tools: Value, next: Value| json!({ "tools": tools, "nextCursor": next });
        (asked.method == "tools/list").then(|| match asked.params["cursor"].as_str() {
            None => asked.result(&page(json!([{ "name": "a" }]), json!("two"))),
            Some("two") => {
                asked.result(&page(json!([{ "name": "b" }, { "name": "c" }]), Value::Null))
            }
            Some(other) => panic!("{other}"),
        })
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    assert_eq!(bench.names(&endpoint, "a").await, ["a", "b", "c"]);
    bench.end().await;
}

/// A server of the older transport, by hand. Each GET opens a stream; what is posted is answered there.
struct Legacy {
    url: String,
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    streams: Mutex<Vec<mpsc::UnboundedSender<Result<Bytes, std::io::Error>>>>,
    seen: Mutex<Vec<String>>,
    /// How often a session that is named is not known.
    forgets: AtomicUsize,
    /// What the first event names instead of the right place.
    place: Option<String>,
}

async fn legacy(inner: Inner) -> Legacy {
    let inner = Arc::new(inner);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    let router = Router::new().fallback(serve).with_state(inner.clone());
    Tasks::default().spawn(async move { axum::serve(listener, router).await.unwrap() });
    Legacy { url, inner }
}

async fn serve(
    State(inner): State<Arc<Inner>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let called = message["method"].as_str().unwrap_or_default();
    inner
        .seen
        .lock()
        .unwrap()
        .push(format!("{method} {} {called}", uri.path()).trim_end().to_owned());
    assert_eq!(headers["authorization"], "Bearer tok_SECRET");
    match (method.as_str(), uri.path()) {
        ("GET", "/sse") => {
            let (stream, pieces) = mpsc::unbounded();
            let number = {
                let mut streams = inner.streams.lock().unwrap();
                streams.push(stream.clone());
                streams.len() - 1
            };
            let right = format!("/messages?session={number}");
            let place = inner.place.clone().unwrap_or(right);
            stream
                .unbounded_send(Ok(format!("event: endpoint\ndata: {place}\n\n").into()))
                .unwrap();
            events(Body::from_stream(pieces.boxed()))
        }
        ("POST", "/messages") => {
            let forget = |left: usize| left.checked_sub(1);
            if called == "tools/call"
                && inner.forgets.fetch_update(Ordering::Relaxed, Ordering::Relaxed, forget).is_ok()
            {
                return (StatusCode::NOT_FOUND, "no such session").into_response();
            }
            let number: usize = uri.query().unwrap().split('=').nth(1).unwrap().parse().unwrap();
            let result = match called {
                "initialize" => json!({ "protocolVersion": "2024-11-05" }),
                "tools/list" => json!({ "tools": [{ "name": "ping" }] }),
                "tools/call" => {
                    let who = format!("pong {number}");
                    json!({ "content": [{ "type": "text", "text": who }] })
                }
                _ => Value::Null,
            };
            if called == "tools/call" && message["params"]["name"] == "crash" {
                inner.streams.lock().unwrap()[number].close_channel();
            } else if !result.is_null() {
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                let event = format!("event: message\ndata: {answer}\n\n");
                // Its stream may be over.
                let _ = inner.streams.lock().unwrap()[number].unbounded_send(Ok(event.into()));
            }
            (StatusCode::ACCEPTED, "Accepted").into_response()
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

impl Legacy {
    fn count(&self, what: &str) -> usize {
        self.inner.seen.lock().unwrap().iter().filter(|line| *line == what).count()
    }
}

#[tokio::test]
async fn the_older_transport_is_found_and_remembered_for_an_hour() {
    let (bench, server) = (bench(), legacy(Inner::default()).await);
    let endpoint = endpoint(&server.url);
    assert_eq!(bench.names(&endpoint, "a").await, ["ping"]);
    assert_eq!(bench.text(&endpoint, "a", "ping", "{}").await, "pong 0");
    assert_eq!(bench.text(&endpoint, "b", "ping", "{}").await, "pong 1");
    assert_eq!((server.count("POST /sse initialize"), server.count("GET /sse")), (1, 2));
    bench.clock.advance(time::Duration::HOUR);
    bench.pool.sweep().await;
    assert_eq!(bench.text(&endpoint, "a", "ping", "{}").await, "pong 2");
    assert_eq!((server.count("POST /sse initialize"), server.count("GET /sse")), (2, 3));
    bench.end().await;
}

#[tokio::test]
async fn a_transport_may_be_given() {
    let (bench, server) = (bench(), legacy(Inner::default()).await);
    let found = endpoint(&server.url);
    let url = found.url().unwrap().clone();
    let headers = merge(&[], &[], Some(&"tok_SECRET".to_owned().into())).headers;
    let given = Endpoint::http(url.clone(), Transport::Sse, headers.clone());
    assert_eq!(bench.text(&given, "a", "ping", "{}").await, "pong 0");
    assert_eq!(server.count("POST /sse initialize"), 0);
    let wrong = Endpoint::http(url, Transport::Streamable, headers);
    let error = bench.call(&wrong, "b", "ping", "{}").await.unwrap_err();
    assert_eq!(error, McpError::Http(405));
    bench.end().await;
}

#[tokio::test]
async fn the_older_transport_renews_and_breaks_like_the_newer() {
    let server = legacy(Inner { forgets: AtomicUsize::new(1), ..Inner::default() }).await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    assert_eq!(bench.text(&endpoint, "a", "ping", "{}").await, "pong 1");
    let crashed = bench.call(&endpoint, "a", "crash", "{}").await.unwrap_err();
    assert_eq!(crashed, McpError::Ended);
    assert_eq!(bench.text(&endpoint, "a", "ping", "{}").await, "pong 2");
    // A stream that ends while nobody uses it is noticed before the next call is sent.
    server.inner.streams.lock().unwrap()[2].close_channel();
    for stream in 3.. {
        match bench.text(&endpoint, "a", "ping", "{}").await.as_str() {
            "pong 2" | "error: the connection to the MCP server broke before it answered"
                if stream < 50 =>
            {
                // The end has not arrived yet.
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            answer => {
                assert_eq!(answer, "pong 3");
                break;
            }
        }
    }
    bench.end().await;
}

#[tokio::test]
async fn messages_go_to_no_other_origin() {
    let thief = mock(super::mock::good).await;
    let place = Some(thief.url.clone());
    let server = legacy(Inner { place, ..Inner::default() }).await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    let error = bench.call(&endpoint, "a", "ping", "{}").await.unwrap_err();
    // The first transport was refused with 405, and the second is not one.
    assert_eq!(error, McpError::Http(405));
    assert_eq!(thief.log(), Vec::<String>::new());
    bench.end().await;
}

#[tokio::test]
async fn only_a_refusal_that_may_mean_the_transport_leads_to_the_other() {
    for (status, tries_the_other) in [
        (400, true),
        (404, true),
        (405, true),
        (406, true),
        (415, true),
        (401, false),
        (403, false),
        (408, false),
        (429, false),
        (500, false),
        (503, false),
    ] {
        let server = mock(move |asked| {
            let refused = (StatusCode::from_u16(status).unwrap(), "no");
            std::future::ready((asked.method == "initialize").then(|| refused.into_response()))
        })
        .await;
        let (bench, endpoint) = (bench(), endpoint(&server.url));
        let error = bench.call(&endpoint, "a", "ping", "{}").await.unwrap_err();
        let expected = match status {
            401 | 403 => McpError::Auth(status),
            _ => McpError::Http(status),
        };
        assert_eq!(error, expected);
        assert_eq!(server.count("GET"), usize::from(tries_the_other), "{status}");
        bench.end().await;
    }
}

#[tokio::test]
async fn a_refusal_in_json_rpc_is_an_answer() {
    let server = mock(async |asked| {
        let error = json!({ "jsonrpc": "2.0", "id": "server-error", "error": { "code": -32600, "message": "Unsupported protocol version" } });
        (asked.method == "initialize")
            .then(|| (StatusCode::BAD_REQUEST, axum::Json(error)).into_response())
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    let error = bench.call(&endpoint, "a", "ping", "{}").await.unwrap_err();
    let message = "Unsupported protocol version".to_owned();
    assert_eq!(error, McpError::Rpc { code: -32600, message });
    assert_eq!(server.count("GET"), 0);
    bench.end().await;
}
