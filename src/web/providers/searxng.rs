//! <https://docs.searxng.org/dev/search_api.html>

use futures::future::BoxFuture;
use reqwest::Method;
use serde::Deserialize;
use url::Url;

use crate::web::{
    Hit, Query, SearchError, SearchProvider,
    api::{Access, Api, Lenient, Text, fitting, text},
    domains::with_operators,
    error::Fault,
};

/// Whatever engines it asks, longer queries are cut by them.
const LONGEST: usize = 1500;

/// An instance of SearXNG.
#[derive(Debug)]
pub struct Searxng(Api);

impl Searxng {
    /// The name for people.
    pub const NAME: &'static str = "SearXNG";

    /// An instance at the base address, with or without `/search` at its end. It wants no key.
    pub fn new(mut access: Access) -> Self {
        let path = access.base.path().trim_end_matches('/');
        let path = path.strip_suffix("/search").unwrap_or(path).to_owned();
        access.base.set_path(&path);
        Self(Api::new(Self::NAME, access))
    }

    async fn ask(&self, query: &Query) -> Result<Vec<Hit>, Fault> {
        let q =
            with_operators(&query.text, &query.allowed_domains, &query.blocked_domains, LONGEST);
        let mut form = vec![("q", q), ("format", "json".to_owned())];
        form.extend(query.recency.map(|recency| ("time_range", recency.word().to_owned())));
        let request = self.0.request(Method::POST, "search")?.form(&form);
        let answer: Answer = self.0.ask(request).await.map_err(|fault| match fault {
            Fault::Refused { status: 403, .. } => Fault::FormatOff,
            other => other,
        })?;
        let hits: Vec<Hit> = fitting(answer.results).map(Found::hit).collect();
        let failed: Vec<String> = fitting(answer.unresponsive_engines)
            .map(|(name, why)| format!("{name} ({why})"))
            .collect();
        if hits.is_empty() && !failed.is_empty() {
            return Err(Fault::Engines(self.0.shown(&failed.join(", "))));
        }
        Ok(hits)
    }
}

impl SearchProvider for Searxng {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn search<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Vec<Hit>, SearchError>> {
        Box::pin(async {
            self.ask(query).await.map_err(|fault| SearchError { provider: Self::NAME, fault })
        })
    }
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Lenient<Found>>,
    #[serde(default)]
    unresponsive_engines: Vec<Lenient<(String, String)>>,
}

#[derive(Deserialize)]
struct Found {
    url: Url,
    title: Text,
    content: Text,
    author: Text,
    #[serde(rename = "publishedDate")]
    published: Text,
}

impl Found {
    fn hit(self) -> Hit {
        Hit {
            url: self.url,
            title: text(self.title).unwrap_or_default(),
            snippet: text(self.content).unwrap_or_default(),
            author: text(self.author),
            published: text(self.published),
        }
    }
}
