//! Several upstreams: who is asked, who is asked next, and what is listed.

use antiphon::model::Patience;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    server::{PATIENCE, Server, Setup, start_before, upstreams},
    upstream::{Answer, Upstream, says},
};

async fn text(server: &Server, model: &str) -> (u16, String) {
    let body = json!({ "model": model, "input": "Hi" });
    let (status, body) = server.post("/v1/responses", body).await;
    let said = if status == 200 {
        &body["output"][0]["content"][0]["text"]
    } else {
        &body["error"]["code"]
    };
    (status, said.as_str().unwrap().to_owned())
}

fn models(ids: &[&str]) -> Value {
    let data: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "object": "model" })).collect();
    json!({ "object": "list", "data": data })
}

#[tokio::test]
async fn the_next_one_answers_when_one_cannot() {
    let failed = || Answer::json(500, &json!({ "error": { "message": "Broken." } }));
    for refusal in [
        failed(),
        Answer::json(503, &json!({ "error": "overloaded" })),
        Answer::json(429, &json!({ "error": "slow down" })).header("retry-after", "20"),
        Answer::json(401, &json!({ "error": "no" })),
        Answer::json(404, &json!({ "error": { "message": "model `m` not found" } })),
        Answer::hang_up(),
    ] {
        let (one, other) =
            (Upstream::always(refusal).await, Upstream::always(says(&["other"])).await);
        let settings = vec![one.settings("one", &json!({})), other.settings("other", &json!({}))];
        let server = start_before(upstreams(settings, PATIENCE), Setup::default()).await;
        for _ in 0..2 {
            assert_eq!(text(&server, "m").await, (200, "other".to_owned()));
        }
    }
    // What is wrong with the question, another one would not like better.
    let wrong = Answer::json(400, &json!({ "error": { "message": "Bad schema.", "code": "x" } }));
    let (one, other) = (Upstream::always(wrong).await, Upstream::always(says(&["other"])).await);
    let settings = vec![one.settings("one", &json!({})), other.settings("other", &json!({}))];
    let server = start_before(upstreams(settings, PATIENCE), Setup::default()).await;
    let (status, _) = server.post("/v1/responses", json!({ "model": "m", "input": "Hi" })).await;
    assert_eq!((status, other.asked().len()), (400, 0));
}

#[tokio::test]
async fn nobody_is_there() {
    let gone = {
        let upstream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/v1", upstream.local_addr().unwrap())
    };
    let upstream = Upstream::always(says(&["there"])).await;
    let at = |name: &str, url: &str| {
        serde_json::from_value(json!({ "name": name, "base_url": url, "dialect": "generic" }))
            .unwrap()
    };
    let server = start_before(upstreams(vec![at("gone", &gone)], PATIENCE), Setup::default()).await;
    assert_eq!(text(&server, "m").await, (502, "server_error".to_owned()));
    let settings = vec![at("gone", &gone), upstream.settings("there", &json!({}))];
    let server = start_before(upstreams(settings, PATIENCE), Setup::default()).await;
    for _ in 0..6 {
        assert_eq!(text(&server, "m").await, (200, "there".to_owned()));
    }
}

#[tokio::test]
async fn weights_are_kept() {
    let (one, other) =
        (Upstream::always(says(&["one"])).await, Upstream::always(says(&["other"])).await);
    let settings =
        vec![one.settings("one", &json!({ "weight": 3 })), other.settings("other", &json!({}))];
    let server = start_before(upstreams(settings, PATIENCE), Setup::default()).await;
    for _ in 0..8 {
        text(&server, "m").await;
    }
    assert_eq!((one.asked().len(), other.asked().len()), (6, 2));
}

#[tokio::test]
async fn a_model_is_asked_for_by_its_names() {
    let (one, other) =
        (Upstream::always(says(&["one"])).await, Upstream::always(says(&["other"])).await);
    let settings = vec![
        one.settings("one", &json!({ "models": ["qwen*"], "aliases": { "gpt-4o": "qwen3" } })),
        other.settings("other", &json!({ "models": ["*/llama", "qwen3"] })),
    ];
    let server =
        start_before(upstreams(settings, Patience { retries: 0, ..PATIENCE }), Setup::default())
            .await;
    for (name, upstream, known_as) in [
        ("gpt-4o", &one, "qwen3"),
        ("qwen2", &one, "qwen2"),
        ("one/qwen3", &one, "qwen3"),
        ("one/gpt-4o", &one, "qwen3"),
        ("other/qwen3", &other, "qwen3"),
        ("meta/llama", &other, "meta/llama"),
        ("other/meta/llama", &other, "meta/llama"),
    ] {
        let body = json!({ "model": name, "input": "Hi" });
        let (status, body) = server.post("/v1/responses", body).await;
        assert_eq!((status, &body["model"]), (200, &json!(name)), "{body}");
        assert_eq!(upstream.asked().last().unwrap().json()["model"], known_as, "{name}");
    }
    for name in ["mistral", "one/mistral", "nobody/qwen3"] {
        assert_eq!(text(&server, name).await, (400, "model_not_found".to_owned()), "{name}");
    }
}

#[tokio::test]
async fn the_list_has_what_is_there() {
    let one = Upstream::start([]).await;
    one.page("/v1/models", models(&["a", "b/c", "hidden"]));
    let silent = Upstream::start([]).await;
    let settings = vec![
        one.settings("one", &json!({ "models": ["a", "b*"], "aliases": { "alias": "a" } })),
        silent.settings("silent", &json!({})),
        serde_json::from_value(
            json!({ "name": "gone", "base_url": "http://127.0.0.1:9/v1", "dialect": "generic" }),
        )
        .unwrap(),
    ];
    let server = start_before(upstreams(settings, PATIENCE), Setup::default()).await;
    let (status, list) = server.get("/v1/models").await;
    let model = |id: &str| json!({ "id": id, "object": "model", "created": 0, "owned_by": "one" });
    let expected = json!({ "object": "list", "data": [model("a"), model("b/c"), model("alias")] });
    assert_eq!((status, list), (200, expected));
    assert_eq!(server.get("/v1/models/b/c").await, (200, model("b/c")));
    let (status, body) = server.get("/v1/models/hidden").await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!("model_not_found")));
}

#[tokio::test]
async fn what_kind_of_server_it_is_is_found_out() {
    let list =
        |owner: &str| json!({ "object": "list", "data": [{ "id": "m", "owned_by": owner }] });
    for (pages, expected) in [
        (vec![("/v1/models", list("vllm"))], "vllm"),
        (vec![("/v1/models", list("llamacpp"))], "llama.cpp"),
        (vec![("/v1/models", list("library"))], "ollama"),
        (vec![("/v1/models", list("sglang"))], "sglang"),
        (vec![("/api/version", json!({ "version": "0.9" }))], "ollama"),
        (vec![("/version", json!({ "version": "0.9" }))], "vllm"),
        (vec![("/props", json!({ "default_generation_settings": {} }))], "llama.cpp"),
        (vec![("/get_model_info", json!({ "model_path": "x" }))], "sglang"),
        (vec![("/v1/models", list("somebody"))], "generic"),
        (vec![], "generic"),
    ] {
        let upstream = Upstream::start([]).await;
        for (path, page) in &pages {
            upstream.page(path, page.clone());
        }
        let settings = upstream.settings("u", &json!({ "dialect": "auto" }));
        let router = upstreams(vec![settings], PATIENCE);
        assert_eq!(router.dialect_for("m").await.name, expected, "{pages:?}");
    }
    let settings =
        json!({ "name": "gone", "base_url": "http://127.0.0.1:9/v1", "dialect": "auto" });
    let router = upstreams(vec![serde_json::from_value(settings).unwrap()], PATIENCE);
    assert_eq!(router.dialect_for("m").await.name, "generic");
}
