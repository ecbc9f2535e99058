//! Tokens of an identity provider (OpenID Connect): `[auth.oidc]`.
//!
//! A token counts when a key of the provider signed it, it was made for our audience by our issuer, and its time is not over. Only
//! asymmetric algorithms are believed, so that a public key can never be taken for a shared secret. What is wrong with a token is told to
//! its owner, the token itself is repeated nowhere.

mod keyring;

use std::sync::Arc;

use jsonwebtoken::{Algorithm, Validation, decode, decode_header, errors::ErrorKind as JwtError};
use serde_json::{Map, Value};

use crate::{
    clock::Clock,
    config,
    net::{self, TrustedSettings},
    protocol::{ApiError, ErrorKind, Principal},
};

use self::keyring::Keyring;

/// How far clocks may be apart, in seconds.
const LEEWAY: i64 = 60;
/// The tenant of tokens when none of their claims names one.
const DEFAULT_TENANT: &str = "default";
/// The algorithms that are believed.
const ALGORITHMS: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// An identity provider. Cheap to clone.
#[derive(Clone)]
pub struct Oidc {
    inner: Arc<Provider>,
}

struct Provider {
    settings: config::Oidc,
    keyring: Keyring,
    clock: Clock,
}

impl Oidc {
    /// The provider of these settings. It is asked for its keys when the first token comes.
    pub fn new(settings: config::Oidc, clock: Clock) -> Result<Self, net::BuildError> {
        let client = net::trusted(TrustedSettings::default())?;
        let keyring =
            Keyring::new(client, settings.issuer.clone(), settings.jwks_url.clone(), clock.clone());
        Ok(Self { inner: Arc::new(Provider { settings, keyring, clock }) })
    }

    /// Whether a bearer token looks like one of a provider: three parts, the first of them a JSON header.
    pub fn looks_like_token(token: &str) -> bool {
        token.matches('.').count() == 2 && token.starts_with("ey")
    }

    /// Who asks with this token.
    pub async fn principal(&self, token: &str) -> Result<Principal, ApiError> {
        let Provider { settings, keyring, clock } = &*self.inner;
        let header = decode_header(token)
            .map_err(|_| refused("It is no signed token of a kind that is accepted."))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(refused("Its signature algorithm is not accepted."));
        }
        let keys = keyring.keys(header.kid.as_deref(), header.alg).await?;
        if keys.is_empty() {
            return Err(refused(
                "It was signed with a key that the identity provider does not have.",
            ));
        }
        let mut validation = Validation::new(header.alg);
        // Checked below, by our own clock and with sentences of our own.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.validate_aud = false;
        let claims = keys
            .iter()
            .find_map(|key| match decode::<Map<String, Value>>(token, key, &validation) {
                Ok(token) => Some(Ok(token.claims)),
                Err(error) => match error.kind() {
                    JwtError::InvalidSignature | JwtError::InvalidAlgorithm => None,
                    _ => Some(Err(refused("Its contents cannot be read."))),
                },
            })
            .unwrap_or_else(|| Err(refused("Its signature is wrong.")))?;
        principal(&claims, settings, clock.unix())
    }
}

/// Who a token with these claims, whose signature is right, stands for at `now`.
fn principal(
    claims: &Map<String, Value>,
    settings: &config::Oidc,
    now: i64,
) -> Result<Principal, ApiError> {
    let issuer = text(claims, "iss").unwrap_or_default();
    // A URL of nothing but a host is written with and without a slash.
    if issuer.trim_end_matches('/') != settings.issuer.as_str().trim_end_matches('/') {
        return Err(refused("It comes from another issuer."));
    }
    if !texts(claims.get("aud")).any(|audience| audience == settings.audience) {
        return Err(refused("It was made for another audience."));
    }
    let Some(expiry) = seconds(claims, "exp") else {
        return Err(refused("It has no expiry (`exp`)."));
    };
    if expiry.saturating_add(LEEWAY) <= now {
        return Err(refused("It has expired."));
    }
    let begins = if claims.contains_key("nbf") {
        seconds(claims, "nbf").ok_or_else(|| refused("Its `nbf` is no time."))?
    } else {
        i64::MIN
    };
    if begins.saturating_sub(LEEWAY) > now {
        return Err(refused("It is not valid yet."));
    }
    let user_id =
        text(claims, &settings.user_claim).ok_or_else(|| missing("user", &settings.user_claim))?;
    let tenant_id = match &settings.tenant_claim {
        None => DEFAULT_TENANT,
        Some(claim) => text(claims, claim).ok_or_else(|| missing("tenant", claim))?,
    };
    Ok(Principal {
        tenant_id: tenant_id.to_owned(),
        user_id: user_id.to_owned(),
        groups: texts(claims.get(&settings.group_claim)).map(str::to_owned).collect(),
    })
}

/// A claim that is a text, not an empty one.
fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// The texts of a claim that is one or a list of them.
fn texts(claim: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = match claim {
        Some(Value::Array(list)) => list.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    list.iter().filter_map(Value::as_str).filter(|text| !text.is_empty())
}

/// A claim that is a time, in seconds since 1970; providers write whole numbers and fractions.
fn seconds(claims: &Map<String, Value>, name: &str) -> Option<i64> {
    let value = claims.get(name)?;
    #[expect(clippy::cast_possible_truncation, reason = "saturates, and fractions do not matter")]
    value.as_i64().or_else(|| value.as_f64().map(|seconds| seconds as i64))
}

fn missing(what: &str, claim: &str) -> ApiError {
    refused(&format!("It names no {what} (claim `{claim}`)."))
}

fn refused(why: &str) -> ApiError {
    ApiError::new(ErrorKind::Authentication, format!("The bearer token is not accepted. {why}"))
        .code("invalid_token")
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
