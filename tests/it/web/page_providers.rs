//! What each page provider is asked, and what its answers mean.

use std::time::Duration;

use antiphon::web::{
    ExaReader, Firecrawl, Page, PageReader, ReadError, SerperReader, TavilyReader,
};
use pretty_assertions::assert_eq;
use serde_json::json;
use url::Url;

use super::{
    KEY, access,
    site::{Reply, Site},
};

const PATIENCE: Duration = Duration::from_secs(10);

fn urls(urls: &[&str]) -> Vec<Url> {
    urls.iter().map(|url| Url::parse(url).unwrap()).collect()
}

/// Each page as `URL | title | text | published`, or why there is none.
fn shown(pages: Vec<Result<Page, ReadError>>) -> Vec<String> {
    pages
        .into_iter()
        .map(|page| match page {
            Ok(page) => {
                let [title, published] =
                    [&page.title, &page.published].map(|text| text.as_deref().unwrap_or("-"));
                format!("{} | {title} | {} | {published}", page.url, page.text)
            }
            Err(error) => {
                assert!(!format!("{error} {error:?}").contains(KEY), "{error:?}");
                error.to_string()
            }
        })
        .collect()
}

#[tokio::test]
async fn firecrawl() {
    let site = Site::start().await;
    let reader = Firecrawl::new(access(&site, PATIENCE));
    let answer = json!({ "success": true, "data": {
        "markdown": "# Hello", "metadata": { "title": "Hi", "publishedTime": "2024-03-09", "statusCode": 200, "sourceURL": "x" } } });
    site.on("/api/v2/scrape", [Reply::json(200, answer.to_string())]);
    let pages = shown(reader.read(&urls(&["https://a.org/x?id=1#part"])).await);
    assert_eq!(pages, ["https://a.org/x?id=1#part | Hi | # Hello | 2024-03-09"]);
    let asked = &site.asked()[0];
    assert_eq!(
        (asked.line.as_str(), asked.header("authorization")),
        ("POST /api/v2/scrape", Some(format!("Bearer {KEY}").as_str()))
    );
    assert_eq!(
        asked.json(),
        json!({ "url": "https://a.org/x?id=1#part", "formats": ["markdown"] })
    );

    let gone = json!({ "success": true, "data": { "markdown": "Not found", "metadata": { "title": ["a", "b"], "statusCode": 404 } } });
    for (reply, expected) in [
        (
            Reply::json(200, gone.to_string()),
            "failed: the site answered HTTP 404 (there is no such page)",
        ),
        (
            Reply::json(200, r#"{"success":true,"data":{"metadata":{}}}"#),
            "failed: there is no readable text on the page; it may need a browser that runs scripts",
        ),
        (
            Reply::json(200, r#"{"success":false,"error":"blocked"}"#),
            "failed: Firecrawl refused the request (HTTP 400): blocked",
        ),
        (
            Reply::json(402, "{}"),
            "failed: Firecrawl says that the plan or the credits of this server are used up",
        ),
        (
            Reply::json(500, r#"{"code":"SCRAPE_ALL_ENGINES_FAILED"}"#),
            "failed: Firecrawl failed on its side (HTTP 500)",
        ),
        (
            Reply::json(429, "{}"),
            "failed: Firecrawl gets too many requests at the moment; try again later",
        ),
        (
            Reply::json(200, "oops"),
            "failed: Firecrawl gave an answer that cannot be read: it is not JSON",
        ),
    ] {
        site.forget();
        site.on("/api/v2/scrape", [reply]);
        assert_eq!(shown(reader.read(&urls(&["https://a.org/x"])).await), [expected]);
        assert_eq!(site.asked().len(), 1, "it is not asked again: our own reader is next");
    }
}

#[tokio::test]
async fn a_firecrawl_of_ones_own_wants_no_key() {
    let site = Site::start().await;
    let mut access = access(&site, PATIENCE);
    access.key = None;
    Firecrawl::new(access).read(&urls(&["https://a.org/x"])).await;
    assert_eq!(site.asked()[0].header("authorization"), None);
}

#[tokio::test]
async fn exa() {
    let site = Site::start().await;
    let reader = ExaReader::new(access(&site, PATIENCE));
    let answer = json!({
        "results": [
            { "id": "https://b.org/x", "url": "https://www.b.org/x/", "title": "B", "text": "Text of b", "publishedDate": "2024-03-09T00:00:00Z" },
            { "id": "https://a.org/?id=1", "url": "https://a.org/?id=1", "title": null, "text": "" },
        ],
        "statuses": [
            { "id": "https://b.org/x", "status": "success", "source": "crawled" },
            { "id": "https://c.org/", "status": "error", "error": { "tag": "CRAWL_NOT_FOUND", "httpStatusCode": 404 } },
            { "id": "https://d.org/", "status": "error", "error": { "tag": "CRAWL_TIMEOUT", "httpStatusCode": null } },
        ],
    });
    site.on("/api/contents", [Reply::json(200, answer.to_string())]);
    let asked = [
        "https://a.org/?id=1",
        "https://b.org/x",
        "https://c.org/",
        "https://d.org/",
        "https://e.org/",
    ];
    assert_eq!(
        shown(reader.read(&urls(&asked)).await),
        [
            "failed: there is no readable text on the page; it may need a browser that runs scripts",
            "https://www.b.org/x/ | B | Text of b | 2024-03-09T00:00:00Z",
            "failed: the site answered HTTP 404 (there is no such page)",
            "failed: Exa could not read it: CRAWL_TIMEOUT",
            "failed: Exa could not read it",
        ]
    );
    assert_eq!(site.asked()[0].header("x-api-key"), Some(KEY));
    assert_eq!(
        site.asked()[0].json(),
        json!({ "urls": asked, "text": true, "livecrawl": "preferred" })
    );
}

#[tokio::test]
async fn tavily() {
    let site = Site::start().await;
    let reader = TavilyReader::new(access(&site, PATIENCE));
    let answer = json!({
        "results": [{ "url": "https://b.org/x", "raw_content": "Text of b", "images": [] }],
        "failed_results": [{ "url": "https://a.org/?id=1", "error": "Failed to fetch url" }],
        "response_time": 0.02,
    });
    site.on("/api/extract", [Reply::json(200, answer.to_string())]);
    let asked = ["https://a.org/?id=1", "https://b.org/x"];
    assert_eq!(
        shown(reader.read(&urls(&asked)).await),
        [
            "failed: Tavily could not read it: Failed to fetch url",
            "https://b.org/x | - | Text of b | -"
        ]
    );
    assert_eq!(site.asked()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(site.asked()[0].json(), json!({ "urls": asked, "format": "markdown" }));

    site.on("/api/extract", [Reply::json(401, r#"{"detail":{"error":"Unauthorized"}}"#)]);
    let refused =
        "failed: Tavily refused the key of this server; its operator has to check `api_key_env`";
    assert_eq!(shown(reader.read(&urls(&asked)).await), [refused, refused]);
}

#[tokio::test]
async fn serper() {
    let site = Site::start().await;
    let reader = SerperReader::new(access(&site, PATIENCE));
    let answer = json!({
        "text": "plain", "markdown": "**rich**", "metadata": { "og:title": "Hi", "viewport": 7 },
        "jsonld": { "@type": "Article", "dateModified": "2024-03-09" }, "credits": 2,
    });
    site.on("/api", [Reply::json(200, answer.to_string())]);
    assert_eq!(
        shown(reader.read(&urls(&["https://a.org/x?id=1"])).await),
        ["https://a.org/x?id=1 | Hi | **rich** | 2024-03-09"]
    );
    let asked = &site.asked()[0];
    assert_eq!((asked.line.as_str(), asked.header("x-api-key")), ("POST /api", Some(KEY)));
    assert_eq!(asked.json(), json!({ "url": "https://a.org/x?id=1", "includeMarkdown": true }));
    for (reply, expected) in [
        (Reply::json(200, r#"{"text":"plain"}"#), "https://a.org/x | - | plain | -"),
        (
            Reply::json(400, r#"{"message":"Scraping failed","statusCode":400}"#),
            "failed: Serper could not read it: Scraping failed",
        ),
        (
            Reply::json(403, r#"{"message":"Unauthorized."}"#),
            "failed: Serper refused the key of this server; its operator has to check `api_key_env`",
        ),
    ] {
        site.on("/api", [reply]);
        assert_eq!(shown(reader.read(&urls(&["https://a.org/x"])).await), [expected]);
    }
}
