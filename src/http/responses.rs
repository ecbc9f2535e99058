//! `/v1/responses`

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response as HttpResponse},
};
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::{
    engine::{Asked, idempotency::Key, prepare::Started, run},
    protocol::{ApiError, CreateResponse, Response, SharedItem},
    store::{self, items::ItemPage},
};

use super::{
    Api,
    body::JsonText,
    door::Caller,
    ids::Ids,
    page::{Page, Paging, unknown_cursor},
    query::Query,
    replay, sse,
};

/// How long a stream may stay without its HTTP status, so that a backend that refuses at once still gets one.
const HOLD: Duration = Duration::from_millis(700);

/// `POST /v1/responses`
pub async fn create(
    State(api): State<Api>,
    Caller(principal): Caller,
    headers: HeaderMap,
    JsonText(body): JsonText,
) -> Result<HttpResponse, ApiError> {
    let request = CreateResponse::parse(&body)?;
    let idempotency = idempotency_key(&principal.user_id, &headers, &body)?;
    let stream = request.stream;
    let asked = Asked { request, principal, idempotency, remembered: None };
    let mut run = match api.engine.start(asked).await? {
        Started::Run(run) => *run,
        Started::Replayed(body) if stream => return replay::streamed(&body),
        Started::Replayed(body) => return Ok(replay::whole(&body)),
    };
    if !stream {
        return Ok(Json(&*run.drain().await?).into_response());
    }
    let guard = api.engine.parts().metrics.stream();
    let mut said = run.next().await.unwrap_or_default();
    if let Ok(Some(batch)) = tokio::time::timeout(HOLD, run.next()).await {
        let ended = run::ends(&batch);
        said.extend(batch);
        if ended
            && run.next().await.is_none()
            && let Some(error) = run.early_failure()
        {
            return Err(error);
        }
    }
    Ok(sse::answer(said, run, api.rules.ping, guard))
}

fn idempotency_key(
    user_id: &str,
    headers: &HeaderMap,
    body: &str,
) -> Result<Option<Key>, ApiError> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| (1..=255).contains(&key.len())).ok_or_else(|| {
        ApiError::new(
            crate::protocol::ErrorKind::InvalidRequest,
            "The header `Idempotency-Key` must have 1 to 255 visible ASCII characters.",
        )
        .code("invalid_idempotency_key")
    })?;
    Ok(Some(Key::new(user_id, key, body.as_bytes())))
}

/// `GET /v1/responses`: an extension, newest first.
pub async fn list(
    State(api): State<Api>,
    Caller(principal): Caller,
    query: Query,
) -> Result<Json<Page<Response>>, ApiError> {
    let paging = Paging::read(&query)?;
    let parts = api.engine.parts();
    let viewer = parts.rules.viewer(&principal);
    let after = paging.after.as_deref();
    if let Some(after) = after
        && store::responses::find(&parts.pool, viewer, after).await?.is_none()
    {
        return Err(unknown_cursor(after));
    }
    let rows =
        store::responses::list(&parts.pool, viewer, after, paging.descending, paging.fetch())
            .await?;
    Ok(Json(Page::of(rows, &paging, |response| &response.id)))
}

/// `GET /v1/responses/{id}`
pub async fn retrieve(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
    query: Query,
) -> Result<Json<Response>, ApiError> {
    if query.switch("stream")? {
        return Err(ApiError::invalid(
            "stream",
            "Only background responses can be streamed again, and this version has none. Leave `stream` out.",
        )
        .code("unsupported_parameter"));
    }
    Ok(Json(find(&api, &principal, &id).await?))
}

/// `DELETE /v1/responses/{id}`, with `?cascade=true` the branch that grew from it too (an extension).
pub async fn delete(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
    query: Query,
) -> Result<Json<Value>, ApiError> {
    let parts = api.engine.parts();
    let owner = parts.rules.owner(&principal);
    let cascade = query.switch("cascade")?;
    let deleted =
        store::responses::delete(&parts.pool, owner, &id, cascade, parts.clock.now()).await?;
    if !deleted {
        find(&api, &principal, &id).await?;
        return Err(not_the_owner());
    }
    Ok(Json(json!({ "id": id, "object": "response.deleted", "deleted": true })))
}

/// `POST /v1/responses/{id}/cancel`
pub async fn cancel(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
) -> Result<Json<Response>, ApiError> {
    find(&api, &principal, &id).await?;
    Err(ApiError::new(
        crate::protocol::ErrorKind::InvalidRequest,
        "Cannot cancel a synchronous response. Close its connection instead.",
    ))
}

/// `GET /v1/responses/{id}/input_items`
pub async fn input_items(
    State(api): State<Api>,
    Caller(principal): Caller,
    Ids(id): Ids<String>,
    query: Query,
) -> Result<Json<Page<SharedItem>>, ApiError> {
    let paging = Paging::read(&query)?;
    find(&api, &principal, &id).await?;
    let pool = &api.engine.parts().pool;
    let page = ItemPage {
        after: paging.after.as_deref(),
        descending: paging.descending,
        limit: paging.fetch(),
    };
    let rows = store::items::input_of(pool, &id, &principal.tenant_id, page).await?;
    if let (true, Some(after)) = (rows.is_empty(), page.after) {
        // The end of the list, or a cursor that was never on it?
        let all = ItemPage { after: None, descending: false, limit: i64::MAX };
        let all = store::items::input_of(pool, &id, &principal.tenant_id, all).await?;
        if all.iter().all(|item| item.id() != after) {
            return Err(unknown_cursor(after));
        }
    }
    Ok(Json(Page::of(rows, &paging, |item| item.id())))
}

async fn find(
    api: &Api,
    principal: &crate::protocol::Principal,
    id: &str,
) -> Result<Response, ApiError> {
    let parts = api.engine.parts();
    store::responses::find(&parts.pool, parts.rules.viewer(principal), id)
        .await?
        .ok_or_else(|| absent(id))
}

/// It can be seen, but is somebody else's.
pub(super) fn not_the_owner() -> ApiError {
    ApiError::new(
        crate::protocol::ErrorKind::Permission,
        "Only its owner, or an administrator of the tenant (`tenancy.admin_group`), may change or delete this.",
    )
}

fn absent(id: &str) -> ApiError {
    ApiError::not_found(format!("Response with id '{id}' not found."))
}
