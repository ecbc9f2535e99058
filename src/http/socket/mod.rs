//! `GET /v1/responses` with an upgrade: Responses over one WebSocket.
//!
//! A text frame `{"type":"response.create", …}` asks, each event is a text frame. One Response is written at a time; what is asked meanwhile
//! waits in order. The socket remembers its last Response, so that `store: false` can be gone on from here, and only here; a
//! continuation that fails makes it forget. The key is looked at again for every frame.
//!
//! When the client goes away, what is being written is cancelled. When the time of a socket is up, or the server stops, what is being
//! written is finished and nothing new is begun.

mod frame;

use std::{collections::VecDeque, pin::pin, time::Duration};

use axum::{
    extract::{
        State,
        ws::{
            CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code,
            rejection::WebSocketUpgradeRejection,
        },
    },
    http::{HeaderMap, header},
    response::{IntoResponse as _, Response as HttpResponse},
};
use futures::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    engine::{Asked, Remembered, Run, prepare::Started},
    protocol::{ApiError, CreateResponse, ErrorKind},
};

use super::{
    Api,
    door::{Caller, Credentials},
    query::Query,
    responses,
};

/// How many requests may wait for the one that is being answered.
const MOST_WAITING: usize = 32;
/// How long a client may take nothing of what it is sent.
const PATIENCE: Duration = Duration::from_mins(1);
/// A client that has said nothing for so many pings is gone.
const MISSED_PINGS: u32 = 8;

/// `GET /v1/responses`: a socket when the client asks for one, else the list.
pub async fn open_or_list(
    State(api): State<Api>,
    caller: Caller,
    credentials: Credentials,
    headers: HeaderMap,
    query: Query,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<HttpResponse, ApiError> {
    let wants_socket = headers
        .get(header::UPGRADE)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"));
    if !wants_socket {
        return Ok(responses::list(State(api), caller, query).await?.into_response());
    }
    frame::check_origin(&headers, &api.rules.cors)?;
    let upgrade = upgrade.map_err(|rejection| {
        ApiError::new(ErrorKind::InvalidRequest, format!("{}.", rejection.body_text()))
            .code("invalid_websocket_upgrade")
    })?;
    let limit = api.rules.body_limit;
    Ok(upgrade.max_message_size(limit).max_frame_size(limit).on_upgrade(move |socket| async move {
        let tasks = api.engine.parts().tasks.clone();
        // Tracked, so that a stop waits for it; this outer task is axum's.
        let _ = tasks.spawn(Connection::new(api, credentials, socket).serve()).await;
    }))
}

/// The client is not there any more.
struct Gone;

/// One socket.
struct Connection {
    api: Api,
    credentials: Credentials,
    to_client: SplitSink<WebSocket, Message>,
    from_client: SplitStream<WebSocket>,
    /// Requests that came while another was being answered.
    waiting: VecDeque<Utf8Bytes>,
    remembered: Option<Remembered>,
    ping: Interval,
    /// When the client was heard last.
    heard: Instant,
    /// When its time is up.
    until: Instant,
    stopping: CancellationToken,
}

impl Connection {
    fn new(api: Api, credentials: Credentials, socket: WebSocket) -> Self {
        let (to_client, from_client) = socket.split();
        let now = Instant::now();
        let mut ping = interval_at(now + api.rules.ping, api.rules.ping);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            credentials,
            to_client,
            from_client,
            waiting: VecDeque::new(),
            remembered: None,
            ping,
            heard: now,
            until: now + api.rules.socket_max,
            stopping: api.engine.parts().tasks.stopping(),
            api,
        }
    }

    /// Answers until either side ends it.
    async fn serve(mut self) {
        while let Ok(frame) = self.next_request().await {
            if Box::pin(self.answer(&frame)).await.is_err() {
                return;
            }
        }
    }

    /// The next request. An error is the end of the socket, said to the client where it is still there.
    async fn next_request(&mut self) -> Result<Utf8Bytes, Gone> {
        loop {
            if self.stopping.is_cancelled() {
                return self.close(close_code::AWAY, "the server is stopping").await;
            }
            if Instant::now() >= self.until {
                self.refuse(&time_is_up(self.api.rules.socket_max)).await?;
                return self.close(close_code::NORMAL, "the time of this connection is up").await;
            }
            if let Some(frame) = self.waiting.pop_front() {
                return Ok(frame);
            }
            let stopping = self.stopping.clone();
            tokio::select! {
                message = self.from_client.next() => self.hear(message).await?,
                _ = self.ping.tick() => self.keep_alive().await?,
                () = stopping.cancelled() => (),
                () = tokio::time::sleep_until(self.until) => (),
            }
        }
    }

    /// Answers one request. An error means that nobody is there to hear it.
    async fn answer(&mut self, frame: &str) -> Result<(), Gone> {
        let request = match frame::read(frame) {
            Ok(request) => request,
            Err(error) => return self.refuse(&error).await,
        };
        let previous = request.previous_response_id.clone();
        let mut run = match self.start(request).await {
            Ok(run) => run,
            Err(error) => {
                self.forget(previous.as_deref());
                return self.refuse(&error).await;
            }
        };
        self.say_all(&mut run).await?;
        match run.remember() {
            Some(remembered) => self.remembered = Some(remembered),
            None => self.forget(previous.as_deref()),
        }
        Ok(())
    }

    async fn start(&self, request: CreateResponse) -> Result<Run, ApiError> {
        let principal = self.credentials.principal(&self.api).await?;
        let remembered = self.remembered.clone();
        let asked = Asked { request, principal, idempotency: None, remembered };
        match self.api.engine.start(asked).await? {
            Started::Run(run) => Ok(*run),
            // Only requests with an idempotency key are replayed, and frames have none.
            Started::Replayed(_) => Err(ApiError::server()),
        }
    }

    /// A Response that could not be gone on from is not remembered any longer.
    fn forget(&mut self, previous: Option<&str>) {
        self.remembered = self
            .remembered
            .take()
            .filter(|remembered| Some(remembered.response_id.as_str()) != previous);
    }

    /// Sends the events of a run, and hears the client meanwhile.
    async fn say_all(&mut self, run: &mut Run) -> Result<(), Gone> {
        let _counted = self.api.engine.parts().metrics.stream();
        loop {
            tokio::select! {
                batch = run.next() => {
                    let Some(batch) = batch else { return Ok(()) };
                    for event in &batch {
                        self.say(frame::json(event)).await?;
                    }
                }
                message = self.from_client.next() => self.hear(message).await?,
                _ = self.ping.tick() => self.keep_alive().await?,
            }
        }
    }

    /// Hears what the client sent.
    async fn hear(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), Gone> {
        self.heard = Instant::now();
        match message {
            Some(Ok(Message::Text(frame))) => {
                let bytes: usize = self.waiting.iter().map(|frame| frame.len()).sum();
                let fits = bytes + frame.len() <= self.api.rules.body_limit;
                if self.waiting.is_empty() || (fits && self.waiting.len() < MOST_WAITING) {
                    self.waiting.push_back(frame);
                    return Ok(());
                }
                self.refuse(&too_many()).await
            }
            Some(Ok(Message::Binary(_))) => self.refuse(&frame::not_text()).await,
            // Pings are answered by the library.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
            Some(Ok(Message::Close(_))) | None => Err(Gone),
            Some(Err(error)) => {
                if frame::is_too_large(&error) {
                    self.refuse(&frame::too_large(self.api.rules.body_limit)).await?;
                    return self.close(close_code::SIZE, "the message is too large").await;
                }
                tracing::debug!(%error, "a socket broke");
                Err(Gone)
            }
        }
    }

    async fn keep_alive(&mut self) -> Result<(), Gone> {
        if self.heard.elapsed() > self.api.rules.ping * MISSED_PINGS {
            return self.close(close_code::AWAY, "no sign of life").await;
        }
        self.send(Message::Ping(bytes::Bytes::new())).await
    }

    async fn refuse(&mut self, error: &ApiError) -> Result<(), Gone> {
        self.say(frame::error(error)).await
    }

    async fn say(&mut self, text: String) -> Result<(), Gone> {
        self.send(Message::Text(text.into())).await
    }

    /// Says goodbye; what follows from it is always the end.
    async fn close<T>(&mut self, code: u16, reason: &'static str) -> Result<T, Gone> {
        let goodbye = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
        self.send(Message::Close(Some(goodbye))).await?;
        Err(Gone)
    }

    async fn send(&mut self, message: Message) -> Result<(), Gone> {
        match timeout(PATIENCE, pin!(self.to_client.send(message))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Gone),
        }
    }
}

fn time_is_up(most: Duration) -> ApiError {
    ApiError::new(
        ErrorKind::InvalidRequest,
        format!(
            "This connection has been open for {} minutes, which is the limit. Open a new one to go on.",
            most.as_secs() / 60
        ),
    )
    .code("websocket_connection_limit_reached")
}

fn too_many() -> ApiError {
    ApiError::new(
        ErrorKind::RateLimit,
        "Too many requests wait on this connection. Read the answers before you send more.",
    )
    .code("rate_limit_exceeded")
}
