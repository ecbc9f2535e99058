//! <https://docs.firecrawl.dev/api-reference/endpoint/scrape>

use futures::future::BoxFuture;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{each, page};
use crate::web::{
    Page, PageReader, ReadError,
    api::{Access, Api, Lenient, Text, text},
};

/// Firecrawl's scraper.
#[derive(Debug)]
pub struct Firecrawl(Api);

impl Firecrawl {
    /// The name for people.
    pub const NAME: &'static str = "Firecrawl";
    /// Where the API usually begins.
    pub const BASE: &'static str = "https://api.firecrawl.dev";

    /// Firecrawl at this address; one of your own may want no key.
    pub fn new(access: Access) -> Self {
        // Asking again is dear and slow, and our own reader is next.
        Self(Api::new(Self::NAME, access).asking_once())
    }

    async fn scrape(&self, url: &Url) -> Result<Page, ReadError> {
        let failed = |fault| ReadError::Provider { provider: Self::NAME, fault };
        let mut request = self.0.request(Method::POST, "v2/scrape").map_err(failed)?;
        if !self.0.key().is_empty() {
            request =
                request.header("authorization", self.0.key_header("Bearer ").map_err(failed)?);
        }
        let body = Scrape { url: url.as_str(), formats: ["markdown"] };
        let answer: Answer = self.0.ask(request.json(&body)).await.map_err(failed)?;
        let Data { markdown, content, text: plain, metadata } = answer.data;
        let metadata = metadata.and_then(Lenient::fits).unwrap_or_default();
        // The site's answer, not Firecrawl's.
        if let Some(status) =
            metadata.status.and_then(Lenient::fits).filter(|status| *status >= 400)
        {
            return Err(ReadError::Http(status));
        }
        let found =
            [markdown, content, plain].into_iter().find_map(text).ok_or(ReadError::Empty)?;
        Ok(page(
            url,
            found,
            text(metadata.title),
            text(metadata.published).or_else(|| text(metadata.date)),
        ))
    }
}

impl PageReader for Firecrawl {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn read<'a>(&'a self, urls: &'a [Url]) -> BoxFuture<'a, Vec<Result<Page, ReadError>>> {
        Box::pin(each(urls, |url| self.scrape(url)))
    }
}

#[derive(Serialize)]
struct Scrape<'a> {
    url: &'a str,
    formats: [&'static str; 1],
}

#[derive(Deserialize)]
struct Answer {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    markdown: Text,
    content: Text,
    text: Text,
    metadata: Option<Lenient<Metadata>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    title: Text,
    #[serde(rename = "publishedTime")]
    published: Text,
    date: Text,
    #[serde(rename = "statusCode")]
    status: Option<Lenient<u16>>,
}
