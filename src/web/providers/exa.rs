//! <https://exa.ai/docs/reference/search>

use futures::future::BoxFuture;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use time::{Duration, format_description::well_known::Rfc3339};
use url::Url;

use crate::web::{
    ContextSize, Hit, Query, SearchError, SearchProvider, UserLocation,
    api::{Access, Api, Lenient, Text, fitting, text},
    domains::Domain,
    error::Fault,
};

/// Exa's search.
#[derive(Debug)]
pub struct Exa(Api);

impl Exa {
    /// The name for people.
    pub const NAME: &'static str = "Exa";
    /// Where the API usually begins.
    pub const BASE: &'static str = "https://api.exa.ai";

    /// Exa at this address with this key.
    pub fn new(access: Access) -> Self {
        Self(Api::new(Self::NAME, access))
    }

    async fn ask(&self, query: &Query) -> Result<Vec<Hit>, Fault> {
        let since =
            query.recency.map(|recency| self.0.clock().now() - Duration::days(recency.days()));
        let (sentences, highlights) = match query.context_size {
            ContextSize::Low => (2, 1),
            ContextSize::Medium => (3, 2),
            ContextSize::High => (5, 3),
        };
        let body = Search {
            query: &query.text,
            kind: "auto",
            num_results: query.count.min(100),
            include_domains: query.allowed_domains.iter().map(Domain::as_str).collect(),
            exclude_domains: query.blocked_domains.iter().map(Domain::as_str).collect(),
            start_published_date: since.and_then(|since| since.format(&Rfc3339).ok()),
            user_location: query
                .location
                .as_ref()
                .and_then(UserLocation::country_code)
                .map(|code| code.to_uppercase()),
            contents: Contents {
                highlights: Highlights { num_sentences: sentences, highlights_per_url: highlights },
            },
        };
        let request = self
            .0
            .request(Method::POST, "search")?
            .header("x-api-key", self.0.key_header("")?)
            .json(&body);
        let answer: Answer = self.0.ask(request).await?;
        Ok(fitting(answer.results).map(Found::hit).collect())
    }
}

impl SearchProvider for Exa {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn search<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Vec<Hit>, SearchError>> {
        Box::pin(async {
            self.ask(query).await.map_err(|fault| SearchError { provider: Self::NAME, fault })
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Search<'a> {
    query: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    num_results: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include_domains: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exclude_domains: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_published_date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_location: Option<String>,
    contents: Contents,
}

#[derive(Serialize)]
struct Contents {
    highlights: Highlights,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Highlights {
    num_sentences: u8,
    highlights_per_url: u8,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Lenient<Found>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    url: Url,
    title: Text,
    author: Text,
    published_date: Text,
    #[serde(default)]
    highlights: Option<Lenient<Vec<String>>>,
}

impl Found {
    fn hit(self) -> Hit {
        let highlights = self.highlights.and_then(Lenient::fits).unwrap_or_default();
        Hit {
            url: self.url,
            title: text(self.title).unwrap_or_default(),
            snippet: highlights.join(" … "),
            author: text(self.author),
            published: text(self.published_date),
        }
    }
}
