//! The database dies, and so does a server that holds a lock in it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use antiphon::{
    clock::Clock,
    store::{
        embedded::{Durability, Embedded, EmbeddedSettings},
        pool::{self, PoolSettings},
    },
    tasks::Tasks,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{Answered, answered, stored, stream};
use crate::support::{
    model::{Gate, Round, Script, Step, say, text},
    postgres::{connect, database, settings_with_data},
    server::{NOW, PATIENCE, Server, Setup, start_before, start_with, upstreams},
    stream::{Listener, checked},
    upstream::{Upstream, says},
};

/// What the clients of a test heard.
struct Tally {
    completed: Mutex<Vec<Value>>,
    more_completed: Semaphore,
    more_refused: Semaphore,
}

impl Tally {
    fn new() -> Self {
        Self {
            completed: Mutex::default(),
            more_completed: Semaphore::new(0),
            more_refused: Semaphore::new(0),
        }
    }

    fn completed(&self, response: Value) {
        self.completed.lock().unwrap().push(response);
        self.more_completed.add_permits(1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_killed_under_load_and_comes_back() {
    let settings = EmbeddedSettings { durability: Durability::Full, ..settings_with_data().await };
    let start = async || Embedded::start(settings.clone(), &Tasks::default()).await.unwrap();
    let mut postgres = start().await;
    let of_pool = PoolSettings {
        max_connections: 6,
        acquire_timeout: Duration::from_secs(1),
        ..PoolSettings::default()
    };
    let pool = pool::connect(postgres.url(), &of_pool).await.unwrap();
    // Not with that little patience: making the tables takes long on a busy machine.
    let patient = connect(postgres.url()).await;
    pool::migrate(&patient).await.unwrap();
    patient.close().await;
    let upstream = Upstream::always(says(&["Hello ", "world"])).await;
    let router = upstreams(vec![upstream.settings("u", &json!({}))], PATIENCE);
    let server = start_before(router, Setup { pool: Some(pool.clone()), ..Setup::default() }).await;
    let (server, tally) = (Arc::new(server), Arc::new(Tally::new()));
    let over = Arc::new(AtomicBool::new(false));
    let tasks = Tasks::default();
    let clients: Vec<_> = (0..8)
        .map(|client| {
            tasks.spawn(load(server.clone(), tally.clone(), over.clone(), client % 2 == 0))
        })
        .collect();

    for _ in 0..2 {
        enough(&tally.more_completed, 24).await;
        kill(postgres.child_pid().unwrap());
        postgres.ended().await;
        forget(&tally.more_refused);
        enough(&tally.more_refused, 12).await;
        assert_eq!(server.get("/healthz").await.0, 200);
        assert_eq!(server.get("/readyz").await.0, 503);
        drop(postgres);
        postgres = start().await;
        forget(&tally.more_completed);
    }
    enough(&tally.more_completed, 24).await;
    over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }

    assert_eq!(server.get("/readyz").await.0, 200);
    let completed = std::mem::take(&mut *tally.completed.lock().unwrap());
    for response in &completed {
        let id = response["id"].as_str().unwrap();
        assert_eq!(server.get(&format!("/v1/responses/{id}")).await, (200, response.clone()));
    }
    let rows = stored(&pool).await;
    let count = |status: &str| rows.iter().find(|row| row.0 == status).map_or(0, |row| row.1);
    assert_eq!(count("in_progress") + count("queued"), 0, "{rows:?}");
    let heard = i64::try_from(completed.len()).unwrap();
    assert!(count("completed") >= heard, "{rows:?}, heard {heard}");
    drop(upstream);
    pool.close().await;
    postgres.stop().await.unwrap();
}

/// One client that asks again and again.
async fn load(server: Arc<Server>, tally: Arc<Tally>, over: Arc<AtomicBool>, streams: bool) {
    while !over.load(Ordering::Relaxed) {
        let body = json!({ "model": "m", "input": "Hello", "stream": streams });
        let response = server.request("POST", "/v1/responses").json(&body).send().await.unwrap();
        if !streams && response.status() == 200 {
            tally.completed(response.json().await.unwrap());
            continue;
        }
        match answered(response).await {
            Answered::Refused { status, retry_after } => {
                assert_eq!(status, 503);
                assert!(retry_after.is_some());
                tally.more_refused.add_permits(1);
            }
            Answered::Heard(heard) if heard.response["status"] == "completed" => {
                tally.completed(heard.response);
            }
            Answered::Heard(heard) => {
                assert_eq!(heard.response["error"]["code"], "server_error");
                tally.more_refused.add_permits(1);
            }
        }
    }
}

async fn enough(more: &Semaphore, count: u32) {
    let waiting = more.acquire_many(count);
    tokio::time::timeout(Duration::from_mins(1), waiting).await.unwrap().unwrap().forget();
}

fn forget(more: &Semaphore) {
    more.forget_permits(more.available_permits());
}

/// Kills Postgres and its processes, all at once: each of them has a process group of its own.
fn kill(postmaster: i32) {
    let mut all = vec![postmaster];
    for entry in std::fs::read_dir("/proc").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Ok(pid) = name.parse::<i32>() else { continue };
        // Processes come and go.
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        if status.lines().any(|line| line == format!("PPid:\t{postmaster}")) {
            all.push(pid);
        }
    }
    assert!(all.len() > 3, "{all:?}");
    for pid in all {
        // One that has gone already is as dead.
        let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
    }
}

#[test]
fn the_lock_of_a_server_that_died_runs_out() {
    // A server of its own runtime: when that goes, nothing of it runs any more, as after a crash.
    let doomed =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let clock = Clock::fixed(NOW);
    let (url, conversation) = doomed.block_on(async {
        let (pool, url) = database().await;
        let gate = Gate::closed();
        let model = Script::new([Round::Play(vec![say("I "), Step::Wait(gate.clone())])]);
        let server = start_with(model, Setup { pool: Some(pool), ..Setup::default() }).await;
        let (_, conversation) = server.post("/v1/conversations", json!({})).await;
        let body = json!({ "model": "m", "input": "Hi", "conversation": conversation["id"] });
        Tasks::default().spawn(async move { server.post("/v1/responses", body).await });
        gate.reached().await;
        (url, conversation["id"].clone())
    });
    drop(doomed);
    runtime.block_on(async {
        let pool = connect(&url).await;
        let model = Script::new([text("Here I am.")]);
        let setup =
            Setup { pool: Some(pool), clock: clock.clone(), first_id: 100, ..Setup::default() };
        let server = start_with(model, setup).await;
        let body = json!({ "model": "m", "input": "Hi", "conversation": conversation });
        let (status, refusal) = server.post("/v1/responses", body.clone()).await;
        assert_eq!((status, &refusal["error"]["code"]), (400, &json!("conversation_locked")));
        clock.advance(time::Duration::seconds(60));
        let (status, response) = server.post("/v1/responses", body).await;
        assert_eq!((status, &response["status"]), (200, &json!("completed")), "{response}");
    });
}

fn hello() -> Value {
    json!({ "model": "m", "input": "Hi" })
}

#[tokio::test]
async fn without_it_a_client_is_told_to_come_back() {
    let gate = Gate::closed();
    let round = || Round::Play(vec![say("One, "), Step::Wait(gate.clone()), say("two.")]);
    let server = start_with(Script::new([round(), round()]), Setup::default()).await;
    let waiting = server.post("/v1/responses", hello());
    let mut listener = Listener::open(&server, &hello()).await;
    let mut events = vec![listener.next().await.unwrap()];
    let asked = async {
        gate.reached().await;
        gate.reached().await;
        server.pool.close().await;
        gate.open();
        gate.open();
    };
    // Nothing was said to the one who waits for JSON, so an error can still be an HTTP error.
    let ((status, body), ()) = tokio::join!(waiting, asked);
    assert_eq!((status, &body["error"]["code"]), (503, &json!("server_error")), "{body}");
    while let Some(event) = listener.next().await {
        events.push(event);
    }
    let response = checked(events).response;
    assert_eq!(response["status"], "failed");
    assert_eq!(response["output"][0]["content"][0]["text"], "One, two.");

    for path in ["/v1/responses", "/v1/conversations"] {
        let answer = server.request("POST", path).json(&hello()).send().await.unwrap();
        let answered = answered(answer).await;
        let Answered::Refused { status: 503, retry_after: Some(_) } = answered else {
            panic!("{path}: {answered:?}")
        };
    }
    assert_eq!(server.get("/readyz").await.0, 503);
    assert_eq!(server.get("/healthz").await.0, 200);
}

#[tokio::test]
async fn a_connection_that_is_lost_while_committing_costs_nothing() {
    let server = start_with(Script::new([text("Here.")]), Setup::default()).await;
    let mut lock = server.pool.begin().await.unwrap();
    sqlx::query("lock table responses in exclusive mode").execute(&mut *lock).await.unwrap();
    let blocked = "select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    let break_it = async {
        let pid: i32 = loop {
            if let Some(pid) =
                sqlx::query_scalar(blocked).fetch_optional(&server.pool).await.unwrap()
            {
                break pid;
            }
        };
        let end = sqlx::query("select pg_terminate_backend($1)").bind(pid);
        end.execute(&server.pool).await.unwrap();
        lock.rollback().await.unwrap();
    };
    let ((status, response), ()) = tokio::join!(server.post("/v1/responses", hello()), break_it);
    assert_eq!((status, &response["status"]), (200, &json!("completed")), "{response}");
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await, (200, response));
    assert_eq!(stored(&server.pool).await, [("completed".to_owned(), 1)]);
}

#[tokio::test]
async fn a_lock_that_is_lost_fails_the_response_and_keeps_it() {
    let gate = Gate::closed();
    let round = Round::Play(vec![say("I am late."), Step::Wait(gate.clone())]);
    let server = start_with(Script::new([round]), Setup::default()).await;
    let (_, conversation) = server.post("/v1/conversations", json!({})).await;
    let body =
        json!({ "model": "m", "input": "Hi", "conversation": conversation["id"], "stream": true });
    let take_it = async {
        gate.reached().await;
        // As when this server had slept for longer than its lease.
        let sql = "update conversations set locked_by = 'resp_another'";
        sqlx::query(sql).execute(&server.pool).await.unwrap();
        gate.open();
    };
    let (heard, ()) = tokio::join!(stream(&server, &body), take_it);
    let Answered::Heard(heard) = heard else { panic!("{heard:?}") };
    assert_eq!(heard.response["error"]["code"], "conversation_locked");
    let path = format!("/v1/responses/{}", heard.response["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await, (200, heard.response));
    let items = format!("/v1/conversations/{}/items", conversation["id"].as_str().unwrap());
    assert_eq!(server.get(&items).await.1["data"], json!([]));
}
