//! What is remembered about users. A user sees and deletes their own alone, whatever the tenant shares.

use sqlx::{PgExecutor, PgPool};
use time::OffsetDateTime;

use super::StoreError;

/// The index that refuses the same text a second time.
pub const TEXT_KEY: &str = "memories_text_key";

/// Whose memories are meant.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The tenant.
    pub tenant_id: &'a str,
    /// The user.
    pub user_id: &'a str,
}

/// A row of `memories`.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// `mem_…`
    pub id: String,
    /// The fact.
    pub text: String,
    /// When it was first remembered.
    pub created_at: OffsetDateTime,
    /// When it was last said.
    pub updated_at: OffsetDateTime,
}

/// Writes a new memory, and forgets those of the owner that were not said for longest when there are more than `most`. A text that is
/// remembered already counts as said again.
#[tracing::instrument(name = "db.memories.add", skip_all)]
pub async fn add(db: &PgPool, owner: Owner<'_>, new: &Memory, most: i64) -> Result<(), StoreError> {
    let mut transaction = db.begin().await?;
    // One after another, or two that do not see each other's row would leave one too many.
    sqlx::query!(
        r#"select 1 as "one!" from pg_advisory_xact_lock(hashtextextended('memories/' || $1 || '/' || $2, 0))"#,
        owner.tenant_id,
        owner.user_id,
    )
    .fetch_one(&mut *transaction)
    .await?;
    sqlx::query!(
        "insert into memories (id, tenant_id, owner, text, created_at, updated_at) values ($1, $2, $3, $4, $5, $6)
         on conflict (tenant_id, owner, md5(text)) do update set updated_at = excluded.updated_at",
        new.id,
        owner.tenant_id,
        owner.user_id,
        new.text,
        new.created_at,
        new.updated_at,
    )
    .execute(&mut *transaction)
    .await?;
    sqlx::query!(
        "delete from memories where id in (
             select id from memories where tenant_id = $1 and owner = $2
             order by updated_at desc, id desc offset $3)",
        owner.tenant_id,
        owner.user_id,
        most,
    )
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(())
}

/// Puts another text in the place of a memory's. False when it is gone; a conflict with [`TEXT_KEY`] when another memory says so already.
#[tracing::instrument(name = "db.memories.update", skip_all)]
pub async fn update(
    db: impl PgExecutor<'_>,
    owner: Owner<'_>,
    id: &str,
    text: &str,
    now: OffsetDateTime,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "update memories set text = $4, updated_at = $5 where id = $1 and tenant_id = $2 and owner = $3",
        id,
        owner.tenant_id,
        owner.user_id,
        text,
        now,
    )
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// All memories of an owner, the one said last first.
#[tracing::instrument(name = "db.memories.all", skip_all)]
pub async fn all(db: impl PgExecutor<'_>, owner: Owner<'_>) -> Result<Vec<Memory>, StoreError> {
    let rows = sqlx::query_as!(
        Memory,
        "select id, text, created_at, updated_at from memories
         where tenant_id = $1 and owner = $2 order by updated_at desc, id desc",
        owner.tenant_id,
        owner.user_id,
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}

/// Whether an owner has this memory.
#[tracing::instrument(name = "db.memories.is_there", skip_all)]
pub async fn is_there(
    db: impl PgExecutor<'_>,
    owner: Owner<'_>,
    id: &str,
) -> Result<bool, StoreError> {
    let row = sqlx::query!(
        r#"select 1 as "one!" from memories where id = $1 and tenant_id = $2 and owner = $3"#,
        id,
        owner.tenant_id,
        owner.user_id,
    )
    .fetch_optional(db)
    .await?;
    Ok(row.is_some())
}

/// A page of an owner's memories, from after the memory `after`.
#[tracing::instrument(name = "db.memories.list", skip_all)]
pub async fn list(
    db: impl PgExecutor<'_>,
    owner: Owner<'_>,
    after: Option<&str>,
    descending: bool,
    limit: i64,
) -> Result<Vec<Memory>, StoreError> {
    let rows = sqlx::query_as!(
        Memory,
        "select id, text, created_at, updated_at from memories
         where tenant_id = $1 and owner = $2
           and ($3::text is null
                or (not $4 and (created_at, id) > (select created_at, id from memories where id = $3 and tenant_id = $1 and owner = $2))
                or ($4 and (created_at, id) < (select created_at, id from memories where id = $3 and tenant_id = $1 and owner = $2)))
         order by case when $4 then created_at end desc, case when $4 then id end desc, created_at, id
         limit $5",
        owner.tenant_id,
        owner.user_id,
        after,
        descending,
        limit,
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}

/// Deletes a memory. False when the owner has none of this id.
#[tracing::instrument(name = "db.memories.delete", skip_all)]
pub async fn delete(
    db: impl PgExecutor<'_>,
    owner: Owner<'_>,
    id: &str,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "delete from memories where id = $1 and tenant_id = $2 and owner = $3",
        id,
        owner.tenant_id,
        owner.user_id,
    )
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes all memories of an owner. How many there were.
#[tracing::instrument(name = "db.memories.clear", skip_all)]
pub async fn clear(db: impl PgExecutor<'_>, owner: Owner<'_>) -> Result<u64, StoreError> {
    let done = sqlx::query!(
        "delete from memories where tenant_id = $1 and owner = $2",
        owner.tenant_id,
        owner.user_id,
    )
    .execute(db)
    .await?;
    Ok(done.rows_affected())
}
