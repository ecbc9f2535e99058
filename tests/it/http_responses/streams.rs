//! Streams: when they fail, when they are silent, when nobody reads them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use antiphon::{
    model::{Ask, Deltas, Facts, Model, ModelError, ModelErrorKind},
    text::{rescue::Reading, think::ThinkMode},
    turn::Delta,
};
use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use super::id;
use crate::support::{
    model::{Gate, Round, Script, Step, call, say, stop, usage},
    schema,
    server::{Server, Setup, start, start_with},
    stream::{Heard, Listener, streaming},
};

fn hello() -> Value {
    json!({ "model": "m", "input": "Hi" })
}

fn failing() -> ModelError {
    ModelError::new(ModelErrorKind::RateLimited(Some(Duration::from_secs(3))), "Slow down.")
}

async fn statuses(server: &Server) -> Vec<String> {
    let sql = "select status from responses order by id";
    sqlx::query_scalar(sql).fetch_all(&server.pool).await.unwrap()
}

/// What is stored is what was told.
async fn check_kept(server: &Server, heard: &Heard) {
    let path = format!("/v1/responses/{}", id(&heard.response));
    assert_eq!(server.get(&path).await, (200, heard.response.clone()));
}

#[tokio::test]
async fn before_the_first_word_an_error_is_an_http_error() {
    let refusals = || [Round::Refuse(failing()), Round::Play(vec![Step::Break(failing())])];
    for body in [hello(), streaming(&hello())] {
        let server = start(Script::new(refusals())).await;
        for _ in 0..2 {
            let request = server.request("POST", "/v1/responses").json(&body);
            let response = request.send().await.unwrap();
            assert_eq!(
                (response.status().as_u16(), &response.headers()["retry-after"]),
                (429, &"3".parse().unwrap())
            );
            let answer: Value = response.json().await.unwrap();
            schema::check_error(&answer);
            assert_eq!(answer["error"]["code"], "rate_limit_exceeded");
        }
        assert_eq!(statuses(&server).await, ["failed", "failed"]);
    }
}

#[tokio::test]
async fn after_the_first_word_an_error_is_an_event() {
    let script = || {
        let round = Round::Play(vec![say("Hel"), Step::Break(failing())]);
        Script::new([round])
    };
    let server = start(script()).await;
    let heard = Listener::open(&server, &hello()).await.whole().await;
    let kinds: Vec<&str> =
        heard.events.iter().rev().take(2).map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["response.failed", "error"]);
    assert_eq!(
        heard.response["error"],
        json!({ "code": "rate_limit_exceeded", "message": "Slow down." })
    );
    assert_eq!(heard.response["output"][0]["status"], "incomplete");
    check_kept(&server, &heard).await;

    // A client that waits for JSON was told nothing yet.
    let server = start(script()).await;
    assert_eq!(server.post("/v1/responses", hello()).await.0, 429);
    assert_eq!(statuses(&server).await, ["failed"]);
}

#[tokio::test]
async fn after_the_first_round_a_json_client_gets_what_there_is() {
    let clock = antiphon::tools::clock_tool::ClockTool::new(antiphon::clock::Clock::fixed(0));
    let tools = antiphon::tools::Toolbox {
        clock: Some(Arc::new(clock)),
        ..antiphon::tools::Toolbox::default()
    };
    let script = Script::new([
        call("call_1", "get_current_time", "{}"),
        Round::Play(vec![say("It is "), Step::Break(failing())]),
    ]);
    let server = start_with(script, Setup { tools, ..Setup::default() }).await;
    let mut body = hello();
    body["tools"] = json!([{ "type": "antiphon:clock" }]);
    let (status, response) = server.post("/v1/responses", body).await;
    assert_eq!((status, &response["status"]), (200, &json!("failed")), "{response}");
    schema::check("Response", &response);
    let kinds: Vec<&Value> =
        response["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["mcp_call", "message"]);
    assert_eq!(server.get(&format!("/v1/responses/{}", id(&response))).await, (200, response));
}

#[tokio::test]
async fn a_model_that_panics_fails_its_response_and_nothing_else() {
    let script = Script::new([
        Round::Play(vec![Step::Panic]),
        Round::Play(vec![say("Hel"), Step::Panic]),
        Round::Play(vec![say("Still here."), usage(), stop()]),
    ]);
    let server = start(script).await;
    let (status, answer) = server.post("/v1/responses", hello()).await;
    assert_eq!((status, &answer["error"]["code"]), (500, &json!("server_error")), "{answer}");
    let heard = Listener::open(&server, &hello()).await.whole().await;
    assert_eq!(heard.response["status"], "failed");
    check_kept(&server, &heard).await;
    assert_eq!(server.post("/v1/responses", hello()).await.1["status"], "completed");
    assert_eq!(statuses(&server).await, ["failed", "failed", "completed"]);
}

#[tokio::test]
async fn a_silent_stream_is_kept_alive() {
    let gate = Gate::closed();
    let script = Script::new([Round::Play(vec![
        say("Hel"),
        Step::Wait(gate.clone()),
        say("lo"),
        usage(),
        stop(),
    ])]);
    let mut setup = Setup::default();
    setup.door.ping = Duration::from_millis(20);
    let server = start_with(script, setup).await;
    let mut listener = Listener::open(&server, &hello()).await;
    let mut events = Vec::new();
    for _ in 0..3 {
        events.extend(listener.until_comment().await);
    }
    gate.open();
    while let Some(event) = listener.next().await {
        events.push(event);
    }
    assert!(listener.done);
    let heard = crate::support::stream::checked(events);
    assert_eq!(heard.response["output"][0]["content"][0]["text"], "Hello");
}

#[tokio::test]
async fn a_response_that_takes_too_long_ends() {
    let script =
        Script::new([Round::Play(vec![say("Hel"), Step::Wait(Gate::closed()), say("lo")])]);
    let server =
        start_with(script.clone(), Setup { total: Duration::from_millis(50), ..Setup::default() })
            .await;
    let heard = Listener::open(&server, &hello()).await.whole().await;
    assert_eq!(heard.response["status"], "failed");
    script.deserted().await;
    check_kept(&server, &heard).await;
}

/// A model that never stops.
#[derive(Default)]
struct Endless {
    said: Arc<AtomicUsize>,
    /// Alive as long as somebody listens.
    listened: Arc<()>,
}

const PIECE: usize = 1024;

impl Model for Endless {
    fn ask<'a>(&'a self, _ask: &'a Ask<'a>) -> BoxFuture<'a, Result<Deltas, ModelError>> {
        let (said, listened) = (self.said.clone(), self.listened.clone());
        let deltas = stream::repeat_with(move || {
            // Held as long as this is.
            let _: &Arc<()> = &listened;
            said.fetch_add(1, Ordering::Relaxed);
            Ok(vec![Delta::Text { text: "x".repeat(PIECE), logprobs: Vec::new() }])
        });
        std::future::ready(Ok(deltas.boxed())).boxed()
    }

    fn facts<'a>(&'a self, _model: &'a str) -> BoxFuture<'a, Facts> {
        std::future::ready(Facts { think: ThinkMode::Off, reading: Reading::default() }).boxed()
    }
}

/// A client that asks for a stream and does not read it.
async fn deaf(server: &Server) -> TcpStream {
    let mut socket = TcpStream::connect(server.base.trim_start_matches("http://")).await.unwrap();
    let body = streaming(&hello()).to_string();
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

/// Asks until it is so.
async fn until(so: impl Fn() -> bool + Sync) {
    let asking = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_the_model_up() {
    let model = Endless::default();
    let (said, listened) = (model.said.clone(), model.listened.clone());
    let server = start(Arc::new(model)).await;
    let socket = deaf(&server).await;
    until(|| said.load(Ordering::Relaxed) > 0).await;
    let mut before = 0;
    while before != said.load(Ordering::Relaxed) {
        before = said.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // What the kernel holds of a connection between two programs of one machine is below this.
    assert!(before * PIECE < 32 << 20, "{before} pieces");
    drop(socket);
    // The server's and ours.
    until(|| Arc::strong_count(&listened) == 2).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_hold_on_for_ever() {
    let model = Endless::default();
    let listened = model.listened.clone();
    let setup = Setup { total: Duration::from_millis(300), ..Setup::default() };
    let server = start_with(Arc::new(model), setup).await;
    let socket = deaf(&server).await;
    until(|| Arc::strong_count(&listened) == 3).await;
    until(|| Arc::strong_count(&listened) == 2).await;
    until_stored(&server).await;
    assert_eq!(statuses(&server).await, ["failed"]);
    drop(socket);
}

#[tokio::test]
async fn at_the_end_of_the_server_nor_does_it() {
    let model = Endless::default();
    let listened = model.listened.clone();
    let server = start(Arc::new(model)).await;
    let socket = deaf(&server).await;
    until(|| Arc::strong_count(&listened) == 3).await;
    server.cut.cancel();
    until_stored(&server).await;
    assert_eq!(statuses(&server).await, ["failed"]);
    drop(socket);
}

async fn until_stored(server: &Server) {
    let asking = async {
        while statuses(server).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.unwrap();
}
