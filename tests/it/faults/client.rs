//! The client leaves.

use serde_json::json;

use super::{question, rich, stored};
use crate::support::{
    model::Gate,
    server::{PATIENCE, Setup, start_before, upstreams},
    stream::Listener,
    upstream::{Upstream, says},
};

#[tokio::test]
async fn it_leaves_at_each_event() {
    let (answer, frames) = rich();
    let upstream = Upstream::start([]).await;
    let router = upstreams(vec![upstream.settings("u", &json!({}))], PATIENCE);
    let server = start_before(router, Setup::default()).await;
    let (_, conversation) = server.post("/v1/conversations", json!({})).await;
    let mut body = question();
    body["conversation"] = conversation["id"].clone();

    upstream.push(answer.clone());
    let events = Listener::open(&server, &question()).await.whole().await.events.len();
    // The model is silent before it stops, so that only the client's leaving can end it.
    let silent = answer.gate(frames.len() - 3, &Gate::closed());
    let before_silence = events - 4;
    for leave in 0..before_silence {
        upstream.push(silent.clone());
        let mut listener = Listener::open(&server, &body).await;
        for _ in 0..leave {
            listener.next().await.unwrap();
        }
        drop(listener);
        upstream.deserted().await;
        // The next one takes the lock of the conversation as soon as this one has given it back.
        free(&server.pool).await;
    }
    assert!(server.tasks.stop(std::time::Duration::from_secs(10)).await);
    assert_eq!(stored(&server.pool).await, [("completed".to_owned(), 1)]);

    upstream.push(says(&["Here ", "I am."]));
    let (status, response) = server
        .post(
            "/v1/responses",
            json!({ "model": "m", "input": "Still there?", "conversation": conversation["id"] }),
        )
        .await;
    assert_eq!((status, &response["status"]), (200, &json!("completed")), "{response}");
}

#[tokio::test]
async fn one_who_waits_for_json_leaves() {
    let gate = Gate::closed();
    for at in [0, 2] {
        let upstream = Upstream::start([says(&["a", "b"]).gate(at, &gate)]).await;
        let router = upstreams(vec![upstream.settings("u", &json!({}))], PATIENCE);
        let server = start_before(router, Setup::default()).await;
        let body = json!({ "model": "m", "input": "Hello" });
        tokio::select! {
            _ = server.post("/v1/responses", body) => panic!("the gate is closed"),
            () = gate.reached() => (),
        }
        upstream.deserted().await;
        assert_eq!(stored(&server.pool).await, []);
    }
}

/// Waits until no conversation is locked.
async fn free(pool: &sqlx::PgPool) {
    let sql = "select count(*) from conversations where locked_by is not null";
    while sqlx::query_scalar::<_, i64>(sql).fetch_one(pool).await.unwrap() > 0 {
        tokio::task::yield_now().await;
    }
}
