//! Search providers, page providers and our own reader against servers of the tests' own.

mod own_reader;
mod page_providers;
mod search_errors;
mod search_providers;
pub(crate) mod site;

use std::time::Duration;

use antiphon::{
    clock::{Clock, Ids},
    config::Secret,
    net::{self, GuardedSettings, Policy},
    web::{Access, Brave, Exa, GooglePse, SearchProvider, Searxng, Serper, Tavily},
};

use self::site::Site;

/// The key of all providers.
const KEY: &str = "k-7f3a9c";
/// 2024-03-10T12:00:00Z.
const NOW: i64 = 1_710_072_000;

/// Rules that let nothing but this site be reached.
fn only(site: &Site) -> Policy {
    Policy::default().with_configured(&site.url(""))
}

/// How a provider at this site is reached.
fn access(site: &Site, timeout: Duration) -> Access {
    Access {
        client: net::guarded(GuardedSettings::new(only(site))).unwrap(),
        base: site.url("/api"),
        key: Some(Secret::from(KEY.to_owned())),
        timeout,
        clock: Clock::fixed(NOW),
        ids: Ids::seeded(1),
    }
}

/// Every search provider, with the path that it asks below `/api` and an answer without results.
fn providers(
    site: &Site,
    timeout: Duration,
) -> Vec<(Box<dyn SearchProvider>, &'static str, &'static str)> {
    let access = || access(site, timeout);
    vec![
        (Box::new(Searxng::new(access())), "/api/search", r#"{"results":[]}"#),
        (Box::new(Exa::new(access())), "/api/search", r#"{"results":[]}"#),
        (Box::new(Brave::new(access())), "/api/web/search", r#"{"type":"search"}"#),
        (Box::new(Serper::new(access())), "/api/search", r#"{"organic":[]}"#),
        (Box::new(Tavily::new(access())), "/api/search", r#"{"results":[]}"#),
        (
            Box::new(GooglePse::new(access(), "cx-1".to_owned())),
            "/api",
            r#"{"kind":"customsearch#search"}"#,
        ),
    ]
}
