//! Servers of the Python SDK, all its transports. `tests/mcp/run.py` installs it and runs these.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use antiphon::mcp::{Command, Endpoint};
use pretty_assertions::assert_eq;
use tokio::net::{TcpListener, TcpStream};

use super::{Bench, bench, endpoint, scope};

#[expect(clippy::disallowed_methods, reason = "the tests' own environment, not the server's")]
fn python() -> PathBuf {
    PathBuf::from(std::env::var_os("ANTIPHON_MCP_PYTHON").expect("run tests/mcp/run.py"))
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/server.py")
}

/// A server with one of its ways to speak HTTP; it ends with the test.
async fn start(kind: &str) -> (String, tokio::process::Child) {
    let port = {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        free.local_addr().unwrap().port()
    };
    let child = tokio::process::Command::new(python())
        .args(["-W", "ignore"])
        .arg(script())
        .args([kind, &port.to_string()])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    for _ in 0..600 {
        if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            let path = if kind == "sse" { "sse" } else { "mcp" };
            return (format!("http://127.0.0.1:{port}/{path}"), child);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the {kind} server did not start");
}

/// All that a client needs of a server.
async fn works(bench: &Bench, endpoint: &Endpoint) {
    let names = bench.names(endpoint, "a").await;
    assert_eq!(names, ["add", "talk", "fail", "picture", "hang", "heard"]);
    let list = bench.pool.list_tools(endpoint, &scope("a")).await.unwrap();
    assert_eq!(list.tools[0].description.as_deref(), Some("Adds."));
    assert!(list.tools[0].input_schema.json().contains(r#""required":["a","b"]"#));
    assert_eq!(bench.text(endpoint, "a", "add", r#"{"a":2,"b":40}"#).await, "42.0");
    assert_eq!(bench.text(endpoint, "a", "talk", "{}").await, "done");
    let failed = bench.call(endpoint, "a", "fail", "{}").await.unwrap();
    assert!(failed.is_error);
    let wrong = bench.call(endpoint, "a", "add", r#"{"a":"x"}"#).await.unwrap();
    assert!(wrong.is_error && wrong.text().contains('a'), "{wrong:?}");
    let picture = bench.call(endpoint, "a", "picture", "{}").await.unwrap();
    let url = picture.images().next().unwrap().data_url();
    assert_eq!(url.as_deref(), Some("data:image/png;base64,iVBORw0KGgo="));
    assert_eq!(picture.text(), "[image image/png, 8 bytes]");
}

async fn cancels(bench: &Bench, endpoint: &Endpoint) {
    let hanging = bench.text(endpoint, "a", "hang", "{}");
    tokio::select! {
        answer = hanging => panic!("{answer}"),
        // So long that the call has arrived; what shows that it was cancelled is what comes next.
        () = tokio::time::sleep(Duration::from_secs(1)) => (),
    }
    assert_eq!(bench.text(endpoint, "a", "heard", "{}").await, "cancelled");
}

#[tokio::test]
#[ignore = "needs the Python SDK: tests/mcp/run.py"]
async fn streamable_http_with_sessions() {
    let (url, _server) = start("streamable").await;
    let (bench, endpoint) = (bench(), endpoint(&url));
    works(&bench, &endpoint).await;
    cancels(&bench, &endpoint).await;
    assert_eq!(bench.text(&endpoint, "b", "talk", "{}").await, "done");
    assert_eq!(bench.pool.stats().open, 2);
    bench.end().await;
}

#[tokio::test]
#[ignore = "needs the Python SDK: tests/mcp/run.py"]
async fn streamable_http_in_json() {
    let (url, _server) = start("json").await;
    let (bench, endpoint) = (bench(), endpoint(&url));
    works(&bench, &endpoint).await;
    bench.end().await;
}

#[tokio::test]
#[ignore = "needs the Python SDK: tests/mcp/run.py"]
async fn streamable_http_without_sessions() {
    let (url, _server) = start("stateless").await;
    let (bench, endpoint) = (bench(), endpoint(&url));
    works(&bench, &endpoint).await;
    assert_eq!(bench.text(&endpoint, "b", "talk", "{}").await, "done");
    assert_eq!(bench.pool.stats().open, 1);
    bench.end().await;
}

#[tokio::test]
#[ignore = "needs the Python SDK: tests/mcp/run.py"]
async fn the_older_transport() {
    let (url, mut server) = start("sse").await;
    let (bench, endpoint) = (bench(), endpoint(&url));
    works(&bench, &endpoint).await;
    cancels(&bench, &endpoint).await;
    server.kill().await.unwrap();
    let gone = bench.text(&endpoint, "a", "talk", "{}").await;
    assert!(gone.starts_with("error: "), "{gone}");
    bench.end().await;
}

#[tokio::test]
#[ignore = "needs the Python SDK: tests/mcp/run.py"]
async fn a_program() {
    let script = script().to_string_lossy().into_owned();
    let args = vec!["-W".to_owned(), "ignore".to_owned(), script, "stdio".to_owned()];
    let program = python().to_string_lossy().into_owned();
    let endpoint = Endpoint::command(Command { program, args, env: BTreeMap::new(), dir: None });
    let bench = bench();
    works(&bench, &endpoint).await;
    cancels(&bench, &endpoint).await;
    bench.end().await;
}
