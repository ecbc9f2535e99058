use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Semaphore;

use super::*;
use crate::web::{ContextSize, Fault};

/// Answers by the query's text: `fail` fails, else the words are the URLs of its results.
struct Scripted;

fn hit(url: &str) -> Option<Hit> {
    let url = Url::parse(&format!("https://{url}")).ok()?;
    Some(Hit { title: format!("title of {url}"), ..Hit::new(url) })
}

impl SearchProvider for Scripted {
    fn name(&self) -> &'static str {
        "Scripted"
    }

    fn search<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Vec<Hit>, SearchError>> {
        let answer = match query.text.as_str() {
            "fail" => Err(SearchError { provider: "Scripted", fault: Fault::Timeout }),
            urls => Ok(urls.split(' ').filter_map(hit).collect()),
        };
        Box::pin(async { answer })
    }
}

fn queries(texts: &[&str]) -> Vec<Query> {
    texts.iter().map(|text| Query::new(text, 10).unwrap()).collect()
}

#[tokio::test]
async fn a_query_that_fails_costs_only_itself() {
    let outcome =
        search(&Scripted, &queries(&["a.org b.org", "fail", "b.org?x=1 b.org"]), 9).await.unwrap();
    let found: Vec<_> = outcome
        .hits
        .iter()
        .map(|found| (found.hit.url.as_str(), found.queries.as_slice()))
        .collect();
    assert_eq!(
        found,
        [("https://a.org/", &[0][..]), ("https://b.org/?x=1", &[2]), ("https://b.org/", &[0, 2])]
    );
    let of = |query: usize| {
        outcome.hits_of(|i| i == query).map(|hit| hit.url.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of(0), ["https://a.org/", "https://b.org/"]);
    assert_eq!(of(2), ["https://b.org/?x=1", "https://b.org/"]);
    assert_eq!(of(1), Vec::<&str>::new());
    assert_eq!(outcome.failed.len(), 1);
    assert_eq!(outcome.failed[0].0, 1);
}

#[tokio::test]
async fn all_that_fail_are_an_error_with_each_reason_once() {
    let error = search(&Scripted, &queries(&["fail", "fail"]), 9).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no query could be answered: the search provider Scripted did not answer in time"
    );
    assert!(search(&Scripted, &[], 9).await.is_err());
}

#[tokio::test]
async fn no_results_are_no_error() {
    let outcome = search(&Scripted, &queries(&["["]), 9).await.unwrap();
    assert!(outcome.hits.is_empty() && outcome.failed.is_empty());
}

#[tokio::test]
async fn domains_are_enforced_on_results() {
    let query = Query {
        allowed_domains: vec!["a.org".parse().unwrap()],
        blocked_domains: vec!["x.a.org".parse().unwrap()],
        ..Query::new("b.org a.org/1?q=2 x.a.org y.a.org nota.org", 10).unwrap()
    };
    let outcome = search(&Scripted, &[query], 9).await.unwrap();
    let urls: Vec<_> = outcome.hits.iter().map(|found| found.hit.url.as_str()).collect();
    assert_eq!(urls, ["https://a.org/1?q=2", "https://y.a.org/"]);
}

#[test]
fn only_what_says_something_is_shown_and_not_too_long() {
    let url = || Url::parse("https://a.org").unwrap();
    let query = Query { context_size: ContextSize::Low, ..Query::new("q", 2).unwrap() };
    let long = Hit { snippet: "word ".repeat(1000), title: "a\nb\u{0}c".into(), ..Hit::new(url()) };
    let empty = Hit { title: " \u{1}".into(), ..Hit::new(url()) };
    let foreign = Hit { title: "t".into(), ..Hit::new(Url::parse("ftp://a.org").unwrap()) };
    let hits = worth_showing(vec![empty, foreign, long.clone(), long.clone(), long], &query);
    assert_eq!(hits.len(), 2);
    assert_eq!(hits[0].title, "a b c");
    assert_eq!(hits[0].snippet.len(), "word ".len() * 60 - 1);
}

/// Lets nobody go on before as many are there as may be at once, and counts those who are there.
struct Counting {
    gate: Semaphore,
    inside: AtomicUsize,
    most: AtomicUsize,
}

impl SearchProvider for Counting {
    fn name(&self) -> &'static str {
        "Counting"
    }

    fn search<'a>(&'a self, _: &'a Query) -> BoxFuture<'a, Result<Vec<Hit>, SearchError>> {
        Box::pin(async {
            let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(inside, Ordering::SeqCst);
            if inside == PARALLEL {
                self.gate.add_permits(1000);
            }
            let _permit = self.gate.acquire().await;
            self.inside.fetch_sub(1, Ordering::SeqCst);
            Ok(Vec::new())
        })
    }
}

#[tokio::test]
async fn queries_run_side_by_side_but_not_all_at_once() {
    let provider = Counting {
        gate: Semaphore::new(0),
        inside: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
    };
    search(&provider, &queries(&["q"; 20]), 9).await.unwrap();
    assert_eq!(provider.most.load(Ordering::SeqCst), PARALLEL);
}
