//! Which headers a request to an MCP server carries, and who may set them. Pure.

use std::fmt;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::config::Secret;

/// Headers that a request carries besides those of the transport. Debug output shows names only.
#[derive(Clone, Default)]
pub struct Headers(HeaderMap);

/// A header as somebody gave it.
pub type Given = (String, Secret);

/// Merged headers, and what was not taken.
#[derive(Debug, Default)]
pub struct Merged {
    /// What is sent.
    pub headers: Headers,
    /// Names from the request that nobody but the transport may set, or that cannot be sent. For the log; values never are.
    pub refused: Vec<String>,
}

/// Names that the transport, the connection or the body own.
const NOT_YOURS: [&str; 14] = [
    "accept",
    "accept-encoding",
    "connection",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Puts together what the request, the connector and `authorization` say: later wins, names compare without case.
pub fn merge(request: &[Given], connector: &[Given], authorization: Option<&Secret>) -> Merged {
    let mut merged = Merged::default();
    for (name, value) in request.iter().chain(connector) {
        match readable(name, value) {
            Some((known, value)) if may_be_given(&known) => {
                merged.headers.0.insert(known, value);
            }
            _ => merged.refused.push(name.clone()),
        }
    }
    if let Some(token) = authorization {
        match authorization_value(token) {
            Some(value) => _ = merged.headers.0.insert(AUTHORIZATION, value),
            None => merged.refused.push(AUTHORIZATION.to_string()),
        }
    }
    merged
}

/// What is wrong with a header that somebody gives, as the end of a sentence about it.
pub fn fault(name: &str, value: &Secret) -> Option<&'static str> {
    if HeaderName::try_from(name).is_err() {
        return Some("its name cannot be the name of a header");
    }
    (HeaderValue::try_from(value.expose()).is_err())
        .then_some("its value cannot be sent: it holds a control character")
}

/// Whether a token can be sent in the header `Authorization`.
pub fn can_authorize(token: &Secret) -> bool {
    authorization_value(token).is_some()
}

/// `Bearer TOKEN`, unless the token names its scheme.
fn authorization_value(token: &Secret) -> Option<HeaderValue> {
    let token = token.expose().trim();
    let has_scheme = token.split_once(' ').is_some_and(|(scheme, rest)| {
        !rest.trim().is_empty() && scheme.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-')
    });
    let text = if has_scheme { token.to_owned() } else { format!("Bearer {token}") };
    if token.is_empty() {
        return None;
    }
    sensitive(&text)
}

/// Whether the name of a header says that its value is a secret.
pub fn tells_secret(name: &HeaderName) -> bool {
    const TELLING: [&str; 8] =
        ["auth", "key", "token", "secret", "cookie", "password", "session", "credential"];
    TELLING.iter().any(|word| name.as_str().contains(word))
}

fn readable(name: &str, value: &Secret) -> Option<(HeaderName, HeaderValue)> {
    Some((HeaderName::try_from(name).ok()?, sensitive(value.expose())?))
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn may_be_given(name: &HeaderName) -> bool {
    let name = name.as_str();
    !(NOT_YOURS.contains(&name) || name.starts_with("content-") || name.starts_with("mcp-"))
}

impl Headers {
    /// As a request takes them.
    pub(super) fn map(&self) -> &HeaderMap {
        &self.0
    }

    /// Their names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Values that must not be seen when a server reflects them: the token, and what the name says is one. Others (`x-env: prod`) are
    /// words like any, and hiding them would damage answers.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        const SHORTEST: usize = 6;
        let mut secrets = Vec::new();
        for (name, value) in &self.0 {
            let Ok(value) = value.to_str() else { continue };
            if !tells_secret(name) {
                continue;
            }
            // The token without its scheme too, for that is what a server would show.
            let bare = value.split_once(' ').map_or(value, |(_, token)| token.trim());
            if bare.len() >= SHORTEST {
                secrets.push(Secret::from(bare.to_owned()));
            }
        }
        secrets
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
#[path = "headers_tests.rs"]
mod tests;
