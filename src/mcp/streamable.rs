//! Streamable HTTP: every message is a POST, and the answer comes in its body, as JSON or as a stream of events.
//!
//! The optional stream of a GET is not opened: nothing that a server could say there changes what we do. A GET resumes an answer whose stream
//! the server ended early, where it gave ids to its events.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use reqwest::{
    Method, Request, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use sse_stream::{Sse, SseStream};
use url::Url;

use crate::{
    net::{self, NetError},
    protocol::Raw,
};

use super::{
    Headers, McpError,
    rpc::{self, Incoming},
};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const LONGEST_SESSION_ID: usize = 1024;
/// How often an answer is resumed whose stream ended early.
const RESUMPTIONS: usize = 5;
/// In how large slices events are read, in bytes.
const SLICE: usize = 32 << 10;
/// The longest wait before that, whatever the server asks for.
const LONGEST_RETRY: Duration = Duration::from_secs(5);

/// A server that speaks streamable HTTP.
pub(super) struct Streamable {
    client: net::Client,
    url: Url,
    headers: HeaderMap,
    session: Option<HeaderValue>,
    /// The largest answer, in bytes.
    limit: usize,
}

/// How a first message was taken.
pub(super) enum First {
    /// Answered.
    Answered(Raw),
    /// With a status that a server of the older transport gives.
    NotThisTransport(u16),
}

impl Streamable {
    pub(super) fn new(client: net::Client, url: Url, headers: &Headers, limit: usize) -> Self {
        let mut headers = headers.map().clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        Self { client, url, headers, session: None, limit }
    }

    /// Sends the first message, keeps the session id that comes with its answer.
    pub(super) async fn begin(&mut self, id: u64, message: Vec<u8>) -> Result<First, McpError> {
        let response = self.post(message).await?;
        let status = response.status();
        // 408 and 429 say something about now, 401 and 403 about who asks; every other refusal may mean that POST is wrong here.
        if status.is_client_error() && !matches!(status.as_u16(), 401 | 403 | 408 | 429) {
            let json = is_json(&response);
            let body = net::read_limited(response, self.limit).await.unwrap_or_default();
            return match std::str::from_utf8(&body).map(rpc::read) {
                // Whoever refuses in JSON-RPC has understood.
                Ok(Ok(messages)) if json => find(messages, id)
                    .unwrap_or(Err(McpError::Http(status.as_u16())))
                    .map(First::Answered),
                _ => Ok(First::NotThisTransport(status.as_u16())),
            };
        }
        refuse(status, None)?;
        if let Some(session) = response.headers().get(SESSION) {
            if session.len() > LONGEST_SESSION_ID {
                return Err(McpError::invalid("its session id is too long"));
            }
            self.session = Some(session.clone());
        }
        self.answer(id, response).await.map(First::Answered)
    }

    /// The protocol version that later messages name.
    pub(super) fn speak(&mut self, version: &str) -> Result<(), McpError> {
        let version = HeaderValue::try_from(version)
            .map_err(|_| McpError::invalid("its protocol version is no text"))?;
        self.headers.insert(VERSION, version);
        Ok(())
    }

    /// Whether the server keeps a session for us.
    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Asks and waits for the answer.
    pub(super) async fn ask(&self, id: u64, message: Vec<u8>) -> Result<Raw, McpError> {
        let response = self.post(message).await?;
        let (status, json) = (response.status(), is_json(&response));
        if status.is_client_error()
            && json
            && refuse(status, self.session.as_ref()).is_err_and(|e| matches!(e, McpError::Http(_)))
        {
            // A refusal may say why.
            let body = net::read_limited(response, self.limit).await?;
            let messages = std::str::from_utf8(&body).ok().and_then(|body| rpc::read(body).ok());
            return messages
                .and_then(|messages| find(messages, id))
                .unwrap_or(Err(McpError::Http(status.as_u16())));
        }
        refuse(status, self.session.as_ref())?;
        self.answer(id, response).await
    }

    /// Sends what wants no answer.
    pub(super) async fn tell(&self, message: Vec<u8>) -> Result<(), McpError> {
        let response = self.post(message).await?;
        refuse(response.status(), self.session.as_ref())
    }

    /// Tells the server that the session is over. It may refuse.
    pub(super) async fn close(&self) -> Result<(), McpError> {
        if self.session.is_some() {
            let request = self.request(Method::DELETE);
            self.client.execute(request).await?;
        }
        Ok(())
    }

    async fn post(&self, message: Vec<u8>) -> Result<Response, McpError> {
        let mut request = self.request(Method::POST);
        *request.body_mut() = Some(message.into());
        Ok(self.client.execute(request).await?)
    }

    fn request(&self, method: Method) -> Request {
        let mut request = Request::new(method, self.url.clone());
        *request.headers_mut() = self.headers.clone();
        if let Some(session) = &self.session {
            request.headers_mut().insert(SESSION, session.clone());
        }
        request
    }

    async fn answer(&self, id: u64, response: Response) -> Result<Raw, McpError> {
        if is_events(&response) {
            return self.listen(id, response).await;
        }
        if !is_json(&response) {
            return Err(McpError::invalid("it is neither JSON nor a stream of events"));
        }
        let body = net::read_limited(response, self.limit).await?;
        let body = std::str::from_utf8(&body).map_err(|_| McpError::invalid("it is no UTF-8"))?;
        find(rpc::read(body)?, id).unwrap_or_else(|| Err(no_answer()))
    }

    /// Reads events until the answer is among them.
    async fn listen(&self, id: u64, response: Response) -> Result<Raw, McpError> {
        let (mut last, mut wait) = (None, Duration::from_secs(1));
        let mut response = response;
        for resumed in 0..=RESUMPTIONS {
            let mut events = std::pin::pin!(events(response, Count::All(self.limit)));
            let end = loop {
                let event = match events.next().await {
                    Some(Ok(event)) => event,
                    Some(Err(McpError::Ended)) | None => break McpError::Ended,
                    Some(Err(error)) => return Err(error),
                };
                last = event.id.or(last);
                wait = event.retry.map_or(wait, Duration::from_millis).min(LONGEST_RETRY);
                let Some(data) = event.data.filter(|data| !data.trim().is_empty()) else {
                    continue;
                };
                for message in rpc::read(&data)? {
                    match message {
                        Incoming::Answer { id: answered, outcome }
                            if answered.is_none_or(|answered| answered == id) =>
                        {
                            return outcome;
                        }
                        Incoming::Asked { reply } => self.reply(reply).await,
                        Incoming::Answer { .. } | Incoming::Told => (),
                    }
                }
            };
            let Some(last) = last.as_deref().filter(|_| resumed < RESUMPTIONS) else {
                return Err(end);
            };
            tokio::time::sleep(wait).await;
            response = self.resume(last).await?;
        }
        Err(McpError::Ended)
    }

    /// Answers what the server asked. Should it not want the answer, ours to wait for may come nonetheless.
    async fn reply(&self, reply: Vec<u8>) {
        if let Err(error) = self.tell(reply).await {
            tracing::debug!(%error, "MCP server refused an answer");
        }
    }

    async fn resume(&self, last: &str) -> Result<Response, McpError> {
        let mut request = self.request(Method::GET);
        let headers = request.headers_mut();
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let last = HeaderValue::try_from(last)
            .map_err(|_| McpError::invalid("the id of an event cannot be sent"))?;
        headers.insert(LAST_EVENT, last);
        let response = self.client.execute(request).await?;
        if response.status().is_success() && is_events(&response) {
            Ok(response)
        } else {
            // It does not keep what it said.
            Err(McpError::Ended)
        }
    }
}

/// What counts against the limit of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Count {
    /// All of it.
    All(usize),
    /// One event.
    Event(usize),
}

/// The events of a body. A break is [`McpError::Ended`].
pub(super) fn events(
    response: Response,
    count: Count,
) -> impl Stream<Item = Result<Sse, McpError>> + Send {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };
    let (Count::All(limit) | Count::Event(limit)) = count;
    let read = Arc::new(AtomicUsize::new(0));
    let counted = read.clone();
    let bytes = response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(|error| Fault(error.into()))?;
        if counted.fetch_add(piece.len(), Ordering::Relaxed) + piece.len() > limit {
            return Err(Fault(McpError::TooLarge(limit)));
        }
        Ok(piece)
    });
    // Its reader moves the rest of a piece for every event in it.
    let bytes = bytes.flat_map(|piece| {
        stream::iter(match piece {
            Ok(piece) => in_slices(&piece).into_iter().map(Ok).collect(),
            Err(fault) => vec![Err(fault)],
        })
    });
    SseStream::from_bytes_stream(bytes).map(move |event| {
        if let Count::Event(_) = count {
            read.store(0, Ordering::Relaxed);
        }
        event.map_err(|error| match &error {
            sse_stream::Error::Body(fault) => {
                fault.downcast_ref::<Fault>().map_or(McpError::Ended, |Fault(error)| error.clone())
            }
            _ => McpError::invalid(format!("its stream of events is broken ({error})")),
        })
    })
}

fn in_slices(piece: &Bytes) -> Vec<Bytes> {
    (0..piece.len()).step_by(SLICE).map(|at| piece.slice(at..piece.len().min(at + SLICE))).collect()
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Fault(McpError);

/// The outcome among these messages. A lone error without an id is about our question, for it was the only one.
fn find(messages: Vec<Incoming>, asked: u64) -> Option<Result<Raw, McpError>> {
    messages.into_iter().find_map(|message| match message {
        Incoming::Answer { id, outcome }
            if id == Some(asked) || (id.is_none() && outcome.is_err()) =>
        {
            Some(outcome)
        }
        Incoming::Answer { id: _, outcome: Err(error) } => Some(Err(error)),
        Incoming::Answer { .. } | Incoming::Asked { .. } | Incoming::Told => None,
    })
}

fn no_answer() -> McpError {
    McpError::invalid("it does not answer the question")
}

/// What a status says, success apart. 404 to a session means that it is over.
pub(super) fn refuse(status: StatusCode, session: Option<&HeaderValue>) -> Result<(), McpError> {
    match status.as_u16() {
        200..300 => Ok(()),
        status @ (401 | 403) => Err(McpError::Auth(status)),
        404 if session.is_some() => Err(McpError::Expired),
        status => Err(McpError::Http(status)),
    }
}

fn is_json(response: &Response) -> bool {
    let kind = essence(response);
    kind == "application/json" || kind.ends_with("+json")
}

pub(super) fn is_events(response: &Response) -> bool {
    essence(response) == "text/event-stream"
}

fn essence(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl From<NetError> for Fault {
    fn from(error: NetError) -> Self {
        Self(error.into())
    }
}
