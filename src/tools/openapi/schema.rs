//! The schemas of a document as JSON schemas that models know: the words that OpenAPI adds are translated or left out.

use serde_json::{Map, Value, json};

use super::{
    fault::SchemaFault,
    inline::{DATA, Inlined, NAMED, inlined},
    refs::Source,
};

/// The largest schema of one parameter or body, in bytes: some 16 000 tokens.
const MAX_BYTES: usize = 64 * 1024;

/// Words of OpenAPI that say nothing to a model.
const LEFT_OUT: [&str; 5] = ["xml", "externalDocs", "discriminator", "writeOnly", "deprecated"];

/// The JSON schema of something that is sent: references in place, the words of 3.0 in those of JSON Schema, nothing that only the
/// server may set.
pub(super) fn sent(schema: &Value, source: &Source<'_>) -> Result<Inlined, SchemaFault> {
    let mut inlined = inlined(schema, source, MAX_BYTES)?;
    translate(&mut inlined.schema);
    Ok(inlined)
}

fn translate(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    fields.retain(|name, _| !LEFT_OUT.contains(&name.as_str()) && !name.starts_with("x-"));
    for bound in ["Minimum", "Maximum"] {
        strict_bound(fields, &format!("exclusive{bound}"), &bound.to_lowercase());
    }
    if let Some(example) = fields.shift_remove("example")
        && !fields.contains_key("examples")
    {
        fields.insert("examples".to_owned(), json!([example]));
    }
    leave_out_read_only(fields);
    for (name, value) in fields.iter_mut() {
        match (name.as_str(), value) {
            (name, Value::Object(inner)) if NAMED.contains(&name) => {
                inner.values_mut().for_each(translate);
            }
            (name, _) if DATA.contains(&name) => (),
            (_, Value::Array(entries)) => entries.iter_mut().for_each(translate),
            (_, value) => translate(value),
        }
    }
    if fields.shift_remove("nullable") == Some(Value::Bool(true)) {
        let inner = std::mem::take(fields);
        *schema = nullable(inner);
    }
}

/// 3.0 says `exclusiveMinimum: true` beside `minimum`; JSON Schema has the number itself there.
fn strict_bound(fields: &mut Map<String, Value>, strict: &str, bound: &str) {
    if let Some(&Value::Bool(is_strict)) = fields.get(strict) {
        fields.shift_remove(strict);
        if is_strict && let Some(number) = fields.shift_remove(bound) {
            fields.insert(strict.to_owned(), number);
        }
    }
}

fn leave_out_read_only(fields: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = fields.get_mut("properties") else { return };
    properties.retain(|_, property| property.get("readOnly") != Some(&Value::Bool(true)));
    let kept: Vec<String> = properties.keys().cloned().collect();
    let is_open = |name: &Value| name.as_str().is_some_and(|name| kept.iter().any(|k| k == name));
    if let Some(Value::Array(required)) = fields.get_mut("required") {
        let was_empty = required.is_empty();
        required.retain(is_open);
        if required.is_empty() && !was_empty {
            fields.shift_remove("required");
        }
    }
}

/// The schema that takes `null` too.
fn nullable(mut fields: Map<String, Value>) -> Value {
    if fields.is_empty() {
        return Value::Object(fields);
    }
    match fields.get("type") {
        Some(Value::String(kind)) => {
            let kinds = json!([kind, "null"]);
            fields.insert("type".to_owned(), kinds);
            if let Some(Value::Array(values)) = fields.get_mut("enum")
                && !values.contains(&Value::Null)
            {
                values.push(Value::Null);
            }
            Value::Object(fields)
        }
        Some(_) => Value::Object(fields),
        None => json!({"anyOf": [fields, {"type": "null"}]}),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn words_of_openapi_become_those_of_json_schema() {
        for (theirs, ours) in [
            (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
            (json!({"type": "string", "nullable": false}), json!({"type": "string"})),
            (
                json!({"type": "string", "enum": ["a"], "nullable": true}),
                json!({"type": ["string", "null"], "enum": ["a", null]}),
            ),
            (
                json!({"allOf": [{"type": "object"}], "nullable": true}),
                json!({"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]}),
            ),
            (json!({"nullable": true}), json!({})),
            (
                json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 3, "exclusiveMaximum": false}),
                json!({"maximum": 3, "exclusiveMinimum": 1}),
            ),
            (json!({"exclusiveMinimum": 2}), json!({"exclusiveMinimum": 2})),
            (json!({"example": "a", "x-order": 1}), json!({"examples": ["a"]})),
            (
                json!({"type": "object", "required": ["id", "name"], "properties": {
                    "id": {"type": "integer", "readOnly": true},
                    "name": {"type": "string", "xml": {}},
                    "nullable": {"type": "array", "items": {"type": "number", "nullable": true}},
                }}),
                json!({"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"},
                    "nullable": {"type": "array", "items": {"type": ["number", "null"]}},
                }}),
            ),
            (
                json!({"required": ["id"], "properties": {"id": {"readOnly": true}}}),
                json!({"properties": {}}),
            ),
            (
                json!({"oneOf": [{"nullable": true, "type": "string"}], "default": {"nullable": true}}),
                json!({"oneOf": [{"type": ["string", "null"]}], "default": {"nullable": true}}),
            ),
            // A property may be called like a word.
            (
                json!({"properties": {"example": {"type": "string"}, "x-a": {"deprecated": true}}}),
                json!({"properties": {"example": {"type": "string"}, "x-a": {}}}),
            ),
            (json!({"additionalProperties": true}), json!({"additionalProperties": true})),
            (json!(true), json!(true)),
        ] {
            let read = sent(&theirs, &Source::new(&Value::Null, 10_000)).unwrap().schema;
            assert_eq!(read, ours, "{theirs}");
        }
    }

    #[test]
    fn a_huge_schema_is_refused() {
        let huge = json!({"description": "x".repeat(MAX_BYTES)});
        let fault = sent(&huge, &Source::new(&Value::Null, 1 << 20)).unwrap_err();
        assert!(fault.sentence.contains("allowed_operations"), "{fault}");
    }
}
