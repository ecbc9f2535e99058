//! `web_search` and `open_url`.

use std::sync::{Arc, Mutex};

use antiphon::{
    documents::{Limits, Parser},
    net::Policy,
    tools::Toolbox,
    web::{
        Fault, Hit, OwnReader, OwnReaderSettings, Pages, Query, SearchError, SearchProvider, Web,
    },
};
use futures::{FutureExt as _, future::BoxFuture};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use url::Url;

use super::{after, anonymous, calls, create, kinds, request};
use crate::{
    support::{
        model::{Script, text},
        server::{Server, Setup, start_with},
        stream::Listener,
    },
    web::site::{Reply, Site},
};

const PAGE: &str = "<html><head><title>Moss</title></head><body><article><p>The committee met again on Tuesday, and after long talks, which went on into the night, agreed on all points about moss.</p></article></body></html>";

/// A provider that finds for each query one page of its own and one of all, keeps what it was asked, and fails for `nothing works`.
#[derive(Default)]
struct Finder {
    asked: Mutex<Vec<String>>,
}

impl Finder {
    /// What was asked, in the order of the alphabet.
    fn asked(&self) -> Vec<String> {
        let mut asked = self.asked.lock().unwrap().clone();
        asked.sort();
        asked
    }
}

impl SearchProvider for Finder {
    fn name(&self) -> &'static str {
        "finder"
    }

    fn search<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Vec<Hit>, SearchError>> {
        self.asked.lock().unwrap().push(query.text.clone());
        let hit = |page: &str| Hit {
            title: format!("On {page}"),
            snippet: format!("All about {page}."),
            ..Hit::new(address(page))
        };
        let found = match &*query.text {
            "nothing works" => Err(SearchError { provider: "finder", fault: Fault::RateLimited }),
            text => Ok(vec![hit(text), hit("everything")]),
        };
        std::future::ready(found).boxed()
    }
}

fn address(page: &str) -> Url {
    format!("https://found.example/{page}").parse().unwrap()
}

/// A server with that provider, and a reader that may go where this policy allows.
async fn server(finder: &Arc<Finder>, policy: Policy, script: &Arc<Script>) -> Server {
    let parser = Parser::new(env!("CARGO_BIN_EXE_antiphon").into(), Limits::default());
    let own = OwnReader::new(OwnReaderSettings::new(policy.clone(), parser)).unwrap();
    let pages = Some(Pages::new(None, Arc::new(own), policy));
    let web = Some(Web { search: Some(finder.clone()), results: 5, pages });
    let tools = Toolbox { web, ..Toolbox::default() };
    start_with(script.clone(), Setup { tools, ..Setup::default() }).await
}

fn search() -> Value {
    json!({ "type": "web_search" })
}

fn sources(pages: &[&str]) -> Value {
    pages.iter().map(|page| json!({ "type": "url", "url": address(page) })).collect()
}

#[tokio::test]
async fn repeated_searches_of_a_round_go_out_as_one_and_each_keeps_its_own() {
    let finder = Arc::new(Finder::default());
    let rounds = || {
        [
            calls(&[
                ("web_search", r#"{"queries":["moss","fern"]}"#),
                ("web_search", r#"{"query":"fern"}"#),
                ("web_search", r#"{"queries":"nothing works"}"#),
                ("web_search", r#"{"queries":["lichen","moss"]}"#),
            ]),
            text("Found."),
        ]
    };
    let script = Script::new(rounds().into_iter().chain(rounds()));
    let ours = server(&finder, Policy::default(), &script).await;
    let mut body = request("Search.", &[search()]);
    let plain = create(&ours, &body).await;
    assert_eq!(finder.asked(), ["fern", "lichen", "moss", "nothing works"], "each once");
    assert_eq!(kinds(&plain)[..4], ["web_search_call"; 4]);
    assert_eq!(
        anonymous(&plain["output"][0]),
        json!({
            "type": "web_search_call", "status": "completed",
            "action": { "type": "search", "query": "moss", "queries": ["moss", "fern"] },
        })
    );
    assert_eq!(plain["output"][2]["status"], "failed");

    body["include"] = json!(["web_search_call.action.sources", "web_search_call.results"]);
    let heard = Listener::open(&ours, &body).await.whole().await;
    let items = &heard.response["output"];
    let queries: Vec<&Value> = (0..4).map(|at| &items[at]["action"]["queries"]).collect();
    assert_eq!(
        json!(queries),
        json!([["moss", "fern"], ["fern"], ["nothing works"], ["lichen", "moss"]])
    );
    assert_eq!(items[0]["action"]["sources"], sources(&["moss", "fern", "everything"]));
    assert_eq!(items[1]["action"]["sources"], sources(&["fern", "everything"]));
    assert_eq!(items[3]["action"]["sources"], sources(&["moss", "lichen", "everything"]));
    assert_eq!(
        items[1]["results"][0],
        json!({ "type": "text_result", "url": address("fern"), "title": "On fern", "snippet": "All about fern." })
    );
    let told = |kind: &str| {
        let kind = format!("response.web_search_call.{kind}");
        heard.events.iter().filter(|event| event["type"] == kind).count()
    };
    assert_eq!((told("in_progress"), told("searching"), told("completed")), (4, 4, 3));
    // The model is told for each call what belongs to it.
    let asked = script.asked();
    let messages = &asked[3].messages[2..];
    for (message, (with, without)) in messages.iter().zip([
        ("moss", "lichen"),
        ("fern", "moss"),
        ("too many requests", "moss"),
        ("lichen", "fern"),
    ]) {
        assert!(message.contains(with) && !message.contains(without), "{message}");
    }
    assert_eq!(messages.len(), 4);
}

#[tokio::test]
async fn pages_are_opened_once_and_searched() {
    let (finder, site) = (Arc::new(Finder::default()), Site::start().await);
    site.on("/moss", [Reply::html(PAGE)]);
    let (page, gone) = (site.url("/moss").to_string(), site.url("/gone").to_string());
    let script = Script::new([
        calls(&[
            ("open_url", &json!({ "urls": [page] }).to_string()),
            ("open_url", &json!({ "url": page, "find": "tuesday" }).to_string()),
            ("open_url", &json!({ "urls": [gone, page] }).to_string()),
            ("open_url", &json!({ "urls": [gone] }).to_string()),
        ]),
        text("Read."),
        text("Still known."),
    ]);
    let ours = server(&finder, Policy::default().with_configured(&site.url("")), &script).await;
    let heard = Listener::open(&ours, &request("Read.", &[search()])).await.whole().await;
    let actions: Vec<&Value> = (0..4).map(|at| &heard.response["output"][at]["action"]).collect();
    assert_eq!(
        json!(actions),
        json!([
            { "type": "open_page", "url": page },
            { "type": "find_in_page", "url": page, "pattern": "tuesday" },
            { "type": "open_page", "url": gone, "urls": [gone, page] },
            { "type": "open_page", "url": gone },
        ])
    );
    let statuses: Vec<&Value> = (0..4).map(|at| &heard.response["output"][at]["status"]).collect();
    assert_eq!(statuses, ["completed", "completed", "completed", "failed"]);
    let mut lines: Vec<String> = site.asked().iter().map(|asked| asked.line.clone()).collect();
    lines.sort();
    assert_eq!(lines, ["GET /gone", "GET /moss"], "each page once");
    let asked = script.asked();
    let told = &asked[1].messages[2..];
    assert!(told[0].contains("# Moss") && told[0].contains("agreed on all points"), "{told:?}");
    assert!(told[1].contains("stands here 1 times"), "{told:?}");
    assert!(told[2].contains("404") && told[2].contains("agreed on all points"), "{told:?}");

    // What the pages said is kept for the model.
    create(&ours, &after(&heard.response, "And?", &[search()])).await;
    assert_eq!(script.asked()[2].messages[..6], asked[1].messages[..]);
}

#[tokio::test]
async fn a_page_leads_to_a_private_address_only_where_that_is_allowed() {
    let (finder, site, inner) =
        (Arc::new(Finder::default()), Site::start().await, Site::start().await);
    site.on("/moved", [Reply::redirect(inner.url("/inner").as_str())]);
    inner.on("/inner", [Reply::html(PAGE)]);
    let only_site = Policy::default().with_configured(&site.url(""));
    let both = only_site.clone().with_configured(&inner.url(""));
    let moved = site.url("/moved").to_string();
    let direct = inner.url("/inner").to_string();
    for (policy, status, hits) in [(only_site, "failed", 0), (both, "completed", 2)] {
        inner.forget();
        let script = Script::new([
            calls(&[("open_url", &json!({ "urls": [moved] }).to_string())]),
            calls(&[("open_url", &json!({ "urls": [direct] }).to_string())]),
            text("Well."),
        ]);
        let ours = server(&finder, policy, &script).await;
        let response =
            create(&ours, &request("Read.", &[json!({ "type": "antiphon:open_url" })])).await;
        assert_eq!(kinds(&response), ["web_search_call", "web_search_call", "message"]);
        for at in [0, 1] {
            assert_eq!(response["output"][at]["status"], status, "{response}");
        }
        assert_eq!(inner.asked().len(), hits);
        let asked = script.asked();
        let told = asked[2].messages.join("\n");
        assert_eq!(told.contains("agreed on all points"), status == "completed", "{told}");
    }
}
