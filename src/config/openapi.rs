use std::{
    collections::BTreeMap,
    num::{NonZeroU64, NonZeroUsize},
    time::Duration,
};

use serde::Deserialize;
use url::{Origin, Url};

use super::{Secret, value};

/// `[tools.openapi]`: HTTP APIs that requests bring as OpenAPI documents.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenApi {
    /// How long one call of an API may take, redirects and all. Key `timeout_seconds`.
    #[serde(rename = "timeout_seconds", deserialize_with = "value::seconds")]
    pub timeout: Duration,
    /// The largest answer that is read, in MiB.
    pub answer_limit_mib: NonZeroUsize,
    /// The largest document, in MiB.
    pub schema_limit_mib: NonZeroUsize,
    /// How long a fetched document is used before it is fetched again. Key `schema_cache_minutes`.
    #[serde(rename = "schema_cache_minutes", deserialize_with = "value::minutes")]
    pub schema_cache: Duration,
    /// How much memory fetched documents may take, in MiB.
    pub schema_cache_mib: NonZeroU64,
    /// How many operations of one document may be offered.
    pub max_operations: NonZeroUsize,
    /// `[tools.openapi.credentials.NAME]`: keys that requests may use by name.
    pub credentials: BTreeMap<String, ApiCredential>,
}

impl OpenApi {
    /// The largest answer that is read, in bytes.
    pub fn answer_limit(&self) -> usize {
        self.answer_limit_mib.get().saturating_mul(1024 * 1024)
    }

    /// The largest document, in bytes.
    pub fn schema_limit(&self) -> usize {
        self.schema_limit_mib.get().saturating_mul(1024 * 1024)
    }
}

impl Default for OpenApi {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(1),
            answer_limit_mib: NonZeroUsize::MIN.saturating_add(7),
            schema_limit_mib: NonZeroUsize::MIN.saturating_add(3),
            schema_cache: Duration::from_mins(10),
            schema_cache_mib: NonZeroU64::MIN.saturating_add(63),
            max_operations: NonZeroUsize::MIN.saturating_add(127),
            credentials: BTreeMap::new(),
        }
    }
}

/// `[tools.openapi.credentials.NAME]`: a key for an API. Requests name it and never see it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiCredential {
    /// How it is sent.
    #[serde(default)]
    pub kind: CredentialKind,
    /// The header or the parameter of the query that it is sent in, for these two kinds.
    #[serde(default, deserialize_with = "value::filled")]
    pub name: Option<String>,
    /// The environment variable that holds it.
    pub value_env: String,
    /// What `value_env` holds. `None` only before the check.
    #[serde(skip)]
    pub value: Option<Secret>,
    /// Where it may go.
    pub hosts: Vec<CredentialHost>,
}

impl ApiCredential {
    /// Whether it may be sent to this URL: one of its hosts, with that scheme and port.
    pub fn may_go_to(&self, url: &Url) -> bool {
        let origin = url.origin();
        self.hosts.iter().any(|host| host.0 == origin)
    }
}

/// How a credential is sent.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum CredentialKind {
    /// `Authorization: Bearer VALUE`.
    #[default]
    Bearer,
    /// `Authorization: Basic …`; the value is `user:password`.
    Basic,
    /// In a header of its own.
    Header,
    /// In the query.
    Query,
}

/// Where a credential may go: `api.example` or `api.example:8443`, over HTTPS alone, or `http://10.1.2.3:8000` with its scheme.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub struct CredentialHost(Origin);

impl TryFrom<String> for CredentialHost {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let whole = if text.contains("://") { text.clone() } else { format!("https://{text}") };
        let is_bare = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.path() == "/"
                && url.query().is_none()
                && url.fragment().is_none()
                && url.username().is_empty()
                && url.password().is_none()
        };
        match Url::parse(&whole) {
            Ok(url) if is_bare(&url) && !text.contains('*') => Ok(Self(url.origin())),
            _ => Err(
                "a host is needed, such as \"api.example\" (HTTPS alone), \"api.example:8443\" or \
                      \"http://127.0.0.1:8000\""
                    .to_owned(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_go_to_their_hosts_alone() {
        let credential = |hosts: &[&str]| ApiCredential {
            kind: CredentialKind::Bearer,
            name: None,
            value_env: String::new(),
            value: None,
            hosts: hosts.iter().map(|host| (*host).to_owned().try_into().unwrap()).collect(),
        };
        let credential = credential(&["api.example", "Alt.example:8443", "http://127.0.0.1:9000"]);
        for (url, goes) in [
            ("https://api.example/v1?a=b", true),
            ("https://API.example:443/", true),
            ("https://alt.example:8443/x", true),
            ("http://127.0.0.1:9000/x", true),
            ("http://127.1:9000/x", true),
            ("http://api.example/v1", false),
            ("https://api.example:8443/", false),
            ("https://api.example.evil.test/", false),
            ("https://sub.api.example/", false),
            ("https://evil.test/api.example", false),
            ("https://api.example@evil.test/", false),
            ("http://127.0.0.1/", false),
        ] {
            assert_eq!(credential.may_go_to(&url.parse().unwrap()), goes, "{url}");
        }
        for wrong in ["", "*.example", "ftp://a.example", "api.example/v1", "u:p@a.example", "a b"]
        {
            CredentialHost::try_from(wrong.to_owned()).unwrap_err();
        }
    }
}
