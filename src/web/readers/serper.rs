//! <https://serper.dev/playground>, its scraper.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{each, page};
use crate::web::{
    Page, PageReader, ReadError, Serper,
    api::{Access, Api, Lenient, Text, text},
    error::Fault,
};

/// Serper's scraper.
#[derive(Debug)]
pub struct SerperReader(Api);

impl SerperReader {
    /// Where the API usually is.
    pub const BASE: &'static str = "https://scrape.serper.dev";

    /// Serper at this address with this key.
    pub fn new(access: Access) -> Self {
        Self(Api::new(Serper::NAME, access).asking_once())
    }

    async fn scrape(&self, url: &Url) -> Result<Page, ReadError> {
        let failed = |fault| match fault {
            // That is how it says that it cannot read the page.
            Fault::Refused { status: 400, message } => {
                ReadError::ProviderPage { provider: Serper::NAME, message }
            }
            fault => ReadError::Provider { provider: Serper::NAME, fault },
        };
        let body = Scrape { url: url.as_str(), markdown: true };
        let request = self.0.request(Method::POST, "").map_err(failed)?;
        let key = self.0.key_header("").map_err(failed)?;
        let answer: Answer =
            self.0.ask(request.header("x-api-key", key).json(&body)).await.map_err(failed)?;
        let found = text(answer.markdown).or_else(|| text(answer.text)).ok_or(ReadError::Empty)?;
        let mut metadata = answer.metadata.and_then(Lenient::fits).unwrap_or_default();
        let mut data = answer.jsonld.and_then(Lenient::fits).unwrap_or_default();
        let title = ["title", "og:title"].into_iter().find_map(|name| text(metadata.remove(name)));
        let published =
            ["dateModified", "datePublished"].into_iter().find_map(|name| text(data.remove(name)));
        Ok(page(url, found, title, published))
    }
}

impl PageReader for SerperReader {
    fn name(&self) -> &'static str {
        Serper::NAME
    }

    fn read<'a>(&'a self, urls: &'a [Url]) -> BoxFuture<'a, Vec<Result<Page, ReadError>>> {
        Box::pin(each(urls, |url| self.scrape(url)))
    }
}

#[derive(Serialize)]
struct Scrape<'a> {
    url: &'a str,
    #[serde(rename = "includeMarkdown")]
    markdown: bool,
}

#[derive(Deserialize)]
struct Answer {
    markdown: Text,
    text: Text,
    metadata: Option<Lenient<BTreeMap<String, Lenient<String>>>>,
    jsonld: Option<Lenient<BTreeMap<String, Lenient<String>>>>,
}
