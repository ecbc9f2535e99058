//! <https://developers.google.com/custom-search/v1/reference/rest/v1/cse/list>

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use reqwest::Method;
use serde::Deserialize;
use url::Url;

use crate::web::{
    Hit, Query, SearchError, SearchProvider, UserLocation,
    api::{Access, Api, Lenient, Text, fitting, text},
    domains::with_operators,
    error::Fault,
};

/// The longest query, in characters: with its encoding it must fit into an address.
const LONGEST: usize = 600;
/// Results of one request at most.
const PAGE: usize = 10;
/// Requests for one query at most: each is paid for.
const PAGES: usize = 2;

/// A Google Programmable Search Engine.
#[derive(Debug)]
pub struct GooglePse {
    api: Api,
    engine_id: String,
}

impl GooglePse {
    /// The name for people.
    pub const NAME: &'static str = "Google PSE";
    /// Where the API usually is.
    pub const BASE: &'static str = "https://customsearch.googleapis.com/customsearch/v1";

    /// The engine with this id.
    pub fn new(access: Access, engine_id: String) -> Self {
        Self { api: Api::new(Self::NAME, access), engine_id }
    }

    async fn ask(&self, query: &Query) -> Result<Vec<Hit>, Fault> {
        let mut hits = Vec::new();
        for page in 0..PAGES {
            let wanted = query.count.max(1).saturating_sub(page * PAGE).min(PAGE);
            if wanted == 0 {
                break;
            }
            let found = match self.page(query, page * PAGE + 1, wanted).await {
                Ok(found) => found,
                // What the first page found is worth something without the second.
                Err(fault) if page > 0 => {
                    tracing::debug!(%fault, "the second page of results failed");
                    break;
                }
                Err(fault) => return Err(fault),
            };
            let is_last = found.len() < wanted;
            hits.extend(found);
            if is_last {
                break;
            }
        }
        Ok(hits)
    }

    async fn page(&self, query: &Query, start: usize, count: usize) -> Result<Vec<Hit>, Fault> {
        let mut parameters = vec![
            ("key", self.api.key().to_owned()),
            ("cx", self.engine_id.clone()),
            ("num", count.to_string()),
        ];
        let mut allowed = query.allowed_domains.as_slice();
        if let [only] = allowed {
            parameters.push(("siteSearch", only.as_str().to_owned()));
            parameters.push(("siteSearchFilter", "i".to_owned()));
            allowed = &[];
        }
        parameters
            .push(("q", with_operators(&query.text, allowed, &query.blocked_domains, LONGEST)));
        if start > 1 {
            parameters.push(("start", start.to_string()));
        }
        parameters.extend(
            query.location.as_ref().and_then(UserLocation::country_code).map(|code| ("gl", code)),
        );
        parameters.extend(
            query.recency.map(|recency| ("dateRestrict", format!("{}1", recency.letter()))),
        );
        let answer: Answer =
            self.api.ask(self.api.request(Method::GET, "")?.query(&parameters)).await?;
        Ok(fitting(answer.items).map(Found::hit).collect())
    }
}

impl SearchProvider for GooglePse {
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
    /// Absent when nothing was found.
    #[serde(default)]
    items: Vec<Lenient<Found>>,
}

#[derive(Deserialize)]
struct Found {
    link: Url,
    title: Text,
    snippet: Text,
    pagemap: Option<Lenient<PageMap>>,
}

#[derive(Deserialize)]
struct PageMap {
    #[serde(default)]
    metatags: Vec<BTreeMap<String, Lenient<String>>>,
}

impl Found {
    fn hit(self) -> Hit {
        let mut tags = self
            .pagemap
            .and_then(Lenient::fits)
            .and_then(|map| map.metatags.into_iter().next())
            .unwrap_or_default();
        let mut first = |names: &[&str]| names.iter().find_map(|name| text(tags.remove(*name)));
        Hit {
            author: first(&["author", "article:author", "og:site_name"]),
            published: first(&["article:published_time", "og:updated_time", "date"]),
            url: self.link,
            title: text(self.title).unwrap_or_default(),
            snippet: text(self.snippet).unwrap_or_default(),
        }
    }
}
