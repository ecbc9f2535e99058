//! Requests that are not ours to understand (embeddings, audio, Chat Completions): handed to the right upstream as they are.

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use reqwest::{Method, header};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{
    ModelError, ModelErrorKind,
    intake::broken,
    router::{Candidate, Router, not_served},
};

/// A request to hand on.
#[derive(Clone, Debug)]
pub struct Forward<'a> {
    /// Its method.
    pub method: Method,
    /// Its path below `/v1/`, such as `embeddings`.
    pub path: &'a str,
    /// What its body is.
    pub content_type: Option<&'a str>,
    /// What the client wants.
    pub accept: Option<&'a str>,
    /// Its body.
    pub body: Bytes,
}

/// An answer that is handed back.
pub struct Forwarded {
    /// The HTTP status.
    pub status: u16,
    /// The headers that concern the client, names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body, as it comes.
    pub body: BoxStream<'static, Result<Bytes, ModelError>>,
}

impl Router {
    /// Hands a request to the upstream of the model that its body names, under the name by which it is known there. That
    /// our key is refused there is our fault, and so an error.
    pub async fn forward(&self, request: Forward<'_>) -> Result<Forwarded, ModelError> {
        let named = model_of(request.content_type, &request.body);
        let (backend, model, body) = if let Some((name, place)) = &named {
            let candidate = self.candidates(name).into_iter().next();
            let Candidate { backend, model } = candidate.ok_or_else(|| not_served(name))?;
            let body = renamed(&request, name, place, &model);
            (backend, model, body)
        } else {
            let backend = self.default_backend().ok_or_else(|| not_served(""))?;
            (backend, String::new(), request.body.clone())
        };
        let mut sent = backend
            .request(request.method.clone(), backend.settings.endpoint(request.path))
            .body(body);
        if let Some(content_type) = request.content_type {
            sent = sent.header(header::CONTENT_TYPE, content_type);
        }
        if let Some(accept) = request.accept {
            sent = sent.header(header::ACCEPT, accept);
        }
        let response = match timeout(backend.around.patience.first_byte, sent.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(backend.unreachable(&error)),
            Err(_) => return Err(backend.late()),
        };
        backend.health.reached();
        let status = response.status().as_u16();
        if matches!(status, 401 | 403) {
            return Err(backend.told(response).await.means(&model, backend.key()));
        }
        let headers = ["content-type", "retry-after", "retry-after-ms", "content-disposition"]
            .into_iter()
            .filter_map(|name| {
                Some((name, response.headers().get(name)?.to_str().ok()?.to_owned()))
            })
            .collect();
        let silence = backend.around.patience.between_chunks;
        let pieces = response.bytes_stream().boxed();
        let body = futures::stream::unfold(Some(pieces), move |pieces| async move {
            let mut pieces = pieces?;
            match timeout(silence, pieces.next()).await {
                Ok(Some(Ok(piece))) => Some((Ok(piece), Some(pieces))),
                Ok(Some(Err(_))) => Some((
                    Err(broken("The connection to the upstream was lost within its answer.")),
                    None,
                )),
                Ok(None) => None,
                Err(_) => {
                    let message =
                        format!("The upstream said nothing for {} seconds.", silence.as_secs());
                    Some((Err(ModelError::new(ModelErrorKind::Timeout, message)), None))
                }
            }
        });
        Ok(Forwarded { status, headers, body: body.boxed() })
    }
}

/// The body with the name that the upstream knows; every other byte as it came.
fn renamed(request: &Forward<'_>, name: &str, place: &Range<usize>, model: &str) -> Bytes {
    if name == model {
        return request.body.clone();
    }
    let new = if is_multipart(request.content_type) {
        model.to_owned()
    } else {
        serde_json::Value::String(model.to_owned()).to_string()
    };
    [&request.body[..place.start], new.as_bytes(), &request.body[place.end..]].concat().into()
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    model: &'a RawValue,
}

/// The model that a body names, and where the name stands in it.
fn model_of<'a>(
    content_type: Option<&str>,
    body: &'a [u8],
) -> Option<(Cow<'a, str>, Range<usize>)> {
    if is_multipart(content_type) {
        return model_of_form(body);
    }
    let named: Named<'a> = serde_json::from_slice(body).ok()?;
    let raw = named.model.get();
    let name: String = serde_json::from_str(raw).ok()?;
    let start = (raw.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    Some((Cow::Owned(name), start..start + raw.len()))
}

/// The field `model` of a form.
fn model_of_form(body: &[u8]) -> Option<(Cow<'_, str>, Range<usize>)> {
    let find =
        |from: usize, what: &[u8]| memchr::memmem::find(&body[from..], what).map(|at| from + at);
    let field = find(0, b"name=\"model\"")?;
    let start = find(field, b"\r\n\r\n")? + 4;
    let end = find(start, b"\r\n")?;
    let name = std::str::from_utf8(&body[start..end]).ok().filter(|name| !name.is_empty())?;
    Some((Cow::Borrowed(name), start..end))
}

fn is_multipart(content_type: Option<&str>) -> bool {
    content_type
        .is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("multipart/"))
}
