//! The frames of a socket: what a client may send, and how errors look.

use axum::http::{HeaderMap, header};
use serde::Serialize;
use serde_json::json;
use url::Url;

use crate::{
    http::body::repaired,
    protocol::{ApiError, CreateResponse, ErrorKind, fields::Fields},
};

/// Reads a client's frame.
pub(super) fn read(frame: &str) -> Result<CreateResponse, ApiError> {
    let text = repaired(frame.as_bytes())?;
    let mut fields = Fields::parse(&text)?;
    let kind: Option<String> = fields.take("type")?;
    match kind.as_deref() {
        Some("response.create") => (),
        Some(other) => {
            return Err(ApiError::invalid(
                "type",
                format!(
                    "`{other}` is not a message that this server knows; send `response.create`."
                ),
            ));
        }
        None => {
            return Err(ApiError::invalid(
                "type",
                "Missing required parameter: `type`. Send `{\"type\":\"response.create\", …}`.",
            )
            .code("missing_required_parameter"));
        }
    }
    // Codex says `stream: true`, which is what happens anyway.
    if fields.take::<bool>("stream")? == Some(false) {
        return Err(unsupported("stream", "A socket always streams. Leave `stream` out."));
    }
    if fields.take::<bool>("background")? == Some(true) {
        return Err(unsupported(
            "background",
            "A Response on a socket cannot run in the background. Use `POST /v1/responses`.",
        ));
    }
    if fields.take::<bool>("generate")? == Some(false) {
        return Err(unsupported(
            "generate",
            "Warming up without an answer (`generate: false`) is not supported. Leave `generate` out.",
        ));
    }
    CreateResponse::parse(&text)
}

fn unsupported(param: &str, message: &str) -> ApiError {
    ApiError::invalid(param, message).code("unsupported_parameter")
}

/// The frame of an event.
pub(super) fn json<T: Serialize>(event: &T) -> String {
    serde_json::to_string(event).unwrap_or_else(|error| {
        // Our own words always have a JSON form.
        tracing::error!(%error, "an event has no JSON");
        self::error(&ApiError::server())
    })
}

/// The frame of a refusal. Unlike in HTTP its `code` is never null.
pub(super) fn error(error: &ApiError) -> String {
    json!({
        "type": "error",
        "status": error.kind.status(),
        "error": {
            "type": error.kind.wire(),
            "code": match error.kind {
                ErrorKind::NotFound => error.code.unwrap_or("not_found"),
                _ => error.response_code(),
            },
            "message": error.message,
            "param": error.param,
        },
    })
    .to_string()
}

pub(super) fn not_text() -> ApiError {
    ApiError::new(
        ErrorKind::InvalidRequest,
        "Binary frames are not understood here. Send JSON in text frames.",
    )
    .code("invalid_type")
}

pub(super) fn too_large(limit: usize) -> ApiError {
    ApiError::new(
        ErrorKind::TooLarge,
        format!("The message is larger than {} MiB (`http.body_limit_mib`).", limit >> 20),
    )
    .code("request_too_large")
}

/// Whether a socket broke because a message was over the limit.
pub(super) fn is_too_large(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(inner) = cause {
        // The library's own error type is not ours to name.
        if inner.to_string().to_ascii_lowercase().contains("too long") {
            return true;
        }
        cause = inner.source();
    }
    false
}

/// A page may open a socket only from an origin that may call the API, or from this server: browsers let any page open one.
pub(super) fn check_origin(headers: &HeaderMap, allowed: &[String]) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let listed = allowed.iter().any(|allowed| allowed == "*" || allowed == origin);
    let own = Url::parse(origin).ok().is_some_and(|url| {
        let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
        text(header::HOST).is_some_and(|host| host.eq_ignore_ascii_case(authority))
    });
    if listed || own {
        return Ok(());
    }
    Err(ApiError::new(
        ErrorKind::Permission,
        "Pages of this origin may not open a socket here. Allow it in `http.cors`.",
    )
    .code("origin_not_allowed"))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn frames_that_ask_for_what_a_socket_is_not_are_refused() {
        for (frame, param, code) in [
            ("{", None, Some("invalid_json")),
            (r#"{"model":"m","input":"x"}"#, Some("type"), Some("missing_required_parameter")),
            (r#"{"type":"response.steer"}"#, Some("type"), Some("invalid_value")),
            (r#"{"type":7}"#, Some("type"), Some("invalid_type")),
            (
                r#"{"type":"response.create","stream":false}"#,
                Some("stream"),
                Some("unsupported_parameter"),
            ),
            (
                r#"{"type":"response.create","background":true}"#,
                Some("background"),
                Some("unsupported_parameter"),
            ),
            (
                r#"{"type":"response.create","generate":false}"#,
                Some("generate"),
                Some("unsupported_parameter"),
            ),
            (
                r#"{"type":"response.create","model":"m"}"#,
                Some("input"),
                Some("missing_required_parameter"),
            ),
        ] {
            let error = read(frame).unwrap_err();
            assert_eq!((error.param.as_deref(), error.code), (param, code), "{frame}: {error}");
        }
    }

    #[test]
    fn a_frame_is_read_as_a_body_is() {
        let frame = r#"{"type":"response.create","stream":true,"background":false,"model":"m","input":"a\ud800b","store":false}"#;
        let request = read(frame).unwrap();
        assert_eq!(request.model.as_deref(), Some("m"));
        assert!(!request.store);
        assert!(request.unknown.is_empty(), "{:?}", request.unknown);
        assert_eq!(
            serde_json::to_value(&request.input[0]).unwrap()["content"][0]["text"],
            "a\u{fffd}b"
        );
    }

    #[test]
    fn foreign_pages_open_no_socket() {
        let headers = |origin: &str| {
            HeaderMap::from_iter([
                (header::ORIGIN, HeaderValue::from_str(origin).unwrap()),
                (header::HOST, HeaderValue::from_static("127.0.0.1:8090")),
            ])
        };
        let listed = ["https://chat.example".to_owned()];
        assert!(check_origin(&HeaderMap::new(), &[]).is_ok(), "not a browser");
        assert!(check_origin(&headers("http://127.0.0.1:8090"), &[]).is_ok());
        assert!(check_origin(&headers("https://chat.example"), &listed).is_ok());
        assert!(check_origin(&headers("https://evil.example"), &["*".to_owned()]).is_ok());
        for origin in ["https://evil.example", "http://127.0.0.1:8091", "null", ""] {
            assert!(check_origin(&headers(origin), &listed).is_err(), "{origin}");
        }
    }
}
