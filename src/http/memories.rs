//! `/v1/memories`: what is remembered about the user who asks. An extension.
//!
//! Everybody sees their own, whatever the tenant shares.

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    protocol::{ApiError, Principal},
    store::memories::{self, Memory, Owner},
};

use super::{
    Api,
    door::Caller,
    ids::Ids,
    page::{Page, Paging, unknown_cursor},
    query::Query,
};

/// A memory as the API shows it.
#[derive(Debug, Serialize)]
pub struct MemoryBody {
    id: String,
    object: &'static str,
    text: String,
    created_at: i64,
    updated_at: i64,
}

impl From<Memory> for MemoryBody {
    fn from(Memory { id, text, created_at, updated_at }: Memory) -> Self {
        Self {
            id,
            object: "memory",
            text,
            created_at: created_at.unix_timestamp(),
            updated_at: updated_at.unix_timestamp(),
        }
    }
}

/// `GET /v1/memories`: newest first.
pub async fn list(
    State(api): State<Api>,
    Caller(principal): Caller,
    query: Query,
) -> Result<Json<Page<MemoryBody>>, ApiError> {
    let paging = Paging::read(&query)?;
    let (pool, owner) = (&api.engine.parts().pool, owner(&principal));
    let after = paging.after.as_deref();
    if let Some(after) = after
        && !memories::is_there(pool, owner, after).await?
    {
        return Err(unknown_cursor(after));
    }
    let rows = memories::list(pool, owner, after, paging.descending, paging.fetch()).await?;
    let rows = rows.into_iter().map(MemoryBody::from).collect();
    Ok(Json(Page::of(rows, &paging, |memory| &memory.id)))
}

/// `DELETE /v1/memories/{id}`
pub async fn delete(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
) -> Result<Json<Value>, ApiError> {
    if !memories::delete(&api.engine.parts().pool, owner(&principal), &id).await? {
        return Err(ApiError::not_found(format!("Memory with id '{id}' not found.")));
    }
    Ok(Json(json!({ "id": id, "object": "memory.deleted", "deleted": true })))
}

/// `DELETE /v1/memories`: all that is remembered about the user.
pub async fn clear(
    State(api): State<Api>,
    Caller(principal): Caller,
) -> Result<Json<Value>, ApiError> {
    let count = memories::clear(&api.engine.parts().pool, owner(&principal)).await?;
    Ok(Json(json!({ "object": "memories.deleted", "deleted": true, "count": count })))
}

fn owner(principal: &Principal) -> Owner<'_> {
    Owner { tenant_id: &principal.tenant_id, user_id: &principal.user_id }
}
