//! Values that fit a JSON schema: the least one, and one that tells its reader what goes where.

use std::{borrow::Cow, cell::Cell};

use serde_json::{Map, Value};

use crate::protocol::Raw;

use super::schema::local_target;

/// A value that fits the schema as far as types, required properties, enumerations, references, bounds and well-known formats
/// go: a pattern is met only if one of a few samples meets it. `None` when there is none, or none of a sensible size.
pub fn least(schema: &Value) -> Option<Value> {
    Maker::of(schema, Manner::Least).value(schema, &mut Vec::new())
}

/// [`least`] of a schema that is still text.
pub fn least_of(schema: &Raw) -> Option<Value> {
    least(&schema.to().ok()?)
}

/// A value as [`least`] makes it that tells its reader what goes where: texts name their property, lists have an item, and what the
/// schema itself gives as an example or a default is taken from there.
pub fn example(schema: &Value) -> Option<Value> {
    Maker::of(schema, Manner::Telling).value(schema, &mut Vec::new())
}

/// What the value is for.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Manner {
    Least,
    Telling,
}

/// How deep a value is looked for.
const MAX_DEPTH: u32 = 150;

/// The text where nothing asks for another.
const SAMPLE: &str = "demo";

/// Texts that are tried on a pattern.
const SAMPLES: [&str; 14] = [
    SAMPLE,
    "",
    "a",
    "A",
    "1",
    "A1",
    "@demo",
    "#demo",
    "demo@example.com",
    "https://example.com/",
    "2000-01-01",
    "2000-01-01T00:00:00Z",
    "12345",
    "00000000-0000-4000-8000-000000000000",
];

struct Maker<'s> {
    root: &'s Value,
    /// How many more values may be made: a small schema can ask for a huge one.
    left: Cell<u32>,
    depth: Cell<u32>,
    manner: Manner,
    /// The property that is being made.
    name: Cell<&'s str>,
}

impl<'s> Maker<'s> {
    fn of(root: &'s Value, manner: Manner) -> Self {
        let (left, depth) = (Cell::new(2000), Cell::new(0));
        Self { root, left, depth, manner, name: Cell::new(SAMPLE) }
    }

    /// A value that fits, unless that leads too deep.
    fn value(&self, schema: &'s Value, open: &mut Vec<&'s str>) -> Option<Value> {
        if self.depth.get() == MAX_DEPTH {
            return None;
        }
        self.depth.update(|depth| depth + 1);
        let value = self.made(schema, open);
        self.depth.update(|depth| depth - 1);
        value
    }

    /// `open` are the references that we are inside of: one that is met again has no end.
    fn made(&self, schema: &'s Value, open: &mut Vec<&'s str>) -> Option<Value> {
        self.left.set(self.left.get().checked_sub(1)?);
        let Value::Object(fields) = schema else {
            // `true` takes everything, `false` nothing.
            return (*schema != Value::Bool(false)).then_some(Value::Null);
        };
        if let Some(value) = fields.get("const") {
            return Some(value.clone());
        }
        if let Some(Value::Array(values)) = fields.get("enum") {
            return values.first().cloned();
        }
        if let Some(value) = self.given(fields) {
            return Some(value.clone());
        }
        if let Some(Value::String(reference)) = fields.get("$ref") {
            if open.contains(&reference.as_str()) {
                return None;
            }
            open.push(reference);
            let value = self.value(local_target(self.root, reference)?, open);
            open.pop();
            return value;
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(Value::Array(either)) = fields.get(word)
                && !either.is_empty()
            {
                let value = either.iter().find_map(|schema| self.value(schema, open))?;
                return Some(self.merged(value, fields, open));
            }
        }
        if let Some(Value::Array(all)) = fields.get("allOf") {
            let mut whole = Value::Null;
            for schema in all {
                whole = match (whole, self.value(schema, open)?) {
                    (Value::Object(mut one), Value::Object(other)) => {
                        one.extend(other);
                        Value::Object(one)
                    }
                    (Value::Null, value) | (value, _) => value,
                };
            }
            return Some(self.merged(whole, fields, open));
        }
        self.of_type(type_of(fields), fields, open)
    }

    /// What the schema gives itself.
    fn given(&self, fields: &'s Map<String, Value>) -> Option<&'s Value> {
        let list = fields.get("examples").and_then(|examples| examples.get(0));
        let lone = ["example", "default"].map(|word| fields.get(word));
        let given = [list].into_iter().chain(lone).flatten().find(|value| !value.is_null());
        given.filter(|_| self.manner == Manner::Telling)
    }

    /// Adds what the schema itself requires to the object that a part of it has given.
    fn merged(
        &self,
        value: Value,
        fields: &'s Map<String, Value>,
        open: &mut Vec<&'s str>,
    ) -> Value {
        match (value, self.object(fields, open)) {
            (Value::Object(mut one), Some(own)) => {
                for (name, value) in own {
                    one.entry(name).or_insert(value);
                }
                Value::Object(one)
            }
            (value, _) => value,
        }
    }

    fn of_type(
        &self,
        kind: &str,
        fields: &'s Map<String, Value>,
        open: &mut Vec<&'s str>,
    ) -> Option<Value> {
        match kind {
            "object" => self.object(fields, open).map(Value::Object),
            "array" => self.array(fields, open),
            "string" => Some(string(fields, &self.sample()).into()),
            "integer" => number(fields, true),
            "number" => number(fields, false),
            "boolean" => Some(false.into()),
            _ => Some(Value::Null),
        }
    }

    fn sample(&self) -> Cow<'static, str> {
        match self.manner {
            Manner::Least => SAMPLE.into(),
            Manner::Telling => format!("<{}>", self.name.get()).into(),
        }
    }

    fn object(
        &self,
        fields: &'s Map<String, Value>,
        open: &mut Vec<&'s str>,
    ) -> Option<Map<String, Value>> {
        let properties = fields.get("properties").and_then(Value::as_object);
        let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
        let required: Vec<&'s str> = required.filter_map(Value::as_str).collect();
        let mut object = Map::new();
        // In the order of the properties, as a model is to write them.
        for (name, schema) in properties.into_iter().flatten() {
            if required.contains(&name.as_str()) {
                self.name.set(name);
                object.insert(name.clone(), self.value(schema, open)?);
            }
        }
        for name in required {
            if !object.contains_key(name) {
                self.name.set(name);
                let value = match fields.get("additionalProperties") {
                    Some(schema @ Value::Object(_)) => self.value(schema, open)?,
                    _ => Value::Null,
                };
                object.insert(name.to_owned(), value);
            }
        }
        Some(object)
    }

    fn array(&self, fields: &'s Map<String, Value>, open: &mut Vec<&'s str>) -> Option<Value> {
        let least = fields.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let first = fields.get("prefixItems").and_then(Value::as_array);
        let most = fields.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let least = match self.manner {
            Manner::Least => least,
            Manner::Telling => least.max(1).min(most),
        };
        let mut items = Vec::new();
        for n in 0..usize::try_from(least).ok()? {
            let schema = first.and_then(|first| first.get(n)).or_else(|| fields.get("items"));
            items.push(match schema {
                Some(schema) => self.value(schema, open)?,
                None => self.value(&Value::Bool(true), open)?,
            });
        }
        Some(items.into())
    }
}

/// The type, or what the other words are about.
fn type_of(fields: &Map<String, Value>) -> &str {
    let has = |words: &[&str]| words.iter().any(|word| fields.contains_key(*word));
    match fields.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or("null"),
        _ if has(&["properties", "required"]) => "object",
        _ if has(&["items", "prefixItems", "minItems"]) => "array",
        _ if has(&["pattern", "format", "minLength"]) => "string",
        _ if has(&["minimum", "exclusiveMinimum", "multipleOf"]) => "number",
        _ => "null",
    }
}

fn string(fields: &Map<String, Value>, plain: &str) -> String {
    if let Some(Value::String(pattern)) = fields.get("pattern") {
        let schema = serde_json::json!({"type": "string", "pattern": pattern});
        if let Ok(validator) = jsonschema::validator_for(&schema)
            && let Some(sample) =
                SAMPLES.iter().find(|sample| validator.is_valid(&Value::from(**sample)))
        {
            return (*sample).to_owned();
        }
    }
    let sample = match fields.get("format").and_then(Value::as_str).unwrap_or_default() {
        "date-time" => "2000-01-01T00:00:00Z",
        "date" => "2000-01-01",
        "time" => "00:00:00Z",
        "duration" => "PT0S",
        "email" | "idn-email" => "demo@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        "uri" | "iri" | "url" => "https://example.com/",
        _ => plain,
    };
    let bound =
        |word: &str| fields.get(word).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let most = bound("maxLength").unwrap_or(usize::MAX);
    // Nobody wants to see a gigabyte of one letter.
    let least = bound("minLength").unwrap_or(0).min(10_000);
    let filled = sample.chars().chain(std::iter::repeat('o'));
    filled.take(sample.chars().count().max(least).min(most)).collect()
}

/// Nought, or what is nearest to it within the bounds.
fn number(fields: &Map<String, Value>, whole: bool) -> Option<Value> {
    let bound = |word: &str| fields.get(word).and_then(Value::as_f64);
    let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(1.0);
    let least = match (bound("minimum"), bound("exclusiveMinimum")) {
        (Some(least), Some(over)) if least > over => Some((least, false)),
        (_, Some(over)) => Some((over, true)),
        (Some(least), None) => Some((least, false)),
        (None, None) => None,
    };
    let most = match (bound("maximum"), bound("exclusiveMaximum")) {
        (Some(most), Some(under)) if most < under => Some((most, false)),
        (_, Some(under)) => Some((under, true)),
        (Some(most), None) => Some((most, false)),
        (None, None) => None,
    };
    let mut value = 0.0;
    if let Some((least, open)) = least
        && (value < least || (open && value <= least))
    {
        value = (least / step).ceil() * step;
        if open && value <= least {
            value += step;
        }
    }
    if let Some((most, open)) = most
        && (value > most || (open && value >= most))
    {
        value = (most / step).floor() * step;
        if open && value >= most {
            value -= step;
        }
        // The bounds are closer than a step of one.
        if !whole
            && let Some((least, _)) = least
            && value < least
        {
            value = f64::midpoint(least, most);
        }
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked: it is whole and in the range where f64 is exact"
    )]
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Some(Value::from(value as i64));
    }
    serde_json::Number::from_f64(value).map(Value::Number)
}

#[cfg(test)]
#[path = "instance_tests.rs"]
mod tests;
