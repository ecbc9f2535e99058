//! Parameters of operations: where they go, and in which form.

use reqwest::header::HeaderName;
use serde_json::{Map, Value};

use super::{
    access::is_kept_from_models,
    fault::SchemaFault,
    refs::{Source, shortened},
    schema,
};

/// Where a parameter goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    Path,
    Query,
    Header,
}

impl Place {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
        }
    }
}

/// How lists and objects are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
    /// As JSON (`content` instead of `schema`).
    Json,
}

/// A parameter that the model may fill.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    /// What the model calls it.
    pub(super) argument: String,
    /// What the API calls it.
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) style: Style,
    pub(super) explode: bool,
    pub(super) required: bool,
    /// Whether reserved characters may stand as they are (`allowReserved`).
    pub(super) reserved: bool,
    /// JSON schema of its value.
    pub(super) schema: Value,
}

/// The name and the place of a parameter, which together say which one it is.
pub(super) fn identity<'a>(
    value: &'a Value,
    source: &Source<'a>,
) -> Result<(&'a str, &'a str, &'a Map<String, Value>), SchemaFault> {
    let fields = source.object(value)?;
    let text = |key: &str| {
        fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).ok_or_else(|| {
            SchemaFault::at(key, format!("A parameter needs `{key}`, a text that is not empty."))
        })
    };
    Ok((text("name")?, text("in")?, fields))
}

/// Reads a parameter; `None` when it does not apply, and then a note says why.
pub(super) fn read(
    name: &str,
    place: &str,
    fields: &Map<String, Value>,
    source: &Source<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Parameter>, SchemaFault> {
    let flag = |key: &str| fields.get(key).and_then(Value::as_bool);
    let shown = shortened(name);
    let place = match place {
        "path" => Place::Path,
        "query" => Place::Query,
        "header" => Place::Header,
        "cookie" if flag("required") == Some(true) => {
            return Err(SchemaFault::here(format!(
                "The operation needs the cookie `{shown}`, and cookies are not sent. \
                 Leave the operation out with `allowed_operations`."
            )));
        }
        "cookie" => {
            notes.push(format!("The cookie `{shown}` is not offered: cookies are not sent."));
            return Ok(None);
        }
        other => {
            return Err(SchemaFault::at(
                "in",
                format!(
                    "`{}` is not a place for a parameter; there are `path`, `query` and `header`.",
                    shortened(other)
                ),
            ));
        }
    };
    if place == Place::Header {
        let header = HeaderName::try_from(name).map_err(|_| {
            SchemaFault::at("name", format!("`{shown}` cannot be the name of a header."))
        })?;
        if is_kept_from_models(&header) {
            notes.push(format!(
                "The header `{shown}` is not offered: it is set by the server, by `headers` or by a credential, never by the model."
            ));
            return Ok(None);
        }
    }
    let (style, schema) = form(place, fields)?;
    let mut schema = match schema {
        Some(schema) => {
            let sent = schema::sent(schema, source).map_err(|fault| fault.under("schema"))?;
            notes.extend(sent.is_shortened.then(|| shortening(name)));
            sent.schema
        }
        None => serde_json::json!({"type": "string"}),
    };
    if let Value::Object(schema) = &mut schema {
        for (theirs, ours) in [("description", "description"), ("example", "examples")] {
            let Some(said) = fields.get(theirs).filter(|_| !schema.contains_key(ours)) else {
                continue;
            };
            let said = source.copied(said)?;
            let said = if ours == "examples" { Value::Array(vec![said]) } else { said };
            schema.insert(ours.to_owned(), said);
        }
    }
    Ok(Some(Parameter {
        argument: name.to_owned(),
        name: name.to_owned(),
        place,
        style,
        explode: flag("explode").unwrap_or(style == Style::Form),
        // A path cannot be called without all of its parts, whatever the document says.
        required: place == Place::Path || flag("required") == Some(true),
        reserved: flag("allowReserved") == Some(true),
        schema,
    }))
}

/// Says that a schema was shortened.
pub(super) fn shortening(name: &str) -> String {
    let name = shortened(name);
    format!(
        "The schema of `{name}` is too large to be shown whole: inner parts of it are left open."
    )
}

fn form(place: Place, fields: &Map<String, Value>) -> Result<(Style, Option<&Value>), SchemaFault> {
    if let Some(content) = fields.get("content").and_then(Value::as_object) {
        return match content.iter().next() {
            Some((kind, media)) if is_json(kind) => Ok((Style::Json, media.get("schema"))),
            _ => Err(SchemaFault::at(
                "content",
                "A parameter with `content` must be `application/json`.",
            )),
        };
    }
    let style = match (fields.get("style").and_then(Value::as_str), place) {
        (None | Some("form"), Place::Query) => Style::Form,
        (None | Some("simple"), Place::Path | Place::Header) => Style::Simple,
        (Some("label"), Place::Path) => Style::Label,
        (Some("matrix"), Place::Path) => Style::Matrix,
        (Some("spaceDelimited"), Place::Query) => Style::SpaceDelimited,
        (Some("pipeDelimited"), Place::Query) => Style::PipeDelimited,
        (Some("deepObject"), Place::Query) => Style::DeepObject,
        (Some(other), place) => {
            let message =
                format!("`{}` is not a style for a {} parameter.", shortened(other), place.word());
            return Err(SchemaFault::at("style", message));
        }
    };
    Ok((style, fields.get("schema")))
}

/// Whether a media type is JSON: `application/json`, `application/problem+json`, with or without parameters.
pub(super) fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json")
}
