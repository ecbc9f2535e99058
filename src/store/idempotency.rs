//! Requests that a client marked with an `Idempotency-Key`.

use sqlx::{PgExecutor, types::Json};
use time::OffsetDateTime;

use crate::protocol::{Raw, Response};

use super::{StoreError, json::AsJson};

/// What is known of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// It is new, and now ours.
    Ours,
    /// A request with the same body runs, or was broken off.
    Running,
    /// A request with the same body has ended with this Response.
    Done(Raw),
    /// It was used with another body.
    OtherBody,
}

/// Claims a key for a Response. Keys from before `oldest` are forgotten.
#[tracing::instrument(name = "db.idempotency.claim", skip_all)]
pub async fn claim(
    db: impl PgExecutor<'_>,
    tenant_id: &str,
    key: &str,
    digest: &[u8],
    response_id: &str,
    now: OffsetDateTime,
    oldest: OffsetDateTime,
) -> Result<Claim, StoreError> {
    // The row comes back whether it was made, taken over because it was old, or left as it was.
    let row = sqlx::query!(
        r#"insert into idempotency as known (tenant_id, key, digest, created_at, response_id) values ($1, $2, $3, $4, $5)
           on conflict on constraint idempotency_key do update set
             digest      = case when known.created_at < $6 then excluded.digest else known.digest end,
             response_id = case when known.created_at < $6 then excluded.response_id else known.response_id end,
             body        = case when known.created_at < $6 then null else known.body end,
             created_at  = case when known.created_at < $6 then excluded.created_at else known.created_at end
           returning digest, response_id, body as "body: Json<Raw>""#,
        tenant_id,
        key,
        digest,
        now,
        response_id,
        oldest,
    )
    .fetch_one(db)
    .await?;
    Ok(match row.body {
        _ if row.digest != digest => Claim::OtherBody,
        _ if row.response_id == response_id => Claim::Ours,
        Some(Json(body)) => Claim::Done(body),
        None => Claim::Running,
    })
}

/// Notes how the request ended.
#[tracing::instrument(name = "db.idempotency.finish", skip_all)]
pub async fn finish(
    db: impl PgExecutor<'_>,
    tenant_id: &str,
    key: &str,
    response: &Response,
) -> Result<(), StoreError> {
    sqlx::query!(
        "update idempotency set body = $4 where tenant_id = $1 and key = $2 and response_id = $3",
        tenant_id,
        key,
        response.id,
        AsJson(response) as AsJson<&Response>,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Forgets a key whose request was refused before it ran.
#[tracing::instrument(name = "db.idempotency.release", skip_all)]
pub async fn release(
    db: impl PgExecutor<'_>,
    tenant_id: &str,
    key: &str,
    response_id: &str,
) -> Result<(), StoreError> {
    sqlx::query!(
        "delete from idempotency where tenant_id = $1 and key = $2 and response_id = $3",
        tenant_id,
        key,
        response_id,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// Forgets keys that were claimed before `oldest`, and says how many.
#[tracing::instrument(name = "db.idempotency.expire", skip_all)]
pub async fn expire(db: impl PgExecutor<'_>, oldest: OffsetDateTime) -> Result<u64, StoreError> {
    let done =
        sqlx::query!("delete from idempotency where created_at < $1", oldest).execute(db).await?;
    Ok(done.rows_affected())
}
