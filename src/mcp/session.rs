//! One session with a server: the handshake, questions, and what is told to the server when a caller goes away.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;

use crate::{clock::Clock, net, protocol::Raw, tasks::Tasks};

use super::{
    Endpoint, Limits, McpError, Transport,
    endpoint::Target,
    legacy::Legacy,
    rpc,
    stdio::Program,
    streamable::{First, Streamable},
};

/// The newest version of the protocol that begins with a handshake. A server answers with the one that it speaks.
const PROTOCOL_VERSION: &str = "2025-11-25";
/// How long a parting word to a server may take.
const PARTING: Duration = Duration::from_secs(5);

/// What sessions are opened with.
#[derive(Clone)]
pub(super) struct Means {
    pub(super) client: net::Client,
    /// Reaches the operator's servers too.
    pub(super) operator: net::Client,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
    pub(super) limits: Limits,
}

/// A session that has passed its handshake.
pub(super) struct Session {
    link: Link,
    /// The Chain that it belongs to; `None`: to all of one user, for the server keeps nothing for it.
    pub(super) chain: Option<String>,
    next_id: AtomicU64,
    closed: CancellationToken,
    in_use: AtomicUsize,
    last_used: Mutex<OffsetDateTime>,
    means: Means,
}

enum Link {
    Streamable(Streamable),
    Legacy(Legacy),
    Program(Program),
}

/// A session in use. It is not idle while one of these is there.
pub(super) struct Lease(Arc<Session>);

impl Session {
    /// Opens a session for this Chain. Says how the server at an address speaks, for the next time.
    pub(super) async fn open(
        means: Means,
        endpoint: &Endpoint,
        known: Transport,
        chain: &str,
    ) -> Result<(Self, Transport), McpError> {
        let patience = means.limits.answer;
        let (link, transport) = match endpoint.target() {
            Target::Command(command) => {
                let program = Program::start(command, means.limits.body, &means.tasks)?;
                (within(patience, begin(Link::Program(program))).await?, Transport::Auto)
            }
            Target::Http(url, configured) => {
                let wanted = if *configured == Transport::Auto { known } else { *configured };
                let client =
                    if endpoint.is_of_operator() { &means.operator } else { &means.client };
                let streamable = async || {
                    let link = Streamable::new(
                        client.clone(),
                        url.clone(),
                        endpoint.headers(),
                        means.limits.body,
                    );
                    within(patience, begin_streamable(link)).await
                };
                let legacy = async || {
                    let open =
                        Legacy::open(client.clone(), url, endpoint.headers(), means.limits.body);
                    within(patience, async { begin(Link::Legacy(open.await?)).await }).await
                };
                match wanted {
                    Transport::Sse => (legacy().await?, Transport::Sse),
                    Transport::Streamable => match streamable().await? {
                        Ok(link) => (link, Transport::Streamable),
                        Err(status) => return Err(McpError::Http(status)),
                    },
                    Transport::Auto => match streamable().await? {
                        Ok(link) => (link, Transport::Streamable),
                        Err(status) => {
                            let opened = legacy().await.map_err(|error| match error {
                                // It is neither; the first answer says more.
                                McpError::Http(_) | McpError::Invalid(_) => McpError::Http(status),
                                error => error,
                            });
                            (opened?, Transport::Sse)
                        }
                    },
                }
            }
        };
        let keeps_state = match &link {
            Link::Streamable(link) => link.has_session(),
            Link::Legacy(_) | Link::Program(_) => true,
        };
        let session = Self {
            link,
            chain: keeps_state.then(|| chain.to_owned()),
            next_id: AtomicU64::new(1),
            closed: CancellationToken::new(),
            in_use: AtomicUsize::new(0),
            last_used: Mutex::new(means.clock.now()),
            means,
        };
        Ok((session, transport))
    }

    /// Takes the session into use.
    pub(super) fn lease(self: &Arc<Self>) -> Lease {
        self.in_use.fetch_add(1, Ordering::Relaxed);
        Lease(self.clone())
    }

    /// Whether it can serve no more.
    pub(super) fn is_over(&self) -> bool {
        self.closed.is_cancelled()
            || match &self.link {
                Link::Streamable(_) => false,
                Link::Legacy(link) => link.is_over(),
                Link::Program(link) => link.is_over(),
            }
    }

    /// Since when nobody uses it; `None` while somebody does.
    pub(super) fn idle_since(&self) -> Option<OffsetDateTime> {
        (self.in_use.load(Ordering::Relaxed) == 0)
            .then(|| *self.last_used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends it: who waits is told, then the server.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        let parting = async {
            match &self.link {
                Link::Streamable(link) => link.close().await,
                Link::Legacy(link) => {
                    link.close().await;
                    Ok(())
                }
                Link::Program(link) => {
                    link.close().await;
                    Ok(())
                }
            }
        };
        match tokio::time::timeout(PARTING.saturating_mul(2), parting).await {
            Ok(Ok(())) => (),
            Ok(Err(error)) => tracing::debug!(%error, "MCP session not ended by its server"),
            Err(_elapsed) => tracing::debug!("MCP server took too long to end a session"),
        }
    }

    async fn tell(&self, message: Vec<u8>) -> Result<(), McpError> {
        self.link.tell(message).await
    }
}

impl Lease {
    /// Asks and waits. When the future is dropped, the server is told that nobody waits any more.
    pub(super) async fn ask(
        &self,
        method: &str,
        params: &(impl Serialize + Sync),
    ) -> Result<Raw, McpError> {
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let message = rpc::request(id, method, params);
        let mut waiting = Waiting { session: Some(self.0.clone()), id };
        let outcome = tokio::select! {
            biased;
            () = self.0.closed.cancelled() => Err(McpError::Closed),
            outcome = self.0.link.ask(id, message) => outcome,
        };
        waiting.session = None;
        outcome
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.0
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let now = self.0.means.clock.now();
        *self.0.last_used.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.0.in_use.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A question that somebody waits for; when it is dropped before its end, the server is told.
struct Waiting {
    session: Option<Arc<Session>>,
    id: u64,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Cancelled<'a> {
            request_id: u64,
            reason: &'a str,
        }
        let Some(session) = self.session.take() else { return };
        let params =
            Cancelled { request_id: self.id, reason: "nobody waits for the answer any more" };
        let message = rpc::notification("notifications/cancelled", &params);
        let tasks = session.means.tasks.clone();
        let lease = session.lease();
        tasks.spawn(async move {
            let told = tokio::time::timeout(PARTING, lease.session().tell(message)).await;
            if !matches!(told, Ok(Ok(()))) {
                tracing::debug!("MCP server not told that a call is cancelled");
            }
        });
    }
}

impl Link {
    async fn ask(&self, id: u64, message: Vec<u8>) -> Result<Raw, McpError> {
        match self {
            Self::Streamable(link) => link.ask(id, message).await,
            Self::Legacy(link) => link.ask(id, message).await,
            Self::Program(link) => link.ask(id, message).await,
        }
    }

    async fn tell(&self, message: Vec<u8>) -> Result<(), McpError> {
        match self {
            Self::Streamable(link) => link.tell(message).await,
            Self::Legacy(link) => link.tell(message).await,
            Self::Program(link) => link.tell(message).await,
        }
    }
}

/// The handshake over a link that has nothing to say about it. Its id is 0; others count from 1.
async fn begin(link: Link) -> Result<Link, McpError> {
    let answer = link.ask(0, hello()).await?;
    protocol_version(&answer)?;
    link.tell(welcome()).await?;
    Ok(link)
}

/// The handshake over HTTP; the inner error is a status that says "not this transport".
async fn begin_streamable(mut link: Streamable) -> Result<Result<Link, u16>, McpError> {
    let answer = match link.begin(0, hello()).await? {
        First::Answered(answer) => answer,
        First::NotThisTransport(status) => return Ok(Err(status)),
    };
    link.speak(&protocol_version(&answer)?)?;
    link.tell(welcome()).await?;
    Ok(Ok(Link::Streamable(link)))
}

fn hello() -> Vec<u8> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Hello<'a> {
        protocol_version: &'a str,
        capabilities: Nothing,
        client_info: Client<'a>,
    }
    #[derive(Serialize)]
    struct Client<'a> {
        name: &'a str,
        version: &'a str,
    }
    let client_info = Client { name: "antiphon", version: env!("CARGO_PKG_VERSION") };
    rpc::request(
        0,
        "initialize",
        &Hello { protocol_version: PROTOCOL_VERSION, capabilities: Nothing {}, client_info },
    )
}

#[derive(Serialize)]
struct Nothing {}

fn welcome() -> Vec<u8> {
    rpc::notification("notifications/initialized", &Nothing {})
}

/// The version that the server speaks. Newer ones than ours are taken as they are: tools are listed and called the same way in all.
fn protocol_version(answer: &Raw) -> Result<String, McpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Welcome {
        protocol_version: String,
    }
    const LONGEST: usize = 64;
    match answer.to::<Welcome>() {
        Ok(Welcome { protocol_version }) if protocol_version.len() <= LONGEST => {
            Ok(protocol_version)
        }
        _ => Err(McpError::invalid("its handshake names no protocol version")),
    }
}

/// Waits so long, and no longer.
pub(super) async fn within<T>(
    limit: Duration,
    future: impl Future<Output = Result<T, McpError>>,
) -> Result<T, McpError> {
    tokio::time::timeout(limit, future)
        .await
        .unwrap_or_else(|_elapsed| Err(McpError::Timeout(limit.as_secs().max(1))))
}
