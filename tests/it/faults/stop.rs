//! The server is asked to stop while it works.

use std::time::Duration;

use antiphon::{
    app::{App, Models},
    clock::{Clock, Ids},
    config::Config,
    tasks::Tasks,
};
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::support::{
    model::Gate,
    postgres::{connect, database},
    server::Server,
    stream::Listener,
    upstream::{Upstream, says},
};

/// A whole antiphon, with one stream that stands at a gate.
struct Working {
    server: Server,
    listener: Listener,
    gate: Gate,
    upstream: Upstream,
    ask_to_stop: oneshot::Sender<()>,
    served: JoinHandle<anyhow::Result<()>>,
}

async fn working(grace: Duration) -> Working {
    let gate = Gate::closed();
    let upstream = Upstream::start([says(&["One, ", "two."]).gate(2, &gate)]).await;
    let (_, url) = database().await;
    let mut config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        database_url: Some(url.clone().into()),
        seal_keys: vec!["A".repeat(43).into()],
        upstreams: vec![upstream.settings("u", &json!({}))],
        ..Config::default()
    };
    config.shutdown.grace = grace;
    let models = Models::find(&config, None).await.unwrap();
    let app = App::build(&config, models, Clock::System, Ids::seeded(1)).await.unwrap();
    let base = format!("http://{}", app.address().unwrap());
    let (ask_to_stop, asked) = oneshot::channel();
    let until_it_stops =
        Tasks::default().spawn(async move { app.serve(async { asked.await.unwrap() }).await });
    let server = Server::running(base, connect(&url).await);
    let mut listener = Listener::open(&server, &json!({ "model": "m", "input": "Count." })).await;
    listener.until("response.output_text.delta").await;
    gate.reached().await;
    Working { server, listener, gate, upstream, ask_to_stop, served: until_it_stops }
}

/// The rest of the stream, which began before.
async fn rest(mut listener: Listener) -> Vec<Value> {
    let mut events = Vec::new();
    while let Some(event) = listener.next().await {
        events.push(event);
    }
    assert!(listener.done, "no [DONE]");
    events
}

async fn kept(server: &Server, id: &str) -> String {
    let sql = "select status from responses where id = $1";
    sqlx::query_scalar(sql).bind(id).fetch_one(&server.pool).await.unwrap()
}

#[tokio::test]
async fn what_runs_may_finish() {
    let Working { server, listener, gate, upstream, ask_to_stop, served } =
        working(Duration::from_mins(1)).await;
    ask_to_stop.send(()).unwrap();
    // Nobody new comes in.
    while server.request("GET", "/healthz").send().await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!served.is_finished());
    gate.open();
    let events = rest(listener).await;
    let last = &events.last().unwrap()["response"];
    assert_eq!(last["status"], "completed");
    served.await.unwrap().unwrap();
    assert_eq!(kept(&server, last["id"].as_str().unwrap()).await, "completed");
    drop(upstream);
}

#[tokio::test]
async fn what_does_not_finish_fails_honestly() {
    let Working { server, listener, gate: _closed, upstream, ask_to_stop, served } =
        working(Duration::from_millis(50)).await;
    ask_to_stop.send(()).unwrap();
    let events = rest(listener).await;
    let last = &events.last().unwrap()["response"];
    assert_eq!(last["status"], "failed");
    assert_eq!(last["error"]["code"], "server_error");
    assert_eq!(last["output"][0]["status"], "incomplete");
    upstream.deserted().await;
    served.await.unwrap().unwrap();
    assert_eq!(kept(&server, last["id"].as_str().unwrap()).await, "failed");
}
