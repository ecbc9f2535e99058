//! Right arguments, to show a model that wrote wrong ones.

use serde_json::{Map, Value, json};

use super::operation::Operation;

/// The longest example that is taken from a document, in bytes.
const MAX_BYTES: usize = 300;

/// How deep an example is made up.
const MAX_DEPTH: usize = 4;

/// Arguments that the operation takes: the required ones, and what was right in `given`.
pub(super) fn right_arguments(operation: &Operation, given: &Map<String, Value>) -> Value {
    let mut example = of_object(&operation.parameters, 0);
    let Some(properties) = operation.parameters.get("properties").and_then(Value::as_object) else {
        return Value::Object(example);
    };
    for (name, value) in given {
        let Some(schema) = properties.get(name).filter(|_| !value.is_null()) else { continue };
        let is_short = value.to_string().len() <= MAX_BYTES;
        let value = if is_short { value.clone() } else { of(schema, 0) };
        example.insert(name.clone(), value);
    }
    Value::Object(example)
}

/// A value that fits the schema, as far as one can be made up.
fn of(schema: &Value, depth: usize) -> Value {
    let given = ["/examples/0", "/default", "/const", "/enum/0"]
        .into_iter()
        .filter_map(|pointer| schema.pointer(pointer))
        .find(|value| !value.is_null() && value.to_string().len() <= MAX_BYTES);
    if let Some(given) = given {
        return given.clone();
    }
    if depth > MAX_DEPTH {
        return Value::Null;
    }
    for choice in ["/anyOf/0", "/oneOf/0", "/allOf/0"] {
        if let Some(inner) = schema.pointer(choice) {
            return of(inner, depth + 1);
        }
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ => "string",
    };
    match kind {
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(true),
        "array" => Value::Array(
            schema.get("items").map(|items| of(items, depth + 1)).into_iter().collect(),
        ),
        "object" => Value::Object(of_object(schema, depth + 1)),
        "null" => Value::Null,
        _ => json!(match schema.get("format").and_then(Value::as_str) {
            Some("date") => "2025-01-31",
            Some("date-time") => "2025-01-31T12:00:00Z",
            Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
            Some("email") => "ada@example.com",
            Some("uri" | "url") => "https://example.com",
            _ => "text",
        }),
    }
}

fn of_object(schema: &Value, depth: usize) -> Map<String, Value> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    required
        .filter_map(|name| {
            let name = name.as_str()?;
            Some((name.to_owned(), of(schema.get("properties")?.get(name)?, depth)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_fit_their_schema() {
        for (schema, example) in [
            (json!({"type": "string"}), json!("text")),
            (json!({"type": ["null", "integer"], "minimum": 5}), json!(5)),
            (json!({"enum": ["a", "b"]}), json!("a")),
            (json!({"examples": [3], "enum": [4]}), json!(3)),
            (json!({"examples": ["x".repeat(400)], "default": "short"}), json!("short")),
            (json!({"type": "array", "items": {"type": "boolean"}}), json!([true])),
            (json!({"type": "string", "format": "date"}), json!("2025-01-31")),
            (json!({"anyOf": [{"type": "number"}, {"type": "null"}]}), json!(1)),
            (
                json!({"required": ["a", "gone"], "properties": {"a": {"type": "object"}, "b": {}}}),
                json!({"a": {}}),
            ),
            (json!(true), json!("text")),
        ] {
            assert_eq!(of(&schema, 0), example, "{schema}");
        }
    }
}
