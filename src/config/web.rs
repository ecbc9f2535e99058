use std::{num::NonZeroUsize, time::Duration};

use serde::Deserialize;
use url::Url;

use super::{Secret, value};

/// `[tools.web_search]`: who searches the web.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSearch {
    /// Whose API is asked. `None`: requests with this tool are refused.
    #[serde(deserialize_with = "value::filled_word")]
    pub provider: Option<SearchApi>,
    /// The environment variable that holds the provider's key.
    #[serde(deserialize_with = "value::filled")]
    pub api_key_env: Option<String>,
    /// The key that `api_key_env` names.
    #[serde(skip)]
    pub api_key: Option<Secret>,
    /// Where the provider's API begins. `None`: its usual place.
    #[serde(deserialize_with = "value::filled_http_url")]
    pub base_url: Option<Url>,
    /// The id of a Google Programmable Search Engine, `cx` in its API.
    #[serde(deserialize_with = "value::filled")]
    pub engine_id: Option<String>,
    /// Results of one query.
    pub results: NonZeroUsize,
    /// How long the provider may take over one query. Key `timeout_seconds`.
    #[serde(rename = "timeout_seconds", deserialize_with = "value::seconds")]
    pub timeout: Duration,
}

impl Default for WebSearch {
    fn default() -> Self {
        Self {
            provider: None,
            api_key_env: None,
            api_key: None,
            base_url: None,
            engine_id: None,
            results: NonZeroUsize::MIN.saturating_add(9),
            timeout: Duration::from_secs(20),
        }
    }
}

/// An API that searches the web.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum SearchApi {
    /// A SearXNG instance: needs `base_url`, and the JSON format switched on there.
    Searxng,
    /// Exa.
    Exa,
    /// Brave.
    Brave,
    /// Serper, for Google's results.
    Serper,
    /// Tavily.
    Tavily,
    /// A Google Programmable Search Engine: needs `engine_id`.
    GooglePse,
}

/// `[tools.open_url]`: who reads pages.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OpenUrl {
    /// Whether pages may be opened.
    pub enabled: bool,
    /// Whose API is asked first. `None`: antiphon reads pages itself.
    #[serde(deserialize_with = "value::filled_word")]
    pub provider: Option<PageApi>,
    /// The environment variable that holds the provider's key.
    #[serde(deserialize_with = "value::filled")]
    pub api_key_env: Option<String>,
    /// The key that `api_key_env` names.
    #[serde(skip)]
    pub api_key: Option<Secret>,
    /// Where the provider's API begins. `None`: its usual place.
    #[serde(deserialize_with = "value::filled_http_url")]
    pub base_url: Option<Url>,
    /// How long one page may take. Key `timeout_seconds`.
    #[serde(rename = "timeout_seconds", deserialize_with = "value::seconds")]
    pub timeout: Duration,
}

impl Default for OpenUrl {
    fn default() -> Self {
        Self {
            enabled: true,
            provider: None,
            api_key_env: None,
            api_key: None,
            base_url: None,
            timeout: Duration::from_mins(1),
        }
    }
}

/// An API that reads pages.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum PageApi {
    /// Firecrawl; one of your own may want no key.
    Firecrawl,
    /// Exa.
    Exa,
    /// Tavily.
    Tavily,
    /// Serper.
    Serper,
}
