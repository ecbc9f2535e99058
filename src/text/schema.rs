//! JSON schemas of tools, as backends take them.

use serde_json::{Map, Value};

use crate::protocol::Raw;

/// How deep a schema with its references put in may be: what `serde_json` reads, less what goes around it in a request.
const MAX_DEPTH: usize = 100;

/// How many references may be followed one inside the other.
const MAX_OPEN: usize = 32;

/// The most that references may add to a schema, in about bytes.
const MAX_INLINED: usize = 512 * 1024;

/// The schema, made one that every backend takes: `{"type":"object","properties":…}`.
pub fn object_schema(parameters: Option<&Raw>) -> Raw {
    let Some(parameters) = parameters else { return empty_object() };
    match parameters.to::<Map<String, Value>>() {
        Ok(fields) if fields.contains_key("properties") && fields.contains_key("type") => {
            parameters.clone()
        }
        Ok(mut fields) => {
            fields.entry("type").or_insert_with(|| "object".into());
            if fields.get("type").and_then(|kind| kind.as_str()) == Some("object") {
                fields.entry("properties").or_insert_with(|| Value::Object(Map::new()));
            }
            Raw::of(&fields)
        }
        Err(_) => empty_object(),
    }
}

/// The schema without references, for backends that know none: what a reference points at stands in its place.
///
/// A reference to something that it is inside of, to something that is not there or outside, and one that would make the schema too
/// deep or too large, takes everything: `{}` with the description that goes with it. A schema without references stays byte for byte.
pub fn inline_refs(schema: &Raw) -> Raw {
    if !schema.json().contains("$ref") {
        return schema.clone();
    }
    let Ok(root) = schema.to::<Value>() else { return schema.clone() };
    let mut inliner = Inliner { root: &root, open: Vec::new(), left: MAX_INLINED };
    let mut whole = inliner.schema(&root, 0);
    if let Value::Object(fields) = &mut whole {
        // Where OpenAPI keeps its schemas; no schema keyword.
        fields.shift_remove("components");
    }
    Raw::of(&whole)
}

/// What a reference within the schema `root` points at; `None` when there is nothing, or it points elsewhere.
pub(super) fn local_target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let pointer = percent_decoded(reference.strip_prefix('#')?)?;
    root.pointer(&pointer)
}

fn empty_object() -> Raw {
    Raw::of(&serde_json::json!({"type": "object", "properties": {}}))
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        bytes.push(u8::from_str_radix(digits?, 16).ok()?);
        bytes.extend(part.as_bytes().get(2..)?);
    }
    String::from_utf8(bytes).ok()
}

/// Keywords that hold a schema.
const ONE: [&str; 12] = [
    "items",
    "additionalProperties",
    "additionalItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "contentSchema",
    "not",
    "if",
    "then",
    "else",
];

/// Keywords that hold a list of schemas; `items` did once.
const LIST: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];

/// Keywords that hold schemas by name.
const NAMED: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];

/// Where the schemas stand that are pointed at: not needed once they stand where they are used.
const SHELVES: [&str; 2] = ["$defs", "definitions"];

/// Keywords that say nothing about what fits: beside a reference they count for the place where it stands.
const NOTES: [&str; 8] = [
    "description",
    "title",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

struct Inliner<'s> {
    root: &'s Value,
    /// The references that we are inside of.
    open: Vec<&'s str>,
    left: usize,
}

impl<'s> Inliner<'s> {
    fn schema(&mut self, schema: &'s Value, depth: usize) -> Value {
        let Value::Object(fields) = schema else { return schema.clone() };
        let inlined = !self.open.is_empty();
        if depth > MAX_DEPTH || (inlined && self.left == 0) {
            return Value::Object(described(fields));
        }
        let Some(Value::String(reference)) = fields.get("$ref") else {
            return Value::Object(self.fields(fields, depth));
        };
        let target = local_target(self.root, reference);
        let follow =
            self.left > 0 && self.open.len() < MAX_OPEN && !self.open.contains(&reference.as_str());
        let mut whole = match target {
            Some(target @ Value::Object(_)) if follow => {
                self.open.push(reference);
                let target = self.schema(target, depth);
                self.open.pop();
                target
            }
            Some(Value::Object(target)) => Value::Object(described(target)),
            Some(bool @ Value::Bool(_)) => bool.clone(),
            _ => Value::Object(Map::new()),
        };
        let beside = self.fields(fields, depth);
        if beside.is_empty() {
            return whole;
        }
        let Value::Object(target) = &mut whole else {
            return serde_json::json!({ "allOf": [whole, beside] });
        };
        let (notes, rules): (Map<_, _>, Map<_, _>) =
            beside.into_iter().partition(|(word, _)| NOTES.contains(&word.as_str()));
        let clash = rules.iter().any(|(word, rule)| target.get(word).is_some_and(|r| r != rule));
        if clash {
            // Both hold.
            let both = serde_json::json!([whole, rules]);
            let mut joined = notes;
            joined.insert("allOf".to_owned(), both);
            return Value::Object(joined);
        }
        target.extend(rules.into_iter().chain(notes));
        whole
    }

    /// The fields of a schema, all but the reference itself.
    fn fields(&mut self, fields: &'s Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut out = Map::new();
        for (word, value) in fields {
            let name = word.as_str();
            if name == "$ref" || SHELVES.contains(&name) && value.is_object() {
                continue;
            }
            let value = match value {
                Value::Object(_) if ONE.contains(&name) => self.schema(value, depth + 1),
                Value::Array(list) if LIST.contains(&name) => {
                    list.iter().map(|schema| self.schema(schema, depth + 2)).collect()
                }
                Value::Object(named) if NAMED.contains(&name) => {
                    let named = named.iter().map(|(name, schema)| {
                        self.spend(name.len());
                        (name.clone(), self.schema(schema, depth + 2))
                    });
                    Value::Object(named.collect())
                }
                value => {
                    self.spend(weight(value));
                    value.clone()
                }
            };
            self.spend(word.len());
            out.insert(word.clone(), value);
        }
        out
    }

    /// Only what references bring in counts: the schema itself is as large as its author made it.
    fn spend(&mut self, bytes: usize) {
        if !self.open.is_empty() {
            self.left = self.left.saturating_sub(bytes + 4);
        }
    }
}

/// A schema that takes everything, and says of itself what `fields` say.
fn described(fields: &Map<String, Value>) -> Map<String, Value> {
    let description = fields.get_key_value("description");
    description.into_iter().map(|(word, text)| (word.clone(), text.clone())).collect()
}

/// About how many bytes the value is long.
fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(weight).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + weight(value) + 4).sum::<usize>() + 2
        }
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
