//! What each search provider is asked, and what its answers mean.

use std::time::Duration;

use antiphon::web::{
    Brave, ContextSize, Exa, GooglePse, Hit, Query, Recency, SearchProvider, Searxng, Serper,
    Tavily, UserLocation,
};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::{
    KEY, access,
    site::{Asked, Reply, Site},
};

const PATIENCE: Duration = Duration::from_secs(10);

/// A query that asks for nothing special.
fn plain() -> Query {
    Query::new("oslo weather", 10).unwrap()
}

/// A query that uses everything.
fn full() -> Query {
    Query {
        allowed_domains: vec!["yr.no".parse().unwrap(), "met.no".parse().unwrap()],
        blocked_domains: vec!["ads.met.no".parse().unwrap()],
        location: Some(UserLocation {
            country: Some("NO".to_owned()),
            region: Some("Oslo".to_owned()),
            city: Some("Oslo".to_owned()),
            timezone: Some("Europe/Oslo".to_owned()),
        }),
        context_size: ContextSize::High,
        recency: Some(Recency::Week),
        ..Query::new("oslo weather", 15).unwrap()
    }
}

/// What the provider asks for these queries, and what it makes of the answer to the first.
async fn asked(site: &Site, provider: &dyn SearchProvider) -> (Vec<Asked>, Vec<Hit>) {
    let hits = provider.search(&plain()).await.unwrap();
    provider.search(&full()).await.unwrap();
    (site.asked(), hits)
}

/// The results as lines: URL | title | snippet | author | published.
fn lines(hits: &[Hit]) -> Vec<String> {
    hits.iter()
        .map(|hit| {
            let [author, published] =
                [&hit.author, &hit.published].map(|text| text.as_deref().unwrap_or("-"));
            format!("{} | {} | {} | {author} | {published}", hit.url, hit.title, hit.snippet)
        })
        .collect()
}

#[tokio::test]
async fn searxng() {
    let site = Site::start().await;
    let answer = json!({
        "query": "oslo weather", "number_of_results": 0,
        "results": [
            { "url": "https://www.yr.no/watch?v=1&t=2", "title": "Weather", "content": "Sunny, 20°", "engine": "google",
              "publishedDate": "2024-03-09T00:00:00", "score": 1.0, "category": "general" },
            // No content, an author that is none, and a result that is none.
            { "url": "https://met.no/", "title": "Met", "author": 7 },
            { "title": "no url" },
        ],
        "answers": [], "infoboxes": [], "unresponsive_engines": [["bing", "timeout"]],
    });
    site.on("/api/search", [Reply::json(200, answer.to_string())]);
    let (asked, hits) = asked(&site, &Searxng::new(access(&site, PATIENCE))).await;
    assert_eq!(
        lines(&hits),
        [
            "https://www.yr.no/watch?v=1&t=2 | Weather | Sunny, 20° | - | 2024-03-09T00:00:00",
            "https://met.no/ | Met |  | - | -"
        ]
    );
    assert_eq!(asked[0].line, "POST /api/search");
    assert_eq!(asked[0].header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(asked[0].body, "q=oslo+weather&format=json");
    assert_eq!(
        asked[1].body,
        "q=oslo+weather+%28site%3Ayr.no+OR+site%3Amet.no%29+-site%3Aads.met.no&format=json&time_range=week"
    );
    assert!(!format!("{:?}", asked[0]).contains(KEY), "it wants no key");
}

#[tokio::test]
async fn searxng_may_be_named_with_its_search_page() {
    let site = Site::start().await;
    site.on("/searx/search", [Reply::json(200, r#"{"results":[]}"#)]);
    for base in ["/searx/search", "/searx/search/", "/searx/", "/searx"] {
        let mut access = access(&site, PATIENCE);
        access.base = site.url(base);
        Searxng::new(access)
            .search(&plain())
            .await
            .unwrap_or_else(|error| panic!("{base}: {error}"));
    }
}

#[tokio::test]
async fn exa() {
    let site = Site::start().await;
    let answer = json!({
        "requestId": "r", "resolvedSearchType": "neural",
        "results": [
            { "id": "https://yr.no/x", "url": "https://yr.no/x?q=1", "title": "Weather", "publishedDate": "2024-03-09T00:00:00.000Z",
              "author": "Ada", "highlights": ["Sunny.", "20°"], "highlightScores": [0.5, 0.4] },
            { "id": "2", "url": "https://met.no/", "title": null, "author": null, "publishedDate": null },
        ],
        "costDollars": { "total": 0.005 },
    });
    site.on("/api/search", [Reply::json(200, answer.to_string())]);
    let (asked, hits) = asked(&site, &Exa::new(access(&site, PATIENCE))).await;
    assert_eq!(
        lines(&hits),
        [
            "https://yr.no/x?q=1 | Weather | Sunny. … 20° | Ada | 2024-03-09T00:00:00.000Z",
            "https://met.no/ |  |  | - | -"
        ]
    );
    assert_eq!(
        (asked[0].line.as_str(), asked[0].header("x-api-key")),
        ("POST /api/search", Some(KEY))
    );
    assert_eq!(
        asked[0].json(),
        json!({ "query": "oslo weather", "type": "auto", "numResults": 10,
                "contents": { "highlights": { "numSentences": 3, "highlightsPerUrl": 2 } } })
    );
    assert_eq!(
        asked[1].json(),
        json!({ "query": "oslo weather", "type": "auto", "numResults": 15, "includeDomains": ["yr.no", "met.no"],
                "excludeDomains": ["ads.met.no"], "startPublishedDate": "2024-03-03T12:00:00Z", "userLocation": "NO",
                "contents": { "highlights": { "numSentences": 5, "highlightsPerUrl": 3 } } })
    );
}

#[tokio::test]
async fn brave() {
    let site = Site::start().await;
    let answer = json!({
        "type": "search", "query": { "original": "oslo weather" },
        "web": { "type": "search", "results": [
            { "title": "Tom &amp; Jerry&#x27;s", "url": "https://yr.no/?a=1&b=2", "description": "20&deg; &lt;now&gt;",
              "page_age": "2024-03-09T08:00:00", "age": "1 day ago", "language": "en" },
        ] },
    });
    site.on(
        "/api/web/search",
        [Reply::json(200, answer.to_string()), Reply::json(200, r#"{"type":"search"}"#)],
    );
    let (asked, hits) = asked(&site, &Brave::new(access(&site, PATIENCE))).await;
    assert_eq!(
        lines(&hits),
        ["https://yr.no/?a=1&b=2 | Tom & Jerry's | 20° <now> | - | 2024-03-09T08:00:00"]
    );
    assert_eq!(
        asked[0].line,
        "GET /api/web/search?q=oslo+weather&count=10&text_decorations=false&result_filter=web"
    );
    assert_eq!(asked[0].header("x-subscription-token"), Some(KEY));
    assert_eq!(asked[0].header("accept"), Some("application/json"));
    assert_eq!(
        asked[1].line,
        "GET /api/web/search?q=oslo+weather+%28site%3Ayr.no+OR+site%3Amet.no%29+-site%3Aads.met.no&count=15\
         &text_decorations=false&result_filter=web&country=NO&freshness=pw"
    );
}

#[tokio::test]
async fn brave_is_not_asked_what_it_refuses() {
    let site = Site::start().await;
    site.on("/api/web/search", [Reply::json(200, r#"{"type":"search"}"#)]);
    let elsewhere = UserLocation { country: Some("IS".to_owned()), ..UserLocation::default() };
    let query =
        Query { location: Some(elsewhere), ..Query::new(&"word ".repeat(190), 50).unwrap() };
    Brave::new(access(&site, PATIENCE)).search(&query).await.unwrap();
    let line = &site.asked()[0].line;
    assert!(!line.contains("country") && line.contains("&count=20&"), "{line}");
    assert_eq!(line.matches("word").count(), 50);
}

#[tokio::test]
async fn serper() {
    let site = Site::start().await;
    let answer = json!({
        "searchParameters": { "q": "oslo weather", "type": "search" },
        "organic": [
            { "title": "Weather", "link": "https://yr.no/x?id=1", "snippet": "Sunny", "date": "3 days ago", "position": 1 },
            { "title": "Met", "link": "https://met.no/", "position": 2 },
        ],
        "credits": 1,
    });
    site.on("/api/search", [Reply::json(200, answer.to_string())]);
    let (asked, hits) = asked(&site, &Serper::new(access(&site, PATIENCE))).await;
    assert_eq!(
        lines(&hits),
        [
            "https://yr.no/x?id=1 | Weather | Sunny | - | 3 days ago",
            "https://met.no/ | Met |  | - | -"
        ]
    );
    assert_eq!(
        (asked[0].line.as_str(), asked[0].header("x-api-key")),
        ("POST /api/search", Some(KEY))
    );
    assert_eq!(asked[0].json(), json!({ "q": "oslo weather", "num": 10 }));
    assert_eq!(
        asked[1].json(),
        json!({ "q": "oslo weather (site:yr.no OR site:met.no) -site:ads.met.no", "num": 15, "gl": "no",
                "location": "Oslo, Oslo, norway", "tbs": "qdr:w" })
    );
}

#[tokio::test]
async fn tavily() {
    let site = Site::start().await;
    let answer = json!({
        "query": "oslo weather", "answer": null, "images": [], "response_time": 0.6,
        "results": [{ "title": "Weather", "url": "https://yr.no/x?id=1", "content": "Sunny", "score": 0.9, "raw_content": null }],
    });
    site.on("/api/search", [Reply::json(200, answer.to_string())]);
    let (asked, hits) = asked(&site, &Tavily::new(access(&site, PATIENCE))).await;
    assert_eq!(lines(&hits), ["https://yr.no/x?id=1 | Weather | Sunny | - | -"]);
    assert_eq!(asked[0].line, "POST /api/search");
    assert_eq!(asked[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(
        asked[0].json(),
        json!({ "query": "oslo weather", "max_results": 10, "search_depth": "basic", "topic": "general" })
    );
    assert_eq!(
        asked[1].json(),
        json!({ "query": "oslo weather", "max_results": 15, "search_depth": "advanced", "topic": "general", "country": "norway",
                "time_range": "week", "include_domains": ["yr.no", "met.no"], "exclude_domains": ["ads.met.no"] })
    );
}

fn google_items(count: usize) -> String {
    let item = json!({
        "kind": "customsearch#result", "title": "Weather", "link": "https://yr.no/x?id=1", "snippet": "Sunny",
        "pagemap": { "metatags": [{ "og:site_name": "Yr", "article:published_time": "2024-03-09T00:00:00Z" }] },
    });
    json!({ "kind": "customsearch#search", "items": vec![item; count] }).to_string()
}

#[tokio::test]
async fn google_pse() {
    let site = Site::start().await;
    let provider = GooglePse::new(access(&site, PATIENCE), "cx-1".to_owned());
    site.on("/api", [Reply::json(200, google_items(1))]);
    let (asked, hits) = asked(&site, &provider).await;
    assert_eq!(
        lines(&hits),
        ["https://yr.no/x?id=1 | Weather | Sunny | Yr | 2024-03-09T00:00:00Z"]
    );
    assert_eq!(asked.len(), 2, "a page that is not full is the last");
    assert_eq!(asked[0].line, format!("GET /api?key={KEY}&cx=cx-1&num=10&q=oslo+weather"));
    assert_eq!(
        asked[1].line,
        format!(
            "GET /api?key={KEY}&cx=cx-1&num=10&q=oslo+weather+%28site%3Ayr.no+OR+site%3Amet.no%29+-site%3Aads.met.no\
             &gl=no&dateRestrict=w1"
        )
    );
}

#[tokio::test]
async fn google_pse_takes_one_domain_as_a_parameter_and_turns_the_page() {
    let site = Site::start().await;
    let provider = GooglePse::new(access(&site, PATIENCE), "cx-1".to_owned());
    let query = Query {
        allowed_domains: vec!["yr.no".parse().unwrap()],
        ..Query::new("oslo", 15).unwrap()
    };
    site.on("/api", [Reply::json(200, google_items(10)), Reply::json(200, google_items(5))]);
    assert_eq!(provider.search(&query).await.unwrap().len(), 15);
    let lines: Vec<String> = site.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(
        lines,
        [
            format!("GET /api?key={KEY}&cx=cx-1&num=10&siteSearch=yr.no&siteSearchFilter=i&q=oslo"),
            format!(
                "GET /api?key={KEY}&cx=cx-1&num=5&siteSearch=yr.no&siteSearchFilter=i&q=oslo&start=11"
            ),
        ]
    );
    // What the first page found is worth something without the second.
    site.on("/api", [Reply::json(200, google_items(10)), Reply::json(400, "{}")]);
    assert_eq!(provider.search(&query).await.unwrap().len(), 10);
}
