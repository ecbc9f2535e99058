//! SHELL: who asks. A key or a token becomes a [`Principal`]; nothing in a body ever does.

pub mod keys;
pub mod oidc;

use std::{sync::Arc, time::Duration};

use moka::future::Cache;
use sqlx::PgPool;

use self::oidc::Oidc;
use crate::{
    clock::Clock,
    protocol::{ApiError, ErrorKind, Principal},
    store::{self, keys::KeyRow},
};

/// How long a key that was looked up is believed: what a revocation takes to be felt.
const BELIEF: Duration = Duration::from_secs(10);

/// The gate that every request passes.
#[derive(Clone)]
pub struct Gate {
    pool: PgPool,
    clock: Clock,
    /// Whether anyone may pass without a key, even when there are keys.
    open: bool,
    /// Names the header in which a delegate's key may say for which user it asks.
    trusted_user_header: Option<String>,
    /// Whose tokens are accepted besides keys.
    oidc: Option<Oidc>,
    known: Cache<keys::Digest, Option<Arc<KeyRow>>>,
    /// Whether there are keys at all.
    guarded: Cache<(), bool>,
}

impl Gate {
    /// A gate before the keys in this database.
    pub fn new(
        pool: PgPool,
        clock: Clock,
        open: bool,
        trusted_user_header: Option<String>,
    ) -> Self {
        let known = Cache::builder().max_capacity(10_000).time_to_live(BELIEF).build();
        let guarded = Cache::builder().max_capacity(1).time_to_live(BELIEF).build();
        Self { pool, clock, open, trusted_user_header, oidc: None, known, guarded }
    }

    /// Accepts the tokens of an identity provider too. Then nobody passes without a key or a token, even when there are no keys.
    #[must_use]
    pub fn with_oidc(self, oidc: Oidc) -> Self {
        Self { oidc: Some(oidc), ..self }
    }

    /// The header in which a delegate's key may name a user.
    pub fn trusted_user_header(&self) -> Option<&str> {
        self.trusted_user_header.as_deref()
    }

    /// Whether a key is needed: there is one, and the gate is not open.
    pub async fn is_guarded(&self) -> Result<bool, ApiError> {
        if self.open {
            return Ok(false);
        }
        if self.oidc.is_some() {
            return Ok(true);
        }
        if let Some(guarded) = self.guarded.get(&()).await {
            return Ok(guarded);
        }
        let guarded = store::keys::any(&self.pool).await?;
        self.guarded.insert((), guarded).await;
        Ok(guarded)
    }

    /// Who asks with this bearer token, or without any. `as_user` is what the trusted user header says.
    pub async fn principal(
        &self,
        token: Option<&str>,
        as_user: Option<&str>,
    ) -> Result<Principal, ApiError> {
        if !self.is_guarded().await? {
            return Ok(Principal::local());
        }
        let Some(token) = token else {
            return Err(unauthorized(
                "You didn't provide an API key. Send it in the header `Authorization: Bearer KEY`.",
            ));
        };
        if let Some(oidc) = &self.oidc
            && Oidc::looks_like_token(token)
        {
            if as_user.is_some() {
                return Err(not_a_delegate("This token"));
            }
            return oidc.principal(token).await;
        }
        let key = self.key(token).await?.ok_or_else(|| {
            unauthorized("Incorrect API key provided. Make one with `antiphon keys new`.")
        })?;
        if !key.is_valid_at(self.clock.now()) {
            return Err(unauthorized("This API key is expired or revoked."));
        }
        let user_id = match as_user {
            Some(user) if key.delegate => user.to_owned(),
            Some(_) => {
                return Err(not_a_delegate("This API key"));
            }
            None => key.user_id.clone(),
        };
        Ok(Principal { tenant_id: key.tenant_id.clone(), user_id, groups: key.groups.clone() })
    }

    async fn key(&self, token: &str) -> Result<Option<Arc<KeyRow>>, ApiError> {
        let digest = keys::digest(token);
        if let Some(known) = self.known.get(&digest).await {
            return Ok(known);
        }
        let found = store::keys::find_by_hash(&self.pool, &digest).await?.map(Arc::new);
        self.known.insert(digest, found.clone()).await;
        Ok(found)
    }
}

fn not_a_delegate(what: &str) -> ApiError {
    ApiError::new(ErrorKind::Permission, format!("{what} may not ask for other users."))
}

fn unauthorized(message: &str) -> ApiError {
    ApiError::new(ErrorKind::Authentication, message).code("invalid_api_key")
}
