//! Events as a server-sent stream: `event:` equal to `type`, a whole event per write, comments while nothing is said, `[DONE]` at the end.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::{Stream, StreamExt as _, stream};

use crate::{engine::Run, protocol::Numbered, telemetry::StreamGuard};

/// The answer that streams a run. `said` is what was heard of it already.
pub fn answer(said: Vec<Numbered>, run: Run, ping: Duration, guard: StreamGuard) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    let body =
        Body::from_stream(bytes(said, run, ping, guard).map(Ok::<_, std::convert::Infallible>));
    (headers, body).into_response()
}

/// Where the stream is.
enum At {
    Said(Vec<Numbered>),
    Running,
    Done,
}

fn bytes(
    said: Vec<Numbered>,
    run: Run,
    ping: Duration,
    guard: StreamGuard,
) -> impl Stream<Item = Bytes> {
    stream::unfold((At::Said(said), run, guard), move |(at, mut run, guard)| async move {
        match at {
            At::Said(said) => Some((encode(&said), (At::Running, run, guard))),
            At::Running => match tokio::time::timeout(ping, run.next()).await {
                Ok(Some(batch)) => Some((encode(&batch), (At::Running, run, guard))),
                Ok(None) => Some((Bytes::from_static(b"data: [DONE]\n\n"), (At::Done, run, guard))),
                Err(_elapsed) => {
                    Some((Bytes::from_static(b": ping\n\n"), (At::Running, run, guard)))
                }
            },
            At::Done => None,
        }
    })
}

/// The events of a batch, each whole.
fn encode(batch: &[Numbered]) -> Bytes {
    let mut out = BytesMut::with_capacity(256 * batch.len()).writer();
    for numbered in batch {
        out.get_mut().extend_from_slice(b"event: ");
        out.get_mut().extend_from_slice(numbered.event.name().as_bytes());
        out.get_mut().extend_from_slice(b"\ndata: ");
        if let Err(error) = serde_json::to_writer(&mut out, numbered) {
            // Our own words always have a JSON form.
            tracing::error!(%error, event = numbered.event.name(), "an event has no JSON");
        }
        out.get_mut().extend_from_slice(b"\n\n");
    }
    out.into_inner().freeze()
}
