//! A web server that answers by script and keeps what it was asked.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use antiphon::tasks::Tasks;
use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use futures::{StreamExt as _, stream};
use serde_json::Value;
use url::Url;

/// The server.
pub(crate) struct Site {
    base: String,
    state: Arc<Script>,
}

#[derive(Default)]
struct Script {
    replies: Mutex<HashMap<String, VecDeque<Reply>>>,
    asked: Mutex<Vec<Asked>>,
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Method, path and query: `GET /a?b=c`.
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// How a request is answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Whole(Vec<u8>),
    /// A piece again and again, with so long between.
    Endless(Vec<u8>, Duration),
    /// Not even headers.
    Never,
}

impl Reply {
    pub(crate) fn new(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: Content::Whole(body.into()) }
            .header("content-type", kind)
    }

    pub(crate) fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::new(status, "application/json", body)
    }

    pub(crate) fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/html; charset=utf-8", body)
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self::new(302, "text/plain", "moved").header("location", to)
    }

    /// A body that does not end.
    pub(crate) fn endless(kind: &str, piece: impl Into<Vec<u8>>, between: Duration) -> Self {
        Self { body: Content::Endless(piece.into(), between), ..Self::new(200, kind, "") }
    }

    /// No answer at all.
    pub(crate) fn never() -> Self {
        Self { body: Content::Never, ..Self::new(200, "text/plain", "") }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl Site {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Script::default());
        let router = Router::new().fallback(answer).with_state(state.clone());
        Tasks::default().spawn(axum::serve(listener, router).into_future());
        Self { base, state }
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        Url::parse(&format!("{}{path}", self.base)).unwrap()
    }

    /// Answers requests for this path so, one after another; the last answer stays.
    pub(crate) fn on(&self, path: &str, replies: impl IntoIterator<Item = Reply>) {
        self.state.replies.lock().unwrap().insert(path.to_owned(), replies.into_iter().collect());
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    pub(crate) fn forget(&self) {
        self.state.asked.lock().unwrap().clear();
    }
}

async fn answer(State(script): State<Arc<Script>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let line = format!("{} {}", head.method, head.uri.path_and_query().unwrap());
    let body = String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().to_vec()).unwrap();
    script.asked.lock().unwrap().push(Asked { line, headers: head.headers, body });
    let reply = {
        let mut replies = script.replies.lock().unwrap();
        match replies.get_mut(head.uri.path()) {
            Some(queue) if queue.len() > 1 => queue.pop_front(),
            Some(queue) => queue.front().cloned(),
            None => None,
        }
    };
    let Reply { status, headers, body } =
        reply.unwrap_or_else(|| Reply::new(404, "text/plain", "no such page"));
    let body = match body {
        Content::Whole(bytes) => Body::from(bytes),
        Content::Never => std::future::pending().await,
        Content::Endless(piece, between) => {
            Body::from_stream(stream::repeat(Bytes::from(piece)).then(move |piece| async move {
                tokio::time::sleep(between).await;
                Ok::<_, Infallible>(piece)
            }))
        }
    };
    let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(body).unwrap()
}
