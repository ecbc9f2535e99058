//! The private Postgres: who starts it, who stops it, and what it says when it cannot start.

use std::{
    fs, io,
    path::Path,
    pin::pin,
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use antiphon::{
    store::embedded::{Durability, Embedded, EmbeddedSettings},
    tasks::Tasks,
};
use sqlx::{Connection, PgConnection};

use crate::support::postgres::{folder, settings, settings_with_data};

/// Set for a copy of this test binary that is to run a private Postgres in this folder.
const OTHER_PROCESS: &str = "ANTIPHON_TEST_OTHER_PROCESS";
const DEADLINE: Duration = Duration::from_mins(1);

async fn start(settings: &EmbeddedSettings) -> Embedded {
    Embedded::start(settings.clone(), &Tasks::default()).await.unwrap()
}

async fn refusal(settings: EmbeddedSettings) -> String {
    Embedded::start(settings, &Tasks::default()).await.unwrap_err().to_string()
}

async fn run(url: &str, sql: &'static str) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

fn is_running(pid: i32) -> bool {
    rustix::process::test_kill_process(rustix::process::Pid::from_raw(pid).unwrap()).is_ok()
}

/// Asks until it is so.
async fn until(so: impl Fn() -> bool + Sync) {
    let asking = async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, asking).await.unwrap();
}

#[tokio::test]
async fn data_are_there_after_a_restart() {
    let settings = settings();
    let first = start(&settings).await;
    let pid = first.child_pid().unwrap();
    run(first.url(), "create table t (n int); insert into t values (1)").await;
    first.stop().await.unwrap();
    assert!(!is_running(pid));

    let second = start(&settings).await;
    run(second.url(), "insert into t values (2)").await;
    assert!(second.bin().join("pg_dump").is_file());
    second.stop().await.unwrap();
}

#[tokio::test]
async fn it_is_durable_private_and_out_of_reach_of_the_terminal() {
    let settings = EmbeddedSettings { durability: Durability::Full, ..settings() };
    let server = start(&settings).await;
    let mut connection = PgConnection::connect(server.url()).await.unwrap();
    let names =
        ["fsync", "listen_addresses", "shared_buffers", "max_connections", "server_encoding"];
    let sql = "select current_setting(name) from unnest($1::text[]) with ordinality as n (name, at) order by at";
    let set: Vec<String> =
        sqlx::query_scalar(sql).bind(names).fetch_all(&mut connection).await.unwrap();
    assert_eq!(set, ["on", "", "64MB", "100", "UTF8"]);
    connection.close().await.unwrap();

    let socket = fs::metadata(settings.data_dir.join("postgres/run")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&socket.permissions()) & 0o777, 0o700);
    // Ctrl-C goes to the process group of the terminal: antiphon is to drain before its database goes.
    let pid = rustix::process::Pid::from_raw(server.child_pid().unwrap());
    assert_eq!(rustix::process::getpgid(pid).ok(), pid);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn postgres_outlives_the_thread_that_asked_for_it() {
    let settings = settings_with_data().await;
    let asking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(start(&settings))
    });
    let server = asking.join().unwrap();
    // Postgres would get its signal at the end of that thread: what it answers afterwards shows that it got none.
    run(server.url(), "select 1").await;
    run(server.url(), "select pg_sleep(0.2)").await;
    server.stop().await.unwrap();
}

#[tokio::test]
async fn of_many_one_starts_it_and_stops_it_last() {
    let settings = settings();
    let all = futures::future::join_all((0..4).map(|_| start(&settings))).await;
    let (mut starters, attached): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| one.child_pid().is_some());
    assert_eq!((starters.len(), attached.len()), (1, 3));
    let starter = starters.remove(0);
    let url = starter.url().to_owned();
    assert!(attached.iter().all(|one| one.url() == url));

    let mut stopping = pin!(starter.stop());
    for one in attached {
        assert!(futures::poll!(&mut stopping).is_pending());
        run(one.url(), "select 1").await;
        one.stop().await.unwrap();
    }
    stopping.await.unwrap();
    assert!(PgConnection::connect(&url).await.is_err());
}

#[tokio::test]
async fn dropping_it_stops_it() {
    let server = start(&settings_with_data().await).await;
    let pid = server.child_pid().unwrap();
    drop(server);
    until(|| !is_running(pid)).await;
}

#[tokio::test]
async fn its_unasked_end_is_reported() {
    let server = start(&settings_with_data().await).await;
    let pid = rustix::process::Pid::from_raw(server.child_pid().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let how = tokio::time::timeout(DEADLINE, server.ended()).await.unwrap();
    assert_eq!(how, "signal 9 killed it");
    server.stop().await.unwrap();
}

/// Another process with a private Postgres; it stops when its input is closed.
struct Other {
    process: Child,
    input: Option<ChildStdin>,
    pid: i32,
}

impl Other {
    async fn start(settings: &EmbeddedSettings) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "embedded_postgres::run_for_another_process"])
            .env(OTHER_PROCESS, &settings.data_dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        let said = settings.data_dir.join("pid");
        until(|| said.exists()).await;
        let pid = fs::read_to_string(said).unwrap().parse().unwrap();
        Self { process, input, pid }
    }
}

/// Not a test by itself: what [`Other`] runs in a copy of this binary. Does nothing unless it is asked to.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "how a test asks its own copy")]
async fn run_for_another_process() {
    let Some(data_dir) = std::env::var_os(OTHER_PROCESS) else { return };
    let settings = EmbeddedSettings { data_dir: data_dir.into(), ..settings() };
    let server = start(&settings).await;
    let told = settings.data_dir.join("pid.new");
    fs::write(&told, server.child_pid().unwrap().to_string()).unwrap();
    fs::rename(&told, settings.data_dir.join("pid")).unwrap();
    let end = Tasks::default().spawn_blocking(|| io::read_to_string(io::stdin()));
    end.await.unwrap().unwrap();
    server.stop().await.unwrap();
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn postgres_dies_with_a_killed_parent_and_starts_again() {
    let settings = settings_with_data().await;
    let mut other = Other::start(&settings).await;
    let attached = start(&settings).await;
    other.process.kill().unwrap();
    other.process.wait().unwrap();
    until(|| !is_running(other.pid)).await;
    let how = tokio::time::timeout(DEADLINE, attached.ended()).await.unwrap();
    assert_eq!(how, "the process that had started it ended");
    attached.stop().await.unwrap();

    let server = start(&settings).await;
    assert!(server.child_pid().is_some());
    server.stop().await.unwrap();
}

#[tokio::test]
async fn another_process_waits_for_us_to_leave() {
    let settings = settings_with_data().await;
    let mut other = Other::start(&settings).await;
    let us = start(&settings).await;
    assert_eq!(us.child_pid(), None);
    run(us.url(), "create table t (n int)").await;

    drop(other.input.take());
    run(us.url(), "select pg_sleep(0.2)").await;
    assert_eq!(other.process.try_wait().unwrap(), None, "it waits");
    us.stop().await.unwrap();
    assert!(other.process.wait().unwrap().success());
    assert!(!is_running(other.pid));
}

#[tokio::test]
async fn another_major_version_is_refused_with_the_way_out() {
    let settings = settings();
    let data = settings.data_dir.join("postgres/data");
    fs::create_dir_all(&data).unwrap();
    fs::write(data.join("PG_VERSION"), "9\n").unwrap();
    let error = refusal(settings).await;
    for part in
        ["made by PostgreSQL 9", "is version", "antiphon db dump FILE", "antiphon db restore FILE"]
    {
        assert!(error.contains(part), "{error}");
    }
    assert!(error.contains(&data.display().to_string()), "{error}");
}

#[tokio::test]
async fn what_is_missing_is_said() {
    let nothing = folder();
    let wrong = EmbeddedSettings { pg_bin: Some(nothing.clone()), ..settings() };
    let error = refusal(wrong).await;
    assert!(error.contains(&format!("PG_BIN is {}", nothing.display())), "{error}");
    let none = EmbeddedSettings {
        pg_bin: None,
        path: None,
        installed: vec![nothing.clone()],
        ..settings()
    };
    let error = refusal(none).await;
    assert!(error.contains(&format!("{}/*/bin", nothing.display())), "{error}");
    assert!(error.contains("apt install postgresql") && error.contains("DATABASE_URL"), "{error}");

    let broken = nothing.join("bin");
    fs::create_dir(&broken).unwrap();
    for program in ["postgres", "initdb"] {
        fs::write(broken.join(program), "#!/bin/sh\necho no library >&2; exit 127\n").unwrap();
        make_executable(&broken.join(program));
    }
    let error = refusal(EmbeddedSettings { pg_bin: Some(broken), ..settings() }).await;
    assert!(error.contains("no library"), "{error}");
}

#[tokio::test]
async fn a_data_directory_that_cannot_be_is_named() {
    let file = folder().join("file");
    fs::write(&file, "").unwrap();
    let error = refusal(EmbeddedSettings { data_dir: file.join("data"), ..settings() }).await;
    assert!(error.contains(&format!("cannot create {}", file.display())), "{error}");
    assert!(error.contains("DATABASE_URL"), "{error}");
}

/// Only root has to hand its data to another user.
#[tokio::test]
async fn as_root_a_closed_parent_is_named() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let closed = folder().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let error = refusal(EmbeddedSettings { data_dir: closed.join("data"), ..settings() }).await;
    assert!(error.contains(&format!("{} is closed to the user", closed.display())), "{error}");
    assert!(error.contains(&format!("chmod o+x {}", closed.display())), "{error}");
}

#[tokio::test]
async fn a_path_too_long_for_a_socket_gets_a_short_one() {
    let short = folder();
    let deep = folder().join("d".repeat(120));
    let settings =
        EmbeddedSettings { data_dir: deep, runtime_dir: Some(short.clone()), ..settings() };
    let server = start(&settings).await;
    assert!(
        server.url().contains(&format!("host={}/antiphon-", short.display())),
        "{}",
        server.url()
    );
    // Who attaches finds the socket by what Postgres wrote down, not by the same setting.
    let attached = start(&EmbeddedSettings { runtime_dir: None, ..settings }).await;
    assert_eq!(attached.url(), server.url());
    run(attached.url(), "select 1").await;
    attached.stop().await.unwrap();
    server.stop().await.unwrap();
}

#[tokio::test]
async fn leftovers_do_not_stop_a_start() {
    let settings = settings();
    let home = settings.data_dir.join("postgres");
    fs::create_dir_all(home.join("data.new")).unwrap();
    fs::write(home.join("data.new/PG_VERSION"), "torn").unwrap();
    start(&settings).await.stop().await.unwrap();

    // The process id of a Postgres that died with its container may be anybody's in the next one: here it is ours.
    let stale = format!("{}\n{}\n0\n5432\n\n\n", std::process::id(), home.join("data").display());
    fs::write(home.join("data/postmaster.pid"), stale).unwrap();
    let server = start(&settings).await;
    assert!(server.child_pid().is_some());
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_postgres_in_another_container_is_attached_to() {
    let settings = settings_with_data().await;
    let server = start(&settings).await;
    let file = settings.data_dir.join("postgres/data/postmaster.pid");
    let text = fs::read_to_string(&file).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    // Seen from another container, its process id is somebody else's, or nobody's.
    for pid in [std::process::id().to_string(), i32::MAX.to_string()] {
        fs::write(&file, format!("{pid}\n{rest}")).unwrap();
        let attached = start(&settings).await;
        assert_eq!((attached.child_pid(), attached.url()), (None, server.url()));
        assert!(futures::poll!(pin!(attached.ended())).is_pending());
        attached.stop().await.unwrap();
    }
    fs::write(&file, text).unwrap();
    server.stop().await.unwrap();
}

#[tokio::test]
async fn its_last_words_are_in_the_error() {
    let settings = settings_with_data().await;
    let conf = settings.data_dir.join("postgres/data/postgresql.conf");
    let text = fs::read_to_string(&conf).unwrap();
    fs::write(&conf, format!("{text}\nno_such_setting = 1\n")).unwrap();
    let error = refusal(settings).await;
    assert!(error.contains("no_such_setting"), "{error}");
}

fn make_executable(file: &Path) {
    fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}
