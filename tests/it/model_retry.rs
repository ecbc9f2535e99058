//! Upstreams that refuse, are slow, or fall silent: what is asked again, what is asked otherwise, and what is told.

use std::time::{Duration, Instant};

use antiphon::model::Patience;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    model::Gate,
    server::{PATIENCE, Server, Setup, start_before, upstreams},
    stream::Listener,
    upstream::{Answer, End, Framing, Request, Upstream, calls, says},
};

fn error(message: &str, code: Option<&str>, param: Option<&str>) -> Value {
    let kind = "invalid_request_error";
    json!({ "error": { "message": message, "type": kind, "code": code, "param": param } })
}

fn busy(status: u16) -> Answer {
    Answer::json(status, &error("Busy.", None, None)).header("retry-after-ms", "30")
}

fn hello() -> Value {
    json!({ "model": "m", "input": "Hi" })
}

async fn before(upstream: &Upstream, patience: Patience) -> Server {
    let router = upstreams(vec![upstream.settings("u", &json!({}))], patience);
    start_before(router, Setup::default()).await
}

#[tokio::test]
async fn a_busy_upstream_is_asked_again_when_it_said() {
    let patience = Patience { retries: 2, ..PATIENCE };
    for status in [429, 503] {
        let upstream = Upstream::start([busy(status), busy(status), says(&["Now."])]).await;
        let server = before(&upstream, patience).await;
        let begun = Instant::now();
        let (status, response) = server.post("/v1/responses", hello()).await;
        assert!(begun.elapsed() >= Duration::from_millis(60));
        assert_eq!((status, &response["status"]), (200, &json!("completed")), "{response}");
        let asked = upstream.asked();
        assert_eq!(asked.len(), 3);
        assert_eq!(asked[0].body, asked[2].body);
    }
}

#[tokio::test]
async fn in_the_end_the_client_is_told_when() {
    let long = |status| {
        let body = error("Busy.", None, None);
        Answer::json(status, &body).header("retry-after", "31")
    };
    for (answers, status, after, asked) in [
        (vec![busy(429), busy(429)], 429, "1", 2),
        (vec![busy(503), busy(503)], 503, "1", 2),
        // Longer than a client should be held up without a word.
        (vec![long(429)], 429, "31", 1),
        (vec![long(503)], 503, "31", 1),
    ] {
        let upstream = Upstream::start(answers).await;
        let server = before(&upstream, Patience { retries: 1, ..PATIENCE }).await;
        let response = server.request("POST", "/v1/responses").json(&hello()).send().await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(response.headers()["retry-after"], after);
        assert_eq!(upstream.asked().len(), asked);
    }
}

#[tokio::test]
async fn one_that_hangs_up_without_a_word_is_asked_again() {
    let upstream = Upstream::start([Answer::hang_up(), says(&["Now."])]).await;
    let server = before(&upstream, Patience { retries: 1, ..PATIENCE }).await;
    assert_eq!(server.post("/v1/responses", hello()).await.1["status"], "completed");
    assert_eq!(upstream.asked().len(), 2);
}

#[tokio::test]
async fn after_the_first_word_nothing_is_asked_again() {
    let whole = says(&["One, ", "two."]);
    let bytes = whole.bytes();
    let after_a_word = bytes.windows(4).position(|window| window == b"One,").unwrap() + 40;
    let upstream =
        Upstream::start([whole.first(after_a_word).ends(Framing::Chunked, End::Cut)]).await;
    let server = before(&upstream, Patience { retries: 3, ..PATIENCE }).await;
    let heard = Listener::open(&server, &hello()).await.whole().await;
    assert_eq!(heard.response["status"], "failed");
    assert_eq!(heard.response["output"][0]["content"][0]["text"], "One, ");
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn what_is_refused_by_name_is_left_out_from_then_on() {
    let tools = json!([{ "type": "function", "name": "f", "parameters": {} }]);
    let detail = |text: &str| json!({ "detail": text });
    for (field, value, sent, refusal) in [
        (
            "parallel_tool_calls",
            json!(false),
            "parallel_tool_calls",
            error(
                "Unknown parameter: 'parallel_tool_calls'",
                Some("unknown_parameter"),
                Some("parallel_tool_calls"),
            ),
        ),
        (
            "temperature",
            json!(0.5),
            "temperature",
            error(
                "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
                Some("unsupported_value"),
                Some("temperature"),
            ),
        ),
        (
            "max_output_tokens",
            json!(50),
            "max_tokens",
            error(
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Some("unsupported_parameter"),
                Some("max_tokens"),
            ),
        ),
        ("top_p", json!(0.5), "top_p", detail("Extra inputs are not permitted: top_p")),
    ] {
        let refused = Answer::json(400, &refusal);
        let upstream = Upstream::start([refused, says(&["a"]), says(&["b"])]).await;
        let server = before(&upstream, PATIENCE).await;
        let mut body = hello();
        body["tools"] = tools.clone();
        body[field] = value;
        for _ in 0..2 {
            let (status, response) = server.post("/v1/responses", body.clone()).await;
            assert_eq!(status, 200, "{field}: {response}");
        }
        let asked: Vec<Value> = upstream.asked().iter().map(Request::json).collect();
        let has: Vec<bool> = asked.iter().map(|body| body.get(sent).is_some()).collect();
        assert_eq!(has, [true, false, false], "{field}");
        let otherwise = asked.last().unwrap().get("max_completion_tokens");
        assert_eq!(otherwise.is_some(), field == "max_output_tokens", "{field}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_the_question_is_told_and_not_asked_again() {
    for (status, body, expected) in [
        (400, error("The schema is broken.", None, Some("tools")), (400, Value::Null)),
        (
            404,
            error("The model `m` does not exist.", Some("model_not_found"), None),
            (400, json!("model_not_found")),
        ),
        (
            400,
            error("This model's maximum context length is 10 tokens.", None, None),
            (400, json!("context_length_exceeded")),
        ),
        (500, json!("Internal Server Error"), (502, json!("server_error"))),
        (
            200,
            json!({ "error": { "message": "Out of memory.", "type": "server_error" } }),
            (502, json!("server_error")),
        ),
    ] {
        let upstream = Upstream::start([Answer::json(status, &body)]).await;
        let server = before(&upstream, Patience { retries: 3, ..PATIENCE }).await;
        let (status, answer) = server.post("/v1/responses", hello()).await;
        assert_eq!((status, answer["error"]["code"].clone()), expected, "{body}: {answer}");
        assert_eq!(upstream.asked().len(), 1);
    }
}

#[tokio::test]
async fn output_that_the_backend_could_not_read_is_asked_for_once_more() {
    let misread = || {
        let error = error("unexpected tokens remaining in message header: Some(...)", None, None);
        Answer::json(500, &error)
    };
    let patience = Patience { retries: 0, ..PATIENCE };
    let upstream = Upstream::start([misread(), says(&["Now."])]).await;
    let server = before(&upstream, patience).await;
    let (status, response) = server.post("/v1/responses", hello()).await;
    assert_eq!((status, &response["status"]), (200, &json!("completed")), "{response}");
    assert_eq!(upstream.asked().len(), 2);

    let upstream = Upstream::start([misread(), misread()]).await;
    let server = before(&upstream, patience).await;
    assert_eq!(server.post("/v1/responses", hello()).await.0, 502);
    assert_eq!(upstream.asked().len(), 2);

    // An answer that is empty is an answer.
    let upstream = Upstream::start([says(&[])]).await;
    let server = before(&upstream, patience).await;
    assert_eq!(server.post("/v1/responses", hello()).await.0, 200);
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn less_is_asked_for_when_only_that_fits() {
    let told = error(
        "This model's maximum context length is 100 tokens. However, you requested 130 tokens (60 in the messages, 70 in the completion).",
        None,
        None,
    );
    let upstream = Upstream::start([Answer::json(400, &told), says(&["a"])]).await;
    let server = before(&upstream, PATIENCE).await;
    let mut body = hello();
    body["max_output_tokens"] = json!(70);
    assert_eq!(server.post("/v1/responses", body).await.0, 200);
    let asked = upstream.asked();
    assert_eq!(
        (&asked[0].json()["max_tokens"], &asked[1].json()["max_tokens"]),
        (&json!(70), &json!(40))
    );
}

#[tokio::test]
async fn a_key_that_is_refused_is_our_fault_and_stays_secret() {
    let key = "sk-very-secret";
    let told = error(&format!("Incorrect API key provided: {key}."), Some("invalid_api_key"), None);
    for status in [401, 403] {
        let upstream = Upstream::always(Answer::json(status, &told)).await;
        let mut settings = upstream.settings("u", &json!({}));
        settings.api_key = Some(key.to_owned().into());
        let server = start_before(upstreams(vec![settings], PATIENCE), Setup::default()).await;
        for (path, body) in [
            ("/v1/responses", hello()),
            ("/v1/embeddings", json!({ "model": "m", "input": "x" })),
            ("/v1/chat/completions", json!({ "model": "m", "messages": [] })),
        ] {
            let (status, answer) = server.post(path, body).await;
            assert_eq!((status, &answer["error"]["code"]), (502, &json!("server_error")));
            assert!(!answer.to_string().contains("secret"), "{answer}");
        }
        assert!(
            upstream
                .asked()
                .iter()
                .all(|request| request.headers["authorization"] == format!("Bearer {key}"))
        );
    }
}

#[tokio::test]
async fn one_that_does_not_begin_is_given_up() {
    let gate = Gate::closed();
    // Before the headers, and after them.
    for at in [0, 1] {
        let upstream = Upstream::start([says(&["Late."]).gate(at, &gate)]).await;
        let patience = Patience { first_byte: Duration::from_millis(50), ..PATIENCE };
        let server = before(&upstream, patience).await;
        let (status, answer) = server.post("/v1/responses", hello()).await;
        assert_eq!((status, &answer["error"]["code"]), (504, &json!("server_error")), "{answer}");
        upstream.deserted().await;
    }
}

#[tokio::test]
async fn one_that_falls_silent_is_given_up() {
    let upstream = Upstream::start([says(&["One, ", "two."]).gate(2, &Gate::closed())]).await;
    let patience = Patience { between_chunks: Duration::from_millis(50), ..PATIENCE };
    let server = before(&upstream, patience).await;
    let heard = Listener::open(&server, &hello()).await.whole().await;
    assert_eq!(heard.response["status"], "failed");
    assert_eq!(heard.response["output"][0]["content"][0]["text"], "One, ");
    upstream.deserted().await;
}

#[tokio::test]
async fn an_answer_may_be_packed_or_whole() {
    use std::io::Write as _;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&says(&["Hello ", "there."]).bytes()).unwrap();
    let packed = Answer::of(200, "text/event-stream", packed.finish().unwrap());
    let whole = json!({
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hello there." }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7 },
    });
    for answer in [packed.header("content-encoding", "gzip"), Answer::json(200, &whole)] {
        let upstream = Upstream::start([answer]).await;
        let server = before(&upstream, PATIENCE).await;
        let heard = Listener::open(&server, &hello()).await.whole().await;
        assert_eq!(heard.response["output"][0]["content"][0]["text"], "Hello there.");
        assert_eq!(heard.response["usage"]["total_tokens"], 7);
    }
}

#[tokio::test]
async fn what_it_calls_is_answered_in_the_next_question() {
    let upstream = Upstream::start([
        calls("call_1", "weather", &["{\"city\":", "\"Paris\"}"]),
        says(&["Sunny."]),
    ])
    .await;
    let server = before(&upstream, PATIENCE).await;
    let tools =
        json!([{ "type": "function", "name": "weather", "parameters": { "type": "object" } }]);
    let body = json!({ "model": "m", "input": "Weather?", "tools": tools });
    let first = Listener::open(&server, &body).await.whole().await.response;
    let call = &first["output"][0];
    assert_eq!(
        (&call["name"], &call["arguments"]),
        (&json!("weather"), &json!("{\"city\":\"Paris\"}"))
    );
    let output = json!([{ "type": "function_call_output", "call_id": call["call_id"], "output": "22 degrees" }]);
    let body = json!({ "model": "m", "input": output, "previous_response_id": first["id"], "tools": tools });
    assert_eq!(server.post("/v1/responses", body).await.1["status"], "completed");
    let messages = &upstream.asked()[1].json()["messages"];
    assert_eq!(messages[1]["tool_calls"][0]["function"]["arguments"], "{\"city\":\"Paris\"}");
    assert_eq!(messages[2]["content"], "22 degrees");
}
