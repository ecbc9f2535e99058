//! A client of a stream: reads it frame by frame, and is as strict as the strictest SDK.

use bytes::{Buf as _, BytesMut};
use serde_json::Value;

use super::{folding::Folded, schema, server::Server};

/// A stream that is being read.
pub(crate) struct Listener {
    response: reqwest::Response,
    bytes: BytesMut,
    /// Comments heard so far.
    pub(crate) comments: usize,
    /// Whether `[DONE]` was heard.
    pub(crate) done: bool,
}

/// A stream that was read to its end.
#[derive(Debug)]
pub(crate) struct Heard {
    /// All events.
    pub(crate) events: Vec<Value>,
    /// The Response that its last event holds.
    pub(crate) response: Value,
}

impl Listener {
    /// Asks for a stream, which must be granted.
    pub(crate) async fn open(server: &Server, body: &Value) -> Self {
        Self::of(
            server.request("POST", "/v1/responses").json(&streaming(body)).send().await.unwrap(),
        )
    }

    /// Reads a stream that was granted.
    pub(crate) fn of(response: reqwest::Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        Self { response, bytes: BytesMut::new(), comments: 0, done: false }
    }

    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some(frame) = self.frame() {
                if let Some(event) = self.event(&frame) {
                    return Some(event);
                }
            }
            if !self.read().await {
                assert!(self.bytes.is_empty(), "half a frame: {:?}", self.bytes);
                return None;
            }
        }
    }

    /// Reads up to the next comment; the events before it.
    pub(crate) async fn until_comment(&mut self) -> Vec<Value> {
        let (mut events, before) = (Vec::new(), self.comments);
        loop {
            while let Some(frame) = self.frame() {
                events.extend(self.event(&frame));
                if self.comments > before {
                    return events;
                }
            }
            assert!(self.read().await, "the stream ended");
        }
    }

    /// Reads up to the first event of this type.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("no {kind}"));
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// Reads to the end, and checks all that must hold of a whole stream.
    pub(crate) async fn whole(mut self) -> Heard {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        assert!(self.done, "no [DONE]");
        checked(events)
    }

    /// The next whole frame of what was read.
    fn frame(&mut self) -> Option<String> {
        let at = self.bytes.windows(2).position(|window| window == b"\n\n")?;
        let frame = self.bytes.split_to(at);
        self.bytes.advance(2);
        Some(std::str::from_utf8(&frame).unwrap().to_owned())
    }

    /// Reads more; false at the end.
    async fn read(&mut self) -> bool {
        let Some(bytes) = self.response.chunk().await.unwrap() else { return false };
        self.bytes.extend_from_slice(&bytes);
        true
    }

    fn event(&mut self, frame: &str) -> Option<Value> {
        assert!(!self.done, "after [DONE]: {frame}");
        if frame.starts_with(": ") {
            self.comments += 1;
            return None;
        }
        if frame == "data: [DONE]" {
            self.done = true;
            return None;
        }
        let (name, data) = frame.split_once('\n').unwrap_or_else(|| panic!("{frame}"));
        let data = data.strip_prefix("data: ").unwrap_or_else(|| panic!("{frame}"));
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name.strip_prefix("event: "), event["type"].as_str());
        Some(event)
    }
}

/// Checks the events of a whole stream: each is valid, and together they give the Response.
pub(crate) fn checked(events: Vec<Value>) -> Heard {
    let mut folded = Folded::default();
    for event in &events {
        schema::check_event(event);
        folded.push(event);
    }
    let response = folded.response();
    schema::check("Response", &response);
    Heard { events, response }
}

/// The same request, streaming.
pub(crate) fn streaming(body: &Value) -> Value {
    let mut body = body.clone();
    body["stream"] = true.into();
    body
}
