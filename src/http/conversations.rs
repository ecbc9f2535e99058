//! `/v1/conversations`
//!
//! While a Response writes into a conversation, items cannot be added from outside (400 `conversation_locked`): they would stand between
//! what the model was shown and what it answered. Everything else may be done at any time; a Response whose conversation is deleted under
//! it fails.

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    engine::lease::locked,
    protocol::{
        ApiError, Item, Principal, SharedItem,
        fields::Fields,
        request::{check_items, metadata},
        response::Metadata,
    },
    store::{
        self,
        conversations::{Appended, Conversation},
        items::ItemPage,
    },
};

use super::{
    Api,
    body::JsonText,
    door::Caller,
    ids::Ids,
    page::{Page, Paging, unknown_cursor},
    query::Query,
    responses::not_the_owner,
};

/// The most items that one request may bring.
const MOST_ITEMS: usize = 20;

/// A conversation as the API shows it.
#[derive(Debug, Serialize)]
pub struct ConversationBody {
    id: String,
    object: &'static str,
    created_at: i64,
    metadata: Metadata,
}

impl From<Conversation> for ConversationBody {
    fn from(Conversation { id, created_at, metadata }: Conversation) -> Self {
        Self { id, object: "conversation", created_at: created_at.unix_timestamp(), metadata }
    }
}

/// `POST /v1/conversations`
pub async fn create(
    State(api): State<Api>,
    Caller(principal): Caller,
    JsonText(body): JsonText,
) -> Result<Json<ConversationBody>, ApiError> {
    // Everything in it is optional, and so is the body.
    let body = if body.trim().is_empty() { "{}" } else { &body };
    let mut fields = Fields::parse(body)?;
    let metadata = metadata(&mut fields)?;
    let first = items(&api, &principal, &mut fields).await?;
    let parts = api.engine.parts();
    let new = Conversation { id: parts.ids.mint("conv"), created_at: parts.clock.now(), metadata };
    store::conversations::insert(
        &parts.pool,
        &principal.tenant_id,
        &principal.user_id,
        &new,
        &first,
    )
    .await?;
    Ok(Json(new.into()))
}

/// `GET /v1/conversations`: an extension, newest first.
pub async fn list(
    State(api): State<Api>,
    Caller(principal): Caller,
    query: Query,
) -> Result<Json<Page<ConversationBody>>, ApiError> {
    let paging = Paging::read(&query)?;
    let parts = api.engine.parts();
    let viewer = parts.rules.viewer(&principal);
    let after = paging.after.as_deref();
    if let Some(after) = after
        && store::conversations::find(&parts.pool, viewer, after).await?.is_none()
    {
        return Err(unknown_cursor(after));
    }
    let (descending, limit) = (paging.descending, paging.fetch());
    let rows = store::conversations::list(&parts.pool, viewer, after, descending, limit).await?;
    let rows = rows.into_iter().map(ConversationBody::from).collect();
    Ok(Json(Page::of(rows, &paging, |conversation| &conversation.id)))
}

/// `GET /v1/conversations/{id}`
pub async fn retrieve(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
) -> Result<Json<ConversationBody>, ApiError> {
    Ok(Json(find(&api, &principal, &id).await?.into()))
}

/// `POST /v1/conversations/{id}`: puts new metadata in the place of the old.
pub async fn update(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
    JsonText(body): JsonText,
) -> Result<Json<ConversationBody>, ApiError> {
    let mut fields = Fields::parse(&body)?;
    require(&fields, "metadata")?;
    let metadata = metadata(&mut fields)?;
    let parts = api.engine.parts();
    let owner = parts.rules.owner(&principal);
    let updated = store::conversations::update(&parts.pool, owner, &id, &metadata).await?;
    let conversation = find(&api, &principal, &id).await?;
    if updated { Ok(Json(conversation.into())) } else { Err(not_the_owner()) }
}

/// `DELETE /v1/conversations/{id}`
pub async fn delete(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
) -> Result<Json<Value>, ApiError> {
    let parts = api.engine.parts();
    if !store::conversations::delete(&parts.pool, parts.rules.owner(&principal), &id).await? {
        find(&api, &principal, &id).await?;
        return Err(not_the_owner());
    }
    Ok(Json(json!({ "id": id, "object": "conversation.deleted", "deleted": true })))
}

/// `POST /v1/conversations/{id}/items`
pub async fn add_items(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
    JsonText(body): JsonText,
) -> Result<Json<Page<SharedItem>>, ApiError> {
    let mut fields = Fields::parse(&body)?;
    require(&fields, "items")?;
    // Before anything is made of them, because a foreign conversation is absent whatever is to be put into it.
    find(&api, &principal, &id).await?;
    let new = items(&api, &principal, &mut fields).await?;
    if new.is_empty() {
        return Err(
            ApiError::invalid("items", "`items` is empty; send 1 to 20 items.").code("empty_array")
        );
    }
    let parts = api.engine.parts();
    let viewer = parts.rules.viewer(&principal);
    let now = parts.clock.now();
    match store::conversations::append(&parts.pool, viewer, &id, &new, now).await? {
        Appended::Done => Ok(Json(Page::whole(new, |item| item.id()))),
        Appended::Locked => Err(locked()),
        Appended::Absent => Err(absent(&id)),
        Appended::Duplicate(id) => Err(duplicate(&id)),
    }
}

/// `GET /v1/conversations/{id}/items`
pub async fn list_items(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
    query: Query,
) -> Result<Json<Page<SharedItem>>, ApiError> {
    let paging = Paging::read(&query)?;
    find(&api, &principal, &id).await?;
    let pool = &api.engine.parts().pool;
    let tenant_id = &*principal.tenant_id;
    let page = ItemPage {
        after: paging.after.as_deref(),
        descending: paging.descending,
        limit: paging.fetch(),
    };
    let rows = store::items::of_conversation(pool, &id, tenant_id, page).await?;
    if let (true, Some(after)) = (rows.is_empty(), page.after)
        && store::items::in_conversation(pool, &id, tenant_id, after).await?.is_none()
    {
        return Err(unknown_cursor(after));
    }
    Ok(Json(Page::of(rows, &paging, |item| item.id())))
}

/// `GET /v1/conversations/{id}/items/{item_id}`
pub async fn retrieve_item(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids((id, item_id)): Ids<(String, String)>,
) -> Result<Json<SharedItem>, ApiError> {
    find(&api, &principal, &id).await?;
    let pool = &api.engine.parts().pool;
    store::items::in_conversation(pool, &id, &principal.tenant_id, &item_id)
        .await?
        .map(Json)
        .ok_or_else(|| item_absent(&item_id))
}

/// `DELETE /v1/conversations/{id}/items/{item_id}`: answers with the conversation.
pub async fn delete_item(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids((id, item_id)): Ids<(String, String)>,
) -> Result<Json<ConversationBody>, ApiError> {
    let conversation = find(&api, &principal, &id).await?;
    let parts = api.engine.parts();
    let pool = &parts.pool;
    if store::conversations::find(pool, parts.rules.owner(&principal), &id).await?.is_none() {
        return Err(not_the_owner());
    }
    if !store::items::remove(pool, &id, &principal.tenant_id, &item_id).await? {
        return Err(item_absent(&item_id));
    }
    Ok(Json(conversation.into()))
}

/// The items of a request, each with an id and a status, no two with the same id.
async fn items(
    api: &Api,
    principal: &Principal,
    fields: &mut Fields<'_>,
) -> Result<Vec<SharedItem>, ApiError> {
    let items: Vec<Item> = fields.take("items")?.unwrap_or_default();
    check_items(&items, "items")?;
    if items.len() > MOST_ITEMS {
        let count = items.len();
        return Err(ApiError::invalid(
            "items",
            format!("`items` has {count} items; at most {MOST_ITEMS} are allowed in one request."),
        )
        .code("array_above_max_length"));
    }
    let items = api.engine.complete_input(principal, items, "items").await?;
    let twice = items
        .iter()
        .enumerate()
        .find(|(at, item)| items.iter().take(*at).any(|before| before.id() == item.id()));
    match twice {
        Some((_, item)) => Err(duplicate(item.id())),
        None => Ok(items),
    }
}

async fn find(api: &Api, principal: &Principal, id: &str) -> Result<Conversation, ApiError> {
    let parts = api.engine.parts();
    store::conversations::find(&parts.pool, parts.rules.viewer(principal), id)
        .await?
        .ok_or_else(|| absent(id))
}

fn require(fields: &Fields<'_>, name: &str) -> Result<(), ApiError> {
    if fields.has(name) {
        return Ok(());
    }
    Err(ApiError::invalid(name, format!("Missing required parameter: `{name}`."))
        .code("missing_required_parameter"))
}

fn absent(id: &str) -> ApiError {
    ApiError::not_found(format!("Conversation with id '{id}' not found."))
}

fn item_absent(id: &str) -> ApiError {
    ApiError::not_found(format!("Item with id '{id}' not found in this conversation."))
}

fn duplicate(id: &str) -> ApiError {
    ApiError::invalid("items", format!("Duplicate item found with id {id}."))
}
