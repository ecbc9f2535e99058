//! What happens to every request: it gets an id, its Principal is told, and its end is logged and counted.

use std::{convert::Infallible, time::Instant};

use axum::{
    extract::{FromRequestParts, MatchedPath, Request, State},
    http::{HeaderMap, HeaderValue, header, request::Parts},
    middleware::Next,
    response::Response,
};
use tracing::Instrument as _;

use crate::{
    protocol::{ApiError, Principal},
    telemetry,
};

use super::Api;

/// The header that names a request.
const REQUEST_ID: &str = "x-request-id";

/// Names the request, lets it through, and notes how it ended.
pub async fn pass(State(api): State<Api>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = request_id(request.headers()).unwrap_or_else(|| api.engine.parts().ids.mint("req"));
    let method = request.method().clone();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "other".to_owned(), |path| path.as_str().to_owned());
    let span =
        tracing::info_span!("request", otel.kind = "server", request_id = %id, %method, %route);
    telemetry::adopt_parent(&span, request.headers());
    let mut response = next.run(request).instrument(span.clone()).await;
    let status = response.status().as_u16();
    let took = begun.elapsed();
    api.engine.parts().metrics.request(&route, method.as_str(), status);
    span.in_scope(|| tracing::info!(status, ms = took.as_millis(), "answered"));
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, id);
    }
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    headers.insert("openai-processing-ms", HeaderValue::from(millis));
    response
}

/// The id that a proxy gave the request, if it is one that a log can hold.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let fits = (1..=128).contains(&id.len())
        && id.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'));
    fits.then(|| id.to_owned())
}

/// What a request brings to say who asks.
#[derive(Clone)]
pub struct Credentials {
    token: Option<String>,
    as_user: Option<String>,
}

impl Credentials {
    fn of(headers: &HeaderMap, api: &Api) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let token = text(header::AUTHORIZATION.as_str()).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let as_user = api.gate.trusted_user_header().and_then(text);
        Self { token: token.map(str::to_owned), as_user: as_user.map(str::to_owned) }
    }

    /// Who that is, now: a key may have been revoked since the last time.
    pub async fn principal(&self, api: &Api) -> Result<Principal, ApiError> {
        api.gate.principal(self.token.as_deref(), self.as_user.as_deref()).await
    }
}

impl FromRequestParts<Api> for Credentials {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers, api))
    }
}

/// Who asks.
pub struct Caller(pub Principal);

impl FromRequestParts<Api> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        Credentials::of(&parts.headers, api).principal(api).await.map(Self)
    }
}
