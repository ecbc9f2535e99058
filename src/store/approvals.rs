//! Approvals that were asked for, each good for one use. The arguments are not here: a digest of them is.

use sqlx::PgExecutor;
use time::OffsetDateTime;

use super::StoreError;

/// Writes that an approval is asked for.
#[tracing::instrument(name = "db.approvals.insert", skip_all)]
pub async fn insert(
    db: impl PgExecutor<'_>,
    tenant_id: &str,
    id: &str,
    digest: &[u8; 32],
    now: OffsetDateTime,
) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into approvals (id, tenant_id, digest, created_at) values ($1, $2, $3, $4)",
        id,
        tenant_id,
        digest.as_slice(),
        now,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// What became of an attempt to use an approval.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Used {
    /// It was good, and is used now.
    Now,
    /// It has been used before.
    Before,
    /// It was for another server, another tool or other arguments; it stays unused.
    ForOther,
    /// The tenant has no such approval, or it has expired.
    Unknown,
}

/// Uses an approval. Of two that try at the same time, one does.
#[tracing::instrument(name = "db.approvals.use_once", skip_all)]
pub async fn use_once(
    db: impl PgExecutor<'_>,
    tenant_id: &str,
    id: &str,
    digest: &[u8; 32],
    now: OffsetDateTime,
) -> Result<Used, StoreError> {
    // What `found` sees is from before the update. Of two at once the second waits for the row, and then updates nothing.
    let row = sqlx::query!(
        r#"with found as (
             select digest = $3 as fits from approvals where tenant_id = $1 and id = $2
           ), used as (
             update approvals set used_at = $4
             where tenant_id = $1 and id = $2 and digest = $3 and used_at is null
             returning id
           )
           select (select fits from found) as fits, exists (select from used) as "now!""#,
        tenant_id,
        id,
        digest.as_slice(),
        now,
    )
    .fetch_one(db)
    .await?;
    Ok(match (row.fits, row.now) {
        (None, _) => Used::Unknown,
        (Some(false), _) => Used::ForOther,
        (Some(true), true) => Used::Now,
        (Some(true), false) => Used::Before,
    })
}

/// Uses an approval up without granting anything.
#[tracing::instrument(name = "db.approvals.refuse", skip_all)]
pub async fn refuse(
    db: impl PgExecutor<'_>,
    tenant_id: &str,
    id: &str,
    now: OffsetDateTime,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update approvals set used_at = $3 where tenant_id = $1 and id = $2 and used_at is null",
        tenant_id,
        id,
        now,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Forgets the approvals that were asked for before `before`, used or not. How many there were.
#[tracing::instrument(name = "db.approvals.expire", skip_all)]
pub async fn expire(db: impl PgExecutor<'_>, before: OffsetDateTime) -> Result<u64, StoreError> {
    let done =
        sqlx::query!("delete from approvals where created_at < $1", before).execute(db).await?;
    Ok(done.rows_affected())
}
