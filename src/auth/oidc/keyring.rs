//! The provider's keys: fetched when needed, kept for a while, fetched again when a token names one that is not among them.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use jsonwebtoken::{
    Algorithm, DecodingKey,
    jwk::{AlgorithmParameters, Jwk, PublicKeyUse},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use time::OffsetDateTime;
use tokio::sync::Mutex;
use url::Url;

use crate::{
    clock::Clock,
    net::read_limited,
    protocol::{ApiError, ErrorKind},
};

/// How long keys are believed without asking again.
const FRESH: time::Duration = time::Duration::minutes(15);
/// How long keys are used when the provider cannot be asked.
const USABLE: time::Duration = time::Duration::hours(24);
/// How long the provider is left alone after it was asked: neither made-up key ids nor its own failure may make us flood it.
const REST: time::Duration = time::Duration::seconds(30);
/// The same while there are no keys at all, when nobody gets in.
const REST_WITHOUT_KEYS: time::Duration = time::Duration::seconds(5);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer, in bytes.
const LARGEST: usize = 1 << 20;
/// A token without key id is tried with so many keys at most.
const MOST_TRIES: usize = 8;

/// The provider's keys.
pub(super) struct Keyring {
    client: reqwest::Client,
    issuer: Url,
    jwks_url: Option<Url>,
    clock: Clock,
    held: RwLock<Option<Arc<Held>>>,
    /// When the provider was asked last; locked while it is asked, so that one asks for all.
    asked: Mutex<Option<OffsetDateTime>>,
}

/// Keys, and when they were fetched.
struct Held {
    keys: Vec<Key>,
    at: OffsetDateTime,
}

struct Key {
    id: Option<String>,
    algorithm: Option<String>,
    verifies: DecodingKey,
}

impl Keyring {
    pub(super) fn new(
        client: reqwest::Client,
        issuer: Url,
        jwks_url: Option<Url>,
        clock: Clock,
    ) -> Self {
        Self { client, issuer, jwks_url, clock, held: RwLock::default(), asked: Mutex::default() }
    }

    /// The keys that may have signed with this id and algorithm; empty when the provider has none.
    pub(super) async fn keys(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<Vec<DecodingKey>, ApiError> {
        let held = self.held();
        if let Some(held) = &held
            && self.clock.now() - held.at < FRESH
        {
            let keys = held.fitting(id, algorithm);
            if !keys.is_empty() {
                return Ok(keys);
            }
        }
        self.refresh(held.as_ref().map(|held| held.at)).await;
        match self.held() {
            Some(held) if self.clock.now() - held.at < USABLE => Ok(held.fitting(id, algorithm)),
            _ => Err(ApiError::new(
                ErrorKind::Unavailable,
                "The identity provider cannot be asked for its keys at the moment. Please try again shortly.",
            )
            .code("server_error")
            .retry_after(Duration::from_secs(5))),
        }
    }

    fn held(&self) -> Option<Arc<Held>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the provider, unless it was asked a moment ago or somebody got newer keys than `seen` meanwhile.
    async fn refresh(&self, seen: Option<OffsetDateTime>) {
        let mut asked = self.asked.lock().await;
        if self.held().map(|held| held.at) > seen {
            return;
        }
        let now = self.clock.now();
        let rest = if seen.is_some() { REST } else { REST_WITHOUT_KEYS };
        if asked.is_some_and(|asked| now - asked < rest) {
            return;
        }
        *asked = Some(now);
        match self.fetch().await {
            Ok(keys) => {
                tracing::info!(issuer = %self.issuer, count = keys.len(), "fetched the identity provider's keys");
                let held = Arc::new(Held { keys, at: now });
                *self.held.write().unwrap_or_else(PoisonError::into_inner) = Some(held);
            }
            Err(error) => {
                tracing::warn!(issuer = %self.issuer, %error, "the identity provider's keys could not be fetched");
            }
        }
    }

    async fn fetch(&self) -> anyhow::Result<Vec<Key>> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let set: Set = self.get(url).await?;
        // A key of a kind that nobody here knows is no reason to do without the others.
        let keys: Vec<Key> = set
            .keys
            .into_iter()
            .filter_map(|key| serde_json::from_value(key).ok())
            .filter_map(usable)
            .collect();
        anyhow::ensure!(!keys.is_empty(), "it has no key that could verify a token");
        Ok(keys)
    }

    /// Where the issuer says that its keys are.
    async fn discover(&self) -> anyhow::Result<Url> {
        #[derive(Deserialize)]
        struct Discovery {
            issuer: String,
            jwks_uri: String,
        }
        let issuer = self.issuer.as_str().trim_end_matches('/');
        let url = format!("{issuer}/.well-known/openid-configuration").parse()?;
        let found: Discovery = self.get(url).await?;
        anyhow::ensure!(
            found.issuer.trim_end_matches('/') == issuer,
            "its discovery document is of another issuer, `{}`",
            found.issuer
        );
        let url: Url = found.jwks_uri.parse()?;
        anyhow::ensure!(
            matches!(url.scheme(), "http" | "https"),
            "its `jwks_uri` is no web address"
        );
        Ok(url)
    }

    async fn get<T: DeserializeOwned>(&self, url: Url) -> anyhow::Result<T> {
        let response = self.client.get(url.clone()).timeout(PATIENCE).send().await?;
        let status = response.status();
        anyhow::ensure!(status.is_success(), "{url} answered {status}");
        let body = read_limited(response, LARGEST).await?;
        Ok(serde_json::from_slice(&body)?)
    }
}

impl Held {
    fn fitting(&self, id: Option<&str>, algorithm: Algorithm) -> Vec<DecodingKey> {
        self.keys
            .iter()
            .filter(|key| id.is_none() || key.id.as_deref() == id)
            .filter(|key| key.verifies.family() == algorithm.family())
            .filter(|key| key.algorithm.as_ref().is_none_or(|name| name.parse() == Ok(algorithm)))
            .take(MOST_TRIES)
            .map(|key| key.verifies.clone())
            .collect()
    }
}

/// A public key that is there to verify signatures. A shared secret in a public list is none.
fn usable(jwk: Jwk) -> Option<Key> {
    let secret = matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_));
    let other_use = jwk
        .common
        .public_key_use
        .as_ref()
        .is_some_and(|purpose| *purpose != PublicKeyUse::Signature);
    if secret || other_use {
        return None;
    }
    let verifies = DecodingKey::from_jwk(&jwk).ok()?;
    Some(Key {
        id: jwk.common.key_id,
        algorithm: jwk.common.key_algorithm.map(|algorithm| algorithm.to_string()),
        verifies,
    })
}
