//! The HTTP transport of 2024: a GET opens a stream of events, whose first says where messages are posted; answers come on the stream.

use futures::StreamExt as _;
use reqwest::{
    Method, Request,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use url::Url;

use crate::{net, protocol::Raw};

use super::{
    Headers, McpError,
    mux::Mux,
    streamable::{Count, events, is_events, refuse},
};

/// A server that speaks the older transport.
pub(super) struct Legacy {
    client: net::Client,
    /// Where messages are posted.
    post: Url,
    headers: HeaderMap,
    mux: Mux,
}

impl Legacy {
    /// Opens the stream. `limit` is the largest event, in bytes.
    pub(super) async fn open(
        client: net::Client,
        url: &Url,
        headers: &Headers,
        limit: usize,
    ) -> Result<Self, McpError> {
        let mut request = Request::new(Method::GET, url.clone());
        *request.headers_mut() = headers.map().clone();
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = client.execute(request).await?;
        refuse(response.status(), None)?;
        if !is_events(&response) {
            return Err(McpError::invalid("it is no stream of events"));
        }
        let base = response.url().clone();
        let mut events = events(response, Count::Event(limit)).boxed();
        let post = loop {
            let event = events.next().await.unwrap_or(Err(McpError::Ended))?;
            if event.event.as_deref() == Some("endpoint") {
                let place = event.data.unwrap_or_default();
                let post = base.join(place.trim());
                break post.map_err(|_| McpError::invalid("it names no address for messages"))?;
            }
        };
        if post.origin() != url.origin() {
            // Our headers are for the server that was named, and no other.
            return Err(McpError::invalid("it wants messages sent to another origin"));
        }
        let messages = events.filter_map(async |event| match event {
            Ok(event) if event.event.as_deref().is_none_or(|name| name == "message") => {
                event.data.filter(|data| !data.trim().is_empty()).map(Ok)
            }
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        let mut headers = headers.map().clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self { client, post, headers, mux: Mux::new(messages.boxed()) })
    }

    pub(super) async fn ask(&self, id: u64, message: Vec<u8>) -> Result<Raw, McpError> {
        self.mux.ask(id, message, |message| self.tell(message)).await
    }

    pub(super) async fn tell(&self, message: Vec<u8>) -> Result<(), McpError> {
        let mut request = Request::new(Method::POST, self.post.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = Some(message.into());
        let response = self.client.execute(request).await?;
        match refuse(response.status(), None) {
            // The address is that of the session.
            Err(McpError::Http(404)) => Err(McpError::Expired),
            done => done,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.mux.is_over()
    }

    pub(super) async fn close(&self) {
        self.mux.close().await;
    }
}
