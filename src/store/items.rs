//! Items, wherever they belong.

use std::sync::Arc;

use sqlx::{PgExecutor, types::Json};

use crate::protocol::{Item, Raw, SharedItem};

use super::{StoreError, Viewer, json::AsJson};

/// Rows to be written, column by column.
#[derive(Default)]
pub(super) struct NewItems<'a> {
    pub(super) ids: Vec<&'a str>,
    pub(super) outputs: Vec<bool>,
    pub(super) items: Vec<AsJson<&'a SharedItem>>,
    pub(super) data: Vec<Option<AsJson<Raw>>>,
}

impl<'a> NewItems<'a> {
    pub(super) fn of(input: &'a [SharedItem], output: &'a [SharedItem]) -> Self {
        let mut new = Self::default();
        let sides = input.iter().map(|item| (item, false));
        for (item, is_output) in sides.chain(output.iter().map(|item| (item, true))) {
            new.ids.push(item.id());
            new.outputs.push(is_output);
            new.items.push(AsJson(item));
            new.data.push(data_of(item).map(AsJson));
        }
        new
    }
}

/// What is stored beside the item: what its backend wants back, or how the model sees it.
fn data_of(item: &Item) -> Option<Raw> {
    match item {
        Item::Reasoning(item) => item.data.clone(),
        Item::FunctionCall(item) => item.data.clone(),
        Item::CustomToolCall(item) => item.data.clone(),
        Item::McpCall(item) => item.view.as_ref().map(Raw::of),
        Item::WebSearchCall(item) | Item::ImageGenerationCall(item) => {
            item.view.as_ref().map(Raw::of)
        }
        Item::McpListTools(item) => item.definition.as_ref().map(Raw::of),
        _ => None,
    }
}

/// Puts back what [`data_of`] took out.
pub(super) fn with_data(item: SharedItem, data: Option<Json<Raw>>) -> SharedItem {
    let Some(Json(data)) = data else { return item };
    let mut item = item;
    match Arc::make_mut(&mut item) {
        Item::Reasoning(item) => item.data = Some(data),
        Item::FunctionCall(item) => item.data = Some(data),
        Item::CustomToolCall(item) => item.data = Some(data),
        Item::McpCall(item) => item.view = data.to().ok(),
        Item::WebSearchCall(item) | Item::ImageGenerationCall(item) => item.view = data.to().ok(),
        Item::McpListTools(item) => item.definition = data.to().ok(),
        _ => (),
    }
    item
}

/// The newest item of each of these ids that the viewer may see.
#[tracing::instrument(name = "db.items.find", skip_all)]
pub async fn find(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    ids: &[&str],
) -> Result<Vec<(String, SharedItem)>, StoreError> {
    let rows = sqlx::query!(
        r#"select distinct on (items.id) items.id, item as "item: Json<SharedItem>", data as "data: Json<Raw>"
           from items
           left join responses on responses.id = items.response_id
           left join conversations on conversations.id = items.conversation_id
           where items.tenant_id = $1 and items.id = any($2)
             and (responses.id is not null and responses.deleted_at is null and ($3::text is null or responses.owner = $3)
                  or conversations.id is not null and ($3::text is null or conversations.owner = $3))
           order by items.id, items.seq desc"#,
        viewer.tenant_id,
        ids as &[&str],
        viewer.only_owner,
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, with_data(row.item.0, row.data))).collect())
}

/// Where to begin a page of items: after the item of this id in this order.
#[derive(Clone, Copy, Debug)]
pub struct ItemPage<'a> {
    /// Only items after this one.
    pub after: Option<&'a str>,
    /// Newest first.
    pub descending: bool,
    /// At most so many.
    pub limit: i64,
}

/// A page of the items that a Response was made from: the inputs of its chain and the outputs before it, then its own input.
#[tracing::instrument(name = "db.items.input_of", skip_all)]
pub async fn input_of(
    db: impl PgExecutor<'_>,
    response_id: &str,
    tenant_id: &str,
    page: ItemPage<'_>,
) -> Result<Vec<SharedItem>, StoreError> {
    let rows = sqlx::query_scalar!(
        r#"with recursive chain as (
             select id, previous_response_id, 0 as depth from responses where id = $1 and tenant_id = $2
             union all
             select parent.id, parent.previous_response_id, depth + 1
             from responses parent join chain on parent.id = chain.previous_response_id
           ),
           numbered as (
             select items.id, items.item, row_number() over (order by depth desc, seq) as place
             from chain join items on items.response_id = chain.id
             where depth > 0 or not items.output
           )
           select item as "item: Json<SharedItem>" from numbered
           where $3::text is null
              or (not $4 and place > (select max(place) from numbered where id = $3))
              or ($4 and place < (select max(place) from numbered where id = $3))
           order by case when $4 then -place else place end
           limit $5"#,
        response_id,
        tenant_id,
        page.after,
        page.descending,
        page.limit,
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|Json(item)| item).collect())
}

/// A page of the items of a conversation.
#[tracing::instrument(name = "db.items.of_conversation", skip_all)]
pub async fn of_conversation(
    db: impl PgExecutor<'_>,
    conversation_id: &str,
    tenant_id: &str,
    page: ItemPage<'_>,
) -> Result<Vec<SharedItem>, StoreError> {
    let rows = sqlx::query_scalar!(
        r#"select item as "item: Json<SharedItem>" from items
           where conversation_id = $1 and tenant_id = $2
             and ($3::text is null
                  or (not $4 and seq > (select max(seq) from items where conversation_id = $1 and id = $3))
                  or ($4 and seq < (select max(seq) from items where conversation_id = $1 and id = $3)))
           order by case when $4 then -seq else seq end
           limit $5"#,
        conversation_id,
        tenant_id,
        page.after,
        page.descending,
        page.limit,
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|Json(item)| item).collect())
}

/// The whole history of a conversation, oldest first.
#[tracing::instrument(name = "db.items.history", skip_all)]
pub async fn history(
    db: impl PgExecutor<'_>,
    conversation_id: &str,
    tenant_id: &str,
) -> Result<Vec<SharedItem>, StoreError> {
    let rows = sqlx::query!(
        r#"select item as "item: Json<SharedItem>", data as "data: Json<Raw>" from items
           where conversation_id = $1 and tenant_id = $2 order by seq"#,
        conversation_id,
        tenant_id,
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|row| with_data(row.item.0, row.data)).collect())
}

/// Appends items to a conversation.
#[tracing::instrument(name = "db.items.append", skip_all)]
pub async fn append(
    db: impl PgExecutor<'_>,
    conversation_id: &str,
    tenant_id: &str,
    items: &[SharedItem],
) -> Result<(), StoreError> {
    let new = NewItems::of(items, &[]);
    sqlx::query!(
        "insert into items (tenant_id, conversation_id, id, output, item, data)
         select $1, $2, id, false, item, data
         from unnest($3::text[], $4::json[], $5::json[]) with ordinality as new (id, item, data, place)
         order by place",
        tenant_id,
        conversation_id,
        &new.ids as &[&str],
        &new.items as &[AsJson<&SharedItem>],
        &new.data as &[Option<AsJson<Raw>>],
    )
    .execute(db)
    .await?;
    Ok(())
}

/// One item of a conversation.
#[tracing::instrument(name = "db.items.in_conversation", skip_all)]
pub async fn in_conversation(
    db: impl PgExecutor<'_>,
    conversation_id: &str,
    tenant_id: &str,
    id: &str,
) -> Result<Option<SharedItem>, StoreError> {
    let row = sqlx::query_scalar!(
        r#"select item as "item: Json<SharedItem>" from items
           where conversation_id = $1 and tenant_id = $2 and id = $3 order by seq desc limit 1"#,
        conversation_id,
        tenant_id,
        id,
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|Json(item)| item))
}

/// Takes an item out of a conversation; the Response it belongs to keeps it. False when it is not there.
#[tracing::instrument(name = "db.items.remove", skip_all)]
pub async fn remove(
    db: impl PgExecutor<'_>,
    conversation_id: &str,
    tenant_id: &str,
    id: &str,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "with gone as (
           delete from items where conversation_id = $1 and tenant_id = $2 and id = $3 and response_id is null returning 1
         ), kept as (
           update items set conversation_id = null
           where conversation_id = $1 and tenant_id = $2 and id = $3 and response_id is not null returning 1
         )
         select count(*) from (select * from gone union all select * from kept) as touched",
        conversation_id,
        tenant_id,
        id,
    )
    .fetch_one(db)
    .await?;
    Ok(done.count.unwrap_or(0) > 0)
}
