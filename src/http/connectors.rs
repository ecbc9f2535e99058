//! `/v1/connectors`: MCP servers that a tenant sets up once and requests name by label or id. An extension.
//!
//! Token and headers go in and never come out: what is shown says only that there are some.

use axum::{Json, extract::State};
use serde_json::{Value, json};

use crate::{
    protocol::{ApiError, Principal},
    tools::ShownConnector,
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

/// `POST /v1/connectors`
pub async fn create(
    State(api): State<Api>,
    Caller(principal): Caller,
    JsonText(body): JsonText,
) -> Result<Json<ShownConnector>, ApiError> {
    let (tenant, user) = (&principal.tenant_id, &principal.user_id);
    Ok(Json(api.connectors.create(tenant, user, &body).await?))
}

/// `GET /v1/connectors`: newest first.
pub async fn list(
    State(api): State<Api>,
    Caller(principal): Caller,
    query: Query,
) -> Result<Json<Page<ShownConnector>>, ApiError> {
    let paging = Paging::read(&query)?;
    let viewer = api.engine.parts().rules.viewer(&principal);
    let after = paging.after.as_deref();
    if let Some(after) = after
        && api.connectors.find(viewer, after).await?.is_none()
    {
        return Err(unknown_cursor(after));
    }
    let rows = api.connectors.list(viewer, after, paging.descending, paging.fetch()).await?;
    Ok(Json(Page::of(rows, &paging, ShownConnector::id)))
}

/// `GET /v1/connectors/{id}`
pub async fn retrieve(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
) -> Result<Json<ShownConnector>, ApiError> {
    find(&api, &principal, &id).await.map(Json)
}

/// `POST /v1/connectors/{id}`: changes what the body names.
pub async fn update(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
    JsonText(body): JsonText,
) -> Result<Json<ShownConnector>, ApiError> {
    // Before the body is looked at, because a foreign connector is absent whatever is to be put into it.
    find(&api, &principal, &id).await?;
    let owner = api.engine.parts().rules.owner(&principal);
    api.connectors.update(owner, &id, &body).await?.map(Json).ok_or_else(not_the_owner)
}

/// `DELETE /v1/connectors/{id}`
pub async fn delete(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
) -> Result<Json<Value>, ApiError> {
    let owner = api.engine.parts().rules.owner(&principal);
    if !api.connectors.delete(owner, &id).await? {
        find(&api, &principal, &id).await?;
        return Err(not_the_owner());
    }
    Ok(Json(json!({ "id": id, "object": "connector.deleted", "deleted": true })))
}

async fn find(api: &Api, principal: &Principal, id: &str) -> Result<ShownConnector, ApiError> {
    let viewer = api.engine.parts().rules.viewer(principal);
    api.connectors
        .find(viewer, id)
        .await?
        .ok_or_else(|| ApiError::not_found(format!("Connector with id '{id}' not found.")))
}
