//! The ids that a path or a query holds.

use axum::{
    extract::{FromRequestParts, Path},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use crate::protocol::{ApiError, ErrorKind};

/// What the path names. What can be no text of ours (bytes that are no characters, NUL, which PostgreSQL has not) names nothing.
pub struct Ids<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Ids<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        refuse_nul(parts)?;
        Path::<T>::from_request_parts(parts, state)
            .await
            .map(|Path(ids)| Self(ids))
            .map_err(|_| invalid_url(parts))
    }
}

/// Refuses an address with a NUL in it.
pub fn refuse_nul(parts: &Parts) -> Result<(), ApiError> {
    let has_nul = |part: &str| part.contains("%00");
    if has_nul(parts.uri.path()) || parts.uri.query().is_some_and(has_nul) {
        return Err(invalid_url(parts));
    }
    Ok(())
}

fn invalid_url(parts: &Parts) -> ApiError {
    ApiError::new(
        ErrorKind::InvalidRequest,
        format!(
            "Invalid URL ({} {}): it holds bytes that are no text.",
            parts.method,
            parts.uri.path()
        ),
    )
    .code("invalid_url")
}
