//! One private Postgres for all tests of this binary, and a fresh database for each test.
//!
//! The tables are made once, in a template; a test's database is a copy of it. Nothing is durable, and all of it goes away with this
//! process: Postgres because it is a child, the folder because a watcher outside removes it.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use antiphon::{
    store::{
        embedded::{Durability, Embedded, EmbeddedSettings},
        pool::{self, PoolSettings},
    },
    tasks::Tasks,
};
use sqlx::{ConnectOptions, Connection, PgConnection, PgPool, postgres::PgConnectOptions};
use tokio::sync::OnceCell;

const TEMPLATE: &str = "antiphon_template";

static SERVER: OnceCell<Embedded> = OnceCell::const_new();

/// A fresh, migrated database, with a pool for it and the URL for another one. It lives as long as this process.
pub(crate) async fn database() -> (PgPool, String) {
    let url = create(&format!("template {TEMPLATE}")).await;
    (connect(&url).await, url)
}

/// A fresh database without tables.
pub(crate) async fn empty_database() -> String {
    create("template template0").await
}

/// A small pool, as a test needs it.
pub(crate) async fn connect(url: &str) -> PgPool {
    let settings =
        PoolSettings { max_connections: 4, patience: Duration::ZERO, ..PoolSettings::default() };
    pool::connect(url, &settings).await.unwrap()
}

/// Settings for a private Postgres of the test's own, in a new folder that goes away with this process.
#[expect(clippy::disallowed_methods, reason = "the tests' own environment, not the server's")]
pub(crate) fn settings() -> EmbeddedSettings {
    let path = std::env::var_os("PATH");
    let pg_bin = std::env::var_os("PG_BIN").map(PathBuf::from);
    EmbeddedSettings {
        durability: Durability::None,
        path,
        pg_bin,
        ..EmbeddedSettings::new(folder())
    }
}

/// The same, with the data of a Postgres in it already: copying them is three times as fast as making them.
pub(crate) async fn settings_with_data() -> EmbeddedSettings {
    static MADE: OnceCell<PathBuf> = OnceCell::const_new();
    let make = async || {
        let settings = settings();
        let server = Embedded::start(settings.clone(), &Tasks::default()).await.unwrap();
        server.stop().await.unwrap();
        settings.data_dir.join("postgres")
    };
    let settings = settings();
    let mut copy = tokio::process::Command::new("cp");
    copy.arg("-a").arg(MADE.get_or_init(make).await).arg(&settings.data_dir);
    assert!(copy.status().await.unwrap().success());
    settings
}

/// A new folder that goes away with this process.
///
/// Below `/tmp` and not in `target`: as root, Postgres runs as another user, to whom a home directory is closed.
pub(crate) fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("antiphon-it-{}-{next}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    watch(&folder);
    folder
}

/// Starts a shell that waits for the end of this process, however it ends (its standard input closes then), and for the end of the
/// Postgres in the folder, and removes it.
#[expect(clippy::zombie_processes, reason = "it outlives this process, that is what it is for")]
fn watch(folder: &std::path::Path) {
    use std::os::unix::process::CommandExt as _;
    const SCRIPT: &str = "read -r line; for i in 0 1 2 3 4 5 6 7 8 9; do \
        find \"$1\" -name postmaster.pid | grep -q . || break; sleep 0.3; done; rm -rf \"$1\"";
    let mut shell = Command::new("sh")
        .args(["-c", SCRIPT, "sh"])
        .arg(folder)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Kept open until the end of this process.
    std::mem::forget(shell.stdin.take());
}

async fn create(from: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let server = SERVER.get_or_init(start).await;
    execute(server.url(), format!("create database {name} {from}")).await;
    named(server.url(), &name)
}

async fn start() -> Embedded {
    let server = Embedded::start(settings_with_data().await, &Tasks::default()).await.unwrap();
    execute(server.url(), format!("create database {TEMPLATE}")).await;
    let template = connect(&named(server.url(), TEMPLATE)).await;
    pool::migrate(&template).await.unwrap();
    // A template is copied only while nobody is connected to it.
    template.close().await;
    server
}

/// The URL of another database of the same server.
fn named(url: &str, name: &str) -> String {
    url.replace("/postgres?", &format!("/{name}?"))
}

async fn execute(url: &str, sql: String) {
    let options: PgConnectOptions = url.parse().unwrap();
    let mut connection: PgConnection = options.connect().await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}
