//! What goes wrong, as a sentence for the model, the client and the log. None of it holds a key or an inner address.

use crate::{
    documents::ParseError,
    net::{Denied, NetError},
};

/// A provider gave no results.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the search provider {provider} {fault}")]
pub struct SearchError {
    /// The provider's name.
    pub provider: &'static str,
    /// What went wrong.
    pub fault: Fault,
}

/// What goes wrong with a provider's API; reads on from the provider's name.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    /// It does not accept the key.
    #[error("refused the key of this server; its operator has to check `api_key_env`")]
    BadKey,
    /// The account is used up.
    #[error("says that the plan or the credits of this server are used up")]
    Quota,
    /// Too many requests, also after waiting.
    #[error("gets too many requests at the moment; try again later")]
    RateLimited,
    /// SearXNG without JSON.
    #[error(
        "does not give JSON; its operator has to add `json` to `search.formats` in the instance's settings.yml"
    )]
    FormatOff,
    /// All of the engines that a SearXNG asks failed.
    #[error("got no results, for its engines failed: {0}")]
    Engines(String),
    /// It will not do what was asked.
    #[error("refused the request (HTTP {status}){}{message}", if .message.is_empty() { "" } else { ": " })]
    Refused {
        /// As it answered.
        status: u16,
        /// What it said, shortened and without the key.
        message: String,
    },
    /// It failed on its side, also when asked again.
    #[error("failed on its side (HTTP {status})")]
    Failed {
        /// As it answered.
        status: u16,
    },
    /// It took too long.
    #[error("did not answer in time")]
    Timeout,
    /// It cannot be reached.
    #[error("cannot be reached")]
    Unreachable,
    /// `[net]` does not let us go where it redirects to.
    #[error("is not asked: {0}")]
    Denied(Denied),
    /// Its answer is over the limit.
    #[error("gave an answer of more than {limit} bytes")]
    TooLarge {
        /// In bytes.
        limit: usize,
    },
    /// Its answer is not what its documentation says.
    #[error("gave an answer that cannot be read: {0}")]
    Unreadable(String),
}

impl Fault {
    /// Whether it may help to ask again.
    pub(super) fn passes(&self) -> bool {
        matches!(self, Self::RateLimited | Self::Failed { .. } | Self::Unreachable)
    }
}

impl From<NetError> for Fault {
    fn from(error: NetError) -> Self {
        match error {
            NetError::Denied(denied) => Self::Denied(denied),
            NetError::Timeout(_) => Self::Timeout,
            NetError::TooLarge { limit } => Self::TooLarge { limit },
            NetError::Failed { host, source } => {
                tracing::debug!(host, error = %source, "a provider cannot be reached");
                Self::Unreachable
            }
        }
    }
}

/// Why a page could not be read. A sentence about the page, to stand after its URL.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    /// Not a URL, or not of the web.
    #[error("not read: not a web address; it must begin with http:// or https://")]
    NotAnAddress,
    /// `[net]` does not let us go there, or to where it redirects.
    #[error("not read: {0}")]
    Forbidden(Denied),
    /// More pages were asked for than are read at once.
    #[error("not read: at most {limit} pages are read at once; ask for this one again")]
    Surplus {
        /// That many.
        limit: usize,
    },
    /// The site asks for a human.
    #[error("failed: the site is protected by a challenge that only a browser can pass")]
    Challenge,
    /// The site says no.
    #[error("failed: the site answered HTTP {0}{reason}", reason = reason(*.0))]
    Http(u16),
    /// Too many redirects.
    #[error("failed: the site redirects too often")]
    Redirects,
    /// It took too long.
    #[error("failed: the site did not answer in time")]
    Timeout,
    /// It cannot be reached.
    #[error("failed: the site cannot be reached")]
    Unreachable,
    /// Over the limit for its kind.
    #[error("failed: it is larger than {} MB", .limit / 1_000_000)]
    TooLarge {
        /// In bytes.
        limit: usize,
    },
    /// An image, an archive, a program.
    #[error("failed: it is not a text but `{0}`")]
    NotText(String),
    /// The document is damaged, encrypted, or made to harm.
    #[error("failed: {0}")]
    Document(#[from] ParseError),
    /// There is nothing to read on it.
    #[error(
        "failed: there is no readable text on the page; it may need a browser that runs scripts"
    )]
    Empty,
    /// The provider could not.
    #[error("failed: {provider} {fault}")]
    Provider {
        /// The provider's name.
        provider: &'static str,
        /// What went wrong.
        fault: Fault,
    },
    /// The provider could not read this page.
    #[error("failed: {provider} could not read it{}{message}", if .message.is_empty() { "" } else { ": " })]
    ProviderPage {
        /// The provider's name.
        provider: &'static str,
        /// What it said, shortened.
        message: String,
    },
}

fn reason(status: u16) -> &'static str {
    match status {
        401 => " (a login is needed)",
        402 => " (payment is needed)",
        403 => " (access is restricted)",
        404 | 410 => " (there is no such page)",
        429 => " (too many requests)",
        451 => " (blocked for legal reasons)",
        500.. => " (the site has a fault)",
        _ => "",
    }
}

impl From<NetError> for ReadError {
    fn from(error: NetError) -> Self {
        match error {
            NetError::Denied(Denied::Redirects(_)) => Self::Redirects,
            NetError::Denied(Denied::Unresolved(_)) => Self::Unreachable,
            NetError::Denied(denied) => Self::Forbidden(denied),
            NetError::Timeout(_) => Self::Timeout,
            NetError::TooLarge { limit } => Self::TooLarge { limit },
            NetError::Failed { host, source } => {
                tracing::debug!(host, error = %source, "a page cannot be reached");
                Self::Unreachable
            }
        }
    }
}
