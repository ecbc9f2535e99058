//! <https://docs.tavily.com/documentation/api-reference/endpoint/extract>

use futures::future::BoxFuture;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Answered, in_order, page};
use crate::web::{
    Page, PageReader, ReadError, Tavily,
    api::{Access, Api, Lenient, Text, fitting, text},
    error::Fault,
};

/// Tavily's extractor.
#[derive(Debug)]
pub struct TavilyReader(Api);

impl TavilyReader {
    /// Tavily at this address with this key.
    pub fn new(access: Access) -> Self {
        Self(Api::new(Tavily::NAME, access).asking_once())
    }

    async fn extract(&self, urls: &[Url]) -> Result<Answered, Fault> {
        let body = Extract { urls, format: "markdown" };
        let request = self
            .0
            .request(Method::POST, "extract")?
            .header("authorization", self.0.key_header("Bearer ")?)
            .json(&body);
        let answer: Answer = self.0.ask(request).await?;
        let read = fitting(answer.results).map(|found| {
            let page = match text(found.raw_content) {
                Some(words) => Ok(page(&found.url, words, text(found.title), None)),
                None => Err(ReadError::Empty),
            };
            (found.url.to_string(), page)
        });
        let failed = fitting(answer.failed_results).map(|failed| {
            let message = self.0.shown(&text(failed.error).unwrap_or_default());
            (failed.url, Err(ReadError::ProviderPage { provider: Tavily::NAME, message }))
        });
        Ok(read.chain(failed).collect())
    }
}

impl PageReader for TavilyReader {
    fn name(&self) -> &'static str {
        Tavily::NAME
    }

    fn read<'a>(&'a self, urls: &'a [Url]) -> BoxFuture<'a, Vec<Result<Page, ReadError>>> {
        Box::pin(async move { in_order(Tavily::NAME, urls, self.extract(urls).await) })
    }
}

#[derive(Serialize)]
struct Extract<'a> {
    urls: &'a [Url],
    format: &'static str,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Lenient<Found>>,
    #[serde(default)]
    failed_results: Vec<Lenient<Failed>>,
}

#[derive(Deserialize)]
struct Found {
    url: Url,
    title: Text,
    raw_content: Text,
}

#[derive(Deserialize)]
struct Failed {
    url: String,
    error: Text,
}
