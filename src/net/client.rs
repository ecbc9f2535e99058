//! The clients.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use reqwest::{
    Body, Method, Request, Response, StatusCode,
    header::{
        ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
        HeaderMap, HeaderValue, LOCATION, TRANSFER_ENCODING, USER_AGENT,
    },
    redirect,
};
use url::{Host, Url};

use super::{
    policy::{Denied, Listed, Policy},
    resolve::{Guard, Lookup, NOWHERE},
};

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 10;

/// How a guarded client behaves.
#[derive(Clone, Debug)]
pub struct GuardedSettings {
    /// Where it may go.
    pub policy: Policy,
    /// The longest that connecting may take.
    pub connect_timeout: Duration,
    /// The longest silence while an answer is read. How long the whole may take is set on each request
    /// (`Request::timeout_mut`).
    pub read_timeout: Duration,
    /// The `User-Agent`.
    pub user_agent: String,
}

impl GuardedSettings {
    /// The usual limits, with this policy.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_mins(1),
            user_agent: concat!("antiphon/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// How a client for configured upstreams behaves. It has no time limit of its own but for connecting: a stream may be long,
/// and how long it may be silent is known to who reads it.
#[derive(Clone, Debug)]
pub struct TrustedSettings {
    /// The longest that connecting may take.
    pub connect_timeout: Duration,
    /// How many idle connections are kept for each host.
    pub idle_per_host: usize,
    /// How long they are kept. Less than what servers usually keep them, or a request meets a closed one.
    pub idle_timeout: Duration,
    /// A proxy for all requests.
    pub proxy: Option<Url>,
    /// How many redirects are followed: none for an API, whose key must not go elsewhere; some for downloads.
    pub redirects: usize,
}

impl Default for TrustedSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            idle_per_host: 256,
            idle_timeout: Duration::from_secs(50),
            proxy: None,
            redirects: 0,
        }
    }
}

/// The TLS backend or the proxy cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be set up: {0}")]
pub struct BuildError(#[from] reqwest::Error);

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// It may not go there.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// Connecting or reading took too long.
    #[error("the server at `{0}` did not answer in time")]
    Timeout(String),
    /// The answer is over the limit of who asked.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// In bytes.
        limit: usize,
    },
    /// Anything else on the way.
    #[error("the server at `{host}` could not be reached")]
    Failed {
        /// Whom we asked.
        host: String,
        /// For the log.
        source: reqwest::Error,
    },
}

impl From<reqwest::Error> for NetError {
    fn from(error: reqwest::Error) -> Self {
        let mut cause = std::error::Error::source(&error);
        while let Some(inner) = cause {
            if let Some(denied) = inner.downcast_ref::<Denied>() {
                return denied.clone().into();
            }
            cause = inner.source();
        }
        let host = error.url().and_then(Url::host_str).unwrap_or_default().to_owned();
        if error.is_timeout() {
            Self::Timeout(host)
        } else {
            Self::Failed { host, source: error.without_url() }
        }
    }
}

/// A client that goes only where its policy lets it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    policy: Arc<Policy>,
    /// For literal addresses and names that are judged by their addresses.
    unlisted: reqwest::Client,
    /// For names on the allow list. Apart, because a resolver is not told the port that an entry may be bound to.
    listed: reqwest::Client,
}

/// A client for URLs that somebody else named.
pub fn guarded(settings: GuardedSettings) -> Result<Client, BuildError> {
    guarded_with(settings, &Lookup::System)
}

/// A client for what the operator configured.
#[expect(clippy::disallowed_methods, reason = "this is the owner of HTTP clients")]
pub fn trusted(settings: TrustedSettings) -> Result<reqwest::Client, BuildError> {
    // Compressing a stream of small pieces delays them, so it is not asked for; who compresses unasked is understood.
    let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
    let redirects = match settings.redirects {
        0 => redirect::Policy::none(),
        most => redirect::Policy::limited(most),
    };
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(redirects)
        .default_headers(headers)
        .gzip(true)
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        .connect_timeout(settings.connect_timeout)
        .pool_max_idle_per_host(settings.idle_per_host)
        .pool_idle_timeout(settings.idle_timeout);
    if let Some(proxy) = settings.proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy)?);
    }
    Ok(builder.build()?)
}

#[expect(clippy::disallowed_methods, reason = "this is the owner of HTTP clients")]
fn guarded_with(settings: GuardedSettings, lookup: &Lookup) -> Result<Client, BuildError> {
    let policy = Arc::new(settings.policy);
    let build = |listed| {
        let gate = {
            let policy = policy.clone();
            move |url: &Url| {
                (!may_connect(&policy, url, listed)).then(|| format!("http://{NOWHERE}"))
            }
        };
        reqwest::Client::builder()
            .no_proxy()
            // Not a proxy: the one place that sees every connection before it is made, literal addresses too.
            .proxy(reqwest::Proxy::custom(gate))
            .dns_resolver(Guard { policy: policy.clone(), listed, lookup: lookup.clone() })
            .redirect(redirect::Policy::none())
            .referer(false)
            .gzip(true)
            .tcp_nodelay(true)
            .user_agent(settings.user_agent.clone())
            .connect_timeout(settings.connect_timeout)
            .read_timeout(settings.read_timeout)
            .build()
    };
    Ok(Client { unlisted: build(Listed::No)?, listed: build(Listed::Yes)?, policy: policy.clone() })
}

fn may_connect(policy: &Policy, url: &Url, listed: Listed) -> bool {
    policy.check_url(url).is_ok() && listed == listing(policy, url)
}

fn listing(policy: &Policy, url: &Url) -> Listed {
    match url.host() {
        Some(Host::Domain(name)) if policy.lists_name(name, url.port_or_known_default()) => {
            Listed::Yes
        }
        _ => Listed::No,
    }
}

impl Client {
    /// Sends a request and follows up to ten redirects, each judged like the first.
    ///
    /// To another origin only the headers go that say what is wanted, no credentials. A redirect without a place to go, or one
    /// whose body cannot be sent twice, is the answer itself.
    pub async fn execute(&self, mut request: Request) -> Result<Response, NetError> {
        for _ in 0..=MAX_REDIRECTS {
            let again = request.try_clone();
            let headers = again.is_none().then(|| request.headers().clone());
            let (method, from) = (request.method().clone(), request.url().clone());
            let response = self.raw(&from)?.execute(request).await?;
            let location = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
            let Some(to) = next_hop(&from, response.status(), location)? else {
                return Ok(response);
            };
            let keeps_body = keeps_method(response.status(), &method);
            let mut next = match again {
                Some(again) => again,
                None if keeps_body => return Ok(response),
                None => Request::new(Method::GET, to.clone()),
            };
            if let Some(headers) = headers {
                *next.headers_mut() = headers;
            }
            if !keeps_body {
                *next.method_mut() = Method::GET;
                *next.body_mut() = None::<Body>;
                for header in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING, TRANSFER_ENCODING] {
                    next.headers_mut().remove(header);
                }
            }
            if to.origin() != from.origin() {
                *next.headers_mut() = harmless(next.headers());
            }
            *next.url_mut() = to;
            request = next;
        }
        Err(Denied::Redirects(MAX_REDIRECTS).into())
    }

    /// The bare client for this URL, for libraries that want one. It denies other hosts that the policy does not let it reach
    /// and follows no redirect.
    pub fn raw(&self, url: &Url) -> Result<&reqwest::Client, Denied> {
        self.policy.check_url(url)?;
        Ok(match listing(&self.policy, url) {
            Listed::Yes => &self.listed,
            Listed::No => &self.unlisted,
        })
    }
}

/// Where a redirect leads; `None` when this is not one.
pub(super) fn next_hop(
    from: &Url,
    status: StatusCode,
    location: Option<&[u8]>,
) -> Result<Option<Url>, Denied> {
    let (301 | 302 | 303 | 307 | 308, Some(location)) = (status.as_u16(), location) else {
        return Ok(None);
    };
    let location = std::str::from_utf8(location).map_err(|_| Denied::Location)?;
    from.join(location).map(Some).map_err(|_| Denied::Location)
}

/// Whether the next request is the same one; else it is a GET, as browsers do.
fn keeps_method(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        303 => *method == Method::HEAD || *method == Method::GET,
        301 | 302 => *method != Method::POST,
        _ => true,
    }
}

fn harmless(headers: &HeaderMap) -> HeaderMap {
    [ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_TYPE, CONTENT_ENCODING, USER_AGENT]
        .into_iter()
        .filter_map(|name| Some((name.clone(), headers.get(name)?.clone())))
        .collect()
}

/// Reads a body of at most `limit` bytes, counted after decompression.
pub async fn read_limited(mut response: Response, limit: usize) -> Result<Bytes, NetError> {
    let too_large = NetError::TooLarge { limit };
    if response
        .content_length()
        .is_some_and(|length| usize::try_from(length).map_or(true, |length| length > limit))
    {
        return Err(too_large);
    }
    let mut body = BytesMut::new();
    let url = response.url().clone();
    while let Some(piece) = response.chunk().await.map_err(|error| error.with_url(url.clone()))? {
        if body.len() + piece.len() > limit {
            return Err(too_large);
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
