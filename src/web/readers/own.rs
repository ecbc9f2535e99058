//! Our own reader: fetches a page and has its text taken out by a child process.

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use reqwest::{
    Method, Request, Response,
    header::{
        ACCEPT, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, SERVER,
    },
};
use url::Url;

use super::each;
use crate::{
    documents::{self, Kind, ParseError, Parsed, Parser, Task},
    net::{self, BuildError, GuardedSettings, Policy, read_limited},
    web::{Page, PageReader, ReadError},
};

/// The largest PDF, in bytes.
const LARGEST_PDF: usize = 50_000_000;
/// The largest of everything else, in bytes.
const LARGEST_TEXT: usize = 20_000_000;
/// The longest text that is kept of a file that is text already, in bytes.
const LONGEST_TEXT: usize = 4_000_000;
/// How much of an error page is looked at.
const ERROR_PAGE: usize = 64 * 1024;
const USER_AGENT: &str =
    concat!("Mozilla/5.0 (compatible; antiphon/", env!("CARGO_PKG_VERSION"), ")");
const ACCEPTED: &str = "text/html,application/xhtml+xml,application/pdf;q=0.9,text/markdown;q=0.9,text/plain;q=0.9,*/*;q=0.5";

/// How our own reader reads.
#[derive(Clone, Debug)]
pub struct OwnReaderSettings {
    /// Where it may go: the class of addresses that a model chooses.
    pub policy: Policy,
    /// Takes text out of documents.
    pub parser: Parser,
    /// The longest that connecting may take.
    pub connect_timeout: Duration,
    /// The longest silence while a page is read.
    pub read_timeout: Duration,
    /// How long one page may take, redirects included.
    pub timeout: Duration,
}

impl OwnReaderSettings {
    /// The usual limits.
    pub fn new(policy: Policy, parser: Parser) -> Self {
        Self {
            policy,
            parser,
            connect_timeout: Duration::from_secs(5),
            read_timeout: Duration::from_secs(15),
            timeout: Duration::from_mins(1),
        }
    }
}

/// Reads pages itself.
#[derive(Clone, Debug)]
pub struct OwnReader {
    client: net::Client,
    parser: Parser,
    timeout: Duration,
}

impl OwnReader {
    /// A reader with these settings.
    pub fn new(settings: OwnReaderSettings) -> Result<Self, BuildError> {
        let OwnReaderSettings { policy, parser, connect_timeout, read_timeout, timeout } = settings;
        let client = net::guarded(GuardedSettings {
            connect_timeout,
            read_timeout,
            user_agent: USER_AGENT.to_owned(),
            ..GuardedSettings::new(policy)
        })?;
        Ok(Self { client, parser, timeout })
    }

    async fn page(&self, url: &Url) -> Result<Page, ReadError> {
        tokio::time::timeout(self.timeout, self.fetch(url)).await.unwrap_or(Err(ReadError::Timeout))
    }

    async fn fetch(&self, url: &Url) -> Result<Page, ReadError> {
        let mut request = Request::new(Method::GET, url.clone());
        request.headers_mut().extend(HeaderMap::from_iter([
            (ACCEPT, HeaderValue::from_static(ACCEPTED)),
            (ACCEPT_LANGUAGE, HeaderValue::from_static("en;q=0.8,*;q=0.5")),
        ]));
        let response = self.client.execute(request).await?;
        if !response.status().is_success() {
            return Err(refusal(response).await);
        }
        if response.headers().contains_key(CONTENT_ENCODING) {
            // One that we did not ask for and cannot undo.
            return Err(ReadError::NotText("compressed data".to_owned()));
        }
        let url = response.url().clone();
        let declared = Declared::of(response.headers());
        let limit = match declared.sort() {
            Sort::Other => return Err(ReadError::NotText(declared.kind)),
            Sort::Pdf | Sort::Unknown => LARGEST_PDF,
            Sort::Html | Sort::Text => LARGEST_TEXT,
        };
        let body = read_limited(response, limit).await?;
        self.text(url, declared, body).await
    }

    async fn text(&self, url: Url, declared: Declared, body: Bytes) -> Result<Page, ReadError> {
        let (sort, kind) = match declared.sort() {
            Sort::Unknown => sniff(&body).ok_or(ReadError::NotText(declared.kind))?,
            // Servers send both as the other.
            _ if body.starts_with(b"%PDF-") => (Sort::Pdf, "application/pdf".to_owned()),
            sort => (sort, declared.kind),
        };
        if sort != Sort::Pdf && body.len() > LARGEST_TEXT {
            return Err(ReadError::TooLarge { limit: LARGEST_TEXT });
        }
        let parsed = match sort {
            Sort::Html | Sort::Pdf => {
                let task = Task {
                    kind: if sort == Sort::Pdf { Kind::Pdf } else { Kind::Html },
                    url: Some(url.to_string()),
                    charset: declared.charset,
                };
                self.parser.parse(&task, &body).await?
            }
            Sort::Text | Sort::Unknown | Sort::Other => {
                plain(&documents::decode(&body, declared.charset.as_deref()))
            }
        };
        let Parsed { title, text, published, truncated } = parsed;
        if sort == Sort::Pdf && text.is_empty() {
            return Err(ReadError::Document(ParseError::Pictures));
        }
        Ok(Page { url, title, text, published, content_type: kind, truncated })
    }
}

impl PageReader for OwnReader {
    fn name(&self) -> &'static str {
        "antiphon"
    }

    fn read<'a>(&'a self, urls: &'a [Url]) -> BoxFuture<'a, Vec<Result<Page, ReadError>>> {
        Box::pin(each(urls, |url| self.page(url)))
    }
}

fn plain(text: &str) -> Parsed {
    let end = text.floor_char_boundary(LONGEST_TEXT);
    // A NUL does not go into a database.
    Parsed {
        title: None,
        text: text[..end].replace('\0', "\u{fffd}"),
        published: None,
        truncated: end < text.len(),
    }
}

/// What the server says that it sends.
struct Declared {
    /// Such as `text/html`; empty when it does not say.
    kind: String,
    charset: Option<String>,
}

/// What we do with a kind of content.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sort {
    Html,
    Pdf,
    /// Text as it is.
    Text,
    /// The bytes have to tell.
    Unknown,
    /// Nothing to read.
    Other,
}

impl Declared {
    fn of(headers: &HeaderMap) -> Self {
        let header =
            headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut parts = header.split(';').map(str::trim);
        let kind: String = parts
            .next()
            .unwrap_or_default()
            .chars()
            .take(100)
            .collect::<String>()
            .to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim()
                .eq_ignore_ascii_case("charset")
                .then(|| value.trim().chars().take(100).collect())
        });
        Self { kind, charset }
    }

    fn sort(&self) -> Sort {
        match self.kind.as_str() {
            "text/html" | "application/xhtml+xml" => Sort::Html,
            "application/pdf" | "application/x-pdf" => Sort::Pdf,
            "" | "application/octet-stream" | "binary/octet-stream" | "application/unknown" => {
                Sort::Unknown
            }
            "application/json"
            | "application/xml"
            | "application/javascript"
            | "application/yaml"
            | "application/x-yaml"
            | "application/toml"
            | "application/x-ndjson"
            | "application/x-sh" => Sort::Text,
            kind if kind.starts_with("text/")
                || kind.ends_with("+json")
                || kind.ends_with("+xml") && !kind.starts_with("image/") =>
            {
                Sort::Text
            }
            _ => Sort::Other,
        }
    }
}

/// What bytes are whose server does not know it.
fn sniff(body: &[u8]) -> Option<(Sort, String)> {
    if body.starts_with(b"%PDF-") {
        return Some((Sort::Pdf, "application/pdf".to_owned()));
    }
    let head = String::from_utf8_lossy(&body[..body.len().min(1024)]).to_lowercase();
    if ["<!doctype html", "<html", "<head", "<body"]
        .iter()
        .any(|tag| head.trim_start_matches('\u{feff}').trim_start().starts_with(tag))
    {
        return Some((Sort::Html, "text/html".to_owned()));
    }
    let is_text = !body.contains(&0) && std::str::from_utf8(body).is_ok();
    is_text.then(|| (Sort::Text, "text/plain".to_owned()))
}

/// Why the site did not give the page.
async fn refusal(mut response: Response) -> ReadError {
    let status = response.status().as_u16();
    let is = |name: &str, value: &str| {
        response
            .headers()
            .get(name)
            .is_some_and(|found| found.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
    };
    if is("cf-mitigated", "challenge") {
        return ReadError::Challenge;
    }
    if !is(SERVER.as_str(), "cloudflare") || !matches!(status, 403 | 429 | 503) {
        return ReadError::Http(status);
    }
    let mut page = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        page.extend_from_slice(&piece);
        if page.len() > ERROR_PAGE {
            break;
        }
    }
    let page = String::from_utf8_lossy(&page);
    if page.contains("/cdn-cgi/challenge-platform/") || page.contains("cf-challenge") {
        ReadError::Challenge
    } else {
        ReadError::Http(status)
    }
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;
