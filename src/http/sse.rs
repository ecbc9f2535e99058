//! Events as a server-sent stream: `event:` equal to `type`, a whole event per write, comments while nothing is said, `[DONE]` at the end.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures::{Stream, StreamExt as _, stream};

use crate::{clock::Patience, engine::Run, protocol::Numbered, telemetry::StreamGuard};

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

/// A run that is read.
struct Reader {
    at: At,
    run: Run,
    ping: Duration,
    patience: Patience,
    _counted: StreamGuard,
}

fn bytes(
    said: Vec<Numbered>,
    run: Run,
    ping: Duration,
    guard: StreamGuard,
) -> impl Stream<Item = Bytes> {
    let (at, patience) = (At::Said(said), Patience::new(ping));
    let reader = Reader { at, run, ping, patience, _counted: guard };
    stream::unfold(reader, |mut reader| async move {
        let said = reader.next().await?;
        Some((said, reader))
    })
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        match std::mem::replace(&mut self.at, At::Running) {
            At::Said(said) => Some(encode(&said)),
            At::Running => match self.patience.wait(self.ping, self.run.next()).await {
                Some(Some(batch)) => Some(encode(&batch)),
                Some(None) => {
                    self.at = At::Done;
                    Some(Bytes::from_static(b"data: [DONE]\n\n"))
                }
                None => Some(Bytes::from_static(b": ping\n\n")),
            },
            At::Done => None,
        }
    }
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
