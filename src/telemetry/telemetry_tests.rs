use std::{
    io::Write,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, HeaderValue},
    routing::post,
};
use pretty_assertions::assert_eq;
use tokio::sync::mpsc;

use super::*;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACE_BYTES: [u8; 16] = [
    0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36,
];

fn settings(format: Format, otlp_endpoint: Option<String>) -> Settings {
    Settings { filter: "info,quiet=off".to_owned(), format, otlp_endpoint }
}

/// A collector on a free port: its base address, and the requests it gets as (content type, body).
async fn collector() -> (String, mpsc::UnboundedReceiver<(String, Bytes)>) {
    let (sent, received) = mpsc::unbounded_channel();
    let traces = post(move |headers: HeaderMap, body: Bytes| async move {
        let kind =
            headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        _ = sent.send((kind.to_owned(), body));
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = axum::serve(listener, Router::new().route("/v1/traces", traces)).into_future();
    _ = crate::tasks::Tasks::default().spawn(serve);
    (format!("http://{address}/"), received)
}

fn contains(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_reach_the_collector_under_their_parent() {
    let (endpoint, mut received) = collector().await;
    let (subscriber, telemetry) =
        Telemetry::build(&settings(Format::Text, Some(endpoint)), io::sink).unwrap();
    let outbound = tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!("a request that is traced");
        let traceparent = HeaderValue::try_from(format!("00-{TRACE}-00f067aa0ba902b7-01")).unwrap();
        adopt_parent(&span, &HeaderMap::from_iter([(header("traceparent"), traceparent)]));
        let mut headers = HeaderMap::new();
        inject(&span, &mut headers);
        span.in_scope(|| {
            drop(tracing::info_span!(target: "quiet", "a span that the filter drops"));
        });
        headers
    });
    telemetry.shutdown();

    let (kind, body) = received.recv().await.expect("a request arrives");
    assert_eq!(kind, "application/x-protobuf");
    assert!(contains(&body, b"a request that is traced"), "the span's name");
    assert!(contains(&body, b"antiphon"), "the service's name");
    assert!(contains(&body, &TRACE_BYTES), "the trace of the caller");
    assert!(!contains(&body, b"a span that the filter drops"));

    let sent_on = outbound["traceparent"].to_str().unwrap();
    assert!(sent_on.starts_with(&format!("00-{TRACE}-")) && sent_on.ends_with("-01"), "{sent_on}");
    assert!(!sent_on.contains("00f067aa0ba902b7"), "the parent is now our own span: {sent_on}");
    assert!(!outbound.contains_key("tracestate"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_traceparent_begins_a_new_trace() {
    let (endpoint, _received) = collector().await;
    let (subscriber, telemetry) =
        Telemetry::build(&settings(Format::Text, Some(endpoint)), io::sink).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        for bad in
            ["", "00-xyz", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "\u{e9}"]
        {
            let span = tracing::info_span!("request");
            let value = HeaderValue::from_bytes(bad.as_bytes()).unwrap();
            adopt_parent(&span, &HeaderMap::from_iter([(header("traceparent"), value)]));
            let mut headers = HeaderMap::new();
            inject(&span, &mut headers);
            let sent_on = headers["traceparent"].to_str().unwrap();
            assert!(
                sent_on.len() == 55 && !sent_on.contains("00000000000000000000000000000000"),
                "{bad}: {sent_on}"
            );
        }
    });
    telemetry.shutdown();
}

#[test]
fn without_a_collector_nothing_is_sent_on() {
    let (subscriber, telemetry) =
        Telemetry::build(&settings(Format::Text, None), io::sink).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        let mut headers = HeaderMap::new();
        let span = tracing::info_span!("request");
        let traceparent = HeaderValue::try_from(format!("00-{TRACE}-00f067aa0ba902b7-01")).unwrap();
        adopt_parent(&span, &HeaderMap::from_iter([(header("traceparent"), traceparent)]));
        inject(&span, &mut headers);
        assert_eq!(headers, HeaderMap::new());
    });
    telemetry.shutdown();
}

#[test]
fn a_collector_that_is_not_there_does_not_stop_the_exit() {
    // Port 9 of the own machine: nothing listens there.
    let settings = settings(Format::Text, Some("http://127.0.0.1:9".to_owned()));
    let (subscriber, telemetry) = Telemetry::build(&settings, io::sink).unwrap();
    tracing::subscriber::with_default(subscriber, || drop(tracing::info_span!("lost")));
    telemetry.shutdown();
}

#[test]
fn lines_are_text_or_json() {
    let text = logged(Format::Text);
    assert!(
        text.contains("INFO") && text.contains("hello") && text.contains("answer=42"),
        "{text}"
    );
    assert!(!text.contains("dropped") && !text.contains('\u{1b}'), "{text}");

    let json = logged(Format::Json);
    let line: serde_json::Value = serde_json::from_str(json.trim()).unwrap();
    assert_eq!((&line["level"], &line["fields"]["message"]), (&"INFO".into(), &"hello".into()));
    assert_eq!(line["fields"]["answer"], 42);
}

#[test]
fn a_bad_filter_is_an_error() {
    let settings =
        Settings { filter: "info,=,antiphon=loud".to_owned(), ..settings(Format::Text, None) };
    let Err(error) = Telemetry::build(&settings, io::sink) else { panic!("the filter is bad") };
    assert!(
        error.to_string().starts_with("`log.filter` (or RUST_LOG) cannot be read: "),
        "{error}"
    );
}

fn header(name: &'static str) -> axum::http::HeaderName {
    axum::http::HeaderName::from_static(name)
}

fn logged(format: Format) -> String {
    let buffer = Buffer::default();
    let writer = buffer.clone();
    let (subscriber, telemetry) =
        Telemetry::build(&settings(format, None), move || writer.clone()).unwrap();
    tracing::subscriber::with_default(subscriber, || {
        tracing::info!(answer = 42, "hello");
        tracing::debug!("dropped");
    });
    telemetry.shutdown();
    let bytes = buffer.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
