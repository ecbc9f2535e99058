//! <https://exa.ai/docs/reference/get-contents>

use futures::future::BoxFuture;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Answered, in_order, page};
use crate::web::{
    Exa, Page, PageReader, ReadError,
    api::{Access, Api, Lenient, Text, fitting, text},
    error::Fault,
};

/// Exa's contents.
#[derive(Debug)]
pub struct ExaReader(Api);

impl ExaReader {
    /// Exa at this address with this key.
    pub fn new(access: Access) -> Self {
        Self(Api::new(Exa::NAME, access).asking_once())
    }

    async fn contents(&self, urls: &[Url]) -> Result<Answered, Fault> {
        let body = Contents { urls, text: true, livecrawl: "preferred" };
        let request = self
            .0
            .request(Method::POST, "contents")?
            .header("x-api-key", self.0.key_header("")?)
            .json(&body);
        let answer: Answer = self.0.ask(request).await?;
        let read = fitting(answer.results).map(|found| {
            let page = match text(found.text) {
                Some(words) => {
                    Ok(page(&found.url, words, text(found.title), text(found.published_date)))
                }
                None => Err(ReadError::Empty),
            };
            (text(found.id).unwrap_or_else(|| found.url.to_string()), page)
        });
        let failed =
            fitting(answer.statuses).filter(|status| status.outcome == "error").map(|status| {
                let error = status.error.and_then(Lenient::fits);
                let code = error.as_ref().and_then(|error| error.code).filter(|code| *code >= 400);
                let message = error.and_then(|error| text(error.tag)).unwrap_or_default();
                let reason = ReadError::ProviderPage {
                    provider: Exa::NAME,
                    message: self.0.shown(&message),
                };
                (status.id, Err(code.map_or(reason, ReadError::Http)))
            });
        Ok(read.chain(failed).collect())
    }
}

impl PageReader for ExaReader {
    fn name(&self) -> &'static str {
        Exa::NAME
    }

    fn read<'a>(&'a self, urls: &'a [Url]) -> BoxFuture<'a, Vec<Result<Page, ReadError>>> {
        Box::pin(async move { in_order(Exa::NAME, urls, self.contents(urls).await) })
    }
}

#[derive(Serialize)]
struct Contents<'a> {
    urls: &'a [Url],
    text: bool,
    livecrawl: &'static str,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Lenient<Found>>,
    #[serde(default)]
    statuses: Vec<Lenient<Status>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    /// The URL as it was asked for.
    id: Text,
    url: Url,
    title: Text,
    text: Text,
    published_date: Text,
}

#[derive(Deserialize)]
struct Status {
    id: String,
    #[serde(rename = "status")]
    outcome: String,
    error: Option<Lenient<StatusError>>,
}

#[derive(Deserialize)]
struct StatusError {
    tag: Text,
    #[serde(rename = "httpStatusCode")]
    code: Option<u16>,
}
