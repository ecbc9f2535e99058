//! What types cannot say.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::{HeaderName, HeaderValue};
use tracing_subscriber::EnvFilter;
use url::Url;

use super::{
    ApiCredential, Config, CredentialKind, Environment, Origin, Problem, Secret, Upstream,
    overlay::{Key, Layers, shown},
};

/// Finds all that is wrong, and puts into upstreams and credentials the secrets that their `*_env` keys name.
pub(super) fn check(config: &mut Config, env: &Environment, layers: &Layers) -> Vec<Problem> {
    let mut found = Found { layers, problems: Vec::new() };
    if let Some(url) = &config.database_url
        && !["postgres://", "postgresql://"].iter().any(|scheme| url.expose().starts_with(scheme))
    {
        found.wrong(&["database_url"], "an address that begins with postgres:// is needed");
    }
    for origin in config.http.cors.iter().filter(|origin| !is_origin(origin)) {
        let message = format!(
            "`{origin}` is no origin; it should look like \"https://chat.example\", with no path"
        );
        found.wrong(&["http", "cors"], message);
    }
    if config.net.allow.iter().any(String::is_empty) {
        found.wrong(&["net", "allow"], "an entry is empty");
    }
    if let Some(header) = &config.auth.trusted_user_header {
        found.header_name(&["auth", "trusted_user_header"], header);
    }
    if let Err(error) = EnvFilter::builder().parse(&config.log.filter) {
        found.wrong(&["log", "filter"], format!("`{}` is no filter: {error}", config.log.filter));
    }
    found.upstreams(&mut config.upstreams, env);
    found.credentials(&mut config.tools.openapi.credentials, env);
    if config.seal_keys.iter().any(|key| key.expose().is_empty()) {
        found.problems.push(Problem {
            key: String::new(),
            origin: Origin::Variable("ANTIPHON_SEAL_KEYS".to_owned()),
            message: "one of the keys, which commas separate, is empty".to_owned(),
            known: Vec::new(),
        });
    }
    found.problems
}

struct Found<'a> {
    layers: &'a Layers,
    problems: Vec<Problem>,
}

impl Found<'_> {
    fn wrong(&mut self, key: &[&str], message: impl Into<String>) {
        let key: Key = key.iter().map(|part| (*part).to_owned()).collect();
        let origin = self.layers.origin(&key);
        self.problems.push(Problem {
            origin,
            key: shown(&key),
            message: message.into(),
            known: Vec::new(),
        });
    }

    fn header_name(&mut self, key: &[&str], name: &str) {
        if HeaderName::try_from(name).is_err() {
            self.wrong(key, format!("`{name}` cannot be the name of a header"));
        }
    }

    fn upstreams(&mut self, upstreams: &mut [Upstream], env: &Environment) {
        let mut names = BTreeSet::new();
        for (i, upstream) in upstreams.iter_mut().enumerate() {
            let at = i.to_string();
            if upstream.name.is_empty() {
                self.wrong(&["upstreams", &at, "name"], "a name is needed; logs and errors use it");
            } else if !names.insert(upstream.name.clone()) {
                let message = format!("another upstream is called `{}` already", upstream.name);
                self.wrong(&["upstreams", &at, "name"], message);
            }
            self.headers(&at, &upstream.headers);
            let Some(variable) = &upstream.api_key_env else { continue };
            match env.get(variable) {
                Some(key) => upstream.api_key = Some(Secret::from(key.to_owned())),
                None => self.wrong(
                    &["upstreams", &at, "api_key_env"],
                    format!(
                        "the environment variable {} that it names is not set",
                        variable_name(variable)
                    ),
                ),
            }
        }
    }

    fn credentials(
        &mut self,
        credentials: &mut BTreeMap<String, ApiCredential>,
        env: &Environment,
    ) {
        for (name, credential) in credentials {
            let at = |key| ["tools", "openapi", "credentials", name, key];
            match (credential.kind, &credential.name) {
                (CredentialKind::Header, Some(header)) => self.header_name(&at("name"), header),
                (CredentialKind::Header, None) => {
                    self.wrong(
                        &at("name"),
                        "the name of the header is needed, such as \"x-api-key\"",
                    );
                }
                (CredentialKind::Query, None) => {
                    let message =
                        "the name of the query's parameter is needed, such as \"api_key\"";
                    self.wrong(&at("name"), message);
                }
                (CredentialKind::Query, Some(_))
                | (CredentialKind::Bearer | CredentialKind::Basic, None) => (),
                (CredentialKind::Bearer | CredentialKind::Basic, Some(_)) => {
                    let message =
                        "it has no effect with this kind; set `kind` to \"header\" or \"query\"";
                    self.wrong(&at("name"), message);
                }
            }
            if credential.hosts.is_empty() {
                let message = "at least one host is needed, or the credential goes nowhere";
                self.wrong(&at("hosts"), message);
            }
            let Some(value) = env.get(&credential.value_env) else {
                let message = format!(
                    "the environment variable {} that it names is not set",
                    variable_name(&credential.value_env)
                );
                self.wrong(&at("value_env"), message);
                continue;
            };
            if HeaderValue::try_from(value).is_err() {
                let message =
                    "what the variable holds cannot be sent: a control character is in it";
                self.wrong(&at("value_env"), message);
            } else if credential.kind == CredentialKind::Basic && !value.contains(':') {
                let message = "what the variable holds must look like user:password";
                self.wrong(&at("value_env"), message);
            }
            credential.value = Some(Secret::from(value.to_owned()));
        }
    }

    fn headers(&mut self, at: &str, headers: &BTreeMap<String, Secret>) {
        for (name, value) in headers {
            let key = ["upstreams", at, "headers", name];
            self.header_name(&key, name);
            if HeaderValue::try_from(value.expose()).is_err() {
                self.wrong(&key, "the value cannot be sent: it holds a control character");
            }
        }
    }
}

/// Whether this is `*`, or an origin as browsers write it.
fn is_origin(text: &str) -> bool {
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https");
    text == "*"
        || Url::parse(text)
            .is_ok_and(|url| is_http(&url) && url.origin().ascii_serialization() == text)
}

/// The name of a variable for a message. People put the key itself there by mistake, and it must not end up in a log.
fn variable_name(name: &str) -> &str {
    let is_name = name.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_');
    if is_name { name } else { "[not shown: it does not look like a variable's name]" }
}
