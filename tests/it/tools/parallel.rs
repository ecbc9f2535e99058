//! Many calls at once: of one Round, and of many Responses.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use antiphon::{
    mcp,
    model::{Ask, Deltas, Facts, Model, ModelError},
    store::pool::{self, PoolSettings},
    text::{rescue::Reading, think::ThinkMode},
    turn::{
        Delta, Finish,
        prompt::{PromptMessage, PromptPart},
    },
};
use futures::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, join_all},
    stream,
};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{after, called, calls, echoed, free, kinds, listed, request, said};
use crate::{
    mcp::{
        mock::{Asked, Mock, mock, stateless},
        real::real,
    },
    support::{
        model::{Gate, Script, text},
        postgres, schema,
        server::{Server, Setup, start, start_with},
        stream::Listener,
    },
};

const LONG: Duration = Duration::from_mins(5);
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A server whose tools each wait at a gate of their own.
async fn gated(names: &[&'static str]) -> (Mock, BTreeMap<&'static str, Gate>) {
    let gates: BTreeMap<&str, Gate> = names.iter().map(|name| (*name, Gate::closed())).collect();
    let inside = Arc::new(gates.clone());
    let server = mock(move |asked: Asked| {
        let gates = Arc::clone(&inside);
        async move {
            if asked.method == "tools/call"
                && let Some(gate) = gates.get(asked.params["name"].as_str().unwrap())
            {
                gate.pass().await;
            }
            echoed(&asked, &NAMES)
        }
    })
    .await;
    (server, gates)
}

fn all_three() -> crate::support::model::Round {
    calls(&[("a", "{}"), ("b", "{}"), ("c", "{}")])
}

/// The name of the tool whose call this event ends.
fn ended(event: &Value) -> Option<&str> {
    let call = event["type"] == "response.output_item.done" && event["item"]["type"] == "mcp_call";
    call.then(|| event["item"]["name"].as_str().unwrap())
}

async fn responses(server: &Server) -> i64 {
    sqlx::query_scalar("select count(*) from responses").fetch_one(&server.pool).await.unwrap()
}

#[tokio::test]
async fn all_calls_of_a_round_have_begun_before_any_may_end() {
    let (server, gates) = gated(&NAMES).await;
    let script = Script::new([all_three(), text("Done.")]);
    let ours = start(script.clone()).await;
    let run = Listener::open(&ours, &request("Go.", &[free(&server)])).await.whole();
    let open = async {
        for gate in gates.values() {
            gate.reached().await;
        }
        // From the last to the first, so that the order of the answers is not that of the calls.
        for gate in gates.values().rev() {
            gate.open();
        }
    };
    let (heard, ()) = tokio::join!(run, open);
    let names: Vec<&Value> = (1..4).map(|at| &heard.response["output"][at]["name"]).collect();
    assert_eq!(names, NAMES);
    let asked = script.asked();
    let told: Vec<&str> =
        asked[1].messages[2..].iter().map(|told| &told[told.len() - 4..]).collect();
    assert_eq!(told, ["a {}", "b {}", "c {}"], "in the order of the calls");
}

#[tokio::test]
async fn a_call_that_hangs_holds_up_no_other() {
    let (server, gates) = gated(&["a"]).await;
    let ours = start(Script::new([all_three(), text("Done.")])).await;
    let mut listener = Listener::open(&ours, &request("Go.", &[free(&server)])).await;
    let mut events = Vec::new();
    let mut others = Vec::new();
    while others.len() < 2 {
        let event = listener.next().await.unwrap();
        others.extend(ended(&event).map(str::to_owned));
        events.push(event);
    }
    others.sort();
    assert_eq!(others, ["b", "c"]);
    gates["a"].reached().await;
    gates["a"].open();
    while let Some(event) = listener.next().await {
        events.push(event);
    }
    let heard = crate::support::stream::checked(events);
    assert_eq!(
        kinds(&heard.response),
        ["mcp_list_tools", "mcp_call", "mcp_call", "mcp_call", "message"]
    );
    assert_eq!(heard.response["output"][1]["output"], "a {}");
}

#[tokio::test]
async fn who_leaves_cancels_the_calls_at_the_server() {
    for streamed in [true, false] {
        let (server, gates) = gated(&["a", "c"]).await;
        let ours = start(Script::new([all_three()])).await;
        let body = request("Go.", &[free(&server)]);
        let both = async {
            gates["a"].reached().await;
            gates["c"].reached().await;
        };
        if streamed {
            let listener = Listener::open(&ours, &body).await;
            let ended = listener.whole();
            tokio::select! {
                heard = ended => panic!("{heard:?}"),
                () = both => (),
            }
        } else {
            tokio::select! {
                answer = ours.post("/v1/responses", body) => panic!("{answer:?}"),
                () = both => (),
            }
        }
        server.until("POST notifications/cancelled", 2).await;
        let seen = server.seen();
        let mut hanging: Vec<&Value> = seen
            .iter()
            .filter(|asked| asked.method == "tools/call" && asked.params["name"] != "b")
            .map(|asked| &asked.id)
            .collect();
        let mut cancelled: Vec<&Value> = seen
            .iter()
            .filter(|asked| asked.method == "notifications/cancelled")
            .map(|asked| &asked.params["requestId"])
            .collect();
        for ids in [&mut hanging, &mut cancelled] {
            ids.sort_by_key(|id| id.as_u64());
        }
        assert_eq!(cancelled, hanging);
        let sessions = ours.sessions.as_ref().unwrap();
        sessions.shutdown().await;
        assert_eq!(server.count("DELETE"), 1);
        assert!(ours.tasks.stop(Duration::from_secs(10)).await, "a task is left");
        assert_eq!(responses(&ours).await, 0);
    }
}

#[tokio::test]
async fn a_server_of_the_rust_sdk_is_called_and_cancelled() {
    for (sessions, json) in [(true, false), (false, false), (false, true)] {
        let server = real(sessions, json).await;
        let script = Script::new([
            calls(&[("add", r#"{"a":2,"b":40}"#), ("fail", "{}")]),
            text("42."),
            calls(&[("hang", "{}")]),
        ]);
        let ours = start(script.clone()).await;
        let tool = json!({ "type": "mcp", "server_label": "srv", "server_url": server.url, "require_approval": "never" });
        let tools = [tool];
        let first = Listener::open(&ours, &request("Go.", &tools)).await.whole().await.response;
        assert_eq!(kinds(&first), ["mcp_list_tools", "mcp_call", "mcp_call", "message"]);
        assert!(first["output"][1]["output"].as_str().unwrap().starts_with("42 (call "), "{first}");
        let error = &first["output"][2]["error"]["content"][0]["text"];
        assert_eq!(error, "no such city");
        let listener = Listener::open(&ours, &after(&first, "Hang.", &tools)).await;
        tokio::select! {
            heard = listener.whole() => panic!("{heard:?}"),
            () = server.calculator.hanging.notified() => (),
        }
        if sessions {
            // One without sessions has nowhere to hear it.
            server.calculator.cancelled.notified().await;
            assert_eq!(server.sessions.sessions.read().await.len(), 1);
        }
        ours.sessions.as_ref().unwrap().shutdown().await;
        assert!(ours.tasks.stop(Duration::from_secs(10)).await, "a task is left");
        assert_eq!(server.sessions.sessions.read().await.len(), 0);
    }
}

#[tokio::test]
async fn a_list_that_hangs_holds_up_no_other_and_is_given_up_with_its_client() {
    let gate = Gate::closed();
    let inside = gate.clone();
    let slow = mock(move |asked: Asked| {
        let gate = inside.clone();
        async move {
            if asked.method == "tools/list" {
                gate.pass().await;
            }
            echoed(&asked, &["x"])
        }
    })
    .await;
    let (quick, _) = gated(&[]).await;
    let mut first = free(&slow);
    first["server_label"] = json!("slow");
    let script = Script::new([text("Both.")]);
    let ours = start(script.clone()).await;
    let body = request("Go.", &[first, free(&quick)]);
    let until_done = async |listener: &mut Listener| {
        let done = listener.until("response.output_item.done").await;
        assert_eq!(done["item"]["server_label"], "srv");
        gate.reached().await;
    };

    let mut listener = Listener::open(&ours, &body).await;
    until_done(&mut listener).await;
    drop(listener);
    slow.until("POST notifications/cancelled", 1).await;

    let mut listener = Listener::open(&ours, &body).await;
    until_done(&mut listener).await;
    gate.open();
    let end = listener.until("response.completed").await;
    assert_eq!(kinds(&end["response"]), ["mcp_list_tools", "mcp_list_tools", "message"]);
    assert_eq!(script.asked()[0].tools, ["x", "a", "b", "c"], "in the order of the request");
    ours.sessions.as_ref().unwrap().shutdown().await;
    assert!(ours.tasks.stop(Duration::from_secs(10)).await, "a task is left");
    assert_eq!(responses(&ours).await, 1);
}

/// A model that calls `keep` and `share` with what the user said, and then says what they returned.
struct Caller;

impl Model for Caller {
    fn ask<'a>(&'a self, ask: &'a Ask<'a>) -> BoxFuture<'a, Result<Deltas, ModelError>> {
        let text = |parts: &[PromptPart<'_>]| match parts {
            [PromptPart::Text(text)] => text.to_string(),
            other => panic!("{other:?}"),
        };
        let mut deltas = if let Some(PromptMessage::User(parts)) = ask.messages.last() {
            let arguments = json!({ "who": text(parts) }).to_string();
            called(&[("keep", &arguments), ("share", &arguments)])
        } else {
            let told = ask.messages.iter().filter_map(|message| match message {
                PromptMessage::Tool { output, .. } => Some(text(output)),
                _ => None,
            });
            vec![Delta::Text { text: told.collect::<Vec<_>>().join("\n"), logprobs: Vec::new() }]
        };
        deltas.push(Delta::Finish(Finish::Stop));
        let deltas: Deltas = stream::iter([Ok(deltas)]).boxed();
        std::future::ready(Ok(deltas)).boxed()
    }

    fn facts<'a>(&'a self, _model: &'a str) -> BoxFuture<'a, Facts> {
        std::future::ready(Facts { think: ThinkMode::Off, reading: Reading::default() }).boxed()
    }
}

/// Says for whom it was called, and by whom.
async fn witness(asked: Asked) -> Option<axum::response::Response> {
    let name = if asked.session.is_some() { "keep" } else { "share" };
    match &*asked.method {
        "tools/list" => Some(listed(&asked, &[name])),
        "tools/call" => {
            let token = asked.headers["x-tenant"].to_str().unwrap();
            let who = asked.params["arguments"]["who"].as_str().unwrap();
            Some(said(&asked, &format!("{name}: {who} by {token}.")))
        }
        _ => None,
    }
}

#[tokio::test]
async fn many_responses_share_what_may_be_shared_and_leave_nothing() {
    const EACH: usize = 40;
    let (keeping, sharing) = (mock(witness).await, stateless(witness).await);
    // Nothing here is about who waits too long on a machine that does other things too.
    let settings = PoolSettings { acquire_timeout: LONG, ..PoolSettings::default() };
    let pool = pool::connect(&postgres::database().await.1, &settings).await.unwrap();
    let setup = Setup { pool: Some(pool), total: LONG, tool_time: LONG, ..Setup::default() };
    let ours = start_with(Arc::new(Caller), setup).await;
    // Two of them are of one tenant.
    let people =
        [("ann", "one"), ("bob", "two"), ("cyd", "three"), ("dan", "four"), ("eve", "four")];
    let mut keys = Vec::new();
    for (name, tenant) in people {
        keys.push((ours.key(name, tenant).await, name));
    }
    let asking = keys.iter().flat_map(|(key, name)| (0..EACH).map(move |n| (key, name, n)));
    let answers = asking.map(async |(key, name, n)| {
        let tool = |label: &str, server: &Mock| {
            let mut tool = free(server);
            tool["server_label"] = json!(label);
            tool["headers"] = json!({ "x-tenant": name });
            tool
        };
        let who = format!("{name}-{n}");
        let body = request(&*who, &[tool("keeping", &keeping), tool("sharing", &sharing)]);
        let (status, answer) = ours.send("POST", "/v1/responses", Some(body), Some(key)).await;
        assert_eq!(status, 200, "{answer}");
        (who, (*name).to_owned(), answer)
    });
    let answers = join_all(answers).await;
    assert_eq!(answers.len(), 200);
    for (who, name, answer) in &answers {
        assert_eq!(
            kinds(answer),
            ["mcp_list_tools", "mcp_list_tools", "mcp_call", "mcp_call", "message"]
        );
        let told = |tool: &str| format!("{tool}: {who} by {name}.");
        assert_eq!(answer["output"][2]["output"], told("keep"));
        assert_eq!(answer["output"][3]["output"], told("share"));
        let text = answer["output"][4]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&told("keep")) && text.contains(&told("share")), "{text}");
        assert_eq!(text.matches(" by ").count(), 2);
    }
    schema::check("Response", &answers[0].2);

    // A server that keeps something has a session for each chain; one that does not has one for each user.
    assert_eq!(keeping.count("POST initialize"), 200);
    assert_eq!(sharing.count("POST initialize"), people.len());
    let mut sessions = BTreeMap::new();
    for server in [&keeping, &sharing] {
        assert_eq!(server.count("POST tools/call"), 200);
        assert_eq!(server.count("POST tools/list"), 200);
    }
    for asked in keeping.seen().iter().chain(&sharing.seen()) {
        let by = asked.headers["x-tenant"].to_str().unwrap();
        if let Some(session) = &asked.session {
            let owner = sessions.entry(session.clone()).or_insert_with(|| by.to_owned());
            assert_eq!(owner, by, "a session crossed over");
        }
        if asked.method == "tools/call" {
            let who = asked.params["arguments"]["who"].as_str().unwrap();
            assert_eq!(who.split('-').next(), Some(by), "a call crossed over");
        }
    }
    assert_eq!(sessions.len(), 200);
    let mut in_use = keeping.sessions("POST tools/call");
    in_use.sort();
    in_use.dedup();
    assert_eq!(in_use.len(), 200, "no two chains met in one session");

    let pool = ours.sessions.clone().unwrap();
    assert_eq!(pool.stats(), mcp::Stats { open: 205, opening: 0, opened: 205 });
    ours.clock.advance(mcp::Limits::default().idle.try_into().unwrap());
    pool.sweep().await;
    assert_eq!(pool.stats(), mcp::Stats { open: 0, opening: 0, opened: 205 });
    assert_eq!((keeping.count("DELETE"), sharing.count("DELETE")), (200, 0));
    assert_eq!(responses(&ours).await, 200);
    pool.shutdown().await;
    assert!(ours.tasks.stop(Duration::from_secs(10)).await, "a task is left");
}
