//! `Idempotency-Key`.

use antiphon::model::{ModelError, ModelErrorKind};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::rows;
use crate::support::{
    model::{Gate, Round, Script, Step, say, stop, text, usage},
    server::{Server, start},
};

async fn ask(server: &Server, key: &str, input: &str) -> (u16, Option<String>, Value) {
    let body = json!({ "model": "m", "input": input });
    let request = server.request("POST", "/v1/responses").header("idempotency-key", key);
    let response = request.json(&body).send().await.unwrap();
    let header = |name: &str| Some(response.headers().get(name)?.to_str().unwrap().to_owned());
    let told = header("x-idempotent-replay").or_else(|| header("x-should-retry"));
    (response.status().as_u16(), told, response.json().await.unwrap())
}

#[tokio::test]
async fn the_same_request_runs_once() {
    let gate = Gate::closed();
    let script = Script::new([
        Round::Play(vec![say("Once."), Step::Wait(gate.clone()), usage(), stop()]),
        text("Anew."),
    ]);
    let server = start(script.clone()).await;
    let while_it_runs = async {
        gate.reached().await;
        let (status, told, body) = ask(&server, "k", "Hi").await;
        assert_eq!((status, told.as_deref()), (409, Some("false")), "{body}");
        assert_eq!(body["error"]["code"], "idempotency_key_in_use");
        gate.open();
    };
    let ((status, told, first), ()) = tokio::join!(ask(&server, "k", "Hi"), while_it_runs);
    assert_eq!((status, told), (200, None));

    let replayed = ask(&server, "k", "Hi").await;
    assert_eq!(replayed, (200, Some("true".to_owned()), first.clone()));
    let (status, _, body) = ask(&server, "k", "Something else").await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("idempotency_key_reused")));
    assert_eq!(script.asked().len(), 1);
    assert_eq!(rows(&server).await.0, 1);

    let (_, told, other) = ask(&server, "another key", "Hi").await;
    assert_eq!(told, None);
    assert_ne!(other["id"], first["id"]);
}

#[tokio::test]
async fn a_client_that_left_is_told_that_it_did() {
    let gate = Gate::closed();
    let script = Script::new([Round::Play(vec![say("Once."), Step::Wait(gate.clone())])]);
    let server = start(script.clone()).await;
    tokio::select! {
        _ = ask(&server, "k", "Hi") => panic!("the gate is closed"),
        () = gate.reached() => (),
    }
    script.deserted().await;
    assert_eq!(ask(&server, "k", "Hi").await.0, 409);
}

#[tokio::test]
async fn a_refused_request_leaves_its_key_free() {
    let server = start(Script::new([text("A")])).await;
    let body = json!({ "model": "m", "input": "Hi", "previous_response_id": "resp_none" });
    let request = || server.request("POST", "/v1/responses").header("idempotency-key", "k");
    let refused = request().json(&body).send().await.unwrap();
    assert_eq!(refused.status(), 400);
    assert_eq!(ask(&server, "k", "Hi").await.0, 200);
    let long = "k".repeat(256);
    let (status, _, body) = ask(&server, &long, "Hi").await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_idempotency_key")));
}

#[tokio::test]
async fn what_came_to_nothing_may_be_asked_again() {
    let busy = ModelError::new(ModelErrorKind::RateLimited(None), "slow down");
    let server = start(Script::new([Round::Refuse(busy), text("Now.")])).await;
    assert_eq!(ask(&server, "k", "Hi").await.0, 429);
    let (status, told, body) = ask(&server, "k", "Hi").await;
    assert_eq!((status, told), (200, None), "{body}");
    assert_eq!(body["output"][0]["content"][0]["text"], "Now.");
}

#[tokio::test]
async fn what_was_deleted_is_not_told_again() {
    let server = start(Script::new([text("Once."), text("Anew.")])).await;
    let (_, _, first) = ask(&server, "k", "Hi").await;
    let path = format!("/v1/responses/{}", first["id"].as_str().unwrap());
    assert_eq!(server.delete(&path).await.0, 200);
    let (status, told, second) = ask(&server, "k", "Hi").await;
    assert_eq!((status, told), (200, None));
    assert_ne!(second["id"], first["id"]);
}

#[tokio::test]
async fn a_key_is_one_users_own() {
    let server = start(Script::new([text("For Ann."), text("For Bob.")])).await;
    let (ann, bob) = (server.key("ann", "one").await, server.key("bob", "one").await);
    let mut answers = Vec::new();
    for key in [ann, bob] {
        let request = server.request("POST", "/v1/responses").header("idempotency-key", "k");
        let body = json!({ "model": "m", "input": "Hi" });
        let response = request.bearer_auth(key).json(&body).send().await.unwrap();
        let body: Value = response.json().await.unwrap();
        answers.push(body["output"][0]["content"][0]["text"].clone());
    }
    assert_eq!(answers, ["For Ann.", "For Bob."]);
}
