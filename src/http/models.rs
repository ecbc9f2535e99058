//! `/v1/models`

use axum::{Json, extract::State};
use serde_json::{Value, json};

use crate::{model::router::ListedModel, protocol::ApiError};

use super::{Api, door::Caller, ids::Ids};

/// `GET /v1/models`
pub async fn list(State(api): State<Api>, _: Caller) -> Json<Value> {
    let models: Vec<Value> = api.models.models().await.iter().map(show).collect();
    Json(json!({ "object": "list", "data": models }))
}

/// `GET /v1/models/{id}`; ids may hold slashes.
pub async fn retrieve(
    State(api): State<Api>,
    _: Caller,
    Ids(id): Ids<String>,
) -> Result<Json<Value>, ApiError> {
    let models = api.models.models().await;
    let found = models.iter().find(|model| model.id == id);
    found.map(|model| Json(show(model))).ok_or_else(|| {
        ApiError::not_found(format!("The model '{id}' does not exist."))
            .code("model_not_found")
            .param("model")
    })
}

fn show(model: &ListedModel) -> Value {
    json!({ "id": model.id, "object": "model", "created": model.created, "owned_by": model.owned_by })
}
