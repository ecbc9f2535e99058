//! Calls that wait for the client's consent. No arguments are kept, so that a row may be written for Responses that are not stored.

use sqlx::PgExecutor;
use time::OffsetDateTime;

use super::StoreError;

/// What became of an approval that was to be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Use {
    /// It was there and is used up now.
    Granted,
    /// There is none of this id.
    Unknown,
    /// It was asked for something else.
    Different,
    /// It was used before.
    Used,
}

/// Remembers that consent was asked for.
#[tracing::instrument(name = "db.approvals.insert", skip_all)]
pub async fn insert(
    db: impl PgExecutor<'_>,
    tenant_id: &str,
    ids: &[&str],
    digests: &[Vec<u8>],
    now: OffsetDateTime,
) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into approvals (tenant_id, id, digest, created_at)
         select $1, id, digest, $4 from unnest($2::text[], $3::bytea[]) as new (id, digest)
         on conflict on constraint approvals_key do nothing",
        tenant_id,
        ids as &[&str],
        digests,
        now,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Uses an approval up, if it is for this and was not used yet. Of two that try, one is granted it.
#[tracing::instrument(name = "db.approvals.use_once", skip_all)]
pub async fn use_once(
    db: impl PgExecutor<'_>,
    tenant_id: &str,
    id: &str,
    digest: &[u8],
    now: OffsetDateTime,
) -> Result<Use, StoreError> {
    let row = sqlx::query!(
        r#"with before as (
             select digest, used_at from approvals where tenant_id = $1 and id = $2
           ),
           used as (
             update approvals set used_at = $4
             where tenant_id = $1 and id = $2 and digest = $3 and used_at is null
             returning id
           )
           select digest = $3 as "same!", exists (select from used) as "granted!" from before"#,
        tenant_id,
        id,
        digest,
        now,
    )
    .fetch_optional(db)
    .await?;
    Ok(match row {
        None => Use::Unknown,
        Some(row) if row.granted => Use::Granted,
        Some(row) if row.same => Use::Used,
        Some(_) => Use::Different,
    })
}

/// Forgets what was asked for before `before`. Gives how many were forgotten.
#[tracing::instrument(name = "db.approvals.expire", skip_all)]
pub async fn expire(
    db: impl PgExecutor<'_>,
    before: OffsetDateTime,
) -> Result<u64, StoreError> {
    let done = sqlx::query!("delete from approvals where created_at < $1", before).execute(db).await?;
    Ok(done.rows_affected())
}
