//! Saving a database and loading it elsewhere.

use std::path::PathBuf;

use antiphon::store::{
    dump::{DumpError, dump, restore},
    embedded::find_tools,
    pool,
};
use pretty_assertions::assert_eq;

use crate::support::postgres::{connect, database, empty_database, folder, settings};

async fn bin() -> PathBuf {
    find_tools(&settings()).await.unwrap()
}

async fn tables(url: &str) -> Vec<String> {
    let db = connect(url).await;
    let sql = "select tablename::text from pg_tables where schemaname = 'public' order by 1";
    sqlx::query_scalar(sql).fetch_all(&db).await.unwrap()
}

#[tokio::test]
async fn a_database_moves_with_all_it_holds() {
    let (old, from) = database().await;
    sqlx::raw_sql("create table t (n int); insert into t select generate_series(1, 1000)")
        .execute(&old)
        .await
        .unwrap();
    let (bin, file) = (bin().await, folder().join("dump"));
    std::fs::write(&file, "an older dump").unwrap();
    dump(&from, &bin, &file).await.unwrap();

    let to = empty_database().await;
    restore(&to, &bin, &file).await.unwrap();
    assert_eq!(tables(&to).await, tables(&from).await);
    let new = connect(&to).await;
    let sum: i64 = sqlx::query_scalar("select sum(n) from t").fetch_one(&new).await.unwrap();
    assert_eq!(sum, 500_500);
    pool::migrate(&new).await.unwrap();
}

#[tokio::test]
async fn only_an_empty_database_is_loaded_into() {
    let (_, url) = database().await;
    let (bin, file) = (bin().await, folder().join("dump"));
    dump(&url, &bin, &file).await.unwrap();
    let refused = restore(&url, &bin, &file).await.unwrap_err();
    assert!(matches!(refused, DumpError::NotEmpty { tables: 2.. }), "{refused}");
    assert!(refused.to_string().contains("new data_dir"), "{refused}");
}

#[tokio::test]
async fn a_torn_dump_loads_nothing() {
    let (db, from) = database().await;
    sqlx::raw_sql("create table t (n int); insert into t select generate_series(1, 1000)")
        .execute(&db)
        .await
        .unwrap();
    let (bin, folder) = (bin().await, folder());
    let file = folder.join("dump");
    dump(&from, &bin, &file).await.unwrap();
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 100]).unwrap();

    let to = empty_database().await;
    let refused = restore(&to, &bin, &file).await.unwrap_err();
    assert!(
        refused.to_string().contains("pg_restore failed, and nothing was changed"),
        "{refused}"
    );
    assert_eq!(tables(&to).await, Vec::<String>::new());

    let refused = restore(&to, &bin, &folder.join("none")).await.unwrap_err();
    assert!(
        refused.to_string().contains("cannot read") && refused.to_string().contains("none"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_dump_that_fails_leaves_the_old_one() {
    let (bin, folder) = (bin().await, folder());
    let file = folder.join("dump");
    std::fs::write(&file, "an older dump").unwrap();
    let nowhere = format!("postgres://u:secret@localhost/db?host={}", folder.display());
    let failed = dump(&nowhere, &bin, &file).await.unwrap_err().to_string();
    assert!(failed.contains("pg_dump failed") && !failed.contains("secret"), "{failed}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "an older dump");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
}
