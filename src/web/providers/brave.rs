//! <https://api-dashboard.search.brave.com/app/documentation/web-search/query>

use futures::future::BoxFuture;
use reqwest::Method;
use serde::Deserialize;
use url::Url;

use crate::web::{
    Hit, Query, Recency, SearchError, SearchProvider, UserLocation,
    api::{Access, Api, Lenient, Text, fitting, text},
    domains::with_operators,
    error::Fault,
    query::fit,
};

/// The longest query, in characters and words.
const LONGEST: (usize, usize) = (400, 50);
/// Results of one request at most.
const MOST: usize = 20;
/// The countries that it takes; another one is an error there.
const COUNTRIES: &str = "ar au at be br ca cl dk fi fr de gr hk in id it jp kr my mx nl nz no cn pl pt ph ru sa za es se ch tw tr gb us";

/// Brave's search.
#[derive(Debug)]
pub struct Brave(Api);

impl Brave {
    /// The name for people.
    pub const NAME: &'static str = "Brave";
    /// Where the API usually begins.
    pub const BASE: &'static str = "https://api.search.brave.com/res/v1";

    /// Brave at this address with this key.
    pub fn new(access: Access) -> Self {
        Self(Api::new(Self::NAME, access))
    }

    async fn ask(&self, query: &Query) -> Result<Vec<Hit>, Fault> {
        let text = fit(&query.text, LONGEST.0, LONGEST.1);
        let q = with_operators(&text, &query.allowed_domains, &query.blocked_domains, LONGEST.0);
        let mut parameters = vec![
            ("q", q),
            ("count", query.count.clamp(1, MOST).to_string()),
            // No <strong> in the snippets.
            ("text_decorations", "false".to_owned()),
            ("result_filter", "web".to_owned()),
        ];
        let country = query.location.as_ref().and_then(UserLocation::country_code);
        if let Some(country) =
            country.filter(|code| COUNTRIES.split(' ').any(|known| known == code))
        {
            parameters.push(("country", country.to_uppercase()));
        }
        if let Some(recency) = query.recency {
            let freshness = match recency {
                Recency::Day => "pd",
                Recency::Week => "pw",
                Recency::Month => "pm",
                Recency::Year => "py",
            };
            parameters.push(("freshness", freshness.to_owned()));
        }
        let request = self
            .0
            .request(Method::GET, "web/search")?
            .header("x-subscription-token", self.0.key_header("")?)
            .query(&parameters);
        let answer: Answer = self.0.ask(request).await?;
        // Without a single result there is no `web`.
        let results = answer.web.map(|web| web.results).unwrap_or_default();
        Ok(fitting(results).map(Found::hit).collect())
    }
}

impl SearchProvider for Brave {
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
    web: Option<Web>,
}

#[derive(Deserialize)]
struct Web {
    results: Vec<Lenient<Found>>,
}

#[derive(Deserialize)]
struct Found {
    url: Url,
    title: Text,
    description: Text,
    /// ISO 8601 without a zone.
    page_age: Text,
}

impl Found {
    fn hit(self) -> Hit {
        // They are HTML, whatever the decorations.
        let plain = |given: Text| {
            text(given).map(|given| html_escape::decode_html_entities(&given).into_owned())
        };
        Hit {
            url: self.url,
            title: plain(self.title).unwrap_or_default(),
            snippet: plain(self.description).unwrap_or_default(),
            author: None,
            published: text(self.page_age),
        }
    }
}
