//! What a request carries that only the server may give: the headers of the tool's definition, and a credential of the operator's.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use memchr::memmem;
use reqwest::{
    Request,
    header::{
        ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, EXPECT, HOST,
        HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE,
    },
};
use url::{Url, form_urlencoded};

use crate::{
    config::{ApiCredential, CredentialKind, Secret},
    mcp::headers::tells_secret,
};

use super::request::Prepared;

/// Headers of the connection and of the framing: nobody but the HTTP client sets them.
static OF_THE_CLIENT: [HeaderName; 10] = [
    HOST,
    CONNECTION,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    TE,
    TRAILER,
    UPGRADE,
    EXPECT,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
];

/// More headers that a model may not set: who speaks, and what is sent and wished for.
static OF_THE_SERVER: [HeaderName; 4] = [AUTHORIZATION, COOKIE, ACCEPT, CONTENT_TYPE];

/// Shorter values are not hidden in answers: they stand there by chance.
const SHORTEST_SECRET: usize = 6;

fn is_of_the_client(name: &HeaderName) -> bool {
    OF_THE_CLIENT.contains(name) || matches!(name.as_str(), "keep-alive" | "proxy-connection")
}

/// Whether a header parameter of a document is left out of what the model may fill.
pub(super) fn is_kept_from_models(name: &HeaderName) -> bool {
    is_of_the_client(name) || OF_THE_SERVER.contains(name)
}

/// The credential may not go where the operation is. The sentence is for the client.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "The credential `{name}` may not be sent to `{to}`; the server's configuration lists its hosts under `tools.openapi.credentials.{name}.hosts`."
)]
pub struct CredentialRefused {
    /// What it is called.
    pub name: String,
    /// Scheme, host and port that were to get it.
    pub to: String,
}

/// What is added to the requests of one tool. Debug output shows no secret.
#[derive(Clone, Debug, Default)]
pub struct Access {
    headers: HeaderMap,
    credential: Option<(String, ApiCredential)>,
    refused: Vec<String>,
}

impl Access {
    /// These headers, and this credential with its name. Headers that nobody may set or that cannot be sent are left out and can be asked for.
    pub fn new<'h>(
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
        credential: Option<(&str, &ApiCredential)>,
    ) -> Self {
        let mut access = Self {
            credential: credential.map(|(name, credential)| (name.to_owned(), credential.clone())),
            ..Self::default()
        };
        for (name, value) in headers {
            match (HeaderName::try_from(name), HeaderValue::from_str(value)) {
                (Ok(known), Ok(mut value)) if !is_of_the_client(&known) => {
                    value.set_sensitive(true);
                    access.headers.insert(known, value);
                }
                _ => access.refused.push(name.to_owned()),
            }
        }
        access
    }

    /// The names of the headers that were left out. For the log; values never are.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Whether the credential, if there is one, may go to this URL. Asked for each operation's base when a request comes, so that the
    /// client is told; `Access::dress` asks again.
    pub fn check(&self, url: &Url) -> Result<(), CredentialRefused> {
        match &self.credential {
            Some((name, credential)) if !credential.may_go_to(url) => Err(CredentialRefused {
                name: name.clone(),
                to: url.origin().ascii_serialization(),
            }),
            _ => Ok(()),
        }
    }

    /// The bytes without the secrets that are sent along, should an API reflect one: neither the model nor the client sees them.
    pub(super) fn mask<'b>(&self, body: &'b [u8]) -> Cow<'b, [u8]> {
        let mut masked = Cow::Borrowed(body);
        for secret in self.secrets() {
            if memmem::find(&masked, secret.as_bytes()).is_none() {
                continue;
            }
            let mut out = Vec::with_capacity(masked.len());
            let mut from = 0;
            for at in memmem::find_iter(&masked, secret.as_bytes()) {
                out.extend_from_slice(&masked[from..at]);
                out.extend_from_slice(b"[secret]");
                from = at + secret.len();
            }
            out.extend_from_slice(&masked[from..]);
            masked = Cow::Owned(out);
        }
        masked
    }

    /// What must not be seen in an answer, in the forms in which it is reflected. Short values are words like any.
    fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        for (_, value) in self.headers.iter().filter(|(name, _)| tells_secret(name)) {
            let Ok(value) = value.to_str() else { continue };
            let bare = value.split_once(' ').map_or(value, |(_, token)| token.trim());
            secrets.push(bare.to_owned());
        }
        if let Some((_, credential)) = &self.credential
            && let Some(value) = credential.value.as_ref().map(Secret::expose)
        {
            secrets.push(value.to_owned());
            if credential.kind == CredentialKind::Basic {
                secrets.push(STANDARD.encode(value));
                secrets.extend(value.split_once(':').map(|(_, password)| password.to_owned()));
            }
            secrets.push(form_urlencoded::byte_serialize(value.as_bytes()).collect());
        }
        let quoted: Vec<String> = secrets
            .iter()
            .map(|secret| serde_json::Value::from(secret.as_str()).to_string())
            .map(|quoted| quoted[1..quoted.len() - 1].to_owned())
            .collect();
        secrets.extend(quoted);
        secrets.retain(|secret| secret.len() >= SHORTEST_SECRET);
        // The longer first, for one may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        secrets
    }

    /// The request as it is sent. The definition's headers win over the model's, the credential over both.
    ///
    /// The URL may hold a secret from here on: it is not for logs.
    pub(super) fn dress(&self, prepared: Prepared) -> Result<Request, CredentialRefused> {
        self.check(&prepared.url)?;
        let Prepared { method, url, mut headers, body } = prepared;
        for (name, value) in &self.headers {
            // A tool may wish for another answer, but what its body is only we know.
            if body.is_none() || name != CONTENT_TYPE {
                headers.insert(name, value.clone());
            }
        }
        let mut request = Request::new(method, url);
        *request.headers_mut() = headers;
        *request.body_mut() = body.map(Into::into);
        if let Some((_, credential)) = &self.credential {
            show(credential, &mut request);
        }
        Ok(request)
    }
}

/// Adds the credential to the request for a document, where it may go; elsewhere the document is asked for without it.
pub(super) fn show_if_allowed(credential: Option<&ApiCredential>, request: &mut Request) {
    if let Some(credential) = credential.filter(|credential| credential.may_go_to(request.url())) {
        show(credential, request);
    }
}

fn show(credential: &ApiCredential, request: &mut Request) {
    let Some(value) = credential.value.as_ref().map(Secret::expose) else { return };
    let (name, text) = match (credential.kind, credential.name.as_deref()) {
        (CredentialKind::Bearer, _) => (AUTHORIZATION, format!("Bearer {value}")),
        (CredentialKind::Basic, _) => (AUTHORIZATION, format!("Basic {}", STANDARD.encode(value))),
        (CredentialKind::Header, Some(name)) => match HeaderName::try_from(name) {
            Ok(name) => (name, value.to_owned()),
            Err(_) => return,
        },
        (CredentialKind::Query, Some(name)) => {
            return show_in_query(name, value, request.url_mut());
        }
        (CredentialKind::Header | CredentialKind::Query, None) => return,
    };
    // The configuration was checked: neither fails.
    if let Ok(mut text) = HeaderValue::try_from(text) {
        text.set_sensitive(true);
        request.headers_mut().insert(name, text);
    }
}

/// Puts the credential in the place of whatever the model wrote under its name.
fn show_in_query(name: &str, value: &str, url: &mut Url) {
    let is_other = |pair: &&str| {
        let written = pair.split('=').next().unwrap_or_default();
        percent_encoding::percent_decode_str(written).decode_utf8_lossy() != name
    };
    let query = url.query().unwrap_or_default();
    let others: Vec<&str> =
        query.split('&').filter(|pair| !pair.is_empty()).filter(is_other).collect();
    let others = others.join("&");
    url.set_query(Some(&others).filter(|others| !others.is_empty()).map(String::as_str));
    url.query_pairs_mut().append_pair(name, value);
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
