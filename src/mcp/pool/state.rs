//! What a pool knows. Nothing here waits.

use std::{collections::HashMap, sync::Arc};

use futures::future::{BoxFuture, Shared};
use time::OffsetDateTime;
use tokio::sync::Semaphore;

use super::super::{Endpoint, McpError, Scope, Transport, endpoint::Digest, session::Session};

/// How long it is remembered how a server speaks.
pub(super) const MEMORY: time::Duration = time::Duration::HOUR;
/// Of so many servers.
const MOST_REMEMBERED: usize = 10_000;

/// All of it, behind one lock.
#[derive(Default)]
pub(super) struct State {
    pub(super) closing: bool,
    pub(super) opened: u64,
    pub(super) slots: HashMap<Key, Slot>,
    pub(super) known: HashMap<Digest, Known>,
    pub(super) gates: HashMap<(Digest, String), Arc<Semaphore>>,
}

/// Whose session it is. Without a Chain it is shared, or nobody knows yet whether it can be.
#[derive(Clone, Eq, Hash, PartialEq)]
pub(super) struct Key {
    pub(super) endpoint: Digest,
    pub(super) tenant: String,
    pub(super) user: String,
    pub(super) chain: Option<String>,
}

/// A session, or one that is being opened.
pub(super) enum Slot {
    Opening(Opening),
    Open(Arc<Session>),
}

pub(super) type Opening = Shared<BoxFuture<'static, Result<Arc<Session>, McpError>>>;

/// What is remembered of a server.
pub(super) struct Known {
    pub(super) transport: Transport,
    pub(super) per_chain: bool,
    pub(super) since: OffsetDateTime,
}

impl State {
    /// Where the session of this scope is, or will be looked for.
    pub(super) fn key(&self, endpoint: &Endpoint, scope: &Scope) -> Key {
        let per_chain = self.known.get(&endpoint.place()).is_some_and(|known| known.per_chain);
        Key {
            endpoint: endpoint.whole(),
            tenant: scope.tenant.clone(),
            user: scope.user.clone(),
            chain: per_chain.then(|| scope.chain.clone()),
        }
    }

    /// Makes room for one more session: takes out the one that is idle for longest, when there are too many.
    pub(super) fn make_room(&mut self, most: usize) -> Result<Option<Arc<Session>>, McpError> {
        if self.slots.len() < most {
            return Ok(None);
        }
        let oldest = self
            .slots
            .iter()
            .filter_map(|(key, slot)| match slot {
                Slot::Open(session) => Some((session.idle_since()?, key)),
                Slot::Opening(_) => None,
            })
            .min_by_key(|(since, _)| *since)
            .map(|(_, key)| key.clone());
        let slot = oldest.and_then(|key| self.slots.remove(&key)).ok_or(McpError::Busy)?;
        Ok(slot.into_session())
    }

    pub(super) fn remember(
        &mut self,
        place: Digest,
        transport: Transport,
        session: &Session,
        now: OffsetDateTime,
    ) {
        if self.known.len() >= MOST_REMEMBERED {
            self.known.clear();
        }
        let per_chain = session.chain.is_some();
        let known = self.known.entry(place).or_insert(Known { transport, per_chain, since: now });
        known.per_chain = per_chain;
        if known.transport != transport || known.since + MEMORY <= now {
            *known = Known { transport, per_chain, since: now };
        }
    }
}

impl Slot {
    pub(super) fn into_session(self) -> Option<Arc<Session>> {
        match self {
            Self::Open(session) => Some(session),
            Self::Opening(_) => None,
        }
    }
}
