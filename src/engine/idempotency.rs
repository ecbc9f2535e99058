//! `Idempotency-Key`: the same request runs once.

use time::Duration;

use crate::{
    protocol::{ApiError, ErrorKind, Principal, Raw},
    store::idempotency::{self, Claim},
};

use super::Engine;

/// How long a key is remembered.
pub const MEMORY: Duration = Duration::hours(24);

/// A key with the digest of the body it came with.
#[derive(Clone, Debug)]
pub struct Key {
    /// The user, and the header's value.
    pub key: String,
    /// SHA-256 of the body.
    pub digest: Vec<u8>,
}

impl Key {
    /// The key of a user's request: another user's same words are another key.
    pub fn new(user_id: &str, key: &str, body: &[u8]) -> Self {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body);
        Self { key: format!("{user_id}/{key}"), digest: digest.as_ref().to_vec() }
    }

    /// Claims the key for a Response. `Some` is the Response that the same request had before.
    pub(super) async fn claim(
        &self,
        engine: &Engine,
        principal: &Principal,
        response_id: &str,
    ) -> Result<Option<Raw>, ApiError> {
        let parts = engine.parts();
        let now = parts.clock.now();
        let claim = idempotency::claim(
            &parts.pool,
            &principal.tenant_id,
            &self.key,
            &self.digest,
            response_id,
            now,
            now - MEMORY,
        )
        .await?;
        match claim {
            Claim::Ours => Ok(None),
            Claim::Done(body) => Ok(Some(body)),
            Claim::Running => Err(ApiError::new(
                ErrorKind::Conflict,
                "A request with this Idempotency-Key is running, or its client went away before it ended. Use a new key to run it again.",
            )
            .code("idempotency_key_in_use")),
            Claim::OtherBody => Err(ApiError::new(
                ErrorKind::InvalidRequest,
                "This Idempotency-Key was used with another body. Use a new key for a new request.",
            )
            .code("idempotency_key_reused")),
        }
    }

    /// Forgets the key of a request that was refused before it ran.
    pub(super) async fn release(&self, engine: &Engine, principal: &Principal, response_id: &str) {
        let pool = &engine.parts().pool;
        let released =
            idempotency::release(pool, &principal.tenant_id, &self.key, response_id).await;
        if let Err(error) = released {
            tracing::warn!(%error, "an idempotency key stays claimed for a day");
        }
    }
}
