//! Reading several pages at once, with whoever can.

use std::{collections::HashMap, sync::Arc};

use futures::future::BoxFuture;
use url::{Host, Url};

use super::error::ReadError;
use crate::net::{Policy, Zone, zone};

/// Pages that are read at once at most.
pub const MOST_PAGES: usize = 10;
/// A page of less, in characters, is a shell that a script was to fill, or a notice.
const LEAST_TEXT: usize = 50;
/// A page that says that it is loading, and hardly more than this, in characters, is not there yet.
const STILL_LOADING: usize = 200;

/// A page as text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page {
    /// Where it was found in the end, after redirects.
    pub url: Url,
    /// Its title.
    pub title: Option<String>,
    /// Its text; Markdown when it was a page or a PDF.
    pub text: String,
    /// When it was published, as it says itself.
    pub published: Option<String>,
    /// What its server calls it, such as `text/html`; `text/markdown` from a provider.
    pub content_type: String,
    /// Whether it was longer than is kept.
    pub truncated: bool,
}

/// Something that reads pages.
pub trait PageReader: Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// Reads each of these pages, and answers in their order.
    fn read<'a>(&'a self, urls: &'a [Url]) -> BoxFuture<'a, Vec<Result<Page, ReadError>>>;
}

/// Reads pages with a provider if there is one, and with our own reader what that could not read.
#[derive(Clone)]
pub struct Pages {
    provider: Option<Arc<dyn PageReader>>,
    own: Arc<dyn PageReader>,
    policy: Policy,
}

impl Pages {
    /// With these readers; `policy` says which addresses may be read, whoever reads them.
    pub fn new(
        provider: Option<Arc<dyn PageReader>>,
        own: Arc<dyn PageReader>,
        policy: Policy,
    ) -> Self {
        Self { provider, own, policy }
    }

    /// Reads the pages at these addresses, as a model writes them, and answers in their order. An address that stands there twice is read
    /// once; beyond [`MOST_PAGES`] each is told that it was not read.
    pub async fn read(&self, addresses: &[impl AsRef<str> + Sync]) -> Vec<Result<Page, ReadError>> {
        let mut wanted: Vec<Url> = Vec::new();
        let mut places: HashMap<Url, usize> = HashMap::new();
        let asked: Vec<Result<usize, ReadError>> = addresses
            .iter()
            .map(|address| {
                let url = self.readable(address.as_ref())?;
                if let Some(place) = places.get(&url) {
                    return Ok(*place);
                }
                if wanted.len() == MOST_PAGES {
                    return Err(ReadError::Surplus { limit: MOST_PAGES });
                }
                places.insert(url.clone(), wanted.len());
                wanted.push(url);
                Ok(wanted.len() - 1)
            })
            .collect();
        let pages = self.read_each(&wanted).await;
        let page = |place: usize| pages.get(place).cloned().unwrap_or(Err(ReadError::Unreachable));
        asked.into_iter().map(|place| place.and_then(page)).collect()
    }

    /// The address of a page, without the fragment, if it may be read.
    fn readable(&self, address: &str) -> Result<Url, ReadError> {
        let mut url = Url::parse(address.trim()).map_err(|_| ReadError::NotAnAddress)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ReadError::NotAnAddress);
        }
        self.policy.check_url(&url).map_err(ReadError::Forbidden)?;
        url.set_fragment(None);
        Ok(url)
    }

    async fn read_each(&self, urls: &[Url]) -> Vec<Result<Page, ReadError>> {
        let mut pages: Vec<Option<Page>> = vec![None; urls.len()];
        if let Some(provider) = &self.provider {
            let (places, outside): (Vec<usize>, Vec<Url>) =
                urls.iter().cloned().enumerate().filter(|(_, url)| !self.is_ours(url)).unzip();
            let read = if outside.is_empty() { Vec::new() } else { provider.read(&outside).await };
            for (place, page) in places.into_iter().zip(read) {
                match page.and_then(sufficient) {
                    Ok(page) => pages[place] = Some(page),
                    Err(error) => {
                        tracing::debug!(provider = provider.name(), %error, "a page is read without the provider");
                    }
                }
            }
        }
        let missing: Vec<Url> = urls
            .iter()
            .zip(&pages)
            .filter(|(_, page)| page.is_none())
            .map(|(url, _)| url.clone())
            .collect();
        let read = if missing.is_empty() { Vec::new() } else { self.own.read(&missing).await };
        let mut read = read.into_iter().map(|page| page.and_then(sufficient));
        pages
            .into_iter()
            .map(|page| page.map_or_else(|| read.next().unwrap_or(Err(ReadError::Unreachable)), Ok))
            .collect()
    }

    /// Whether this is of our own network, which no provider reaches, nor should hear of.
    fn is_ours(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Domain(name)) => self.policy.lists_name(name, url.port_or_known_default()),
            Some(Host::Ipv4(address)) => zone(address.into()) != Zone::Public,
            Some(Host::Ipv6(address)) => zone(address.into()) != Zone::Public,
            None => true,
        }
    }
}

/// The page, if there is something to read on it.
fn sufficient(page: Page) -> Result<Page, ReadError> {
    let length = page.text.trim().chars().take(STILL_LOADING + 1).count();
    let is_rendered = matches!(
        page.content_type.as_str(),
        "text/html" | "application/xhtml+xml" | "text/markdown"
    );
    let is_shell = is_rendered
        && (length < LEAST_TEXT
            || length <= STILL_LOADING && page.text.to_lowercase().contains("loading..."));
    if length == 0 || is_shell { Err(ReadError::Empty) } else { Ok(page) }
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
