//! Responses: written once, when they have ended, with all their items in the same statement.

use std::sync::Arc;

use sqlx::{PgConnection, PgExecutor, PgPool, types::Json};
use time::OffsetDateTime;

use crate::protocol::{
    Raw, Response, Settings, SharedItem, Status, Usage,
    response::{IncompleteDetails, IncompleteReason, ResponseError, ResponseObject},
};

use super::{StoreError, Viewer, items::NewItems, json::AsJson};

/// The constraint that refuses a child of a Response that is gone.
pub const PREVIOUS_KEY: &str = "responses_previous_fkey";

/// A Response that has ended, to be written.
pub struct NewResponse<'a> {
    /// Whose it is.
    pub tenant_id: &'a str,
    /// Which user's.
    pub owner: &'a str,
    /// The Response.
    pub response: &'a Response,
    /// The Response before it, whose items it does not repeat.
    pub parent: Option<&'a str>,
    /// The items of its request.
    pub input: &'a [SharedItem],
    /// Whether its items become part of its conversation.
    pub in_conversation: bool,
}

/// Writes a Response and its items: one statement, so all or nothing. A parent that is gone is a conflict with [`PREVIOUS_KEY`].
#[tracing::instrument(name = "db.responses.insert", skip_all)]
pub async fn insert(db: impl PgExecutor<'_>, new: &NewResponse<'_>) -> Result<(), StoreError> {
    let NewResponse { tenant_id, owner, response, parent, input, in_conversation } = new;
    let settings = &response.settings;
    let conversation_id = settings.conversation.as_ref().map(|conversation| &*conversation.id);
    let items = NewItems::of(input, &response.output);
    sqlx::query!(
        r#"with response as (
             insert into responses (id, tenant_id, owner, previous_response_id, conversation_id, status, created_at, completed_at, settings, error, incomplete_reason, usage)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
           )
           insert into items (tenant_id, response_id, conversation_id, id, output, item, data)
           select $2, $1, $17, id, output, item, data
           from unnest($13::text[], $14::bool[], $15::json[], $16::json[]) with ordinality as new (id, output, item, data, place)
           order by place"#,
        response.id,
        *tenant_id,
        *owner,
        *parent,
        conversation_id,
        response.status.word(),
        at(response.created_at),
        response.completed_at.map(at),
        AsJson(&**settings) as AsJson<&Settings>,
        response.error.as_ref().map(AsJson) as Option<AsJson<&ResponseError>>,
        response.incomplete_details.map(|details| reason_word(details.reason)),
        response.usage.map(AsJson) as Option<AsJson<Usage>>,
        &items.ids as &[&str],
        &items.outputs,
        &items.items as &[AsJson<&SharedItem>],
        &items.data as &[Option<AsJson<Raw>>],
        conversation_id.filter(|_| *in_conversation),
    )
    .execute(db)
    .await?;
    Ok(())
}

struct ResponseRow {
    id: String,
    status: String,
    created_at: OffsetDateTime,
    completed_at: Option<OffsetDateTime>,
    settings: Json<Settings>,
    error: Option<Json<ResponseError>>,
    incomplete_reason: Option<String>,
    usage: Option<Json<Usage>>,
}

impl ResponseRow {
    fn with_output(self, output: Vec<SharedItem>) -> Response {
        Response {
            id: self.id,
            object: ResponseObject::Response,
            created_at: self.created_at.unix_timestamp(),
            completed_at: self.completed_at.map(OffsetDateTime::unix_timestamp),
            status: status(&self.status),
            error: self.error.map(|Json(error)| error),
            incomplete_details: self.incomplete_reason.as_deref().map(|word| IncompleteDetails {
                reason: if word == "content_filter" {
                    IncompleteReason::ContentFilter
                } else {
                    IncompleteReason::MaxOutputTokens
                },
            }),
            output,
            usage: self.usage.map(|Json(usage)| usage),
            settings: Arc::new(self.settings.0),
        }
    }
}

/// A Response as its viewer may see it.
#[tracing::instrument(name = "db.responses.find", skip_all)]
pub async fn find(
    db: &PgPool,
    viewer: Viewer<'_>,
    id: &str,
) -> Result<Option<Response>, StoreError> {
    let row = sqlx::query_as!(
        ResponseRow,
        r#"select id, status, created_at, completed_at, settings as "settings: Json<Settings>", error as "error: Json<ResponseError>",
                  incomplete_reason, usage as "usage: Json<Usage>"
           from responses where id = $1 and tenant_id = $2 and ($3::text is null or owner = $3) and deleted_at is null"#,
        id,
        viewer.tenant_id,
        viewer.only_owner,
    )
    .fetch_optional(db)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let output = sqlx::query_scalar!(
        r#"select item as "item: Json<SharedItem>" from items where response_id = $1 and output order by seq"#,
        id,
    )
    .fetch_all(db)
    .await?;
    Ok(Some(row.with_output(output.into_iter().map(|Json(item)| item).collect())))
}

/// A page of the Responses that a viewer may see, newest or oldest first, from after the Response `after`; without their output.
#[tracing::instrument(name = "db.responses.list", skip_all)]
pub async fn list(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    after: Option<&str>,
    descending: bool,
    limit: i64,
) -> Result<Vec<Response>, StoreError> {
    let rows = sqlx::query_as!(
        ResponseRow,
        r#"select id, status, created_at, completed_at, settings as "settings: Json<Settings>", error as "error: Json<ResponseError>",
                  incomplete_reason, usage as "usage: Json<Usage>"
           from responses
           where tenant_id = $1 and ($2::text is null or owner = $2) and deleted_at is null
             and ($3::text is null
                  or (not $4 and (created_at, id) > (select created_at, id from responses where id = $3 and tenant_id = $1))
                  or ($4 and (created_at, id) < (select created_at, id from responses where id = $3 and tenant_id = $1)))
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
    Ok(rows.into_iter().map(|row| row.with_output(Vec::new())).collect())
}

/// A Response and its ancestors.
#[derive(Debug)]
pub struct Chain {
    /// The id of the oldest of them.
    pub root: String,
    /// Their items, oldest first.
    pub items: Vec<SharedItem>,
}

/// The history that ends with a Response: the items of it and all its ancestors, oldest first, what was deleted included; before them those
/// of the conversation in which the first of them was written. `None` when the viewer may not see the Response.
#[tracing::instrument(name = "db.responses.chain", skip_all)]
pub async fn chain(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    id: &str,
) -> Result<Option<Chain>, StoreError> {
    let rows = sqlx::query!(
        r#"with recursive chain as (
             select id, previous_response_id, conversation_id, 0 as depth from responses
             where id = $1 and tenant_id = $2 and ($3::text is null or owner = $3) and deleted_at is null
             union all
             select parent.id, parent.previous_response_id, parent.conversation_id, depth + 1
             from responses parent join chain on parent.id = chain.previous_response_id
           ),
           history as (
             select chain.id, depth, items.seq, items.item, items.data from chain left join items on items.response_id = chain.id
             union all
             select chain.id, depth + 1, items.seq, items.item, items.data
             from chain join items on items.conversation_id = chain.conversation_id
             where chain.previous_response_id is null
               and items.seq < (select min(own.seq) from items own where own.response_id = chain.id)
           )
           select id as "id!", item as "item?: Json<SharedItem>", data as "data?: Json<Raw>" from history order by depth desc, seq"#,
        id,
        viewer.tenant_id,
        viewer.only_owner,
    )
    .fetch_all(db)
    .await?;
    let Some(root) = rows.first().map(|row| row.id.clone()) else { return Ok(None) };
    let items = rows
        .into_iter()
        .filter_map(|row| row.item.map(|Json(item)| super::items::with_data(item, row.data)))
        .collect();
    Ok(Some(Chain { root, items }))
}

/// Makes a Response invisible, with `cascade` all its descendants too, and erases what no living Response needs any more.
/// False when the viewer may not see it.
#[tracing::instrument(name = "db.responses.delete", skip_all)]
pub async fn delete(
    db: &PgPool,
    viewer: Viewer<'_>,
    id: &str,
    cascade: bool,
    now: OffsetDateTime,
) -> Result<bool, StoreError> {
    let mut transaction = db.begin().await?;
    let marked = sqlx::query!(
        "with recursive branch as (
           select id from responses
           where id = $1 and tenant_id = $2 and ($3::text is null or owner = $3) and deleted_at is null
           union all
           select child.id from responses child join branch on child.previous_response_id = branch.id
           where $4 and ($3::text is null or child.owner = $3)
         )
         update responses set deleted_at = $5 where id in (select id from branch) and deleted_at is null",
        id,
        viewer.tenant_id,
        viewer.only_owner,
        cascade,
        now,
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected();
    if marked == 0 {
        return Ok(false);
    }
    // What a repeated request would be told again goes with it, and so do the Responses that went with the branch.
    sqlx::query!(
        "delete from idempotency using responses
         where responses.id = idempotency.response_id and responses.tenant_id = $1 and responses.deleted_at = $2",
        viewer.tenant_id,
        now,
    )
    .execute(&mut *transaction)
    .await?;
    erase(&mut transaction, id).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Deletes Responses made before `oldest`, some at a time, and says how many.
#[tracing::instrument(name = "db.responses.expire", skip_all)]
pub async fn expire(
    db: &PgPool,
    oldest: OffsetDateTime,
    now: OffsetDateTime,
) -> Result<usize, StoreError> {
    const AT_A_TIME: i64 = 1000;
    let mut count = 0;
    loop {
        let mut transaction = db.begin().await?;
        let ids = sqlx::query_scalar!(
            "update responses set deleted_at = $2
             where id in (select id from responses where created_at < $1 and deleted_at is null order by created_at limit $3
                          for update skip locked)
             returning id",
            oldest,
            now,
            AT_A_TIME,
        )
        .fetch_all(&mut *transaction)
        .await?;
        for id in &ids {
            erase(&mut transaction, id).await?;
        }
        transaction.commit().await?;
        count += ids.len();
        if ids.is_empty() {
            return Ok(count);
        }
    }
}

/// Erases a deleted Response with its deleted descendants, when no living one is among them; then its deleted ancestors, as far up as
/// nothing else hangs on them.
async fn erase(db: &mut PgConnection, id: &str) -> Result<(), StoreError> {
    let mut next = Some(id.to_owned());
    while let Some(id) = next {
        let dead = sqlx::query_scalar!(
            r#"with recursive branch as (
                 select id, deleted_at from responses where id = $1
                 union all
                 select child.id, child.deleted_at from responses child join branch on child.previous_response_id = branch.id
               )
               select id as "id!" from branch where not exists (select from branch where deleted_at is null)"#,
            id,
        )
        .fetch_all(&mut *db)
        .await?;
        if dead.is_empty() {
            return Ok(());
        }
        // A child that is being written holds its parent: wait for it, then look again.
        sqlx::query!("select id from responses where id = any($1) for update", &dead)
            .fetch_all(&mut *db)
            .await?;
        let child = sqlx::query_scalar!(
            "select id from responses where previous_response_id = any($1) and id <> all($1) limit 1",
            &dead,
        )
        .fetch_optional(&mut *db)
        .await?;
        if child.is_some() {
            return Ok(());
        }

        // What a conversation holds stays there.
        sqlx::query!(
            "update items set response_id = null where response_id = any($1) and conversation_id is not null",
            &dead,
        )
        .execute(&mut *db)
        .await?;
        let parents = sqlx::query!(
            "delete from responses where id = any($1) returning id, previous_response_id",
            &dead,
        )
        .fetch_all(&mut *db)
        .await?;
        next =
            parents.into_iter().find(|row| row.id == id).and_then(|row| row.previous_response_id);
    }
    Ok(())
}

fn at(unix: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(unix).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn reason_word(reason: IncompleteReason) -> &'static str {
    match reason {
        IncompleteReason::MaxOutputTokens => "max_output_tokens",
        IncompleteReason::ContentFilter => "content_filter",
    }
}

fn status(word: &str) -> Status {
    [Status::Queued, Status::InProgress, Status::Completed, Status::Incomplete, Status::Cancelled]
        .into_iter()
        .find(|status| status.word() == word)
        .unwrap_or(Status::Failed)
}
