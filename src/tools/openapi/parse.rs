//! From a document to its operations.

use serde_json::Value;
use url::Url;

use super::{
    fault::SchemaFault,
    find::{Found, choose, find},
    operation::Operation,
    read::read,
    refs::{Source, shortened},
    server::base_url,
};

/// How much the schemas of all operations may take once references are in place, in bytes.
const ROOM: usize = 16 * 1024 * 1024;

/// What the request wants of the document.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The URL of the server, or of one of the document's.
    pub server_url: Option<&'a str>,
    /// Where the document came from, after redirects: relative servers start there.
    pub schema_url: Option<&'a Url>,
    /// The operations that are offered, by id or by name; the others are not looked at. `None`: all.
    pub allowed: Option<&'a [String]>,
    /// How many operations there may be.
    pub max_operations: usize,
}

/// Reads the operations of a document, in its order. An operation that cannot be offered is a fault, for what is missing in silence is
/// missed too late; `allowed` leaves it out.
pub fn parse(document: &Value, wanted: &Wanted<'_>) -> Result<Vec<Operation>, SchemaFault> {
    let in_schema = |fault: SchemaFault| fault.under("schema");
    check_head(document).map_err(in_schema)?;
    let source = Source::new(document, ROOM);
    let found = find(document, &source).map_err(in_schema)?;
    if found.is_empty() {
        return Err(SchemaFault::at("schema.paths", "The schema has no operation."));
    }
    let chosen = choose(found, wanted)?;
    let mut bases = Vec::new();
    chosen
        .into_iter()
        .map(|found| {
            let base = base_of(&found, document, wanted, &mut bases)?;
            let place = found.place();
            read(found, base, &source)
                .map_err(|fault| in_schema(fault.under(&place).under("paths")))
        })
        .collect()
}

fn check_head(document: &Value) -> Result<(), SchemaFault> {
    let version = document.get("openapi").map(|version| match version {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    match version.as_deref() {
        Some(version) if ["3.0", "3.1"].contains(&version.get(..3).unwrap_or_default()) => (),
        Some(other) => {
            let message =
                format!("OpenAPI {} is not read here; 3.0 and 3.1 are.", shortened(other));
            return Err(SchemaFault::at("openapi", message));
        }
        None if document.get("swagger").is_some() => {
            let message = "Swagger 2.0 is not read here. Convert the schema to OpenAPI 3.0 or 3.1.";
            return Err(SchemaFault::at("swagger", message));
        }
        None => {
            let message = "An OpenAPI document begins with its version, such as `openapi: 3.1.0`.";
            return Err(SchemaFault::at("openapi", message));
        }
    }
    match document.pointer("/info/title").and_then(Value::as_str) {
        Some(_) => Ok(()),
        None => Err(SchemaFault::at("info.title", "The schema needs a title in `info.title`.")),
    }
}

/// The server of an operation: its own, that of its path, or the document's. Most share one, so what was found is kept.
fn base_of<'a>(
    found: &Found<'a>,
    document: &'a Value,
    wanted: &Wanted<'_>,
    bases: &mut Vec<(&'a Value, Url)>,
) -> Result<Url, SchemaFault> {
    const NONE: &Value = &Value::Null;
    let list = |servers: Option<&'a Value>| {
        servers.filter(|servers| servers.as_array().is_some_and(|servers| !servers.is_empty()))
    };
    let servers = list(found.fields.get("servers"))
        .or_else(|| list(found.item.get("servers")))
        .or_else(|| list(document.get("servers")))
        .unwrap_or(NONE);
    if let Some((_, base)) =
        bases.iter().rev().take(4).find(|(known, _)| std::ptr::eq(*known, servers))
    {
        return Ok(base.clone());
    }
    let entries = servers.as_array().map_or(&[][..], Vec::as_slice);
    let base = base_url(entries, wanted.server_url, wanted.schema_url)?;
    bases.push((servers, base.clone()));
    Ok(base)
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
