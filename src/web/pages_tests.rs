use std::sync::Mutex;

use super::*;

/// Answers with the URL and its own name, unless the path says otherwise; keeps what it was asked.
struct Scripted {
    name: &'static str,
    asked: Mutex<Vec<String>>,
}

impl Scripted {
    fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self { name, asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn page(url: &Url, text: String, content_type: &str) -> Page {
    Page {
        url: url.clone(),
        title: None,
        text,
        published: None,
        content_type: content_type.to_owned(),
        truncated: false,
    }
}

impl PageReader for Scripted {
    fn name(&self) -> &'static str {
        self.name
    }

    fn read<'a>(&'a self, urls: &'a [Url]) -> BoxFuture<'a, Vec<Result<Page, ReadError>>> {
        self.asked.lock().unwrap().extend(urls.iter().map(Url::to_string));
        let answers = urls.iter().map(|url| match (self.name, url.path()) {
            (_, "/gone") => Err(ReadError::Http(404)),
            ("provider", "/hard") => Err(ReadError::Timeout),
            ("provider", "/shell") => Ok(page(url, "Loading...".to_owned(), "text/markdown")),
            (name, _) => Ok(page(url, format!("{name} {}", "word ".repeat(20)), "text/html")),
        });
        let answers: Vec<_> = answers.collect();
        Box::pin(async { answers })
    }
}

fn pages(provider: Option<&Arc<Scripted>>, own: &Arc<Scripted>) -> Pages {
    let policy = Policy {
        allow: vec!["wiki.lan".parse().unwrap(), "10.1.0.0/16".parse().unwrap()],
        ..Policy::default()
    };
    let provider = provider.map(|provider| provider.clone() as Arc<dyn PageReader>);
    Pages::new(provider, own.clone(), policy)
}

fn shown(results: &[Result<Page, ReadError>]) -> Vec<String> {
    results
        .iter()
        .map(|result| match result {
            Ok(page) => page.text.split(' ').next().unwrap_or_default().to_owned(),
            Err(error) => error.to_string(),
        })
        .collect()
}

#[tokio::test]
async fn what_a_provider_cannot_read_is_read_without_it() {
    let (provider, own) = (Scripted::new("provider"), Scripted::new("own"));
    let results = pages(Some(&provider), &own)
        .read(&[
            "https://a.org/easy?id=1",
            "https://a.org/hard",
            "https://a.org/shell",
            "https://a.org/gone",
        ])
        .await;
    assert_eq!(
        shown(&results),
        ["provider", "own", "own", "failed: the site answered HTTP 404 (there is no such page)"]
    );
    assert_eq!(own.asked(), ["https://a.org/hard", "https://a.org/shell", "https://a.org/gone"]);
}

#[tokio::test]
async fn without_a_provider_all_is_read_here() {
    let own = Scripted::new("own");
    assert_eq!(shown(&pages(None, &own).read(&["https://a.org/hard"]).await), ["own"]);
    assert!(pages(None, &own).read(&[] as &[&str]).await.is_empty());
}

#[tokio::test]
async fn no_provider_hears_of_our_own_network() {
    let (provider, own) = (Scripted::new("provider"), Scripted::new("own"));
    let addresses = ["http://wiki.lan/x", "http://10.1.2.3/x", "https://a.org/"];
    assert_eq!(
        shown(&pages(Some(&provider), &own).read(&addresses).await),
        ["own", "own", "provider"]
    );
    assert_eq!(provider.asked(), ["https://a.org/"]);
}

#[tokio::test]
async fn what_is_not_read_is_told_why() {
    let own = Scripted::new("own");
    let results = pages(None, &own)
        .read(&[
            "not a url",
            "ftp://a.org/",
            "http://127.0.0.1/",
            "http://user:pw@a.org/",
            " https://a.org/x#part ",
            "https://a.org/x",
        ])
        .await;
    assert_eq!(
        shown(&results),
        [
            "not read: not a web address; it must begin with http:// or https://",
            "not read: not a web address; it must begin with http:// or https://",
            "not read: the host `127.0.0.1` leads to an address that is not allowed",
            "not read: the URL must not hold a user name or password",
            "own",
            "own",
        ]
    );
    assert_eq!(own.asked(), ["https://a.org/x"], "the same page is read once");
}

#[tokio::test]
async fn surplus_is_told_and_does_not_count_what_is_refused() {
    let own = Scripted::new("own");
    let addresses: Vec<String> = (0..13)
        .map(|i| if i == 3 { "http://127.0.0.1".to_owned() } else { format!("https://a.org/{i}") })
        .collect();
    let results = pages(None, &own).read(&addresses).await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), MOST_PAGES);
    assert_eq!(own.asked().len(), MOST_PAGES);
    let last = results.last().unwrap().as_ref().unwrap_err().to_string();
    assert_eq!(last, "not read: at most 10 pages are read at once; ask for this one again");
}

#[test]
fn a_shell_of_a_page_is_no_page_but_a_short_file_is() {
    let url = Url::parse("https://a.org").unwrap();
    for (text, content_type, enough) in [
        ("short", "text/html", false),
        ("short", "text/markdown", false),
        ("short", "text/plain", true),
        (r#"{"ok":true}"#, "application/json", true),
        ("short", "application/pdf", true),
        ("  \n", "text/plain", false),
        (&"word ".repeat(30), "text/html", true),
        (&format!("{} Loading...", "word ".repeat(20)), "text/html", false),
        (&format!("{} Loading...", "word ".repeat(60)), "text/html", true),
    ] {
        assert_eq!(
            sufficient(page(&url, text.to_owned(), content_type)).is_ok(),
            enough,
            "{text} {content_type}"
        );
    }
}
