//! Approvals in the database.

use antiphon::store::{
    StoreError,
    approvals::{self, Used},
};
use futures::future::join_all;
use pretty_assertions::assert_eq;
use time::{Duration, OffsetDateTime, macros::datetime};

use crate::support::postgres;

const NOON: OffsetDateTime = datetime!(2026-03-01 12:00 UTC);

#[tokio::test]
async fn an_approval_is_good_once_and_for_what_it_was_asked() {
    let (db, _) = postgres::database().await;
    let (right, other) = ([1; 32], [2; 32]);
    approvals::insert(&db, "acme", "mcpr_1", &right, NOON).await.unwrap();
    let mut told = Vec::new();
    for (tenant, id, digest) in [
        ("acme", "mcpr_2", &right),
        ("rival", "mcpr_1", &right),
        ("acme", "mcpr_1", &other),
        ("acme", "mcpr_1", &right),
        ("acme", "mcpr_1", &right),
        ("acme", "mcpr_1", &other),
    ] {
        told.push(approvals::use_once(&db, tenant, id, digest, NOON).await.unwrap());
    }
    let (unknown, other) = (Used::Unknown, Used::ForOther);
    assert_eq!(told, [unknown, unknown, other, Used::Now, Used::Before, other]);
    // Another tenant may have one of the same id; one tenant may not have two.
    approvals::insert(&db, "rival", "mcpr_1", &right, NOON).await.unwrap();
    let twice = approvals::insert(&db, "acme", "mcpr_1", &right, NOON).await;
    assert!(matches!(twice, Err(StoreError::Conflict(_))), "{twice:?}");
}

#[tokio::test]
async fn of_many_that_use_it_at_once_one_does() {
    let (db, _) = postgres::database().await;
    approvals::insert(&db, "acme", "mcpr_1", &[1; 32], NOON).await.unwrap();
    let used =
        join_all((0..12).map(|_| approvals::use_once(&db, "acme", "mcpr_1", &[1; 32], NOON))).await;
    let used: Vec<Used> = used.into_iter().map(Result::unwrap).collect();
    assert_eq!(used.iter().filter(|used| **used == Used::Now).count(), 1, "{used:?}");
    assert_eq!(used.iter().filter(|used| **used == Used::Before).count(), 11, "{used:?}");
}

#[tokio::test]
async fn old_ones_are_forgotten() {
    let (db, _) = postgres::database().await;
    for (id, age) in [("mcpr_1", 2), ("mcpr_2", 1), ("mcpr_3", 0)] {
        approvals::insert(&db, "acme", id, &[1; 32], NOON - Duration::days(age)).await.unwrap();
    }
    assert_eq!(approvals::expire(&db, NOON - Duration::days(1)).await.unwrap(), 1);
    let used = approvals::use_once(&db, "acme", "mcpr_1", &[1; 32], NOON).await.unwrap();
    assert_eq!(used, Used::Unknown);
    let used = approvals::use_once(&db, "acme", "mcpr_2", &[1; 32], NOON).await.unwrap();
    assert_eq!(used, Used::Now);
}
