//! A backend on a real port that plays a script to the byte: it waits at gates, cuts its connections, notices when its client leaves, keeps
//! every request, and checks on each that calls and outputs pair up.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex},
};

use antiphon::{config::Upstream as Settings, tasks::Tasks};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};

use super::model::Gate;

/// A backend for one test. Dropping it fails the test if a request was not as it must be.
pub(crate) struct Upstream {
    /// `http://127.0.0.1:PORT/v1`
    pub(crate) base: String,
    state: Arc<State>,
}

struct State {
    /// Answers to `POST`s, in order.
    answers: Mutex<VecDeque<Answer>>,
    /// The answer to further `POST`s.
    always: Mutex<Option<Answer>>,
    /// Answers to `GET`s, by path.
    pages: Mutex<HashMap<String, Value>>,
    asked: Mutex<Vec<Request>>,
    wrong: Mutex<Vec<String>>,
    deserted: Semaphore,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// What the backend does with one request.
#[derive(Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    steps: Vec<Step>,
    framing: Framing,
    end: End,
}

/// One thing that it does with the body.
#[derive(Clone)]
pub(crate) enum Step {
    /// It sends this, in one write.
    Send(Vec<u8>),
    /// It waits here, before the headers when this comes first.
    Wait(Gate),
}

/// How the client knows where the body ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Framing {
    /// By chunks, of which the last is empty.
    Chunked,
    /// By the end of the connection.
    Eof,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// As it should.
    Whole,
    /// The connection is closed without the last chunk.
    Cut,
    /// The connection is reset.
    Reset,
}

impl Request {
    /// Its body, when that is JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl Answer {
    /// Any answer.
    pub(crate) fn of(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), kind.to_owned())],
            steps: vec![Step::Send(body.into())],
            framing: Framing::Chunked,
            end: End::Whole,
        }
    }

    /// JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::of(status, "application/json", body.to_string())
    }

    /// A stream of these frames, each written by itself.
    pub(crate) fn stream(frames: &[String]) -> Self {
        let steps = frames.iter().map(|frame| Step::Send(frame.clone().into())).collect();
        Self { steps, ..Self::of(200, "text/event-stream", "") }
    }

    /// No answer at all: the connection is closed.
    pub(crate) fn hang_up() -> Self {
        Self { status: 0, steps: Vec::new(), ..Self::of(0, "", "") }
    }

    /// With another header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a gate before its step number `at`; before the headers when that is 0.
    pub(crate) fn gate(mut self, at: usize, gate: &Gate) -> Self {
        self.steps.insert(at, Step::Wait(gate.clone()));
        self
    }

    /// With another end of the body.
    pub(crate) fn ends(self, framing: Framing, end: End) -> Self {
        Self { framing, end, ..self }
    }

    /// Only the first `most` bytes of the body, in one write.
    pub(crate) fn first(mut self, most: usize) -> Self {
        let mut bytes = self.bytes();
        bytes.truncate(most);
        self.steps = if bytes.is_empty() { Vec::new() } else { vec![Step::Send(bytes)] };
        self
    }

    /// The body without its gates.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let sent = self.steps.iter().filter_map(|step| match step {
            Step::Send(bytes) => Some(bytes.as_slice()),
            Step::Wait(_) => None,
        });
        sent.collect::<Vec<_>>().concat()
    }
}

/// A frame of a Chat Completions stream.
pub(crate) fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    let chunk = json!({ "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice] });
    format!("data: {chunk}\n\n")
}

/// The last frames of a Chat Completions stream.
pub(crate) fn finish(reason: &str) -> Vec<String> {
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7 });
    let last = json!({ "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage });
    vec![
        chunk(&json!({}), Some(reason)),
        format!("data: {last}\n\n"),
        "data: [DONE]\n\n".to_owned(),
    ]
}

/// A Chat Completions stream that says these pieces.
pub(crate) fn says(pieces: &[&str]) -> Answer {
    let mut frames = vec![chunk(&json!({ "role": "assistant", "content": "" }), None)];
    frames.extend(pieces.iter().map(|piece| chunk(&json!({ "content": piece }), None)));
    frames.extend(finish("stop"));
    Answer::stream(&frames)
}

/// A Chat Completions stream that calls a function.
pub(crate) fn calls(id: &str, name: &str, arguments: &[&str]) -> Answer {
    let function = json!({ "name": name, "arguments": "" });
    let begin = json!({ "index": 0, "id": id, "type": "function", "function": function });
    let mut frames = vec![chunk(&json!({ "role": "assistant", "tool_calls": [begin] }), None)];
    frames.extend(arguments.iter().map(|piece| {
        let call = json!({ "index": 0, "function": { "arguments": piece } });
        chunk(&json!({ "tool_calls": [call] }), None)
    }));
    frames.extend(finish("tool_calls"));
    Answer::stream(&frames)
}

impl Upstream {
    /// A backend that answers so, in order.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(State {
            answers: Mutex::new(answers.into_iter().collect()),
            always: Mutex::default(),
            pages: Mutex::default(),
            asked: Mutex::default(),
            wrong: Mutex::default(),
            deserted: Semaphore::new(0),
        });
        let (tasks, served) = (Tasks::default(), state.clone());
        tasks.clone().spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let state = served.clone();
                // A client that leaves early is no fault of the backend.
                tasks.spawn(async move { state.serve(socket).await.ok() });
            }
        });
        Self { base, state }
    }

    /// A backend that always answers so.
    pub(crate) async fn always(answer: Answer) -> Self {
        let upstream = Self::start([]).await;
        *upstream.state.always.lock().unwrap() = Some(answer);
        upstream
    }

    /// Adds an answer.
    pub(crate) fn push(&self, answer: Answer) {
        self.state.answers.lock().unwrap().push_back(answer);
    }

    /// Answers `GET path` so.
    pub(crate) fn page(&self, path: &str, body: Value) {
        self.state.pages.lock().unwrap().insert(path.to_owned(), body);
    }

    /// All `POST`s so far.
    pub(crate) fn asked(&self) -> Vec<Request> {
        let asked = self.state.asked.lock().unwrap();
        asked.iter().filter(|request| request.method == "POST").cloned().collect()
    }

    /// Waits until a client left before its answer was whole.
    pub(crate) async fn deserted(&self) {
        self.state.deserted.acquire().await.unwrap().forget();
    }

    /// Settings for it: `name`, no dialect to find out, and these keys.
    pub(crate) fn settings(&self, name: &str, more: &Value) -> Settings {
        let mut settings = json!({ "name": name, "base_url": self.base, "dialect": "generic" });
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(settings).unwrap()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let wrong = self.state.wrong.lock().unwrap();
        if !std::thread::panicking() {
            assert!(wrong.is_empty(), "{wrong:#?}");
        }
    }
}

impl State {
    async fn serve(&self, mut socket: TcpStream) -> std::io::Result<()> {
        socket.set_nodelay(true)?;
        let Some(request) = read(&mut socket).await? else { return Ok(()) };
        if request.path.ends_with("/chat/completions") && request.method == "POST" {
            self.wrong.lock().unwrap().extend(unpaired(&request.json()));
        }
        let answer = self.answer(&request);
        self.asked.lock().unwrap().push(request);
        let played = answer.play(&mut socket).await;
        if played.is_err() {
            self.deserted.add_permits(1);
        }
        played
    }

    fn answer(&self, request: &Request) -> Answer {
        if request.method == "GET" {
            let pages = self.pages.lock().unwrap();
            return match pages.get(&request.path) {
                Some(page) => Answer::json(200, page),
                None => Answer::json(404, &json!({ "detail": "Not Found" })),
            };
        }
        if let Some(answer) = self.answers.lock().unwrap().pop_front() {
            return answer;
        }
        self.always.lock().unwrap().clone().unwrap_or_else(|| {
            self.wrong.lock().unwrap().push(format!("asked once too often: {}", request.path));
            Answer::json(500, &json!({ "error": { "message": "the script is over" } }))
        })
    }
}

impl Answer {
    /// Plays it; an error when the client is gone.
    async fn play(self, socket: &mut TcpStream) -> std::io::Result<()> {
        let mut steps = VecDeque::from(self.steps);
        while let Some(Step::Wait(gate)) = steps.front().cloned() {
            pass(&gate, socket).await?;
            steps.pop_front();
        }
        if self.status == 0 {
            return socket.shutdown().await;
        }
        let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            head.extend([name.as_str(), ": ", value.as_str(), "\r\n"]);
        }
        if self.framing == Framing::Chunked {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        head.push_str("\r\n");
        socket.write_all(head.as_bytes()).await?;
        for step in steps {
            match step {
                Step::Send(bytes) if bytes.is_empty() => (),
                Step::Send(bytes) => {
                    let framed = match self.framing {
                        Framing::Chunked => {
                            let size = format!("{:x}\r\n", bytes.len());
                            [size.as_bytes(), &bytes, b"\r\n"].concat()
                        }
                        Framing::Eof => bytes,
                    };
                    socket.write_all(&framed).await?;
                }
                Step::Wait(gate) => pass(&gate, socket).await?,
            }
        }
        match self.end {
            End::Whole if self.framing == Framing::Chunked => {
                socket.write_all(b"0\r\n\r\n").await?;
            }
            End::Whole | End::Cut => (),
            End::Reset => socket.set_zero_linger()?,
        }
        if self.end == End::Reset { Ok(()) } else { socket.shutdown().await }
    }
}

/// Waits at a gate; an error when the client leaves meanwhile.
async fn pass(gate: &Gate, socket: &mut TcpStream) -> std::io::Result<()> {
    let mut byte = [0];
    tokio::select! {
        () = gate.pass() => Ok(()),
        // It has nothing more to say, so this is its end.
        _ = socket.read(&mut byte) => Err(std::io::ErrorKind::ConnectionAborted.into()),
    }
}

async fn read(socket: &mut TcpStream) -> std::io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let mut more =
        async |bytes: &mut Vec<u8>| Ok::<_, std::io::Error>(socket.read_buf(bytes).await? > 0);
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if !more(&mut bytes).await? {
            return Ok(None);
        }
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let mut first = lines.next().unwrap().split(' ');
    let (method, path) = (first.next().unwrap().to_owned(), first.next().unwrap().to_owned());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = bytes.split_off(head + 4);
    while body.len() < length {
        if !more(&mut body).await? {
            return Ok(None);
        }
    }
    Ok(Some(Request { method, path, headers, body }))
}

/// What is wrong with the calls and outputs of a request.
fn unpaired(request: &Value) -> Vec<String> {
    let mut open = HashSet::new();
    let mut wrong = Vec::new();
    for message in request["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default().to_owned();
                if !open.remove(&id) {
                    wrong.push(format!("an output without its call: {message}"));
                }
            }
            _ if !open.is_empty() => wrong.push(format!("calls without outputs: {open:?}")),
            _ => (),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.insert(call["id"].as_str().unwrap_or_default().to_owned());
        }
    }
    if !open.is_empty() {
        wrong.push(format!("calls without outputs at the end: {open:?}"));
    }
    wrong
}
