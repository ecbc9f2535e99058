//! The sessions of this process: who gets which, how many, how long.

mod limits;
mod state;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures::{FutureExt as _, future::join_all};
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::{
    clock::Clock,
    net::{self, Allow, BuildError, GuardedSettings, Policy},
    protocol::Raw,
    tasks::Tasks,
};

use self::state::{Key, MEMORY, Opening, Slot, State};
use super::{
    CallResult, Endpoint, McpError, Scope, ToolList, Transport,
    session::{Lease, Means, Session, within},
    tools,
};

pub use limits::Limits;

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(30);
/// A silence on a connection that no limit of ours would allow.
const LONGEST_SILENCE: Duration = Duration::from_hours(24);

/// A call of a tool.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tool's name on its server.
    pub name: &'a str,
    /// A JSON object; it is sent byte for byte.
    pub arguments: &'a Raw,
    /// How long it may take; `None`: [`Limits::call`].
    pub limit: Option<Duration>,
}

/// Numbers of a pool, for metrics and tests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Sessions that are open.
    pub open: usize,
    /// Sessions that are being opened.
    pub opening: usize,
    /// Sessions that were ever opened.
    pub opened: u64,
}

/// The sessions with all MCP servers. Cheap to clone.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    means: Means,
    state: Mutex<State>,
}

impl Pool {
    /// A pool that reaches what `policy` lets it, and for endpoints of the operator also what `operators` lists
    /// ([`Connectors::places`](super::Connectors::places)). Must be called inside a runtime; its one task ends with `tasks`.
    pub fn new(
        policy: Policy,
        operators: Vec<Allow>,
        clock: Clock,
        tasks: Tasks,
        limits: Limits,
    ) -> Result<Self, BuildError> {
        let client = |policy| {
            net::guarded(GuardedSettings {
                connect_timeout: limits.connect,
                // A call may be silent for as long as it may take.
                read_timeout: LONGEST_SILENCE,
                ..GuardedSettings::new(policy)
            })
        };
        let allow = policy.allow.iter().cloned().chain(operators).collect();
        let operator = client(Policy { allow, ..policy.clone() })?;
        let means = Means { client: client(policy)?, operator, clock, tasks, limits };
        let inner = Arc::new(Inner { means, state: Mutex::default() });
        inner.means.tasks.spawn(keep(Arc::downgrade(&inner), inner.means.tasks.clone()));
        Ok(Self { inner })
    }

    /// How long a call may take unless its caller says otherwise.
    pub fn call_limit(&self) -> Duration {
        self.inner.means.limits.call
    }

    /// All tools of a server.
    #[tracing::instrument(name = "mcp.list_tools", skip_all, fields(server = endpoint.name()))]
    pub async fn list_tools(
        &self,
        endpoint: &Endpoint,
        scope: &Scope,
    ) -> Result<Arc<ToolList>, McpError> {
        let _turn = self.turn(endpoint, scope).await?;
        let limits = &self.inner.means.limits;
        let mut list = tools::Pages::new(limits.tools, limits.list);
        loop {
            let params = list.next();
            let page = self.ask(endpoint, scope, "tools/list", &params);
            let page = within(limits.answer, page).await?;
            if let Some(whole) = list.add(&masked(endpoint, page))? {
                return Ok(Arc::new(whole));
            }
        }
    }

    /// Calls a tool. Dropping the future cancels the call, also at the server. What the tool itself calls an error is a result.
    #[tracing::instrument(name = "mcp.call_tool", skip_all, fields(server = endpoint.name(), tool = call.name))]
    pub async fn call_tool(
        &self,
        endpoint: &Endpoint,
        scope: &Scope,
        call: Call<'_>,
    ) -> Result<CallResult, McpError> {
        #[derive(Serialize)]
        struct Params<'a> {
            name: &'a str,
            arguments: &'a Raw,
        }
        let _turn = self.turn(endpoint, scope).await?;
        let params = Params { name: call.name, arguments: call.arguments };
        let limit = call.limit.unwrap_or(self.inner.means.limits.call);
        let result = within(limit, self.ask(endpoint, scope, "tools/call", &params)).await?;
        CallResult::read(&masked(endpoint, result))
    }

    /// Closes the sessions of a Chain.
    pub async fn close_chain(&self, tenant: &str, chain: &str) {
        self.inner
            .close_where(|key, _| key.tenant == tenant && key.chain.as_deref() == Some(chain))
            .await;
    }

    /// Closes the sessions that nobody has used for [`Limits::idle`], and forgets what is old. Also done by itself, every half minute.
    pub async fn sweep(&self) {
        self.inner.sweep().await;
    }

    /// Closes all sessions; from now on there are none.
    pub async fn shutdown(&self) {
        self.inner.state().closing = true;
        self.inner.close_where(|_, _| true).await;
        let opening: Vec<Opening> = self
            .inner
            .state()
            .slots
            .values()
            .filter_map(|slot| match slot {
                Slot::Opening(opening) => Some(opening.clone()),
                Slot::Open(_) => None,
            })
            .collect();
        // Each sees that we are closing and ends what it has opened.
        join_all(opening).await;
    }

    /// Its numbers.
    pub fn stats(&self) -> Stats {
        let state = self.inner.state();
        let open = state.slots.values().filter(|slot| matches!(slot, Slot::Open(_))).count();
        Stats { open, opening: state.slots.len() - open, opened: state.opened }
    }

    /// Waits for a place among the questions to this server.
    async fn turn(
        &self,
        endpoint: &Endpoint,
        scope: &Scope,
    ) -> Result<tokio::sync::OwnedSemaphorePermit, McpError> {
        let gate = {
            let mut state = self.inner.state();
            let gate = state.gates.entry((endpoint.place(), scope.tenant.clone()));
            let places = self.inner.means.limits.parallel.max(1);
            gate.or_insert_with(|| Arc::new(Semaphore::new(places))).clone()
        };
        gate.acquire_owned().await.map_err(|_| McpError::Closed)
    }

    /// Asks in the session of this scope; renews it once when the server has dropped it.
    async fn ask<P: Serialize + Sync>(
        &self,
        endpoint: &Endpoint,
        scope: &Scope,
        method: &str,
        params: &P,
    ) -> Result<Raw, McpError> {
        let lease = self.session(endpoint, scope).await?;
        match lease.ask(method, params).await.map_err(|error| masked_error(endpoint, error)) {
            Err(McpError::Expired) => self.inner.forget(lease.session()),
            outcome => return outcome,
        }
        let lease = self.session(endpoint, scope).await?;
        match lease.ask(method, params).await.map_err(|error| masked_error(endpoint, error)) {
            Err(McpError::Expired) => {
                self.inner.forget(lease.session());
                Err(McpError::SessionLost)
            }
            outcome => outcome,
        }
    }

    /// The session of this scope, opened if there is none.
    async fn session(&self, endpoint: &Endpoint, scope: &Scope) -> Result<Lease, McpError> {
        loop {
            let (opening, evicted) = {
                let mut state = self.inner.state();
                if state.closing {
                    return Err(McpError::Closed);
                }
                let key = state.key(endpoint, scope);
                match state.slots.get(&key) {
                    Some(Slot::Open(session)) if !session.is_over() => return Ok(session.lease()),
                    Some(Slot::Opening(opening)) => (opening.clone(), None),
                    Some(Slot::Open(_)) | None => {
                        let evicted = state.make_room(self.inner.means.limits.sessions)?;
                        let opening = self.inner.open(&state, &key, endpoint, scope);
                        let old = state.slots.insert(key, Slot::Opening(opening.clone()));
                        (opening, evicted.or_else(|| old.and_then(Slot::into_session)))
                    }
                }
            };
            if let Some(session) = evicted {
                self.inner.means.tasks.spawn(async move { session.close().await });
            }
            let session = opening.await.map_err(|error| masked_error(endpoint, error))?;
            // Who waited for the first handshake with a server learns here that each Chain needs its own.
            if session.chain.as_ref().is_none_or(|chain| *chain == scope.chain) {
                return Ok(session.lease());
            }
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to open a session. It goes on when all who wait for it have gone, so that no half-open one is left at the server.
    fn open(
        self: &Arc<Self>,
        state: &State,
        key: &Key,
        endpoint: &Endpoint,
        scope: &Scope,
    ) -> Opening {
        let transport =
            state.known.get(&endpoint.place()).map_or(Transport::Auto, |known| known.transport);
        let (inner, key, endpoint) = (self.clone(), key.clone(), endpoint.clone());
        let chain = scope.chain.clone();
        let task = self.means.tasks.spawn(async move {
            let opened = Session::open(inner.means.clone(), &endpoint, transport, &chain).await;
            inner.opened(&key, &endpoint, opened).await
        });
        task.map(|ended| ended.unwrap_or(Err(McpError::Closed))).boxed().shared()
    }

    /// Puts a session where it belongs, once it is known whether it is its Chain's.
    async fn opened(
        &self,
        key: &Key,
        endpoint: &Endpoint,
        opened: Result<(Session, Transport), McpError>,
    ) -> Result<Arc<Session>, McpError> {
        let (session, transport) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let mut state = self.state();
                state.slots.remove(key);
                // What was remembered may be what is wrong.
                state.known.remove(&endpoint.place());
                tracing::info!(server = endpoint.name(), %error, "MCP session not opened");
                return Err(error);
            }
        };
        let session = Arc::new(session);
        let replaced = {
            let mut state = self.state();
            state.slots.remove(key);
            if state.closing {
                Some(session.clone())
            } else {
                state.opened += 1;
                state.remember(endpoint.place(), transport, &session, self.means.clock.now());
                let key = Key { chain: session.chain.clone(), ..key.clone() };
                let old = state.slots.insert(key, Slot::Open(session.clone()));
                old.and_then(Slot::into_session)
            }
        };
        match replaced {
            Some(closed) => {
                closed.close().await;
                if Arc::ptr_eq(&closed, &session) { Err(McpError::Closed) } else { Ok(session) }
            }
            None => Ok(session),
        }
    }

    /// Forgets a session that its server has dropped.
    fn forget(&self, dropped: &Arc<Session>) {
        self.state().slots.retain(
            |_, slot| !matches!(slot, Slot::Open(session) if Arc::ptr_eq(session, dropped)),
        );
    }

    async fn sweep(&self) {
        let now = self.means.clock.now();
        let idle = self.means.limits.idle;
        self.close_where(|_, session| {
            session.is_over() || session.idle_since().is_some_and(|since| since + idle <= now)
        })
        .await;
        let mut state = self.state();
        state.known.retain(|_, known| now < known.since + MEMORY);
        state.gates.retain(|_, gate| Arc::strong_count(gate) > 1);
    }

    async fn close_where(&self, closes: impl Fn(&Key, &Session) -> bool) {
        let mut closing = Vec::new();
        self.state().slots.retain(|key, slot| match slot {
            Slot::Open(session) if closes(key, session) => {
                closing.push(session.clone());
                false
            }
            Slot::Open(_) | Slot::Opening(_) => true,
        });
        join_all(closing.iter().map(|session| session.close())).await;
    }
}

/// Sweeps as long as the pool is there and nothing stops.
async fn keep(pool: Weak<Inner>, tasks: Tasks) {
    let stopping = tasks.stopping();
    while tokio::time::timeout(SWEEP, stopping.cancelled()).await.is_err() {
        let Some(pool) = pool.upgrade() else { return };
        pool.sweep().await;
    }
}

fn masked(endpoint: &Endpoint, raw: Raw) -> Raw {
    match endpoint.mask(raw.json()) {
        std::borrow::Cow::Borrowed(_) => raw,
        // Inside a text the mask is text; elsewhere a secret does not stand in JSON.
        std::borrow::Cow::Owned(text) => Raw::parse(&text).unwrap_or_else(|_| Raw::null()),
    }
}

fn masked_error(endpoint: &Endpoint, error: McpError) -> McpError {
    match error {
        McpError::Rpc { code, message } => {
            McpError::Rpc { code, message: endpoint.mask(&message).into_owned() }
        }
        error => error,
    }
}
