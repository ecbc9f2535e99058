//! The two ends of a load test: a model that answers at once, and clients that ask as fast as they are answered.
//! `benches/load.sh` builds and starts everything; this file needs nothing but the standard library, so that it compiles in seconds.
//!
//! ```text
//! load upstream                      serves /v1/chat/completions on a free port, which it prints
//! load measure KEY=VALUE...          asks, prints a table and writes JSON; fails when any answer was wrong
//! ```
//!
//! All traffic stays on the loopback address.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line talks to its terminal"
)]

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs,
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Nothing here takes so long; an answer that does is an error.
const PATIENCE: Duration = Duration::from_secs(20);
/// What each chunk of the model says.
const PIECE: &str = " token";

type Failable<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["upstream"] => upstream(),
        ["measure", pairs @ ..] => measure(pairs),
        // `cargo bench` comes by here.
        _ => {
            println!("run benches/load.sh");
            Ok(())
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

// ---- The model.

/// Serves until it is killed. The model `chunks-N` says N pieces, each in a write of its own; `chunks-N-paced` one each millisecond.
fn upstream() -> Failable<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?.port());
    let answers = Arc::new(AtomicU64::new(0));
    for stream in listener.incoming() {
        let (stream, answers) = (stream?, Arc::clone(&answers));
        thread::spawn(move || {
            // A client that hangs up ends its connection, and only that.
            let _ = converse(stream, &answers);
        });
    }
    Ok(())
}

fn converse(stream: TcpStream, answers: &AtomicU64) -> Failable<()> {
    stream.set_nodelay(true)?;
    let mut wire = Wire::new(stream);
    while let Some(request) = wire.message()? {
        if request.head.starts_with("GET /v1/models ") {
            let list = r#"{"object":"list","data":[]}"#;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            write!(wire.stream, "{head}content-length: {}\r\n\r\n{list}", list.len())?;
            continue;
        }
        if !request.head.starts_with("POST /v1/chat/completions ") {
            wire.stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?;
            continue;
        }
        let id = answers.fetch_add(1, Ordering::Relaxed);
        let model = between(&request.body, "\"model\":\"chunks-", "\"").ok_or("no model")?;
        let (count, paced) = match model.strip_suffix("-paced") {
            Some(count) => (count, true),
            None => (model, false),
        };
        let count: usize = count.parse()?;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let mut out = head.to_owned();
        for place in 0..count {
            let role = if place == 0 { r#""role":"assistant","# } else { "" };
            event(
                &mut out,
                id,
                &format!(
                    r#"[{{"index":0,"delta":{{{role}"content":"{PIECE}"}},"finish_reason":null}}]"#
                ),
                "",
            );
            if place + 1 < count {
                wire.stream.write_all(out.as_bytes())?;
                out.clear();
                if paced {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        }
        event(&mut out, id, r#"[{"index":0,"delta":{},"finish_reason":"stop"}]"#, "");
        let usage = format!(
            r#","usage":{{"prompt_tokens":9,"completion_tokens":{count},"total_tokens":{}}}"#,
            count + 9
        );
        event(&mut out, id, "[]", &usage);
        chunk(&mut out, "data: [DONE]\n\n");
        out.push_str("0\r\n\r\n");
        wire.stream.write_all(out.as_bytes())?;
    }
    Ok(())
}

fn event(out: &mut String, id: u64, choices: &str, usage: &str) {
    chunk(
        out,
        &format!(
            "data: {{\"id\":\"chatcmpl-{id}\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":{choices}{usage}}}\n\n"
        ),
    );
}

fn chunk(out: &mut String, data: &str) {
    let _ = write!(out, "{:x}\r\n{data}\r\n", data.len());
}

// ---- HTTP/1.1, as much as both ends need.

/// A connection that is kept.
struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
}

/// A request or an answer, read whole.
struct Message {
    head: String,
    body: String,
}

impl Wire {
    fn new(stream: TcpStream) -> Self {
        Self { stream, read: Vec::with_capacity(16 * 1024) }
    }

    fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self::new(stream))
    }

    fn more(&mut self) -> Failable<usize> {
        let mut piece = [0; 16 * 1024];
        let count = self.stream.read(&mut piece)?;
        self.read.extend_from_slice(&piece[..count]);
        Ok(count)
    }

    /// The next message; `None` when the other end has closed the connection between two.
    fn message(&mut self) -> Failable<Option<Message>> {
        let head_end = loop {
            if let Some(at) = find(&self.read, b"\r\n\r\n") {
                break at + 4;
            }
            if self.more()? == 0 {
                return if self.read.is_empty() {
                    Ok(None)
                } else {
                    Err("the head was cut off".into())
                };
            }
        };
        let head: Vec<u8> = self.read.drain(..head_end).collect();
        let head = String::from_utf8(head)?;
        let lower = head.to_ascii_lowercase();
        let body = if lower.contains("transfer-encoding: chunked") {
            self.chunked()?
        } else {
            let length = between(&lower, "content-length: ", "\r\n").map_or(Ok(0), str::parse)?;
            self.exactly(length)?
        };
        Ok(Some(Message { head, body: String::from_utf8(body)? }))
    }

    fn chunked(&mut self) -> Failable<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line_end = loop {
                if let Some(at) = find(&self.read, b"\r\n") {
                    break at;
                }
                if self.more()? == 0 {
                    return Err("the body was cut off".into());
                }
            };
            let length = usize::from_str_radix(std::str::from_utf8(&self.read[..line_end])?, 16)?;
            self.read.drain(..line_end + 2);
            let mut data = self.exactly(length + 2)?;
            data.truncate(length);
            if data.is_empty() {
                return Ok(body);
            }
            body.append(&mut data);
        }
    }

    fn exactly(&mut self, length: usize) -> Failable<Vec<u8>> {
        while self.read.len() < length {
            if self.more()? == 0 {
                return Err("the body was cut off".into());
            }
        }
        Ok(self.read.drain(..length).collect())
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.split_once(before)?.1.split_once(after).map(|(found, _)| found)
}

// ---- The clients.

/// What is asked, and what must be in the answer.
struct Kind {
    name: &'static str,
    path: &'static str,
    body: String,
    /// Each must stand in the answer's body.
    expected: Vec<String>,
}

impl Kind {
    fn direct(name: &'static str, chunks: usize) -> Self {
        Self {
            name,
            path: "/v1/chat/completions",
            body: format!(
                r#"{{"model":"chunks-{chunks}","stream":true,"messages":[{{"role":"user","content":"Say something."}}]}}"#
            ),
            expected: vec!["data: [DONE]\n\n".to_owned()],
        }
    }

    fn response(name: &'static str, model: &str, chunks: usize, stream: bool, store: bool) -> Self {
        let text = format!(r#""text":"{}""#, PIECE.repeat(chunks));
        let mut expected = vec![r#""status":"completed""#.to_owned(), text];
        if stream {
            expected.push("event: response.completed\n".to_owned());
            expected.push("data: [DONE]\n\n".to_owned());
        }
        Self {
            name,
            path: "/v1/responses",
            body: format!(
                r#"{{"model":"{model}","input":"Say something.","stream":{stream},"store":{store}}}"#
            ),
            expected,
        }
    }

    fn request(&self) -> Vec<u8> {
        let Self { path, body, .. } = self;
        let length = body.len();
        format!("POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
            .into_bytes()
    }

    fn check(&self, answer: &Message) -> Failable<()> {
        if !answer.head.starts_with("HTTP/1.1 200 ") {
            return Err(format!(
                "{} {}",
                answer.head.lines().next().unwrap_or_default(),
                answer.body
            )
            .into());
        }
        match self.expected.iter().find(|expected| !answer.body.contains(&**expected)) {
            Some(missing) => Err(format!("{missing:?} is missing from {}", answer.body).into()),
            None => Ok(()),
        }
    }
}

/// How much is asked at most.
#[derive(Clone, Copy)]
struct Bounds {
    connections: usize,
    requests: usize,
    time: Duration,
}

struct Heard {
    took: Duration,
    /// Sorted.
    latencies: Vec<Duration>,
}

impl Heard {
    /// In milliseconds.
    fn percentile(&self, percent: usize) -> f64 {
        let at = (self.latencies.len() * percent / 100).min(self.latencies.len().saturating_sub(1));
        self.latencies.get(at).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// Asks over kept connections, each as fast as it is answered. The first wrong answer ends it.
fn ask(port: u16, kind: &Kind, bounds: Bounds) -> Failable<Heard> {
    let request = kind.request();
    let asked = AtomicUsize::new(0);
    let begun = Instant::now();
    let clients = thread::scope(|scope| {
        let client = || -> Failable<Vec<Duration>> {
            let mut wire = Wire::connect(port)?;
            let mut latencies = Vec::with_capacity(bounds.requests);
            while asked.fetch_add(1, Ordering::Relaxed) < bounds.requests
                && begun.elapsed() < bounds.time
            {
                let sent = Instant::now();
                wire.stream.write_all(&request)?;
                let answer = wire.message()?.ok_or("the connection was closed")?;
                latencies.push(sent.elapsed());
                kind.check(&answer)?;
            }
            Ok(latencies)
        };
        let running: Vec<_> = (0..bounds.connections).map(|_| scope.spawn(client)).collect();
        running
            .into_iter()
            .map(|client| client.join().map_err(|_| "a client panicked")?)
            .collect::<Failable<Vec<_>>>()
    })?;
    let took = begun.elapsed();
    let mut latencies = clients.concat();
    latencies.sort_unstable();
    if latencies.is_empty() {
        return Err("nothing was asked".into());
    }
    Ok(Heard { took, latencies })
}

// ---- What the processes cost.

/// Processor time of a process, and of its children's tree, in milliseconds.
#[derive(Clone, Copy, Default)]
struct Spent {
    own: f64,
    children: f64,
}

fn spent(pid: u32, ticks_per_second: f64) -> Failable<Spent> {
    let mut stats = HashMap::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process may have ended since.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may hold anything: fields are counted from behind it.
        let fields = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
        let field = |at: usize| {
            fields.split(' ').nth(at).and_then(|field| field.parse::<u32>().ok()).unwrap_or(0)
        };
        stats.insert(pid, (field(1), field(11) + field(12), field(13) + field(14)));
    }
    let millis = |ticks: u32| f64::from(ticks) * 1e3 / ticks_per_second;
    let descends = |mut of: u32| loop {
        match stats.get(&of) {
            Some((parent, ..)) if *parent == pid => break true,
            Some((parent, ..)) => of = *parent,
            None => break false,
        }
    };
    let own = stats.get(&pid).ok_or("antiphon is gone")?.1;
    let children: u32 = stats
        .iter()
        .filter(|(of, _)| descends(**of))
        .map(|(_, (_, ticks, ended))| ticks + ended)
        .sum();
    Ok(Spent { own: millis(own), children: millis(children) })
}

/// In MiB.
fn resident(pid: u32) -> Failable<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = between(&status, "VmRSS:", "kB").ok_or("no VmRSS")?.trim().parse::<f64>()?;
    Ok(kib / 1024.0)
}

// ---- The table.

/// `upstream=PORT antiphon=PORT pid=PID ticks=CLK_TCK requests=N seconds=S label=TEXT json=FILE only=TEXT`
fn measure(pairs: &[&str]) -> Failable<()> {
    let pairs: HashMap<&str, &str> = pairs.iter().filter_map(|pair| pair.split_once('=')).collect();
    let pair = |name: &str| pairs.get(name).copied().ok_or_else(|| format!("{name}= is missing"));
    let (upstream, antiphon): (u16, u16) = (pair("upstream")?.parse()?, pair("antiphon")?.parse()?);
    let (pid, ticks): (u32, f64) = (pair("pid")?.parse()?, pair("ticks")?.parse()?);
    let requests: usize = pair("requests")?.parse()?;
    let time = Duration::from_secs(pair("seconds")?.parse()?);
    let only = pair("only").unwrap_or_default();

    let idle = resident(pid)?;
    let mut rows = String::new();
    let mut failed = false;
    println!(
        "{:<34} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7}",
        "", "conn", "requests", "req/s", "p50 ms", "p99 ms", "CPU ms", "PG ms", "RSS MiB"
    );
    let kinds = [
        (upstream, Kind::direct("upstream alone, 1 chunk", 1)),
        (upstream, Kind::direct("upstream alone, 20 chunks", 20)),
        (antiphon, Kind::response("JSON, stored", "chunks-1", 1, false, true)),
        (antiphon, Kind::response("JSON, store: false", "chunks-1", 1, false, false)),
        (antiphon, Kind::response("20 chunks, stored", "chunks-20", 20, true, true)),
        (antiphon, Kind::response("20 chunks, store: false", "chunks-20", 20, true, false)),
        (
            antiphon,
            Kind::response("20 chunks 1 ms apart, stored", "chunks-20-paced", 20, true, true),
        ),
    ];
    for (port, kind) in kinds.iter().filter(|(_, kind)| kind.name.contains(only)) {
        for connections in [1, 16] {
            let bounds = Bounds { connections, requests, time };
            let warm = Bounds { requests: requests.min(50 * connections), ..bounds };
            let measured = ask(*port, kind, warm).and_then(|_| {
                let before = spent(pid, ticks)?;
                let heard = ask(*port, kind, bounds)?;
                Ok((heard, before, spent(pid, ticks)?))
            });
            let (heard, before, after) = match measured {
                Ok(measured) => measured,
                Err(error) => {
                    failed = true;
                    println!("{:<34} {connections:>5} void: {error}", kind.name);
                    continue;
                }
            };
            #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 requests")]
            let count = heard.latencies.len() as f64;
            let (rate, p50, p99) =
                (count / heard.took.as_secs_f64(), heard.percentile(50), heard.percentile(99));
            let (cpu, pg) =
                ((after.own - before.own) / count, (after.children - before.children) / count);
            let rss = resident(pid)?;
            println!(
                "{:<34} {connections:>5} {count:>8} {rate:>8.0} {p50:>8.2} {p99:>8.2} {cpu:>8.3} {pg:>8.3} {rss:>7.1}",
                kind.name
            );
            let _ = write!(
                rows,
                r#"{}{{"kind":"{}","connections":{connections},"requests":{count},"per_second":{rate:.1},"p50_ms":{p50:.3},"p99_ms":{p99:.3},"cpu_ms":{cpu:.4},"postgres_cpu_ms":{pg:.4},"rss_mib":{rss:.1}}}"#,
                if rows.is_empty() { "" } else { ",\n    " },
                kind.name
            );
        }
    }
    println!("idle, before the first request: {idle:.1} MiB");
    if failed {
        return Err("the run is void".into());
    }
    let label = pair("label")?;
    fs::write(
        pair("json")?,
        format!(
            "{{\n  \"label\": \"{label}\",\n  \"idle_rss_mib\": {idle:.1},\n  \"runs\": [\n    {rows}\n  ]\n}}\n"
        ),
    )?;
    Ok(())
}
