//! Conversations and the lease by which one Response at a time writes into one.

use sqlx::{PgExecutor, PgPool, types::Json};
use time::OffsetDateTime;

use crate::protocol::{SharedItem, response::Metadata};

use super::{StoreError, Viewer, items, json::AsJson};

/// A conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// `conv_…`
    pub id: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// The client's own pairs.
    pub metadata: Metadata,
}

/// Writes a new conversation and its first items.
#[tracing::instrument(name = "db.conversations.insert", skip_all)]
pub async fn insert(
    db: &PgPool,
    tenant_id: &str,
    owner: &str,
    new: &Conversation,
    first: &[SharedItem],
) -> Result<(), StoreError> {
    let mut transaction = db.begin().await?;
    sqlx::query!(
        "insert into conversations (id, tenant_id, owner, created_at, metadata) values ($1, $2, $3, $4, $5)",
        new.id,
        tenant_id,
        owner,
        new.created_at,
        AsJson(&new.metadata) as AsJson<&Metadata>,
    )
    .execute(&mut *transaction)
    .await?;
    if !first.is_empty() {
        items::append(&mut *transaction, &new.id, tenant_id, first).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// A conversation as its viewer may see it.
#[tracing::instrument(name = "db.conversations.find", skip_all)]
pub async fn find(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    id: &str,
) -> Result<Option<Conversation>, StoreError> {
    let row = sqlx::query!(
        r#"select id, created_at, metadata as "metadata: Json<Metadata>" from conversations
           where id = $1 and tenant_id = $2 and ($3::text is null or owner = $3)"#,
        id,
        viewer.tenant_id,
        viewer.only_owner,
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|row| Conversation {
        id: row.id,
        created_at: row.created_at,
        metadata: row.metadata.0,
    }))
}

/// A page of the conversations that a viewer may see, from after the conversation `after`.
#[tracing::instrument(name = "db.conversations.list", skip_all)]
pub async fn list(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    after: Option<&str>,
    descending: bool,
    limit: i64,
) -> Result<Vec<Conversation>, StoreError> {
    let rows = sqlx::query!(
        r#"select id, created_at, metadata as "metadata: Json<Metadata>" from conversations
           where tenant_id = $1 and ($2::text is null or owner = $2)
             and ($3::text is null
                  or (not $4 and (created_at, id) > (select created_at, id from conversations where id = $3 and tenant_id = $1))
                  or ($4 and (created_at, id) < (select created_at, id from conversations where id = $3 and tenant_id = $1)))
           order by case when $4 then created_at end desc, case when $4 then id end desc, created_at, id
           limit $5"#,
        viewer.tenant_id,
        viewer.only_owner,
        after,
        descending,
        limit,
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Conversation {
            id: row.id,
            created_at: row.created_at,
            metadata: row.metadata.0,
        })
        .collect())
}

/// Puts new metadata in the place of the old. False when the viewer may not see the conversation.
#[tracing::instrument(name = "db.conversations.update", skip_all)]
pub async fn update(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    id: &str,
    metadata: &Metadata,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "update conversations set metadata = $4 where id = $1 and tenant_id = $2 and ($3::text is null or owner = $3)",
        id,
        viewer.tenant_id,
        viewer.only_owner,
        AsJson(metadata) as AsJson<&Metadata>,
    )
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes a conversation; the items of Responses stay with them. False when the viewer may not see it.
#[tracing::instrument(name = "db.conversations.delete", skip_all)]
pub async fn delete(db: &PgPool, viewer: Viewer<'_>, id: &str) -> Result<bool, StoreError> {
    let mut transaction = db.begin().await?;
    let found = sqlx::query!(
        "select id from conversations where id = $1 and tenant_id = $2 and ($3::text is null or owner = $3) for update",
        id,
        viewer.tenant_id,
        viewer.only_owner,
    )
    .fetch_optional(&mut *transaction)
    .await?;
    if found.is_none() {
        return Ok(false);
    }
    sqlx::query!("delete from items where conversation_id = $1 and response_id is null", id)
        .execute(&mut *transaction)
        .await?;
    sqlx::query!("update items set conversation_id = null where conversation_id = $1", id)
        .execute(&mut *transaction)
        .await?;
    sqlx::query!("delete from conversations where id = $1", id).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(true)
}

/// What became of items that were to be added to a conversation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Appended {
    /// They are in it.
    Done,
    /// A Response is writing into it.
    Locked,
    /// The viewer may not see it.
    Absent,
    /// It has an item of this id already.
    Duplicate(String),
}

/// Adds items to a conversation that no Response is writing into at `now`.
#[tracing::instrument(name = "db.conversations.append", skip_all)]
pub async fn append(
    db: &PgPool,
    viewer: Viewer<'_>,
    id: &str,
    new: &[SharedItem],
    now: OffsetDateTime,
) -> Result<Appended, StoreError> {
    let mut transaction = db.begin().await?;
    // A Response that wants the lock waits for this row, and then reads what was added.
    let row = sqlx::query!(
        r#"select coalesce(locked_until > $4, false) as "locked!" from conversations
           where id = $1 and tenant_id = $2 and ($3::text is null or owner = $3) for update"#,
        id,
        viewer.tenant_id,
        viewer.only_owner,
        now,
    )
    .fetch_optional(&mut *transaction)
    .await?;
    let Some(row) = row else { return Ok(Appended::Absent) };
    if row.locked {
        return Ok(Appended::Locked);
    }
    // A Response whose lease ran out must not write after this any more.
    sqlx::query!("update conversations set locked_by = null, locked_until = null where id = $1 and locked_by is not null", id)
        .execute(&mut *transaction)
        .await?;
    let ids: Vec<&str> = new.iter().map(|item| item.id()).collect();
    let known = sqlx::query_scalar!(
        "select id from items where conversation_id = $1 and id = any($2) limit 1",
        id,
        &ids as &[&str],
    )
    .fetch_optional(&mut *transaction)
    .await?;
    if let Some(known) = known {
        return Ok(Appended::Duplicate(known));
    }
    items::append(&mut *transaction, id, viewer.tenant_id, new).await?;
    transaction.commit().await?;
    Ok(Appended::Done)
}

/// What became of an attempt to lock a conversation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lock {
    /// It is ours until the lease ends.
    Ours,
    /// Another Response is writing into it.
    Taken,
    /// The viewer may not see it.
    Absent,
}

/// Locks a conversation for a Response until `until`.
#[tracing::instrument(name = "db.conversations.lock", skip_all)]
pub async fn lock(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    id: &str,
    response_id: &str,
    now: OffsetDateTime,
    until: OffsetDateTime,
) -> Result<Lock, StoreError> {
    let row = sqlx::query!(
        r#"with found as (
             select id from conversations where id = $1 and tenant_id = $2 and ($3::text is null or owner = $3)
           ), locked as (
             update conversations set locked_by = $4, locked_until = $6
             where id in (select id from found) and (locked_by is null or locked_by = $4 or locked_until <= $5)
             returning id
           )
           select exists (select from found) as "found!", exists (select from locked) as "locked!""#,
        id,
        viewer.tenant_id,
        viewer.only_owner,
        response_id,
        now,
        until,
    )
    .fetch_one(db)
    .await?;
    Ok(match (row.found, row.locked) {
        (_, true) => Lock::Ours,
        (true, false) => Lock::Taken,
        (false, false) => Lock::Absent,
    })
}

/// Makes a lease longer. False when it is lost.
#[tracing::instrument(name = "db.conversations.renew", skip_all)]
pub async fn renew(
    db: impl PgExecutor<'_>,
    id: &str,
    response_id: &str,
    until: OffsetDateTime,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "update conversations set locked_until = $3 where id = $1 and locked_by = $2",
        id,
        response_id,
        until,
    )
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Gives a lease back; nothing happens when it is lost already. False then.
#[tracing::instrument(name = "db.conversations.unlock", skip_all)]
pub async fn unlock(
    db: impl PgExecutor<'_>,
    id: &str,
    response_id: &str,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "update conversations set locked_by = null, locked_until = null where id = $1 and locked_by = $2",
        id,
        response_id,
    )
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}
