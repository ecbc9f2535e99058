//! The operations of a document, found, named and chosen, but not read yet.

use std::collections::HashSet;

use reqwest::Method;
use serde_json::{Map, Value};

use super::{
    fault::SchemaFault,
    naming::{Names, from_path},
    parse::Wanted,
    refs::{Source, shortened},
};

/// An operation before it is read.
pub(super) struct Found<'a> {
    pub(super) path: &'a str,
    /// As the document writes it.
    pub(super) method_key: &'a str,
    pub(super) method: Method,
    pub(super) name: String,
    pub(super) id: Option<&'a str>,
    pub(super) item: &'a Map<String, Value>,
    pub(super) fields: &'a Map<String, Value>,
}

impl Found<'_> {
    pub(super) fn place(&self) -> String {
        format!("[\"{}\"].{}", shortened(self.path), self.method_key)
    }
}

/// All operations, each with its name. Names do not depend on which ones are wanted.
pub(super) fn find<'a>(
    document: &'a Value,
    source: &Source<'a>,
) -> Result<Vec<Found<'a>>, SchemaFault> {
    let mut found = Vec::new();
    let mut names = Names::default();
    let Some(paths) = document.get("paths") else { return Ok(found) };
    let paths = paths
        .as_object()
        .ok_or_else(|| SchemaFault::at("paths", "An object of paths is expected here."))?;
    for (path, item) in paths.iter().filter(|(path, _)| !path.starts_with("x-")) {
        let at =
            |fault: SchemaFault| fault.under(&format!("[\"{}\"]", shortened(path))).under("paths");
        let whole = source.object(item).map_err(at)?;
        if item.get("$ref").is_some()
            && item.as_object().is_some_and(|own| own.keys().any(|key| method(key).is_some()))
        {
            return Err(at(SchemaFault::at(
                "$ref",
                "A path has either operations or a `$ref`, not both.",
            )));
        }
        for (key, fields) in whole {
            let Some(method) = method(key) else { continue };
            let fields = source.object(fields).map_err(|fault| at(fault.under(key)))?;
            let id = fields.get("operationId").and_then(Value::as_str).filter(|id| !id.is_empty());
            let name = match id {
                Some(id) => names.unique(id),
                None => names.unique(&from_path(key, path)),
            };
            found.push(Found { path, method_key: key, method, name, id, item: whole, fields });
        }
    }
    Ok(found)
}

/// The method of a key in any case. TRACE is left out: no API is called with it, and it sends back what was sent.
fn method(key: &str) -> Option<Method> {
    [
        Method::GET,
        Method::PUT,
        Method::POST,
        Method::DELETE,
        Method::OPTIONS,
        Method::HEAD,
        Method::PATCH,
    ]
    .into_iter()
    .find(|method| key.eq_ignore_ascii_case(method.as_str()))
}

/// Those that are wanted. Each has an id of its own, if it has one.
pub(super) fn choose<'a>(
    found: Vec<Found<'a>>,
    wanted: &Wanted<'_>,
) -> Result<Vec<Found<'a>>, SchemaFault> {
    let chosen = match wanted.allowed {
        None => found,
        Some(allowed) => {
            let names: HashSet<&str> = allowed.iter().map(String::as_str).collect();
            let known: HashSet<&str> =
                found.iter().flat_map(|found| [Some(&*found.name), found.id]).flatten().collect();
            if let Some(at) = allowed.iter().position(|name| !known.contains(name.as_str())) {
                let few: Vec<String> =
                    found.iter().take(20).map(|found| format!("`{}`", found.name)).collect();
                let more = if found.len() > few.len() { ", …" } else { "" };
                return Err(SchemaFault::at(
                    format!("allowed_operations[{at}]"),
                    format!(
                        "The schema has no operation `{}`. It has {}{more}.",
                        shortened(&allowed[at]),
                        few.join(", ")
                    ),
                ));
            }
            let is_wanted = |found: &Found<'_>| {
                names.contains(&*found.name) || found.id.is_some_and(|id| names.contains(id))
            };
            found.into_iter().filter(is_wanted).collect()
        }
    };
    if chosen.len() > wanted.max_operations {
        return Err(SchemaFault::at(
            "schema.paths",
            format!(
                "{} operations are too many for one tool; at most {} are offered. Name those that are needed in `allowed_operations`.",
                chosen.len(),
                wanted.max_operations
            ),
        ));
    }
    let mut ids = HashSet::new();
    match chosen.iter().find(|found| found.id.is_some_and(|id| !ids.insert(id))) {
        Some(twice) => Err(SchemaFault::at(
            format!("schema.paths{}.operationId", twice.place()),
            format!(
                "`{}` is the id of another operation already; each needs its own.",
                shortened(twice.id.unwrap_or_default())
            ),
        )),
        None => Ok(chosen),
    }
}
