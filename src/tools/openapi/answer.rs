//! What an API answered, as data, text or a file. Pure.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::{
    StatusCode,
    header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderMap},
};

use crate::protocol::Raw;

use super::{parameter::is_json, refs::shortened};

/// What an API answered. Also an error of the API is an answer: the model may know what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiResult {
    /// The HTTP status.
    pub status: u16,
    /// What came with it.
    pub content: Content,
    /// Whether the content was longer than what is read of an error, and this is its beginning.
    pub is_cut: bool,
}

/// The body of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// There is none.
    Empty,
    /// JSON, as it came.
    Json(Raw),
    /// Text.
    Text(String),
    /// Anything else: a table, an image, an archive.
    File(ApiFile),
}

/// A file that an API answered with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ApiFile {
    /// Its media type, in lower case and without parameters.
    pub mime: String,
    /// What it is called: a name without a path.
    pub name: String,
    /// Its bytes in base64.
    pub data: String,
    /// How many bytes that is.
    pub bytes: usize,
}

impl ApiFile {
    /// Whether models that see images can be shown it.
    pub fn is_image(&self) -> bool {
        matches!(&*self.mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
    }
}

impl ApiResult {
    /// Whether the API did not let us in: 401 or 403.
    pub fn is_auth_error(&self) -> bool {
        matches!(self.status, 401 | 403)
    }

    /// Whether the API did not do what it was asked for.
    pub fn is_error(&self) -> bool {
        self.status >= 300
    }

    /// The text for the model: the body, and what the status adds to it. A file is named; its bytes are a part of their own.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.is_error() {
            let reason =
                StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason());
            _ = write!(
                text,
                "The API answered with status {} {}.",
                self.status,
                reason.unwrap_or_default().trim()
            );
            if self.is_auth_error() {
                text += " It did not accept the credentials that this server sent, or they may not do this.";
            }
            text += "\n\n";
        }
        match &self.content {
            Content::Empty if self.is_error() => (),
            Content::Empty => {
                _ = write!(
                    text,
                    "Done: the API answered with status {} and no content.",
                    self.status
                );
            }
            Content::Json(json) => text += json.json(),
            Content::Text(body) => text += body,
            Content::File(file) => {
                _ = write!(
                    text,
                    "The API answered with the file `{}` ({}, {} bytes).",
                    file.name, file.mime, file.bytes
                );
            }
        }
        if self.is_cut {
            text += "\n\n[The rest of the answer was left out.]";
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// Reads an answer from its status, its headers, the path it was asked for under and its body.
pub(super) fn read(
    status: StatusCode,
    headers: &HeaderMap,
    path: &str,
    body: &[u8],
    is_cut: bool,
) -> ApiResult {
    let header = |name| {
        headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    let content_type = header(CONTENT_TYPE).unwrap_or_default();
    let content = content(&content_type, header(CONTENT_DISPOSITION).as_deref(), path, body);
    ApiResult { status: status.as_u16(), content, is_cut }
}

fn content(content_type: &str, disposition: Option<&str>, path: &str, body: &[u8]) -> Content {
    if body.is_empty() {
        return Content::Empty;
    }
    let mime = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let unnamed = matches!(&*mime, "" | "application/octet-stream" | "binary/octet-stream");
    if is_json(&mime)
        || mime.is_empty() && matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
    {
        let text = decoded(content_type, body);
        return Raw::parse(&text).map_or(Content::Text(text), Content::Json);
    }
    let is_attached = disposition
        .is_some_and(|words| words.trim_start().to_ascii_lowercase().starts_with("attachment"));
    if is_text(&mime) && !is_attached || mime.is_empty() && is_readable(body) {
        return Content::Text(decoded(content_type, body));
    }
    let mime = if unnamed { "application/octet-stream".to_owned() } else { mime };
    let name = file_name(disposition, path, &mime);
    Content::File(ApiFile { mime, name, data: STANDARD.encode(body), bytes: body.len() })
}

/// Types that are text to read. Tables are not: they are files to work with.
fn is_text(mime: &str) -> bool {
    let is_table = matches!(mime, "text/csv" | "text/tab-separated-values");
    mime.starts_with("text/") && !is_table
        || mime.ends_with("+xml")
        || mime.ends_with("+yaml")
        || matches!(
            mime,
            "application/xml"
                | "application/yaml"
                | "application/x-yaml"
                | "application/javascript"
                | "application/x-ndjson"
                | "application/jsonl"
                | "application/json-seq"
                | "application/x-www-form-urlencoded"
                | "application/graphql"
        )
}

fn is_readable(body: &[u8]) -> bool {
    std::str::from_utf8(body).is_ok_and(|text| !text.contains('\0'))
}

fn decoded(content_type: &str, body: &[u8]) -> String {
    let parameters = content_type.to_ascii_lowercase();
    let charset = parameters
        .split(';')
        .skip(1)
        .find_map(|parameter| parameter.trim().strip_prefix("charset="));
    let is_latin = matches!(
        charset.map(|charset| charset.trim_matches('"')),
        Some("iso-8859-1" | "latin1" | "windows-1252")
    );
    match std::str::from_utf8(body) {
        Ok(text) => text.trim_start_matches('\u{feff}').to_owned(),
        Err(_) if is_latin => body.iter().map(|byte| char::from(*byte)).collect(),
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    }
}

/// The name that the API gives the file, else the end of its path, with nothing in it that could lead elsewhere.
fn file_name(disposition: Option<&str>, path: &str, mime: &str) -> String {
    let given =
        disposition.into_iter().flat_map(|words| words.split(';').skip(1)).find_map(|parameter| {
            let (key, value) = parameter.split_once('=')?;
            let value = value.trim().trim_matches('"');
            match key.trim().to_ascii_lowercase().as_str() {
                "filename" => Some(value.to_owned()),
                "filename*" => {
                    let encoded = value.rsplit('\'').next().unwrap_or_default();
                    Some(
                        percent_encoding::percent_decode_str(encoded)
                            .decode_utf8_lossy()
                            .into_owned(),
                    )
                }
                _ => None,
            }
        });
    let name = given.unwrap_or_else(|| {
        percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned()
    });
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last.chars().filter(|c| !c.is_control()).collect();
    let clean = shortened(clean.trim_matches(['.', ' ']));
    let stem = if clean.is_empty() { "answer" } else { clean };
    let extension = match mime {
        "text/csv" => "csv",
        "text/tab-separated-values" => "tsv",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => "bin",
    };
    if stem.contains('.') { stem.to_owned() } else { format!("{stem}.{extension}") }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
