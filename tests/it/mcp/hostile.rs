//! A server that does what none should. Each fault is a typed error, and what is asked next works.

use std::{future::ready, time::Duration};

use antiphon::{
    mcp::{Limits, McpError, Pool},
    net::Policy,
    tasks::Tasks,
};
use axum::{
    body::{Body, Bytes},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures::{StreamExt as _, stream};
use pretty_assertions::assert_eq;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::{
    bench, bench_with, endpoint, limits,
    mock::{Asked, mock},
    scope,
};

fn text(kind: &'static str, body: impl Into<Body>) -> Response {
    ([("content-type", kind)], body.into()).into_response()
}

fn flood(piece: &str) -> Body {
    let piece = Bytes::from(piece.repeat(1000));
    Body::from_stream(stream::repeat_with(move || Ok::<_, std::io::Error>(piece.clone())))
}

fn call_only(asked: &Asked, answer: impl FnOnce() -> Response) -> Option<Response> {
    (asked.method == "tools/call" && asked.params["name"] == "bad").then(answer)
}

/// Asks a server that misbehaves in calls of `bad`, then checks that the session still serves.
async fn error_of<F>(rule: impl Fn(Asked) -> F + Send + Sync + 'static) -> McpError
where
    F: Future<Output = Option<Response>> + Send + 'static,
{
    let server = mock(rule).await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    let error = bench.call(&endpoint, "a", "bad", "{}").await.unwrap_err();
    assert_eq!(server.log().iter().filter(|line| *line == "POST tools/call").count(), 1);
    assert_eq!(bench.text(&endpoint, "a", "ping", "{}").await, "pong");
    assert_eq!(server.count("POST initialize"), 1);
    bench.end().await;
    error
}

#[tokio::test]
async fn floods_are_cut_off() {
    let json =
        error_of(async |asked| call_only(&asked, || text("application/json", flood("[1,")))).await;
    assert_eq!(json, McpError::TooLarge(1 << 20));
    let events = error_of(async |asked| {
        call_only(&asked, || text("text/event-stream", flood("data: {\"method\":\"x\"}\n\n")))
    })
    .await;
    assert_eq!(events, McpError::TooLarge(1 << 20));
    let endless =
        error_of(async |asked| call_only(&asked, || text("text/event-stream", flood("xxxxxxxx"))))
            .await;
    assert_eq!(endless, McpError::TooLarge(1 << 20));
    let refusal = error_of(async |asked| {
        call_only(&asked, || {
            (StatusCode::BAD_REQUEST, [("content-type", "application/json")], flood(" "))
                .into_response()
        })
    })
    .await;
    assert_eq!(refusal, McpError::TooLarge(1 << 20));
}

#[tokio::test]
async fn what_is_no_answer_is_said_to_be_none() {
    for (kind, body) in [
        ("application/json", "{\"jsonrpc\":\"2.0\",\"id\":1,\"resu"),
        ("application/json", ""),
        ("application/json", "<html>"),
        ("application/json", "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}"),
        ("application/json", "{\"jsonrpc\":\"2.0\",\"id\":1}"),
        ("application/json", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}"),
        ("text/html", "<html>"),
        ("text/event-stream", "data: {\"jsonrpc\n\n"),
        ("text/event-stream", "no field\n\n"),
    ] {
        let error = error_of(move |asked| ready(call_only(&asked, || text(kind, body)))).await;
        assert!(matches!(error, McpError::Invalid(_)), "{kind} {body}: {error:?}");
    }
    let accepted =
        error_of(async |asked| call_only(&asked, || StatusCode::ACCEPTED.into_response())).await;
    assert!(matches!(accepted, McpError::Invalid(_)), "{accepted:?}");
    let bytes = error_of(async |asked| {
        call_only(&asked, || text("application/json", Bytes::from_static(b"\"\xff\"")))
    })
    .await;
    assert!(matches!(bytes, McpError::Invalid(_)), "{bytes:?}");
}

#[tokio::test]
async fn refusals_keep_their_kind() {
    for (status, expected) in [
        (401, McpError::Auth(401)),
        (403, McpError::Auth(403)),
        (500, McpError::Http(500)),
        (302, McpError::Http(302)),
    ] {
        let error = error_of(move |asked| {
            ready(call_only(&asked, || StatusCode::from_u16(status).unwrap().into_response()))
        })
        .await;
        assert_eq!(error, expected);
    }
    let rpc = error_of(async |asked| {
        call_only(&asked, || {
            let error = json!({ "code": 404, "message": "no such record of tok_SECRET" });
            axum::Json(json!({ "jsonrpc": "2.0", "id": asked.id, "error": error })).into_response()
        })
    })
    .await;
    let message = "no such record of [secret]".to_owned();
    assert_eq!(rpc, McpError::Rpc { code: 404, message });
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let server = mock(async |asked| {
        if asked.method == "tools/call" || asked.method == "tools/list" {
            std::future::pending::<()>().await;
        }
        None
    })
    .await;
    let short = Duration::from_secs(1);
    let bench = bench_with(Limits { call: short, answer: short, ..limits() });
    let endpoint = endpoint(&server.url);
    let error = bench.call(&endpoint, "a", "ping", "{}").await.unwrap_err();
    assert_eq!(error, McpError::Timeout(1));
    server.until("POST notifications/cancelled", 1).await;
    let error = bench.pool.list_tools(&endpoint, &scope("a")).await.unwrap_err();
    assert_eq!(error, McpError::Timeout(1));
    server.until("POST notifications/cancelled", 2).await;
    bench.end().await;

    let server = mock(async |_| std::future::pending().await).await;
    let bench = bench_with(Limits { answer: short, ..limits() });
    let endpoint = super::endpoint(&server.url);
    let error = bench.call(&endpoint, "a", "ping", "{}").await.unwrap_err();
    assert_eq!(error, McpError::Timeout(1));
    bench.end().await;
}

#[tokio::test]
async fn huge_lists_are_refused() {
    let server = mock(async |asked| {
        let tools: Vec<_> = (0..1001).map(|n| json!({ "name": format!("t{n}") })).collect();
        (asked.method == "tools/list").then(|| asked.result(&json!({ "tools": tools })))
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    let error = bench.pool.list_tools(&endpoint, &scope("a")).await.unwrap_err();
    assert_eq!(error, McpError::TooManyTools(1000));
    bench.end().await;

    let server = mock(async |asked| {
        let tools = json!([{ "name": "x", "description": "d".repeat(500_000) }]);
        (asked.method == "tools/list")
            .then(|| asked.result(&json!({ "tools": tools, "nextCursor": asked.nth.to_string() })))
    })
    .await;
    let bench = bench_with(Limits { list: 1_000_000, ..limits() });
    let endpoint = super::endpoint(&server.url);
    let error = bench.pool.list_tools(&endpoint, &scope("a")).await.unwrap_err();
    assert_eq!(error, McpError::TooLarge(1_000_000));
    assert_eq!(server.count("POST tools/list"), 2);
    bench.end().await;
}

#[tokio::test]
async fn what_a_server_reflects_is_masked() {
    let server = mock(async |asked| match asked.method.as_str() {
        "tools/list" => Some(asked.result(
            &json!({ "tools": [{ "name": "ping", "description": "you sent tok_SECRET" }] }),
        )),
        "tools/call" => Some(
            asked.result(&json!({ "content": [{ "type": "text", "text": "Bearer tok_SECRET!" }] })),
        ),
        _ => None,
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    let list = bench.pool.list_tools(&endpoint, &scope("a")).await.unwrap();
    assert_eq!(list.tools[0].description.as_deref(), Some("you sent [secret]"));
    assert_eq!(bench.text(&endpoint, "a", "ping", "{}").await, "Bearer [secret]!");
    bench.end().await;
}

/// A server that writes these bytes to whoever says something, and closes.
async fn raw(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    Tasks::default().spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut question = [0; 4096];
            let _ = socket.read(&mut question).await;
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    url
}

#[tokio::test]
async fn lies_about_sizes_and_broken_http_are_found_out() {
    const ANSWER: &str = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"1\"}}";
    assert_eq!(ANSWER.len(), 57);
    for (answer, expected) in [
        // More is promised than comes.
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"1\"}}",
            "Ended",
        ),
        // Less is promised than comes: the rest belongs to nobody.
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 30\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"1\"}}",
            "Invalid",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n{}",
            "TooLarge(1048576)",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: -1\r\n\r\n{}",
            "Ended",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
            "Ended",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"jsonrpc\"", "Ended"),
        ("no http at all", "Ended"),
        ("", "Ended"),
    ] {
        let (bench, url) = (bench(), raw(answer).await);
        let error = bench.call(&endpoint(&url), "a", "ping", "{}").await.unwrap_err();
        assert!(format!("{error:?}").starts_with(expected), "{answer:?}: {error:?}");
        bench.end().await;
    }
    let (bench, nobody) = (bench(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let url = format!("http://{}/mcp", nobody.local_addr().unwrap());
    drop(nobody);
    let error = bench.call(&endpoint(&url), "a", "ping", "{}").await.unwrap_err();
    assert_eq!(error, McpError::Unreachable("127.0.0.1".to_owned()));
    bench.end().await;
}

#[tokio::test]
async fn what_the_policy_forbids_is_not_reached_not_even_by_redirect() {
    let secret = mock(super::mock::good).await;
    let (super::Bench { pool: _, clock, tasks }, endpoint) = (bench(), endpoint(&secret.url));
    let public =
        Pool::new(Policy::default(), Vec::new(), clock.clone(), tasks.clone(), limits()).unwrap();
    let error = public.list_tools(&endpoint, &scope("a")).await.unwrap_err();
    assert!(matches!(error, McpError::Denied(_)), "{error:?}");

    let target = secret.url.clone();
    let front = mock(move |_| {
        let answer = (StatusCode::TEMPORARY_REDIRECT, [("location", target.clone())]);
        ready(Some(answer.into_response()))
    })
    .await;
    let place = front.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let allow = vec![place.parse().unwrap()];
    let listed = Policy { allow: allow.clone(), ..Policy::default() };
    let pool = Pool::new(listed, Vec::new(), clock.clone(), tasks.clone(), limits()).unwrap();
    let error = pool.list_tools(&super::endpoint(&front.url), &scope("a")).await.unwrap_err();
    assert!(matches!(error, McpError::Denied(_)), "{error:?}");
    assert_eq!(front.count("POST initialize"), 1);

    // What the operator named is open to its own endpoints only.
    let place = secret.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let operators = vec![place.parse().unwrap()];
    assert_eq!(secret.log(), Vec::<String>::new());
    let pool = Pool::new(Policy::default(), operators, clock, tasks, limits()).unwrap();
    assert!(pool.list_tools(&endpoint, &scope("a")).await.is_err());
    assert!(pool.list_tools(&endpoint.of_operator(), &scope("a")).await.is_ok());
    for pool in [public, pool] {
        pool.shutdown().await;
    }
}

#[tokio::test]
async fn a_slow_drip_is_given_up_too() {
    let server = mock(async |asked| {
        (asked.method == "tools/call").then(|| {
            let drip = stream::unfold((), async |()| {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Some((Ok::<_, std::io::Error>(Bytes::from_static(b": still there\n\n")), ()))
            });
            text("text/event-stream", Body::from_stream(drip.boxed()))
        })
    })
    .await;
    let bench = bench_with(Limits { call: Duration::from_secs(1), ..limits() });
    let error = bench.call(&endpoint(&server.url), "a", "ping", "{}").await.unwrap_err();
    assert_eq!(error, McpError::Timeout(1));
    bench.end().await;
}
