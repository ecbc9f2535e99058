//! <https://docs.tavily.com/documentation/api-reference/endpoint/search>

use futures::future::BoxFuture;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::web::{
    ContextSize, Hit, Query, Recency, SearchError, SearchProvider, UserLocation,
    api::{Access, Api, Lenient, Text, fitting, text},
    countries::country_name,
    domains::Domain,
    error::Fault,
    query::fit,
};

/// The longest query, in characters.
const LONGEST: usize = 400;
/// Results of one request at most.
const MOST: usize = 20;

/// Tavily's search.
#[derive(Debug)]
pub struct Tavily(Api);

impl Tavily {
    /// The name for people.
    pub const NAME: &'static str = "Tavily";
    /// Where the API usually begins.
    pub const BASE: &'static str = "https://api.tavily.com";

    /// Tavily at this address with this key.
    pub fn new(access: Access) -> Self {
        Self(Api::new(Self::NAME, access))
    }

    async fn ask(&self, query: &Query) -> Result<Vec<Hit>, Fault> {
        let country = query.location.as_ref().and_then(UserLocation::country_code);
        let body = Search {
            query: fit(&query.text, LONGEST, usize::MAX),
            max_results: query.count.clamp(1, MOST),
            // Advanced costs twice as much.
            depth: if query.context_size == ContextSize::High { "advanced" } else { "basic" },
            topic: "general",
            country: country.and_then(|code| country_name(&code)),
            time_range: query.recency.map(Recency::word),
            include_domains: query.allowed_domains.iter().map(Domain::as_str).collect(),
            exclude_domains: query.blocked_domains.iter().map(Domain::as_str).collect(),
        };
        let request = self
            .0
            .request(Method::POST, "search")?
            .header("authorization", self.0.key_header("Bearer ")?)
            .json(&body);
        let answer: Answer = self.0.ask(request).await?;
        Ok(fitting(answer.results).map(Found::hit).collect())
    }
}

impl SearchProvider for Tavily {
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
struct Search<'a> {
    query: String,
    max_results: usize,
    #[serde(rename = "search_depth")]
    depth: &'static str,
    topic: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_range: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include_domains: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exclude_domains: Vec<&'a str>,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Lenient<Found>>,
}

#[derive(Deserialize)]
struct Found {
    url: Url,
    title: Text,
    content: Text,
    published_date: Text,
}

impl Found {
    fn hit(self) -> Hit {
        Hit {
            url: self.url,
            title: text(self.title).unwrap_or_default(),
            snippet: text(self.content).unwrap_or_default(),
            author: None,
            published: text(self.published_date),
        }
    }
}
