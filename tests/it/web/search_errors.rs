//! Search providers that refuse, fail, are slow, or say what is no answer.

use std::time::{Duration, Instant};

use antiphon::web::{
    Brave, Exa, GooglePse, Query, SearchProvider, Searxng, Serper, Tavily, search,
};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::{
    KEY, access, providers,
    site::{Reply, Site},
};

const PATIENCE: Duration = Duration::from_secs(10);
const BAD_KEY: &str = "refused the key of this server; its operator has to check `api_key_env`";
const USED_UP: &str = "says that the plan or the credits of this server are used up";

fn query() -> Query {
    Query::new("oslo weather", 10).unwrap()
}

/// The sentence of a failed search; it never holds the key.
async fn error(provider: &dyn SearchProvider) -> String {
    let error = provider.search(&query()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn who_is_busy_is_asked_again() {
    let site = Site::start().await;
    for (provider, path, answer) in providers(&site, PATIENCE) {
        for status in [429, 500, 503] {
            let busy = Reply::json(status, "{}").header("retry-after-ms", "20");
            site.on(path, [busy.clone(), busy, Reply::json(200, answer)]);
            site.forget();
            let begun = Instant::now();
            provider.search(&query()).await.unwrap_or_else(|error| panic!("{error}"));
            assert!(begun.elapsed() >= Duration::from_millis(40), "it waits as long as it is told");
            assert_eq!(site.asked().len(), 3, "{}", provider.name());
        }
    }
}

#[tokio::test]
async fn who_stays_busy_is_given_up() {
    let site = Site::start().await;
    for (provider, path, _) in providers(&site, PATIENCE) {
        for (reply, sentence, asked) in [
            (Reply::json(429, "{}"), "gets too many requests at the moment; try again later", 3),
            (
                Reply::json(429, "{}").header("retry-after", "60"),
                "gets too many requests at the moment; try again later",
                1,
            ),
            (Reply::json(502, "<html>"), "failed on its side (HTTP 502)", 3),
            (Reply::json(404, "<html>"), "refused the request (HTTP 404)", 1),
            (Reply::json(401, r#"{"message":"no"}"#), BAD_KEY, 1),
            (
                Reply::new(200, "text/html", "<html>Welcome"),
                "gave an answer that cannot be read: it is not JSON",
                1,
            ),
            (
                Reply::json(200, r#"{"results":[{"url":"#),
                "gave an answer that cannot be read: it is not JSON",
                1,
            ),
        ] {
            site.on(path, [reply]);
            site.forget();
            assert_eq!(
                error(&*provider).await,
                format!("the search provider {} {sentence}", provider.name())
            );
            assert_eq!(site.asked().len(), asked, "{}: {sentence}", provider.name());
        }
    }
}

#[tokio::test]
async fn an_answer_without_what_was_promised_is_no_empty_result() {
    let site = Site::start().await;
    for (provider, path, _) in providers(&site, PATIENCE) {
        site.on(path, [Reply::json(200, r#"{"results":7,"organic":7,"web":7,"items":7}"#)]);
        let expected =
            "gave an answer that cannot be read: it lacks what its documentation promises";
        assert_eq!(
            error(&*provider).await,
            format!("the search provider {} {expected}", provider.name())
        );
    }
}

#[tokio::test]
async fn an_answer_has_a_limit_in_time_and_size() {
    let site = Site::start().await;
    let spaces = Reply::endless("application/json", vec![b' '; 1 << 20], Duration::ZERO);
    let drip = Reply::endless("application/json", " ", Duration::from_millis(20));
    for (provider, path, _) in providers(&site, PATIENCE) {
        site.on(path, [spaces.clone()]);
        let large = format!(
            "the search provider {} gave an answer of more than 16000000 bytes",
            provider.name()
        );
        assert_eq!(error(&*provider).await, large);
    }
    for (provider, path, _) in providers(&site, Duration::from_millis(200)) {
        for reply in [&drip, &Reply::never()] {
            site.on(path, [reply.clone()]);
            let slow = format!("the search provider {} did not answer in time", provider.name());
            assert_eq!(error(&*provider).await, slow);
        }
    }
}

#[tokio::test]
async fn each_provider_has_its_own_way_to_refuse() {
    let site = Site::start().await;
    let access = || access(&site, PATIENCE);
    let brave = json!({ "type": "ErrorResponse", "error": {
        "code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "The provided subscription token is invalid.", "status": 422 } });
    let brave_param = json!({ "type": "ErrorResponse", "error": { "code": "VALIDATION", "detail": "Unable to validate country" } });
    let exa = json!({ "requestId": "r", "error": format!("Invalid API key {KEY}"), "tag": "INVALID_API_KEY" });
    let google_key = json!({ "error": { "code": 400, "message": "API key not valid. Please pass a valid API key.", "errors": [] } });
    let google_cx = json!({ "error": { "code": 400, "message": format!("Invalid Value for key={KEY}"), "status": "INVALID_ARGUMENT" } });
    let google_quota = json!({ "error": { "code": 429, "message": "Quota exceeded for quota metric 'Queries' and limit 'Queries per day'" } });
    let cases: Vec<(Box<dyn SearchProvider>, &str, Reply, &str)> = vec![
        (
            Box::new(Searxng::new(access())),
            "/api/search",
            Reply::new(403, "text/html", "Forbidden"),
            "does not give JSON; its operator has to add `json` to `search.formats` in the instance's settings.yml",
        ),
        (
            Box::new(Searxng::new(access())),
            "/api/search",
            Reply::json(
                200,
                r#"{"results":[],"unresponsive_engines":[["google","timeout"],["bing","access denied"]]}"#,
            ),
            "got no results, for its engines failed: google (timeout), bing (access denied)",
        ),
        (
            Box::new(Brave::new(access())),
            "/api/web/search",
            Reply::json(422, brave.to_string()),
            BAD_KEY,
        ),
        (
            Box::new(Brave::new(access())),
            "/api/web/search",
            Reply::json(422, brave_param.to_string()),
            "refused the request (HTTP 422): Unable to validate country",
        ),
        (Box::new(Exa::new(access())), "/api/search", Reply::json(401, exa.to_string()), BAD_KEY),
        (
            Box::new(Exa::new(access())),
            "/api/search",
            Reply::json(402, r#"{"tag":"NO_MORE_CREDITS"}"#),
            USED_UP,
        ),
        (
            Box::new(Serper::new(access())),
            "/api/search",
            Reply::json(403, r#"{"message":"Unauthorized.","statusCode":403}"#),
            BAD_KEY,
        ),
        (
            Box::new(Serper::new(access())),
            "/api/search",
            Reply::json(400, r#"{"message":"Not enough credits","statusCode":400}"#),
            USED_UP,
        ),
        (
            Box::new(Tavily::new(access())),
            "/api/search",
            Reply::json(401, r#"{"detail":{"error":"Unauthorized: missing or invalid API key."}}"#),
            BAD_KEY,
        ),
        (
            Box::new(Tavily::new(access())),
            "/api/search",
            Reply::json(
                432,
                r#"{"detail":{"error":"This request exceeds your plan's set usage limit."}}"#,
            ),
            USED_UP,
        ),
        (
            Box::new(GooglePse::new(access(), "x".into())),
            "/api",
            Reply::json(400, google_key.to_string()),
            BAD_KEY,
        ),
        // An error with status 200; what it says is told without the key.
        (
            Box::new(GooglePse::new(access(), "x".into())),
            "/api",
            Reply::json(200, google_cx.to_string()),
            "refused the request (HTTP 400): Invalid Value for key=[key]",
        ),
        (
            Box::new(GooglePse::new(access(), "x".into())),
            "/api",
            Reply::json(200, google_quota.to_string()),
            USED_UP,
        ),
    ];
    for (provider, path, reply, sentence) in cases {
        site.on(path, [reply]);
        assert_eq!(
            error(&*provider).await,
            format!("the search provider {} {sentence}", provider.name())
        );
    }
}

#[tokio::test]
async fn who_cannot_be_reached_is_named_without_where() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = listener.local_addr().unwrap();
    let site = Site::start().await;
    let mut access = access(&site, PATIENCE);
    access.base = format!("http://{closed}/").parse().unwrap();
    let denied = error(&GooglePse::new(access.clone(), "x".into())).await;
    assert_eq!(
        denied,
        "the search provider Google PSE is not asked: the host `127.0.0.1` leads to an address that is not allowed"
    );

    access.client = antiphon::net::guarded(antiphon::net::GuardedSettings::new(
        antiphon::net::Policy::default().with_configured(&access.base),
    ))
    .unwrap();
    drop(listener);
    assert_eq!(
        error(&GooglePse::new(access, "x".into())).await,
        "the search provider Google PSE cannot be reached"
    );
}

#[tokio::test]
async fn a_provider_that_redirects_inwards_is_not_followed() {
    let (site, inner) = (Site::start().await, Site::start().await);
    site.on("/api/search", [Reply::redirect(inner.url("/secret").as_str())]);
    let provider = Exa::new(access(&site, PATIENCE));
    assert_eq!(
        error(&provider).await,
        "the search provider Exa is not asked: the host `127.0.0.1` leads to an address that is not allowed"
    );
    assert!(inner.asked().is_empty());
}

#[tokio::test]
async fn one_query_fails_and_the_others_are_answered() {
    let site = Site::start().await;
    let found =
        json!({ "organic": [{ "title": "T", "link": "https://a.org/?id=1", "snippet": "s" }] })
            .to_string();
    site.on("/api/search", [Reply::json(400, r#"{"message":"odd"}"#), Reply::json(200, found)]);
    let provider = Serper::new(access(&site, PATIENCE));
    let outcome = search(&provider, &[query(), query(), query()], 20).await.unwrap();
    assert_eq!(outcome.failed.len(), 1);
    assert_eq!(
        outcome.failed[0].1.to_string(),
        "the search provider Serper refused the request (HTTP 400): odd"
    );
    assert_eq!(outcome.hits.len(), 1);
    assert_eq!(outcome.hits[0].hit.url.as_str(), "https://a.org/?id=1");
    assert_eq!(outcome.hits[0].queries.len(), 2);
}
