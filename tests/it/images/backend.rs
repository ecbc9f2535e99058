//! An images API on a real port that answers by script and keeps what it was asked.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use antiphon::{
    config::ImageGeneration,
    net::{Policies, Policy, Reach},
    tasks::Tasks,
    tools::{Toolbox, image::ImageApi},
};
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::support::model::Gate;

/// The key that it wants.
pub(super) const KEY: &str = "sk-pictures";

/// The API.
pub(super) struct Backend {
    pub(super) base: String,
    state: Arc<Script>,
}

#[derive(Default)]
struct Script {
    replies: Mutex<VecDeque<Reply>>,
    asked: Mutex<Vec<Asked>>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// `POST /v1/images/generations`
    pub(super) line: String,
    pub(super) authorization: Option<String>,
    pub(super) kind: String,
    pub(super) body: Vec<u8>,
}

/// How a request is answered.
pub(super) struct Reply {
    status: u16,
    kind: &'static str,
    pieces: Vec<Vec<u8>>,
    /// Before the headers.
    gate: Option<Gate>,
}

impl Asked {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The names and contents of a form, in order. The contents of a file are cut to what follows its file name.
    pub(super) fn form(&self) -> Vec<(String, String)> {
        let boundary = self.kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        let text = String::from_utf8_lossy(&self.body);
        let boundary = format!("--{boundary}");
        text.split(&boundary)
            .filter(|part| part.len() > 4)
            .map(|part| {
                let (head, body) = part.split_once("\r\n\r\n").unwrap();
                let quoted = |key: &str| {
                    let (_, rest) = head.split_once(&format!("{key}=\""))?;
                    Some(rest.split_once('"').unwrap().0.to_owned())
                };
                let kind = head
                    .to_lowercase()
                    .split_once("content-type: ")
                    .map(|(_, kind)| kind.lines().next().unwrap().to_owned());
                let body = body.trim_end_matches("\r\n");
                let file = quoted("filename").map(|file| format!("{file} {} ", kind.unwrap()));
                (quoted("name").unwrap(), file.unwrap_or_default() + body)
            })
            .collect()
    }
}

impl Reply {
    pub(super) fn new(status: u16, kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, kind, pieces: vec![body.into()], gate: None }
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// A picture as OpenAI answers it.
    pub(super) fn picture(picture: &[u8]) -> Self {
        Self::json(
            200,
            &json!({
                "created": 1, "background": "opaque", "output_format": "png", "quality": "medium", "size": "1024x512",
                "data": [{ "b64_json": STANDARD.encode(picture) }],
                "usage": { "input_tokens": 10, "output_tokens": 20, "total_tokens": 30 },
            }),
        )
    }

    /// A stream of these events.
    pub(super) fn stream(events: &[Value]) -> Self {
        let frame = |event: &Value| {
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()).into_bytes()
        };
        Self {
            pieces: events.iter().map(frame).collect(),
            ..Self::new(200, "text/event-stream", "")
        }
    }

    pub(super) fn gate(self, gate: &Gate) -> Self {
        Self { gate: Some(gate.clone()), ..self }
    }
}

impl Backend {
    /// An API that answers so, in order.
    pub(super) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(Script::default());
        state.replies.lock().unwrap().extend(replies);
        let router = Router::new().fallback(answer).with_state(state.clone());
        Tasks::default().spawn(axum::serve(listener, router).into_future());
        Self { base, state }
    }

    /// The tools of a server that has its pictures from here. Content may lead nowhere but to the internet.
    pub(super) fn tools(&self, change: impl FnOnce(&mut ImageGeneration)) -> Toolbox {
        let mut config = ImageGeneration {
            base_url: Some(self.base.parse().unwrap()),
            api_key: Some(KEY.to_owned().into()),
            ..ImageGeneration::default()
        };
        change(&mut config);
        let named = Policy { reach: Reach::Any, ..Policy::default() };
        let policies = Policies { named, found: Policy::default() };
        let images = ImageApi::from_config(&config, &policies).unwrap();
        Toolbox { images, ..Toolbox::default() }
    }

    /// Answers the next request so.
    pub(super) fn then(&self, reply: Reply) {
        self.state.replies.lock().unwrap().push_back(reply);
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }
}

async fn answer(State(script): State<Arc<Script>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let header =
        |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let asked = Asked {
        line: format!("{} {}", head.method, head.uri),
        authorization: header("authorization"),
        kind: header("content-type").unwrap_or_default(),
        body: to_bytes(body, usize::MAX).await.unwrap().into(),
    };
    script.asked.lock().unwrap().push(asked);
    let reply = script.replies.lock().unwrap().pop_front().expect("asked once too often");
    if let Some(gate) = reply.gate {
        gate.pass().await;
    }
    let pieces = stream::iter(reply.pieces).then(|piece| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok::<_, std::convert::Infallible>(piece)
    });
    Response::builder()
        .status(reply.status)
        .header("content-type", reply.kind)
        .body(Body::from_stream(pieces))
        .unwrap()
}

/// A picture of 1024 by 512 pixels, told from others by this.
pub(super) fn png(mark: &str) -> Vec<u8> {
    let head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x02\0\x08\x06\0\0\0".as_slice();
    [head, mark.as_bytes()].concat()
}
