//! The readers of pages: our own, and one file for each provider's API.

mod exa;
mod firecrawl;
mod own;
mod serper;
mod tavily;

use futures::future::join_all;
use url::Url;

use super::{
    error::{Fault, ReadError},
    merge::identity,
    pages::Page,
};

pub use self::{
    exa::ExaReader,
    firecrawl::Firecrawl,
    own::{OwnReader, OwnReaderSettings},
    serper::SerperReader,
    tavily::TavilyReader,
};

/// Reads each page by itself, all at the same time.
async fn each<'a, F>(urls: &'a [Url], read: impl Fn(&'a Url) -> F) -> Vec<Result<Page, ReadError>>
where
    F: Future<Output = Result<Page, ReadError>>,
{
    join_all(urls.iter().map(read)).await
}

/// What a provider says about several pages: each by its URL, as the provider writes it.
type Answered = Vec<(String, Result<Page, ReadError>)>;

/// The pages of an answer about several, in the order in which they were asked for. A page that the answer does not mention, by its URL or
/// nearly that, is one that the provider could not read.
fn in_order(
    provider: &'static str,
    urls: &[Url],
    answer: Result<Answered, Fault>,
) -> Vec<Result<Page, ReadError>> {
    match answer {
        Err(fault) => urls
            .iter()
            .map(|_| Err(ReadError::Provider { provider, fault: fault.clone() }))
            .collect(),
        Ok(answer) => urls
            .iter()
            .map(|url| {
                let same = |named: &str| {
                    named == url.as_str()
                        || Url::parse(named).is_ok_and(|named| identity(&named) == identity(url))
                };
                let found =
                    answer.iter().find(|(named, _)| same(named)).map(|(_, page)| page.clone());
                found.unwrap_or_else(|| {
                    Err(ReadError::ProviderPage { provider, message: String::new() })
                })
            })
            .collect(),
    }
}

/// A page that a provider has read.
fn page(url: &Url, text: String, title: Option<String>, published: Option<String>) -> Page {
    Page {
        url: url.clone(),
        title,
        text,
        published,
        content_type: "text/markdown".to_owned(),
        truncated: false,
    }
}
