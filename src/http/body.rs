//! A JSON body: its type, its size, its repair.

use axum::{
    body::to_bytes,
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};

use crate::{
    protocol::{ApiError, ErrorKind},
    text::repair::repair_json,
};

use super::Api;

/// The text of a JSON body. Escapes that are no characters (lone surrogates, NUL) are repaired, everything else is as it came.
pub struct JsonText(pub String);

impl FromRequest<Api> for JsonText {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        check_type(request.headers())?;
        let bytes = read(request, api.rules.body_limit).await?;
        repaired(&bytes).map(Self)
    }
}

/// How many objects and arrays a body may hold in each other. PostgreSQL refuses some thousands, and backends fewer.
const DEEPEST: usize = 512;

/// JSON text as it may be parsed.
pub fn repaired(bytes: &[u8]) -> Result<String, ApiError> {
    if depth(bytes) > DEEPEST {
        return Err(ApiError::new(
            ErrorKind::InvalidRequest,
            format!("The body nests deeper than {DEEPEST} levels."),
        )
        .code("invalid_json"));
    }
    String::from_utf8(repair_json(bytes).into_owned()).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        ApiError::new(
            ErrorKind::InvalidRequest,
            format!("The body is not UTF-8: the byte at {at} belongs to no character."),
        )
        .code("invalid_json")
    })
}

/// How deep JSON text nests.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => (),
        }
    }
    deepest
}

/// Reads a body of at most `limit` bytes.
pub async fn read(request: Request, limit: usize) -> Result<axum::body::Bytes, ApiError> {
    to_bytes(request.into_body(), limit).await.map_err(|error| {
        let too_large = std::error::Error::source(&error)
            .is_some_and(|source| source.to_string().contains("length limit"));
        if too_large {
            ApiError::new(
                ErrorKind::TooLarge,
                format!("The body is larger than {} MiB (`http.body_limit_mib`).", limit >> 20),
            )
            .code("request_too_large")
        } else {
            ApiError::new(
                ErrorKind::InvalidRequest,
                format!("The body could not be read: {error}."),
            )
            .code("invalid_body")
        }
    })
}

fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    if let Some(coding) = headers.get(header::CONTENT_ENCODING) {
        // gzip and zstd have been taken off before; what is left is something else.
        let coding = String::from_utf8_lossy(coding.as_bytes()).into_owned();
        return Err(ApiError::new(
            ErrorKind::UnsupportedMediaType,
            format!("The content encoding `{coding}` is not supported; use gzip, zstd or none."),
        )
        .code("unsupported_media_type"));
    }
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let kind = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorKind::UnsupportedMediaType,
        format!("Unsupported content type `{essence}`. Send `Content-Type: application/json`."),
    )
    .code("unsupported_media_type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_what_is_open_at_once_and_not_what_stands_in_texts() {
        for (json, deep) in [
            ("1", 0),
            ("{}", 1),
            ("[[],[]]", 2),
            (r#"{"a":[{"b":1}],"c":{}}"#, 3),
            (r#"["[[[{{{"]"#, 1),
            (r#"["\"[[[","\\",[]]"#, 2),
            ("]]]{", 1),
        ] {
            assert_eq!(depth(json.as_bytes()), deep, "{json}");
        }
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(repaired(nested(DEEPEST).as_bytes()).is_ok());
        let error = repaired(nested(DEEPEST + 1).as_bytes()).unwrap_err();
        assert_eq!((error.kind, error.code), (ErrorKind::InvalidRequest, Some("invalid_json")));
    }
}
