//! <https://serper.dev/playground>: Google's results.

use futures::future::BoxFuture;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::web::{
    Hit, Query, SearchError, SearchProvider, UserLocation,
    api::{Access, Api, Lenient, Text, fitting, text},
    countries::country_name,
    domains::with_operators,
    error::Fault,
};

/// Google cuts longer queries.
const LONGEST: usize = 1500;

/// Serper's search.
#[derive(Debug)]
pub struct Serper(Api);

impl Serper {
    /// The name for people.
    pub const NAME: &'static str = "Serper";
    /// Where the API usually begins.
    pub const BASE: &'static str = "https://google.serper.dev";

    /// Serper at this address with this key.
    pub fn new(access: Access) -> Self {
        Self(Api::new(Self::NAME, access))
    }

    async fn ask(&self, query: &Query) -> Result<Vec<Hit>, Fault> {
        let body = Search {
            q: with_operators(&query.text, &query.allowed_domains, &query.blocked_domains, LONGEST),
            num: query.count.clamp(1, 100),
            gl: query.location.as_ref().and_then(UserLocation::country_code),
            location: query.location.as_ref().and_then(place),
            tbs: query.recency.map(|recency| format!("qdr:{}", recency.letter())),
        };
        let request = self
            .0
            .request(Method::POST, "search")?
            .header("x-api-key", self.0.key_header("")?)
            .json(&body);
        let answer: Answer = self.0.ask(request).await?;
        Ok(fitting(answer.organic).map(Found::hit).collect())
    }
}

/// `City, Region, Country`, if at least the city and the country are known: a place that Google does not know is an error.
fn place(location: &UserLocation) -> Option<String> {
    let country = country_name(&location.country_code()?)?;
    let city = location.city.as_deref()?;
    let parts = [Some(city), location.region.as_deref(), Some(country)];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

impl SearchProvider for Serper {
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
struct Search {
    q: String,
    num: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    gl: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tbs: Option<String>,
}

#[derive(Deserialize)]
struct Answer {
    organic: Vec<Lenient<Found>>,
}

#[derive(Deserialize)]
struct Found {
    link: Url,
    title: Text,
    snippet: Text,
    /// In words: `3 days ago`, `Mar 4, 2024`.
    date: Text,
}

impl Found {
    fn hit(self) -> Hit {
        Hit {
            url: self.link,
            title: text(self.title).unwrap_or_default(),
            snippet: text(self.snippet).unwrap_or_default(),
            author: None,
            published: text(self.date),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_when_it_is_known_well_enough() {
        let location =
            |country: Option<&str>, region: Option<&str>, city: Option<&str>| UserLocation {
                country: country.map(str::to_owned),
                region: region.map(str::to_owned),
                city: city.map(str::to_owned),
                timezone: None,
            };
        for (location, expected) in [
            (
                location(Some("US"), Some("Texas"), Some("Austin")),
                Some("Austin, Texas, united states"),
            ),
            (location(Some("no"), None, Some("Oslo")), Some("Oslo, norway")),
            (location(Some("no"), Some("Viken"), None), None),
            (location(None, None, Some("Oslo")), None),
            (location(Some("xx"), None, Some("Oslo")), None),
        ] {
            assert_eq!(place(&location).as_deref(), expected, "{location:?}");
        }
    }
}
