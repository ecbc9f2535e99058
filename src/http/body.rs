//! A JSON body: its type, its size, its repair.

use std::time::Duration;

use axum::{
    extract::{FromRequest, Request},
    http::{HeaderMap, header},
};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;

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

/// How long a client may be silent in the middle of its body.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many objects and arrays a body may hold in each other. PostgreSQL refuses some thousands, and backends fewer.
const DEEPEST: usize = 128;

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

/// Reads a body of at most `limit` bytes. A client that sends nothing for a while has gone.
pub async fn read(request: Request, limit: usize) -> Result<Bytes, ApiError> {
    let mut pieces = request.into_body().into_data_stream();
    let mut body = BytesMut::new();
    loop {
        match tokio::time::timeout(PATIENCE, pieces.next()).await {
            Ok(Some(Ok(piece))) if body.len() + piece.len() <= limit => {
                body.extend_from_slice(&piece);
            }
            Ok(Some(Ok(_))) => {
                return Err(ApiError::new(
                    ErrorKind::TooLarge,
                    format!("The body is larger than {} MiB (`http.body_limit_mib`).", limit >> 20),
                )
                .code("request_too_large"));
            }
            Ok(Some(Err(error))) => return Err(unreadable(&format!("{error}"))),
            Ok(None) => return Ok(body.freeze()),
            Err(_elapsed) => {
                let seconds = PATIENCE.as_secs();
                return Err(unreadable(&format!("nothing came for {seconds} seconds")));
            }
        }
    }
}

fn unreadable(why: &str) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, format!("The body could not be read: {why}."))
        .code("invalid_body")
}

fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let coding = headers.get(header::CONTENT_ENCODING);
    if let Some(coding) =
        coding.filter(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        // gzip and zstd have been taken off before; what is left is nothing, or something else.
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
