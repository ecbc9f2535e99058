use super::*;
use crate::config::Sources;

const KEY: &str = "k-123456";

fn built(text: &str) -> Web {
    let env = [("KEY", KEY)].into_iter().collect();
    let config = Sources::new(&env).load_text("t.toml".as_ref(), text).unwrap().config;
    let policies = Policies::new(&config.net).unwrap();
    let parts =
        Parts { policies, clock: Clock::fixed(0), ids: Ids::seeded(1), program: "antiphon".into() };
    from_config(&config.tools, &parts).unwrap()
}

#[test]
fn every_provider_can_be_configured() {
    for (provider, more, name) in [
        ("searxng", "base_url = 'http://127.0.0.1:8888'", "SearXNG"),
        ("exa", "api_key_env = 'KEY'", "Exa"),
        ("brave", "api_key_env = 'KEY'", "Brave"),
        ("serper", "api_key_env = 'KEY'", "Serper"),
        ("tavily", "api_key_env = 'KEY'", "Tavily"),
        ("google_pse", "api_key_env = 'KEY'\nengine_id = 'cx'", "Google PSE"),
    ] {
        let web =
            built(&format!("[tools.web_search]\nprovider = '{provider}'\n{more}\nresults = 7"));
        assert_eq!(web.search.as_ref().map(|search| search.name()), Some(name));
        assert_eq!(web.results, 7);
    }
    for provider in ["firecrawl", "exa", "tavily", "serper"] {
        assert!(
            built(&format!("[tools.open_url]\nprovider = '{provider}'\napi_key_env = 'KEY'"))
                .pages
                .is_some()
        );
    }
}

#[test]
fn nothing_is_configured_but_our_own_reader() {
    let web = built("");
    assert!(web.search.is_none() && web.pages.is_some());
    assert!(built("[tools.open_url]\nenabled = false").pages.is_none());
}

#[test]
fn a_key_does_not_show() {
    let parts = Parts {
        policies: Policies::default(),
        clock: Clock::fixed(0),
        ids: Ids::seeded(1),
        program: "antiphon".into(),
    };
    let key = Secret::from(KEY.to_owned());
    let access = access(&parts, None, GooglePse::BASE, Some(&key), Duration::from_secs(1)).unwrap();
    let shown = format!("{:?}", GooglePse::new(access, "cx".to_owned()));
    assert!(shown.contains("[secret]") && !shown.contains(KEY), "{shown}");
}
