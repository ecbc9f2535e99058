//! Responses over a WebSocket.

use std::time::Duration;

use antiphon::model::{ModelError, ModelErrorKind};
use futures::{SinkExt as _, StreamExt as _};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Error, Message, client::IntoClientRequest as _, http::HeaderValue},
};

use crate::support::{
    model::{Gate, Round, Script, Step, call, say, stop, text},
    server::{Server, Setup, start, start_with},
};

pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    pub(crate) async fn open(server: &Server) -> Self {
        Self::open_with(server, &[]).await.unwrap()
    }

    async fn open_with(server: &Server, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        let url = format!("{}/v1/responses", server.base.replace("http", "ws"));
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_str(value).unwrap());
        }
        match connect_async(request).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// The connection below the protocol.
    fn wire(&mut self) -> &mut TcpStream {
        match self.0.get_mut() {
            MaybeTlsStream::Plain(wire) => wire,
            other => panic!("{other:?}"),
        }
    }

    async fn send(&mut self, frame: &Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// Asks with these fields.
    async fn create(&mut self, fields: Value) {
        let mut frame = json!({ "type": "response.create", "model": "m" });
        frame.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.send(&frame).await;
    }

    /// The next frame; `None` when the server has closed.
    async fn next(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await? {
                Ok(Message::Text(frame)) => return Some(serde_json::from_str(&frame).unwrap()),
                Ok(Message::Ping(_) | Message::Pong(_)) => (),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(other) => panic!("{other:?}"),
            }
        }
    }

    /// The frames up to the end of a Response, or up to an error frame.
    async fn answer(&mut self) -> Vec<Value> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            let kind = frame["type"].as_str().unwrap().to_owned();
            let refusal = kind == "error" && frame.get("status").is_some();
            frames.push(frame);
            if refusal
                || matches!(
                    &*kind,
                    "response.completed" | "response.failed" | "response.incomplete"
                )
            {
                return frames;
            }
        }
        panic!("closed in the middle: {frames:?}")
    }

    /// Asks, and gives the Response.
    pub(crate) async fn response(&mut self, fields: Value) -> Value {
        self.create(fields).await;
        let frames = self.answer().await;
        let last = frames.last().unwrap();
        assert_eq!(last["type"], "response.completed", "{last}");
        last["response"].clone()
    }

    /// Asks, and gives the code of the error frame.
    pub(crate) async fn refusal(&mut self, fields: Value) -> Value {
        self.create(fields).await;
        let frames = self.answer().await;
        assert_eq!(frames.len(), 1, "{frames:?}");
        frames[0].clone()
    }
}

fn unstored(input: &str) -> Value {
    json!({ "store": false, "input": input })
}

#[tokio::test]
async fn events_are_text_frames_and_the_same_as_anywhere() {
    let server = start(Script::new([text("hello")])).await;
    let mut socket = Socket::open(&server).await;
    socket.create(json!({ "input": "hi", "stream": true })).await;
    let frames = socket.answer().await;
    let kinds: Vec<&str> = frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    for (at, frame) in frames.iter().enumerate() {
        assert_eq!(frame["sequence_number"], at);
    }
    let response = &frames.last().unwrap()["response"];
    let id = response["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/v1/responses/{id}")).await, (200, response.clone()));
}

#[tokio::test]
async fn without_an_upgrade_it_is_the_list() {
    let server = start(Script::new([])).await;
    let (status, list) = server.get("/v1/responses").await;
    assert_eq!((status, &list["object"]), (200, &json!("list")));
}

#[tokio::test]
async fn one_after_the_other_in_the_order_they_were_asked() {
    let gate = Gate::closed();
    let slow = Round::Play(vec![say("on"), Step::Wait(gate.clone()), say("e"), stop()]);
    let model = Script::new([slow, text("two"), text("three")]);
    let server = start(model.clone()).await;
    let mut socket = Socket::open(&server).await;
    for input in ["1", "2", "3"] {
        socket.create(unstored(input)).await;
    }
    gate.reached().await;
    assert_eq!(model.asked().len(), 1, "the others wait");
    gate.open();
    for expected in ["one", "two", "three"] {
        let frames = socket.answer().await;
        assert_eq!(frames[0]["sequence_number"], 0);
        let last = frames.last().unwrap();
        assert_eq!(last["response"]["output"][0]["content"][0]["text"], expected);
    }
    let asked: Vec<_> = model.asked().into_iter().map(|ask| ask.messages).collect();
    assert_eq!(asked, [["user: 1"], ["user: 2"], ["user: 3"]]);
}

#[tokio::test]
async fn what_is_not_stored_can_be_gone_on_from_on_its_socket_only() {
    let model = Script::new([text("one"), text("two"), text("three")]);
    let server = start(model.clone()).await;
    let mut socket = Socket::open(&server).await;
    let first = socket.response(unstored("1")).await;
    let mut next = unstored("2");
    next["previous_response_id"] = first["id"].clone();
    let second = socket.response(next.clone()).await;
    assert_eq!(second["previous_response_id"], first["id"]);
    assert_eq!(model.asked()[1].messages, ["user: 1", "assistant: one", "user: 2"]);

    let mut elsewhere = Socket::open(&server).await;
    next["previous_response_id"] = second["id"].clone();
    let refused = elsewhere.refusal(next).await;
    let id = second["id"].as_str().unwrap();
    assert_eq!(
        refused,
        json!({ "type": "error", "status": 400, "error": {
            "type": "invalid_request_error",
            "code": "previous_response_not_found",
            "message": format!("Previous response with id '{id}' not found."),
            "param": "previous_response_id",
        } })
    );
    // That socket goes on.
    let recovered = elsewhere.response(unstored("3")).await;
    assert_eq!(recovered["status"], "completed");
}

#[tokio::test]
async fn what_is_stored_on_top_of_what_is_not_carries_its_history() {
    let model = Script::new([text("one"), text("two"), text("three"), text("four")]);
    let server = start(model.clone()).await;
    let mut socket = Socket::open(&server).await;
    let first = socket.response(unstored("1")).await;
    let second =
        socket.response(json!({ "input": "2", "previous_response_id": first["id"] })).await;
    assert_eq!(second["previous_response_id"], first["id"]);
    // From here on by anyone, and by this socket.
    let body = json!({ "model": "m", "input": "3", "previous_response_id": second["id"] });
    let (status, third) = server.post("/v1/responses", body).await;
    assert_eq!((status, &third["status"]), (200, &json!("completed")), "{third}");
    let whole = ["user: 1", "assistant: one", "user: 2", "assistant: two", "user: 3"];
    assert_eq!(model.asked()[2].messages, whole);
    socket.response(json!({ "input": "3", "previous_response_id": second["id"] })).await;
    assert_eq!(model.asked()[3].messages, whole);
}

#[tokio::test]
async fn a_continuation_that_fails_makes_the_socket_forget() {
    let broken = Round::Refuse(ModelError::new(ModelErrorKind::Failed, "no"));
    let model = Script::new([text("one"), text("two"), broken, text("other")]);
    let server = start(model).await;
    let mut socket = Socket::open(&server).await;

    // Refused before it ran.
    let first = socket.response(unstored("1")).await;
    let output =
        json!([{ "type": "function_call_output", "call_id": "call_nowhere", "output": "x" }]);
    let bad = json!({ "store": false, "previous_response_id": first["id"], "input": output });
    assert_eq!(
        socket.refusal(bad).await["error"]["message"],
        "No tool call found for function call output with call_id call_nowhere."
    );
    let mut next = unstored("2");
    next["previous_response_id"] = first["id"].clone();
    assert_eq!(socket.refusal(next.clone()).await["error"]["code"], "previous_response_not_found");

    // Failed while it ran.
    let second = socket.response(unstored("1")).await;
    next["previous_response_id"] = second["id"].clone();
    socket.create(next.clone()).await;
    assert_eq!(socket.answer().await.last().unwrap()["type"], "response.failed");
    assert_eq!(socket.refusal(next).await["error"]["code"], "previous_response_not_found");

    // What failed had nothing to do with what is remembered.
    let third = socket.response(unstored("1")).await;
    assert_eq!(third["output"][0]["content"][0]["text"], "other");
    socket
        .refusal(json!({ "store": false, "input": "x", "previous_response_id": "resp_nowhere" }))
        .await;
    let known = json!({ "store": false, "previous_response_id": third["id"], "input": output });
    assert_ne!(socket.refusal(known).await["error"]["code"], "previous_response_not_found");
}

#[tokio::test]
async fn a_model_that_breaks_off_fails_the_response_and_the_socket_stays() {
    let broken = ModelError::new(ModelErrorKind::BrokenStream, "it broke off");
    let server =
        start(Script::new([Round::Play(vec![say("he"), Step::Break(broken)]), text("two")])).await;
    let mut socket = Socket::open(&server).await;
    socket.create(unstored("1")).await;
    let frames = socket.answer().await;
    // The event `error` has a number and no status; the frame of a refusal is the other way round.
    let kinds: Vec<_> = frames.iter().rev().take(2).map(|frame| &frame["type"]).collect();
    assert_eq!(kinds, ["response.failed", "error"]);
    socket.response(unstored("2")).await;
}

#[tokio::test]
async fn a_function_call_is_answered_on_the_same_socket() {
    let model = Script::new([call("call_1", "f", "{}"), text("done")]);
    let server = start(model.clone()).await;
    let mut socket = Socket::open(&server).await;
    let tools = json!([{ "type": "function", "name": "f", "parameters": { "type": "object", "properties": {} } }]);
    let first = socket.response(json!({ "store": false, "input": "go", "tools": tools })).await;
    assert_eq!(first["output"][0]["call_id"], "call_1");
    let output = json!([{ "type": "function_call_output", "call_id": "call_1", "output": "42" }]);
    socket
        .response(json!({ "store": false, "tools": tools, "previous_response_id": first["id"], "input": output }))
        .await;
    assert_eq!(model.asked()[1].messages, ["user: go", "assistant:  f({})", "tool call_1: 42"]);
}

#[tokio::test]
async fn output_given_as_input_begins_a_new_chain() {
    let model = Script::new([text("one"), text("two")]);
    let server = start(model.clone()).await;
    let (_, first) = server.post("/v1/responses", json!({ "model": "m", "input": "1" })).await;
    let mut input = first["output"].as_array().unwrap().clone();
    input.push(json!({ "role": "user", "content": "2" }));
    let second = Socket::open(&server).await.response(json!({ "input": input })).await;
    assert_eq!(second["previous_response_id"], json!(null));
    assert_eq!(model.asked()[1].messages, ["assistant: one", "user: 2"]);
}

#[tokio::test]
async fn bad_frames_are_refused_and_the_socket_stays() {
    let server = start(Script::new([text("still here")])).await;
    let mut socket = Socket::open(&server).await;
    for (fields, param) in [
        (json!({ "input": "x", "stream": false }), "stream"),
        (json!({ "input": "x", "background": true }), "background"),
        (json!({ "input": "x", "temperature": 9 }), "temperature"),
        (json!({}), "input"),
    ] {
        let refused = socket.refusal(fields).await;
        assert_eq!((&refused["status"], &refused["error"]["param"]), (&json!(400), &json!(param)));
        assert!(refused["error"]["code"].is_string(), "{refused}");
    }
    socket.send(&json!({ "type": "response.steer" })).await;
    assert_eq!(socket.next().await.unwrap()["error"]["param"], "type");
    socket.0.send(Message::text("not json")).await.unwrap();
    assert_eq!(socket.next().await.unwrap()["error"]["code"], "invalid_json");
    socket.0.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    assert_eq!(socket.next().await.unwrap()["error"]["code"], "invalid_type");
    socket.response(json!({ "input": "hi" })).await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_and_ends_the_socket() {
    let server = start(Script::new([])).await;
    let mut socket = Socket::open(&server).await;
    // The head of a text frame that promises 2 MiB: it is refused before any of them have come.
    let mut head = vec![0x81, 0x80 | 127];
    head.extend((2_u64 << 20).to_be_bytes());
    head.extend([0; 4]);
    socket.wire().write_all(&head).await.unwrap();
    let refused = socket.next().await.unwrap();
    assert_eq!(
        (&refused["status"], &refused["error"]["code"]),
        (&json!(413), &json!("request_too_large"))
    );
    assert_eq!(socket.next().await, None);
}

#[tokio::test]
async fn requests_beyond_the_queue_are_refused_at_once() {
    let gate = Gate::closed();
    let slow = Round::Play(vec![say("one"), Step::Wait(gate.clone()), stop()]);
    let model = Script::new([slow]);
    let server = start(model.clone()).await;
    let mut socket = Socket::open(&server).await;
    socket.create(unstored("1")).await;
    gate.reached().await;
    for _ in 0..33 {
        socket.create(unstored("more")).await;
    }
    let refused = loop {
        let frame = socket.next().await.unwrap();
        if frame["type"] == "error" {
            break frame;
        }
        assert_ne!(frame["type"], "response.completed");
    };
    assert_eq!(
        (&refused["status"], &refused["error"]["code"]),
        (&json!(429), &json!("rate_limit_exceeded"))
    );
    assert_eq!(model.asked().len(), 1);
}

#[tokio::test]
async fn half_an_upgrade_is_refused_in_the_envelope() {
    let server = start(Script::new([])).await;
    let mut wire = TcpStream::connect(server.base.trim_start_matches("http://")).await.unwrap();
    let head = "GET /v1/responses HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: close\r\n\r\n";
    wire.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    wire.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!(body["error"]["code"], "invalid_websocket_upgrade");
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_what_is_being_written() {
    let gate = Gate::closed();
    let slow = Round::Play(vec![say("he"), Step::Wait(gate.clone()), say("llo"), stop()]);
    let model = Script::new([slow]);
    let server = start(model.clone()).await;
    let mut socket = Socket::open(&server).await;
    let (_, conversation) = server.post("/v1/conversations", json!({})).await;
    socket.create(json!({ "input": "hi", "conversation": conversation["id"] })).await;
    gate.reached().await;
    socket.0.close(None).await.unwrap();
    model.deserted().await;
    assert!(server.tasks.stop(Duration::from_secs(5)).await, "nothing is left running");
    let path = format!("/v1/conversations/{}/items", conversation["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.1["data"], json!([]), "nothing of it was kept");
    assert_eq!(server.get("/v1/responses").await.1["data"], json!([]));
}

#[tokio::test]
async fn a_stop_lets_what_is_being_written_finish_and_begins_nothing_new() {
    let gate = Gate::closed();
    let slow = Round::Play(vec![say("he"), Step::Wait(gate.clone()), say("llo"), stop()]);
    let model = Script::new([slow]);
    let server = start(model.clone()).await;
    let mut busy = Socket::open(&server).await;
    let mut idle = Socket::open(&server).await;
    busy.create(unstored("1")).await;
    busy.create(unstored("2")).await;
    gate.reached().await;
    let stopping = server.tasks.stop(Duration::from_secs(10));
    let clients = async {
        assert_eq!(idle.next().await, None, "closed at once");
        gate.open();
        assert_eq!(busy.answer().await.last().unwrap()["type"], "response.completed");
        assert_eq!(busy.next().await, None);
    };
    let (stopped, ()) = tokio::join!(stopping, clients);
    assert!(stopped);
    assert_eq!(model.asked().len(), 1);
}

#[tokio::test]
async fn the_time_of_a_socket_is_limited() {
    let mut setup = Setup::default();
    setup.door.socket_max = Duration::ZERO;
    let server = start_with(Script::new([]), setup).await;
    let mut socket = Socket::open(&server).await;
    let last = socket.next().await.unwrap();
    assert_eq!(
        (&last["status"], &last["error"]["code"]),
        (&json!(400), &json!("websocket_connection_limit_reached"))
    );
    assert_eq!(socket.next().await, None);
}

#[tokio::test]
async fn a_quiet_socket_is_pinged_and_a_dead_one_closed() {
    let mut setup = Setup::default();
    setup.door.ping = Duration::from_millis(20);
    let server = start_with(Script::new([text("hello")]), setup).await;
    let mut alive = Socket::open(&server).await;
    // Reading answers pings, so this one lives through more of them than one that answers none.
    for _ in 0..12 {
        assert!(matches!(alive.0.next().await, Some(Ok(Message::Ping(_)))));
    }
    alive.response(json!({ "input": "hi" })).await;

    let mut dead = Socket::open(&server).await;
    let mut heard = Vec::new();
    // Below the protocol, where nobody answers.
    dead.wire().read_to_end(&mut heard).await.unwrap();
    let goodbye = b"no sign of life";
    assert!(heard.windows(goodbye.len()).any(|part| part == goodbye), "{heard:?}");
}

#[tokio::test]
async fn keys_are_asked_for_and_looked_at_again() {
    let server = start(Script::new([text("one")])).await;
    let key = server.key("ada", "acme").await;
    let expiry = server.clock.now() + time::Duration::minutes(5);
    sqlx::query("update api_keys set expires_at = $1")
        .bind(expiry)
        .execute(&server.pool)
        .await
        .unwrap();
    assert_eq!(Socket::open_with(&server, &[]).await.err(), Some(401));
    let bearer = format!("Bearer {key}");
    let mut socket = Socket::open_with(&server, &[("authorization", &bearer)]).await.unwrap();
    socket.response(unstored("1")).await;
    server.clock.advance(time::Duration::minutes(5));
    let refused = socket.refusal(unstored("2")).await;
    assert_eq!(
        (&refused["status"], &refused["error"]["code"]),
        (&json!(401), &json!("invalid_api_key"))
    );
}

#[tokio::test]
async fn pages_of_other_origins_open_no_socket() {
    let mut setup = Setup::default();
    setup.door.cors = vec!["https://chat.example".to_owned()];
    let server = start_with(Script::new([]), setup).await;
    let evil = Socket::open_with(&server, &[("origin", "https://evil.example")]).await;
    assert_eq!(evil.err(), Some(403));
    assert!(Socket::open_with(&server, &[("origin", "https://chat.example")]).await.is_ok());
    let own = server.base.clone();
    assert!(Socket::open_with(&server, &[("origin", &own)]).await.is_ok());
}
