//! From the configuration to providers and readers.

use std::{path::PathBuf, sync::Arc, time::Duration};

use url::Url;

use super::{
    Brave, Exa, ExaReader, Firecrawl, GooglePse, OwnReader, OwnReaderSettings, PageReader, Pages,
    SearchProvider, Searxng, Serper, SerperReader, Tavily, TavilyReader, api::Access,
};
use crate::{
    clock::{Clock, Ids},
    config::{OpenUrl, PageApi, SearchApi, Secret, Tools, WebSearch},
    documents::{Limits, Parser},
    net::{self, BuildError, GuardedSettings, Policies},
};

/// What the web needs besides its configuration.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Where requests may go.
    pub policies: Policies,
    /// What time it is.
    pub clock: Clock,
    /// For spreading waits.
    pub ids: Ids,
    /// Our own binary, which parses documents.
    pub program: PathBuf,
}

/// What is configured to reach the web.
#[derive(Clone)]
pub struct Web {
    /// Who searches. `None`: nobody is configured.
    pub search: Option<Arc<dyn SearchProvider>>,
    /// Results of one query.
    pub results: usize,
    /// Who reads pages. `None`: that is switched off.
    pub pages: Option<Pages>,
}

/// A provider cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// No client can be made.
    #[error(transparent)]
    Client(#[from] BuildError),
    /// A key is missing that the configuration should have been checked for.
    #[error("`{0}` must be set for this provider")]
    Missing(&'static str),
    /// An address of our own that is none.
    #[error("`{0}` is not an address")]
    Address(&'static str),
}

/// The providers and readers that `[tools]` names.
pub fn from_config(tools: &Tools, parts: &Parts) -> Result<Web, WebError> {
    let search = &tools.web_search;
    let pages = if tools.open_url.enabled { Some(pages(&tools.open_url, parts)?) } else { None };
    Ok(Web {
        search: search.provider.map(|api| provider(api, search, parts)).transpose()?,
        results: search.results.get(),
        pages,
    })
}

fn provider(
    api: SearchApi,
    search: &WebSearch,
    parts: &Parts,
) -> Result<Arc<dyn SearchProvider>, WebError> {
    let access = |usual| {
        access(parts, search.base_url.as_ref(), usual, search.api_key.as_ref(), search.timeout)
    };
    Ok(match api {
        SearchApi::Searxng if search.base_url.is_none() => {
            return Err(WebError::Missing("tools.web_search.base_url"));
        }
        // It has no usual place, so this one is never taken.
        SearchApi::Searxng => Arc::new(Searxng::new(access("http://127.0.0.1:8888")?)),
        SearchApi::Exa => Arc::new(Exa::new(access(Exa::BASE)?)),
        SearchApi::Brave => Arc::new(Brave::new(access(Brave::BASE)?)),
        SearchApi::Serper => Arc::new(Serper::new(access(Serper::BASE)?)),
        SearchApi::Tavily => Arc::new(Tavily::new(access(Tavily::BASE)?)),
        SearchApi::GooglePse => {
            let engine_id =
                search.engine_id.clone().ok_or(WebError::Missing("tools.web_search.engine_id"))?;
            Arc::new(GooglePse::new(access(GooglePse::BASE)?, engine_id))
        }
    })
}

fn pages(open: &OpenUrl, parts: &Parts) -> Result<Pages, WebError> {
    let access =
        |usual| access(parts, open.base_url.as_ref(), usual, open.api_key.as_ref(), open.timeout);
    let provider: Option<Arc<dyn PageReader>> = match open.provider {
        None => None,
        Some(PageApi::Firecrawl) => Some(Arc::new(Firecrawl::new(access(Firecrawl::BASE)?))),
        Some(PageApi::Exa) => Some(Arc::new(ExaReader::new(access(Exa::BASE)?))),
        Some(PageApi::Tavily) => Some(Arc::new(TavilyReader::new(access(Tavily::BASE)?))),
        Some(PageApi::Serper) => Some(Arc::new(SerperReader::new(access(SerperReader::BASE)?))),
    };
    let policy = parts.policies.found.clone();
    let parser = Parser::new(parts.program.clone(), Limits::default());
    let own = OwnReader::new(OwnReaderSettings {
        timeout: open.timeout,
        ..OwnReaderSettings::new(policy.clone(), parser)
    })?;
    Ok(Pages::new(provider, Arc::new(own), policy))
}

/// How a provider is reached: where the operator says, else in its usual place.
fn access(
    parts: &Parts,
    configured: Option<&Url>,
    usual: &'static str,
    key: Option<&Secret>,
    timeout: Duration,
) -> Result<Access, WebError> {
    let (base, policy) = match configured {
        Some(url) => (url.clone(), parts.policies.named.clone().with_configured(url)),
        None => {
            (Url::parse(usual).map_err(|_| WebError::Address(usual))?, parts.policies.named.clone())
        }
    };
    // The whole request has its own limit; a provider may be silent as long as that.
    let settings = GuardedSettings { read_timeout: timeout, ..GuardedSettings::new(policy) };
    Ok(Access {
        client: net::guarded(settings)?,
        base,
        key: key.cloned(),
        timeout,
        clock: parts.clock.clone(),
        ids: parts.ids.clone(),
    })
}

#[cfg(test)]
#[path = "wiring_tests.rs"]
mod tests;
