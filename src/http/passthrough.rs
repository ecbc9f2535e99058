//! Endpoints that are the upstream's own: embeddings, Chat Completions, audio, images and the like, handed on as they are.

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};

use crate::{model::passthrough::Forward, protocol::ApiError};

use super::{Api, body, door::Caller};

/// What is handed on, below `/v1/`.
pub const PATHS: &[&str] = &[
    "embeddings",
    "chat/completions",
    "completions",
    "images/generations",
    "images/edits",
    "images/variations",
    "audio/speech",
    "audio/transcriptions",
    "audio/translations",
    "moderations",
    "rerank",
];

/// Hands a request on, and its answer back as it comes.
pub async fn forward(
    State(api): State<Api>,
    _: Caller,
    request: Request,
) -> Result<Response, ApiError> {
    let path = request.uri().path().trim_start_matches("/v1/").to_owned();
    let headers = request.headers().clone();
    let method = request.method().clone();
    let body = body::read(request, api.rules.body_limit).await?;
    let answer = api
        .models
        .forward(Forward {
            method,
            path: &path,
            content_type: text(&headers, &header::CONTENT_TYPE),
            accept: text(&headers, &header::ACCEPT),
            body,
        })
        .await?;
    let mut response = Response::new(Body::from_stream(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::BAD_GATEWAY);
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    Ok(response)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
