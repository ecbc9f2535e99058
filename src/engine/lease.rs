//! The lock of a conversation, held while a Response runs: renewed beside it, given back when it ends or is dropped.

use time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    protocol::{ApiError, Principal},
    store::conversations::{self, Lock},
};

use super::Engine;

/// How long a lease lasts when nobody renews it: what a crash costs those who wait.
const LEASE: Duration = Duration::seconds(60);
/// How often it is renewed.
const RENEWAL: std::time::Duration = std::time::Duration::from_secs(20);

/// A conversation that is ours to write into. Dropping it gives the lock back.
#[derive(Debug)]
pub struct Lease {
    _released_on_drop: DropGuard,
}

impl Lease {
    /// Locks a conversation for a Response.
    pub async fn take(
        engine: &Engine,
        principal: &Principal,
        conversation_id: &str,
        response_id: &str,
    ) -> Result<Self, ApiError> {
        let parts = engine.parts();
        let now = parts.clock.now();
        let viewer = parts.rules.viewer(principal);
        let lock = conversations::lock(
            &parts.pool,
            viewer,
            conversation_id,
            response_id,
            now,
            now + LEASE,
        )
        .await?;
        match lock {
            Lock::Ours => Ok(Self::keep(engine, conversation_id, response_id)),
            Lock::Taken => Err(locked()),
            Lock::Absent => Err(absent(conversation_id)),
        }
    }

    fn keep(engine: &Engine, conversation_id: &str, response_id: &str) -> Self {
        let released = CancellationToken::new();
        let guard = released.clone().drop_guard();
        let keeper = engine.clone();
        let (conversation_id, response_id) = (conversation_id.to_owned(), response_id.to_owned());
        engine.parts().tasks.spawn(async move {
            let parts = keeper.parts();
            while tokio::time::timeout(RENEWAL, released.cancelled()).await.is_err() {
                let until = parts.clock.now() + LEASE;
                let renewed =
                    conversations::renew(&parts.pool, &conversation_id, &response_id, until).await;
                if !matches!(renewed, Ok(true)) {
                    tracing::warn!(conversation = %conversation_id, ?renewed, "the lock of a conversation could not be renewed");
                }
            }
            // Where the Response was committed the lock is gone already, and this does nothing.
            if let Err(error) =
                conversations::unlock(&parts.pool, &conversation_id, &response_id).await
            {
                tracing::warn!(conversation = %conversation_id, %error, "the lock of a conversation runs out by itself");
            }
        });
        Self { _released_on_drop: guard }
    }
}

/// Another Response is writing into the conversation. 400 as OpenAI says, because SDKs would repeat a 409 by themselves.
pub fn locked() -> ApiError {
    ApiError::invalid(
        "conversation",
        "Another process is currently operating on this conversation. Please retry in a few seconds.",
    )
    .code("conversation_locked")
}

/// No such conversation, or not theirs.
pub fn absent(id: &str) -> ApiError {
    ApiError::not_found(format!("Conversation with id '{id}' not found.")).param("conversation")
}
