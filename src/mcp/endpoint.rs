//! Whom to ask, and for whom.

use std::{borrow::Cow, collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use aws_lc_rs::digest::{Context, SHA256};
use serde::Deserialize;
use url::Url;

use crate::config::Secret;

use super::Headers;

/// A SHA-256 digest.
pub(super) type Digest = [u8; 32];

/// An MCP server as it is asked: where, how, and with which headers. Cheap to clone; prints neither query nor header values.
#[derive(Clone)]
pub struct Endpoint {
    inner: Arc<Parts>,
}

struct Parts {
    target: Target,
    headers: Headers,
    /// Whether the operator named the server.
    by_operator: bool,
    /// Tells servers apart.
    place: Digest,
    /// Tells apart the same server with other headers.
    whole: Digest,
    secrets: Vec<Secret>,
}

/// Where a server is.
pub(super) enum Target {
    /// At an address.
    Http(Url, Transport),
    /// Behind a program that is started.
    Command(Command),
}

/// How a server at an address speaks.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Found out by trying.
    #[default]
    Auto,
    /// Streamable HTTP.
    Streamable,
    /// The older HTTP with SSE.
    Sse,
}

/// A program that is an MCP server on its standard input and output. Only the operator names one.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// All of its environment.
    pub env: BTreeMap<String, Secret>,
    /// Where it runs; `None`: where we do.
    pub dir: Option<PathBuf>,
}

/// For whom a server is asked.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Scope {
    /// The tenant.
    pub tenant: String,
    /// The user.
    pub user: String,
    /// The Chain: the id of its first Response.
    pub chain: String,
}

impl Endpoint {
    /// A server at an address.
    pub fn http(url: Url, transport: Transport, headers: Headers) -> Self {
        Self::new(Target::Http(url, transport), headers, false)
    }

    /// The same, named by the operator: it may be reached where others may not go.
    #[must_use]
    pub fn of_operator(self) -> Self {
        match &self.inner.target {
            Target::Http(url, transport) => {
                let target = Target::Http(url.clone(), *transport);
                Self::new(target, self.inner.headers.clone(), true)
            }
            // Nobody else names one.
            Target::Command(_) => self,
        }
    }

    /// A program.
    pub fn command(command: Command) -> Self {
        Self::new(Target::Command(command), Headers::default(), true)
    }

    fn new(target: Target, headers: Headers, by_operator: bool) -> Self {
        let place = target.digest();
        let mut lines: Vec<(&str, &[u8])> =
            headers.map().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        lines.sort_unstable();
        let parts = lines.iter().flat_map(|(name, value)| [name.as_bytes(), value]);
        let whole = digest([place.as_slice(), &[by_operator.into()]].into_iter().chain(parts));
        let secrets = headers.secrets();
        Self { inner: Arc::new(Parts { target, headers, by_operator, place, whole, secrets }) }
    }

    /// The address, where it has one.
    pub fn url(&self) -> Option<&Url> {
        match &self.inner.target {
            Target::Http(url, _) => Some(url),
            Target::Command(_) => None,
        }
    }

    /// Host or program, for logs.
    pub fn name(&self) -> &str {
        match &self.inner.target {
            Target::Http(url, _) => url.host_str().unwrap_or_default(),
            Target::Command(command) => &command.program,
        }
    }

    /// The text without the secrets that are sent to this server, should it reflect one.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        for secret in &self.inner.secrets {
            // As it stands inside JSON; headers hold nothing else that would be escaped.
            let quoted = serde_json::Value::from(secret.expose()).to_string();
            let inside = quoted.trim_matches('"');
            if masked.contains(inside) {
                masked = Cow::Owned(masked.replace(inside, "[secret]"));
            }
        }
        masked
    }

    pub(super) fn target(&self) -> &Target {
        &self.inner.target
    }

    pub(super) fn headers(&self) -> &Headers {
        &self.inner.headers
    }

    pub(super) fn is_of_operator(&self) -> bool {
        self.inner.by_operator
    }

    pub(super) fn place(&self) -> Digest {
        self.inner.place
    }

    pub(super) fn whole(&self) -> Digest {
        self.inner.whole
    }
}

impl Target {
    fn digest(&self) -> Digest {
        match self {
            // The way of speaking is no other server.
            Self::Http(url, _) => digest([b"http".as_slice(), url.as_str().as_bytes()]),
            Self::Command(Command { program, args, env, dir }) => {
                let dir = dir.as_ref().map(|dir| dir.to_string_lossy().into_owned());
                let mut parts: Vec<&[u8]> = vec![b"command", program.as_bytes()];
                parts.extend(args.iter().map(String::as_bytes));
                parts.push(b"env");
                parts.extend(
                    env.iter()
                        .flat_map(|(name, value)| [name.as_bytes(), value.expose().as_bytes()]),
                );
                parts.extend(dir.as_deref().map(str::as_bytes));
                digest(parts)
            }
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("name", &self.name())
            .field("headers", &self.inner.headers)
            .finish_non_exhaustive()
    }
}

/// What an approval is for: this tool of this server with exactly these arguments. Headers do not count, for tokens are renewed.
pub fn call_digest(endpoint: &Endpoint, tool: &str, arguments: &str) -> [u8; 32] {
    digest([endpoint.place().as_slice(), tool.as_bytes(), arguments.as_bytes()])
}

/// Lengths go in too, so that no two lists come out alike.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::headers::merge;

    fn secret(text: &str) -> Secret {
        Secret::from(text.to_owned())
    }

    #[test]
    fn what_the_operator_named_is_apart() {
        let (theirs, ours) = (at("http://a/x", "one"), at("http://a/x", "one").of_operator());
        assert!(ours.is_of_operator() && !theirs.is_of_operator());
        assert_eq!(ours.place(), theirs.place());
        assert_ne!(ours.whole(), theirs.whole());
    }

    fn at(url: &str, token: &str) -> Endpoint {
        let headers = merge(&[], &[], Some(&secret(token))).headers;
        Endpoint::http(url.parse().unwrap(), Transport::Auto, headers)
    }

    #[test]
    fn servers_and_their_headers_are_told_apart() {
        let (a, other_token, other_path) =
            (at("http://a/x", "one"), at("http://a/x", "two"), at("http://a/y", "one"));
        assert_eq!(a.whole(), at("http://a/x", "one").whole());
        assert_eq!(a.place(), other_token.place());
        assert_ne!(a.whole(), other_token.whole());
        assert_ne!(a.place(), other_path.place());
        assert_eq!(call_digest(&a, "t", "{}"), call_digest(&other_token, "t", "{}"));
        for (tool, arguments) in [("u", "{}"), ("t", "{ }"), ("t{", "}")] {
            assert_ne!(call_digest(&a, "t", "{}"), call_digest(&a, tool, arguments));
        }
        assert_ne!(call_digest(&a, "t", "{}"), call_digest(&other_path, "t", "{}"));
    }

    #[test]
    fn reflected_secrets_are_masked_and_debug_shows_none() {
        let endpoint = at("http://a/x?api_key=hunter2", "tok_SECRET\"x");
        assert_eq!(endpoint.mask(r#"you sent tok_SECRET\"x!"#), "you sent [secret]!");
        assert_eq!(endpoint.mask("nothing"), "nothing");
        let shown = format!("{endpoint:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("SECRET"), "{shown}");
    }
}
