//! Asking several queries at once.

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use url::Url;

use super::{
    domains::admits,
    error::SearchError,
    merge::interleave,
    query::{Query, fit},
};

/// Queries that run at the same time; more wait. Providers count requests per second.
const PARALLEL: usize = 4;
/// The longest title and other names, in characters.
const LONGEST_NAME: usize = 300;

/// A provider that searches the web.
pub trait SearchProvider: Send + Sync {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// The results of one query, the best first. [`search()`] checks and cleans them.
    fn search<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Vec<Hit>, SearchError>>;
}

/// A result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hit {
    /// Where it is, as the provider gave it, query and all.
    pub url: Url,
    /// Its title; empty when the provider knows none.
    pub title: String,
    /// A passage that fits the query; empty when the provider gives none.
    pub snippet: String,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was published, as the provider writes it: RFC 3339 from most, words from some.
    pub published: Option<String>,
}

impl Hit {
    /// A result of which nothing but the place is known.
    pub fn new(url: Url) -> Self {
        Self { url, title: String::new(), snippet: String::new(), author: None, published: None }
    }

    /// Takes over what another finding of the same page knows and this one does not.
    pub(super) fn fill_from(&mut self, other: Self) {
        if self.title.is_empty() {
            self.title = other.title;
        }
        if self.snippet.is_empty() {
            self.snippet = other.snippet;
        }
        self.author = self.author.take().or(other.author);
        self.published = self.published.take().or(other.published);
    }
}

/// A result, and which queries found it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Found {
    /// The result.
    pub hit: Hit,
    /// The places of its queries among those that were asked, the first one first.
    pub queries: Vec<usize>,
}

/// What several queries found.
#[derive(Clone, Debug, Default)]
pub struct SearchOutcome {
    /// The results, interleaved over the queries; each page once.
    pub hits: Vec<Found>,
    /// The queries that failed, by their place, while others did not.
    pub failed: Vec<(usize, SearchError)>,
}

impl SearchOutcome {
    /// The results of one query, or of several that belong to one call.
    pub fn hits_of(&self, queries: impl Fn(usize) -> bool) -> impl Iterator<Item = &Hit> {
        self.hits
            .iter()
            .filter(move |found| found.queries.iter().any(|query| queries(*query)))
            .map(|found| &found.hit)
    }
}

/// All queries failed, or there were none.
#[derive(Clone, Debug, thiserror::Error)]
#[error("no query could be answered: {}", reasons(.0))]
pub struct SearchFailed(pub Vec<SearchError>);

/// Each reason once: the same key fails for all queries.
fn reasons(errors: &[SearchError]) -> String {
    let mut said: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !said.contains(&text) {
            said.push(text);
        }
    }
    if said.is_empty() { "there was none".to_owned() } else { said.join("; ") }
}

/// Asks all queries. One that fails does not cost the others; when all fail that is an error. At most `most` results come back, fairly over
/// the queries.
pub async fn search(
    provider: &dyn SearchProvider,
    queries: &[Query],
    most: usize,
) -> Result<SearchOutcome, SearchFailed> {
    let asked: Vec<BoxFuture<'_, _>> = queries
        .iter()
        .enumerate()
        .map(|(i, query)| async move { (i, provider.search(query).await) }.boxed())
        .collect();
    let answers: Vec<_> = stream::iter(asked).buffered(PARALLEL).collect().await;
    let mut outcome = SearchOutcome::default();
    let mut results = Vec::new();
    for (i, answer) in answers {
        match answer {
            Ok(hits) => results.push((i, worth_showing(hits, &queries[i]))),
            Err(error) => {
                tracing::warn!(%error, "a web search failed");
                outcome.failed.push((i, error));
            }
        }
    }
    if results.is_empty() {
        return Err(SearchFailed(outcome.failed.into_iter().map(|(_, error)| error).collect()));
    }
    outcome.hits = interleave(results, most);
    Ok(outcome)
}

/// The results that may be shown, cleaned.
fn worth_showing(hits: Vec<Hit>, query: &Query) -> Vec<Hit> {
    hits.into_iter()
        .filter(|hit| matches!(hit.url.scheme(), "http" | "https"))
        .filter(|hit| admits(&query.allowed_domains, &query.blocked_domains, &hit.url))
        .map(|hit| Hit {
            title: fit(&hit.title, LONGEST_NAME, usize::MAX),
            snippet: fit(&hit.snippet, query.context_size.longest_snippet(), usize::MAX),
            author: hit.author.map(|author| fit(&author, LONGEST_NAME, usize::MAX)),
            published: hit.published.map(|when| fit(&when, LONGEST_NAME, usize::MAX)),
            url: hit.url,
        })
        .filter(|hit| !hit.title.is_empty() || !hit.snippet.is_empty())
        .take(query.count)
        .collect()
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
