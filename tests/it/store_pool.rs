//! Connecting, waiting and migrating.

use std::{pin::pin, time::Duration};

use antiphon::{
    protocol::{ApiError, ErrorKind},
    store::{
        StoreError,
        embedded::Embedded,
        keys,
        pool::{self, OpenError, PoolSettings},
    },
    tasks::Tasks,
};

use crate::support::postgres::{connect, database, empty_database, settings_with_data};

fn at_once() -> PoolSettings {
    PoolSettings { patience: Duration::ZERO, ..PoolSettings::default() }
}

#[tokio::test]
async fn migrations_run_once_also_when_replicas_start_together() {
    let url = empty_database().await;
    let (a, b) = (connect(&url).await, connect(&url).await);
    let (first, second) = tokio::join!(pool::migrate(&a), pool::migrate(&b));
    first.unwrap();
    second.unwrap();
    assert_eq!(keys::list(&a, "acme").await.unwrap(), []);
}

#[tokio::test]
async fn tables_of_another_version_are_refused() {
    let (db, _) = database().await;
    sqlx::raw_sql("update _sqlx_migrations set checksum = 'x'").execute(&db).await.unwrap();
    let changed = pool::migrate(&db).await.unwrap_err();
    assert!(matches!(changed, OpenError::OtherVersion(1)), "{changed}");

    let (db, _) = database().await;
    sqlx::raw_sql("insert into _sqlx_migrations select 9999, description, installed_on, success, checksum, execution_time from _sqlx_migrations limit 1")
        .execute(&db).await.unwrap();
    let newer = pool::migrate(&db).await.unwrap_err();
    assert!(newer.to_string().contains("migration 9999"), "{newer}");
}

#[tokio::test]
async fn what_waiting_does_not_mend_is_said_at_once() {
    let (_, url) = database().await;
    let (address, query) = url.split_once('?').unwrap();
    let nameless = format!("{}/no_such_database?{query}", address.rsplit_once('/').unwrap().0);
    let refused = pool::connect(&nameless, &PoolSettings::default()).await.unwrap_err();
    assert!(matches!(refused, OpenError::Refused { .. }), "{refused}");
    assert!(refused.to_string().contains("no_such_database"), "{refused}");

    for url in ["", "mysql://u:secret@h/x", "postgres://u:secret@h:port/x", "localhost"] {
        let wrong = pool::connect(url, &at_once()).await.unwrap_err().to_string();
        assert!(wrong.starts_with("database_url is not a Postgres URL"), "{url}: {wrong}");
        assert!(!wrong.contains("secret"), "{wrong}");
    }
}

#[tokio::test]
async fn a_silent_database_is_named_without_its_password() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("postgres://ana:secret@{free}/db");
    let silent = pool::connect(&url, &at_once()).await.unwrap_err();
    assert!(matches!(silent, OpenError::Silent { .. }), "{silent}");
    let text = silent.to_string();
    assert!(text.contains(&format!("{free}/db")) && !text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_start_waits_for_the_database_and_a_query_does_not_outlast_it() {
    let (settings, tasks) = (settings_with_data().await, Tasks::default());
    let first = Embedded::start(settings.clone(), &tasks).await.unwrap();
    let url = first.url().to_owned();
    first.stop().await.unwrap();

    let waiting =
        PoolSettings { acquire_timeout: Duration::from_millis(200), ..PoolSettings::default() };
    let mut connecting = pin!(pool::connect(&url, &waiting));
    assert!(futures::poll!(&mut connecting).is_pending());
    let server = Embedded::start(settings, &tasks).await.unwrap();
    let db = connecting.await.unwrap();
    pool::ping(&db).await.unwrap();

    server.stop().await.unwrap();
    let lost = pool::ping(&db).await.unwrap_err();
    assert!(matches!(lost, StoreError::Unavailable(_)), "{lost}");
    assert_eq!(ApiError::from(lost), ApiError::database_unavailable());
}

#[tokio::test]
async fn a_full_pool_is_unavailable_and_a_wrong_query_is_ours() {
    let (_, url) = database().await;
    let one = PoolSettings {
        max_connections: 1,
        acquire_timeout: Duration::from_millis(50),
        ..at_once()
    };
    let db = pool::connect(&url, &one).await.unwrap();
    let held = db.acquire().await.unwrap();
    let full = pool::ping(&db).await.unwrap_err();
    assert!(matches!(full, StoreError::Unavailable(_)), "{full}");
    drop(held);

    let wrong = sqlx::query("select no_such_column from api_keys").execute(&db).await.unwrap_err();
    assert_eq!(ApiError::from(StoreError::from(wrong)).kind, ErrorKind::Server);
}
