//! What is the upstream's own goes to it and comes back as it is.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    model::Gate,
    server::{PATIENCE, Server, Setup, start_before, upstreams},
    upstream::{Answer, Upstream, says},
};

async fn before(upstream: &Upstream) -> Server {
    let mut settings = upstream.settings("u", &json!({ "aliases": { "alias": "real" } }));
    settings.api_key = Some("sk-ours".to_owned().into());
    start_before(upstreams(vec![settings], PATIENCE), Setup::default()).await
}

#[tokio::test]
async fn json_keeps_its_bytes_but_for_the_name() {
    let answer = "{\"data\" : [ 1.0, 2e5 ]}";
    let upstream = Upstream::start([
        Answer::of(200, "application/json", answer),
        Answer::of(422, "application/json", "{\"detail\":\"no\"}").header("retry-after", "7"),
    ])
    .await;
    let server = before(&upstream).await;
    let send = async |body: &'static str| {
        let request = server.request("POST", "/v1/embeddings").bearer_auth("sk-theirs");
        request.header("content-type", "application/json").body(body).send().await.unwrap()
    };
    let response =
        send("{ \"input\":[\"a\\u00e9\"],  \"model\" : \"alias\", \"dimensions\": 2.0 }").await;
    assert_eq!(
        (response.status().as_u16(), response.text().await.unwrap()),
        (200, answer.to_owned())
    );
    let asked = upstream.asked().remove(0);
    assert_eq!(asked.path, "/v1/embeddings");
    assert_eq!(asked.headers["authorization"], "Bearer sk-ours");
    assert_eq!(
        String::from_utf8(asked.body).unwrap(),
        "{ \"input\":[\"a\\u00e9\"],  \"model\" : \"real\", \"dimensions\": 2.0 }"
    );
    let response = send("{\"model\":\"m\",\"input\":\"x\"}").await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (422, &"7".parse().unwrap())
    );
    assert_eq!(response.text().await.unwrap(), "{\"detail\":\"no\"}");
}

#[tokio::test]
async fn a_stream_comes_piece_by_piece_and_ends_with_its_client() {
    let gate = Gate::closed();
    let answer = says(&["One, ", "two."]);
    let whole = String::from_utf8(answer.bytes()).unwrap();
    let upstream = Upstream::start([answer.clone().gate(2, &gate), answer.gate(2, &gate)]).await;
    let server = before(&upstream).await;
    let body = json!({ "model": "alias", "messages": [], "stream": true });
    let open = || server.request("POST", "/v1/chat/completions").json(&body).send();

    let mut response = open().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut heard = String::new();
    while !heard.contains("One, ") {
        heard.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    gate.reached().await;
    gate.open();
    while let Some(piece) = response.chunk().await.unwrap() {
        heard.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert_eq!(heard, whole);
    assert_eq!(upstream.asked()[0].json()["model"], "real");

    let response = open().await.unwrap();
    gate.reached().await;
    drop(response);
    upstream.deserted().await;
}

#[tokio::test]
async fn a_form_keeps_its_bytes_but_for_the_name() {
    let upstream = Upstream::start([Answer::json(200, &json!({ "text": "hi" }))]).await;
    let server = before(&upstream).await;
    let form = |model: &str| {
        let file = "--x\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n\0\u{1}model\r\n";
        let name = format!(
            "--x\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n--x--\r\n"
        );
        format!("{file}{name}")
    };
    let kind = "multipart/form-data; boundary=x";
    let request = server.request("POST", "/v1/audio/transcriptions").header("content-type", kind);
    let response = request.body(form("alias")).send().await.unwrap();
    assert_eq!(response.json::<Value>().await.unwrap(), json!({ "text": "hi" }));
    let asked = upstream.asked().remove(0);
    assert_eq!(asked.headers["content-type"], kind);
    assert_eq!(String::from_utf8(asked.body).unwrap(), form("real"));
}

#[tokio::test]
async fn an_upstream_that_dies_within_its_answer_breaks_the_answer() {
    use crate::support::upstream::{End, Framing};
    let answer = says(&["One, ", "two."]).ends(Framing::Chunked, End::Cut);
    let upstream = Upstream::start([answer]).await;
    let server = before(&upstream).await;
    let body = json!({ "model": "m", "messages": [], "stream": true });
    let response = server.request("POST", "/v1/chat/completions").json(&body).send().await.unwrap();
    // What was cut must not look whole.
    assert!(response.text().await.is_err());
    assert_eq!(server.get("/healthz").await.0, 200);
}
