//! API keys in the database.

use antiphon::store::{
    StoreError,
    keys::{self, KeyRow},
};
use pretty_assertions::assert_eq;
use time::{Duration, OffsetDateTime, macros::datetime};

use crate::support::postgres;

const NOON: OffsetDateTime = datetime!(2026-03-01 12:00 UTC);

fn key(id: &str, tenant_id: &str) -> KeyRow {
    KeyRow {
        id: id.to_owned(),
        tenant_id: tenant_id.to_owned(),
        user_id: "ana".to_owned(),
        groups: vec!["staff".to_owned(), "with \"quotes\", commas".to_owned()],
        name: "laptop".to_owned(),
        hash: format!("hash of {id}").into_bytes(),
        prefix: "sk-12345".to_owned(),
        delegate: true,
        created_at: NOON,
        expires_at: Some(NOON + Duration::days(30)),
        revoked_at: None,
    }
}

#[tokio::test]
async fn what_is_written_is_read_back() {
    let (db, _) = postgres::database().await;
    let bare = KeyRow { groups: vec![], delegate: false, expires_at: None, ..key("key_2", "acme") };
    for row in [&key("key_1", "acme"), &bare] {
        keys::insert(&db, row).await.unwrap();
        assert_eq!(keys::find_by_hash(&db, &row.hash).await.unwrap().as_ref(), Some(row));
    }
    assert_eq!(keys::find_by_hash(&db, b"another").await.unwrap(), None);
}

#[tokio::test]
async fn a_list_shows_one_tenant_oldest_first() {
    let (db, _) = postgres::database().await;
    let younger = key("key_1", "acme");
    let older = KeyRow { created_at: NOON - Duration::HOUR, ..key("key_2", "acme") };
    for row in [&younger, &older, &key("key_3", "other")] {
        keys::insert(&db, row).await.unwrap();
    }
    assert_eq!(keys::list(&db, "acme").await.unwrap(), [older, younger]);
    assert_eq!(keys::list(&db, "nobody").await.unwrap(), []);
}

#[tokio::test]
async fn two_keys_never_share_a_hash() {
    let (db, _) = postgres::database().await;
    let first = key("key_1", "acme");
    keys::insert(&db, &first).await.unwrap();
    let twin = KeyRow { hash: first.hash.clone(), ..key("key_2", "other") };
    let refused = keys::insert(&db, &twin).await.unwrap_err();
    assert!(refused.is_conflict(keys::HASH_KEY), "{refused}");
    assert_eq!(keys::list(&db, "other").await.unwrap(), []);
}

#[tokio::test]
async fn a_key_is_revoked_once_and_only_by_its_tenant() {
    let (db, _) = postgres::database().await;
    let row = key("key_1", "acme");
    keys::insert(&db, &row).await.unwrap();
    assert!(!keys::revoke(&db, "other", "key_1", NOON).await.unwrap());
    assert!(!keys::revoke(&db, "acme", "key_2", NOON).await.unwrap());

    let later = NOON + Duration::HOUR;
    assert!(keys::revoke(&db, "acme", "key_1", later).await.unwrap());
    assert!(keys::revoke(&db, "acme", "key_1", NOON).await.unwrap(), "it may end earlier");
    assert!(!keys::revoke(&db, "acme", "key_1", later).await.unwrap(), "but not later again");

    let revoked = keys::find_by_hash(&db, &row.hash).await.unwrap().unwrap();
    assert_eq!(revoked, KeyRow { revoked_at: Some(NOON), ..row });
    assert!(revoked.is_valid_at(NOON - Duration::SECOND));
    assert!(!revoked.is_valid_at(NOON));
}

#[tokio::test]
async fn a_rotation_is_both_or_nothing() {
    let (db, _) = postgres::database().await;
    let old = key("key_1", "acme");
    keys::insert(&db, &old).await.unwrap();

    let twin = KeyRow { hash: old.hash.clone(), ..key("key_2", "acme") };
    let refused = keys::rotate(&db, "key_1", &twin, NOON).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict(_)), "{refused}");
    assert_eq!(
        keys::list(&db, "acme").await.unwrap(),
        std::slice::from_ref(&old),
        "the old key still works"
    );

    assert!(!keys::rotate(&db, "key_1", &key("key_3", "other"), NOON).await.unwrap());
    assert_eq!(
        keys::list(&db, "other").await.unwrap(),
        [],
        "no new key for a tenant that has no old one"
    );

    let new = key("key_2", "acme");
    assert!(keys::rotate(&db, "key_1", &new, NOON).await.unwrap());
    let revoked = KeyRow { revoked_at: Some(NOON), ..old };
    assert_eq!(keys::list(&db, "acme").await.unwrap(), [revoked, new]);
}
