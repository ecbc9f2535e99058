//! What types cannot say.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::{HeaderName, HeaderValue};
use tracing_subscriber::EnvFilter;
use url::Url;

use super::{
    ApiCredential, Config, CredentialKind, Environment, ImageGeneration, McpConnector, OpenUrl,
    Origin, PageApi, Problem, SearchApi, Secret, Upstream, WebSearch,
    overlay::{Key, Layers, shown},
};

/// What every program gets to know of our environment.
const PROGRAM_VARIABLES: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

const NO_KEY: &str = "this provider needs a key: name the environment variable that holds it";

/// Finds all that is wrong, and puts into upstreams, tools and credentials the secrets that their `*_env` keys name.
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
    found.connectors(&mut config.mcp.connectors, env);
    found.web_search(&mut config.tools.web_search, env);
    found.open_url(&mut config.tools.open_url, env);
    found.images(&mut config.tools.image_generation, env);
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
            self.headers(&["upstreams", &at], &upstream.headers);
            let Some(variable) = &upstream.api_key_env else { continue };
            upstream.api_key = self.variable(&["upstreams", &at, "api_key_env"], variable, env);
        }
    }

    /// Checks the MCP servers, and puts into them what the variables hold that they name.
    fn connectors(&mut self, connectors: &mut BTreeMap<String, McpConnector>, env: &Environment) {
        let mut labels: BTreeSet<String> = connectors.keys().cloned().collect();
        for (name, connector) in connectors {
            let at = ["mcp", "connectors", name.as_str()];
            let key = |last| [&at[..], &[last]].concat();
            match (&connector.url, &connector.command) {
                (Some(_), None) | (None, Some(_)) => (),
                (Some(_), Some(_)) => {
                    self.wrong(&key("command"), "`url` is set too; a server has one of the two");
                }
                (None, None) => self.wrong(&at, "`url` or `command` is needed here"),
            }
            let of_url = [
                ("headers", !connector.headers.is_empty()),
                ("headers_env", !connector.headers_env.is_empty()),
                ("authorization_env", connector.authorization_env.is_some()),
            ];
            let of_command = [
                ("args", !connector.args.is_empty()),
                ("env", !connector.env.is_empty()),
                ("pass_env", !connector.pass_env.is_empty()),
            ];
            let vain = if connector.command.is_some() { of_url } else { of_command };
            for (last, _) in vain.into_iter().filter(|(_, is_set)| *is_set) {
                let other = if connector.command.is_some() { "url" } else { "command" };
                self.wrong(
                    &key(last),
                    format!("it needs `{other}`; for this server it does nothing"),
                );
            }
            for alias in &connector.aliases {
                if !labels.insert(alias.clone()) {
                    let message = format!("another connector is called `{alias}` already");
                    self.wrong(&key("aliases"), message);
                }
            }
            for (header, variable) in &connector.headers_env {
                let value =
                    self.variable(&[&key("headers_env")[..], &[header]].concat(), variable, env);
                connector.headers.extend(value.map(|value| (header.clone(), value)));
            }
            self.headers(&at, &connector.headers);
            if let Some(variable) = &connector.authorization_env {
                connector.authorization = self.variable(&key("authorization_env"), variable, env);
            }
            for variable in &connector.pass_env {
                let value = self.variable(&key("pass_env"), variable, env);
                connector.env.extend(value.map(|value| (variable.clone(), value)));
            }
            if connector.command.is_some() {
                for name in PROGRAM_VARIABLES {
                    let value = env.get(name).map(|value| Secret::from(value.to_owned()));
                    if let Some(value) = value {
                        connector.env.entry(name.to_owned()).or_insert(value);
                    }
                }
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

    /// What the variable holds that an `*_env` key names.
    fn secret(
        &mut self,
        key: &[&str],
        variable: Option<&str>,
        env: &Environment,
    ) -> Option<Secret> {
        self.variable(key, variable?, env)
    }

    fn web_search(&mut self, search: &mut WebSearch, env: &Environment) {
        let at = |key| ["tools", "web_search", key];
        search.api_key = self.secret(&at("api_key_env"), search.api_key_env.as_deref(), env);
        let Some(provider) = search.provider else {
            if search.api_key_env.is_some()
                || search.base_url.is_some()
                || search.engine_id.is_some()
            {
                self.wrong(&at("provider"), "a provider is needed: \"searxng\", \"exa\", \"brave\", \"serper\", \"tavily\" or \"google_pse\"");
            }
            return;
        };
        if provider == SearchApi::Searxng {
            if search.base_url.is_none() {
                self.wrong(&at("base_url"), "SearXNG has no usual place: give the address of the instance, such as \"http://127.0.0.1:8888\"");
            }
        } else if search.api_key_env.is_none() {
            self.wrong(&at("api_key_env"), NO_KEY);
        }
        if provider == SearchApi::GooglePse && search.engine_id.is_none() {
            self.wrong(&at("engine_id"), "google_pse needs the id of a Programmable Search Engine, which its control panel shows as `cx`");
        }
    }

    fn open_url(&mut self, open: &mut OpenUrl, env: &Environment) {
        let at = |key| ["tools", "open_url", key];
        open.api_key = self.secret(&at("api_key_env"), open.api_key_env.as_deref(), env);
        match open.provider {
            None if open.api_key_env.is_some() || open.base_url.is_some() => {
                self.wrong(
                    &at("provider"),
                    "a provider is needed: \"firecrawl\", \"exa\", \"tavily\" or \"serper\"",
                );
            }
            // A Firecrawl of one's own may be open.
            Some(PageApi::Firecrawl) if open.base_url.is_some() => {}
            Some(_) if open.api_key_env.is_none() => self.wrong(&at("api_key_env"), NO_KEY),
            None | Some(_) => {}
        }
    }

    fn images(&mut self, images: &mut ImageGeneration, env: &Environment) {
        let at = |key| ["tools", "image_generation", key];
        images.api_key = self.secret(&at("api_key_env"), images.api_key_env.as_deref(), env);
        let is_begun =
            images.api_key_env.is_some() || images.model.is_some() || images.size.is_some();
        if images.base_url.is_none() && is_begun {
            self.wrong(
                &at("base_url"),
                "the address of an images API is needed, such as \"https://api.openai.com/v1\"",
            );
        }
        if images.api_key.as_ref().is_some_and(|key| HeaderValue::try_from(key.expose()).is_err()) {
            self.wrong(
                &at("api_key_env"),
                "what the variable holds cannot be sent: a control character is in it",
            );
        }
        if let Some(size) = images.size.as_ref().filter(|size| !ImageGeneration::is_size(size)) {
            let message = format!("`{size}` is no size; it should look like \"1024x1024\"");
            self.wrong(&at("size"), message);
        }
    }

    /// What the variable holds that this key names.
    fn variable(&mut self, key: &[&str], name: &str, env: &Environment) -> Option<Secret> {
        let value = env.get(name).map(|value| Secret::from(value.to_owned()));
        if value.is_none() {
            let message = format!(
                "the environment variable {} that it names is not set",
                variable_name(name)
            );
            self.wrong(key, message);
        }
        value
    }

    fn headers(&mut self, at: &[&str], headers: &BTreeMap<String, Secret>) {
        for (name, value) in headers {
            let key = [at, &["headers", name]].concat();
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
