use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

/// Makes a value and checks with a validator that it fits.
fn fitting(schema: &Value) -> Value {
    let value = least(schema).unwrap_or_else(|| panic!("nothing for {schema}"));
    assert!(jsonschema::is_valid(schema, &value), "{schema} does not take {value}");
    value
}

#[test]
fn the_least_value_fits() {
    for (schema, expected) in [
        (json!(true), json!(null)),
        (json!({}), json!(null)),
        (json!({"type": "string"}), json!("demo")),
        (json!({"type": ["string", "null"]}), json!("demo")),
        (json!({"type": "boolean"}), json!(false)),
        (json!({"type": "null"}), json!(null)),
        (json!({"const": 7}), json!(7)),
        (json!({"enum": ["b", "a"]}), json!("b")),
        (json!({"type": "string", "maxLength": 2}), json!("de")),
        (json!({"type": "string", "minLength": 6}), json!("demooo")),
        (json!({"type": "string", "format": "date"}), json!("2000-01-01")),
        (json!({"type": "string", "pattern": "^@[a-z]+$"}), json!("@demo")),
        (json!({"type": "string", "pattern": "^[0-9]{5}$"}), json!("12345")),
        (json!({"type": "integer"}), json!(0)),
        (json!({"type": "integer", "minimum": 3}), json!(3)),
        (json!({"type": "integer", "exclusiveMinimum": 3}), json!(4)),
        (json!({"type": "integer", "minimum": 0.5}), json!(1)),
        (json!({"type": "integer", "maximum": -3}), json!(-3)),
        (json!({"type": "integer", "exclusiveMaximum": 0}), json!(-1)),
        (json!({"type": "integer", "minimum": 11, "multipleOf": 5}), json!(15)),
        (json!({"type": "number", "exclusiveMinimum": 0.25, "maximum": 0.75}), json!(0.5)),
        (json!({"type": "array", "items": {"type": "string"}}), json!([])),
        (json!({"type": "array", "items": {"type": "integer"}, "minItems": 2}), json!([0, 0])),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}], "minItems": 2}),
            json!(["demo", null]),
        ),
        (json!({"type": "object", "properties": {"a": {"type": "string"}}}), json!({})),
        (
            json!({"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}, "c": {}}, "required": ["a", "b"]}),
            json!({"b": "demo", "a": 0}),
        ),
        (
            json!({"required": ["x"], "additionalProperties": {"type": "boolean"}}),
            json!({"x": false}),
        ),
        (json!({"anyOf": [false, {"type": "integer"}]}), json!(0)),
        (json!({"oneOf": [{"type": "string"}, {"type": "null"}]}), json!("demo")),
        (
            json!({"allOf": [{"required": ["a"], "properties": {"a": {"const": 1}}}, {"required": ["b"], "properties": {"b": {"const": 2}}}]}),
            json!({"a": 1, "b": 2}),
        ),
        (
            json!({"properties": {"k": {"type": "string"}}, "required": ["k"], "anyOf": [{"type": "object", "properties": {"v": {"const": 1}}, "required": ["v"]}]}),
            json!({"v": 1, "k": "demo"}),
        ),
        (
            json!({"$defs": {"City": {"type": "string"}}, "type": "object", "properties": {"city": {"$ref": "#/$defs/City"}}, "required": ["city"]}),
            json!({"city": "demo"}),
        ),
    ] {
        assert_eq!(fitting(&schema), expected, "{schema}");
    }
}

#[test]
fn a_recursive_schema_ends_as_early_as_it_can() {
    let list = json!({
        "$defs": {"Node": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
            "required": ["value", "next"],
        }},
        "$ref": "#/$defs/Node",
    });
    assert_eq!(fitting(&list), json!({"value": 0, "next": null}));
    let tree = json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}, "required": ["children"]});
    assert_eq!(fitting(&tree), json!({"children": []}));
}

#[test]
fn what_has_no_sensible_value_has_none() {
    let mut doubling = json!({"type": "string"});
    for _ in 0..30 {
        doubling = json!({"type": "array", "items": doubling, "minItems": 2});
    }
    for schema in [
        json!(false),
        json!({"enum": []}),
        json!({"$ref": "#/$defs/Missing"}),
        json!({"$ref": "https://schemas.example/other.json"}),
        json!({"$ref": "#"}),
        json!({"type": "object", "properties": {"self": {"$ref": "#"}}, "required": ["self"]}),
        json!({"type": "array", "minItems": 1_000_000_000_000_u64}),
        doubling,
    ] {
        assert_eq!(least(&schema), None, "{schema}");
    }
    let Some(Value::String(long)) = least(&json!({"type": "string", "minLength": 1_000_000_000}))
    else {
        panic!("no string");
    };
    assert_eq!(long.len(), 10_000);
}
