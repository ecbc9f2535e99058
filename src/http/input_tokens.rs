//! `POST /v1/responses/input_tokens`: what a request would cost before it is sent.

use axum::{Json, extract::State};
use serde_json::{Value, json};

use crate::protocol::{ApiError, CreateResponse};

use super::{Api, body::JsonText, door::Caller};

/// `POST /v1/responses/input_tokens`: takes the body of `POST /v1/responses`.
pub async fn count(
    State(api): State<Api>,
    Caller(principal): Caller,
    JsonText(body): JsonText,
) -> Result<Json<Value>, ApiError> {
    let request = CreateResponse::parse(&body)?;
    let input_tokens = api.engine.count_input(request, &principal).await?;
    Ok(Json(json!({ "object": "response.input_tokens", "input_tokens": input_tokens })))
}
