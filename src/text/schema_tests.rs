use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn inlined(schema: &Value) -> Value {
    inline_refs(&Raw::of(schema)).to().unwrap()
}

#[test]
fn every_schema_becomes_one_of_an_object() {
    let empty = r#"{"type":"object","properties":{}}"#;
    for (given, expected) in [
        (None, empty),
        (Some("null"), empty),
        (Some("[]"), empty),
        (Some("true"), empty),
        (Some("{}"), empty),
        (Some(r#"{"type":"object"}"#), empty),
        (Some(r#"{"properties":{"a":{}}}"#), r#"{"properties":{"a":{}},"type":"object"}"#),
        // Byte for byte.
        (
            Some(r#"{ "type": "object", "properties": {} }"#),
            r#"{ "type": "object", "properties": {} }"#,
        ),
        (Some(r#"{"type":"string"}"#), r#"{"type":"string"}"#),
    ] {
        let given = given.map(|json| Raw::parse(json).unwrap());
        assert_eq!(object_schema(given.as_ref()).json(), expected);
    }
}

#[test]
fn what_a_reference_points_at_stands_in_its_place() {
    for (schema, expected) in [
        (
            json!({"properties": {"a": {"$ref": "#/$defs/A"}, "b": {"items": {"$ref": "#/definitions/B"}}}, "$defs": {"A": {"type": "string"}}, "definitions": {"B": {"$ref": "#/$defs/A"}}}),
            json!({"properties": {"a": {"type": "string"}, "b": {"items": {"type": "string"}}}}),
        ),
        (
            json!({"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "null"}], "components": {"schemas": {"A": {"type": "integer"}}}}),
            json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        ),
        // What stands beside it counts, notes above all.
        (
            json!({"properties": {"a": {"$ref": "#/$defs/A", "description": "mine", "default": "x"}}, "$defs": {"A": {"type": "string", "description": "theirs"}}}),
            json!({"properties": {"a": {"type": "string", "description": "mine", "default": "x"}}}),
        ),
        (
            json!({"$ref": "#/$defs/A", "required": ["b"], "$defs": {"A": {"type": "object", "required": ["a"]}}}),
            json!({"allOf": [{"type": "object", "required": ["a"]}, {"required": ["b"]}]}),
        ),
        (
            json!({"$ref": "#/$defs/A", "minLength": 1, "$defs": {"A": {"type": "string"}}}),
            json!({"type": "string", "minLength": 1}),
        ),
        // Escapes of pointers and of URLs.
        (
            json!({"items": [{"$ref": "#/$defs/a~1b~0c"}, {"$ref": "#/$defs/x%20y%7Bz%7D"}], "$defs": {"a/b~c": {"const": 1}, "x y{z}": {"const": 2}}}),
            json!({"items": [{"const": 1}, {"const": 2}]}),
        ),
        // A property of that name, and data, are no references.
        (
            json!({"properties": {"$ref": {"type": "string"}, "a": {"$ref": "#/$defs/A"}}, "const": {"$ref": "#"}, "$defs": {"A": true}}),
            json!({"properties": {"$ref": {"type": "string"}, "a": true}, "const": {"$ref": "#"}}),
        ),
        (
            json!({"properties": {"$defs": {"$ref": "#/properties/b"}, "definitions": {"type": "string"}, "b": {"const": 1}}}),
            json!({"properties": {"$defs": {"const": 1}, "definitions": {"type": "string"}, "b": {"const": 1}}}),
        ),
        // Nothing there, or elsewhere: anything goes.
        (
            json!({"properties": {"a": {"$ref": "#/$defs/None", "description": "d"}, "b": {"$ref": "https://schemas.example/b"}, "c": {"$ref": "#anchor"}, "d": {"$ref": "#/%zz"}}}),
            json!({"properties": {"a": {"description": "d"}, "b": {}, "c": {}, "d": {}}}),
        ),
    ] {
        assert_eq!(inlined(&schema), expected, "{schema}");
    }
}

#[test]
fn a_reference_to_what_it_is_inside_of_takes_everything() {
    let tree = json!({
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"description": "A node.", "type": "object", "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            "parent": {"$ref": "#/$defs/Node", "description": "Above."},
        }}},
    });
    assert_eq!(
        inlined(&tree),
        json!({"type": "object", "properties": {"root": {"description": "A node.", "type": "object", "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"description": "A node."}},
            "parent": {"description": "Above."},
        }}}})
    );
    assert_eq!(inlined(&json!({"$ref": "#"})), json!({}));
    let itself = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
    assert_eq!(
        inlined(&itself),
        json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"a": {}}}}})
    );
}

#[test]
fn a_schema_without_references_stays_as_it_is() {
    for json in [r#"{ "a" : 1.50 }"#, "null", r#""text""#] {
        let raw = Raw::parse(json).unwrap();
        assert_eq!(inline_refs(&raw).json(), json);
    }
}

#[test]
fn a_small_schema_cannot_become_a_large_one() {
    // Each doubles the next.
    let mut defs = Map::new();
    for n in 0..30 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        defs.insert(format!("d{n}"), json!({"properties": {"a": next, "b": next}}));
    }
    defs.insert(
        "d30".to_owned(),
        json!({"description": "x".repeat(1000), "enum": ["y".repeat(1000)]}),
    );
    let doubled = inline_refs(&Raw::of(&json!({"$ref": "#/$defs/d0", "$defs": defs})));
    assert!(doubled.json().len() < 3 * MAX_INLINED, "{}", doubled.json().len());
    // A long chain, and one that is deep: readable again, and without a stack overflow.
    for wrap in [false, true] {
        let mut defs = Map::new();
        for n in 0..5000 {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            let next = if wrap { json!({"items": {"items": {"items": next}}}) } else { next };
            defs.insert(format!("d{n}"), next);
        }
        let chain = json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs});
        let run = move || inlined(&chain).to_string().len();
        let worker = std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap();
        assert!(worker.join().unwrap() < 10_000);
    }
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!({}),
        json!(true),
        json!(null),
        json!({"type": "string"}),
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a"}),
        json!({"$ref": "#/$defs/b", "description": "d"}),
        json!({"$ref": "#/$defs/c", "type": "object"}),
        json!({"$ref": "#/$defs/none"}),
        json!({"$ref": 5}),
    ]);
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({ "items": items })),
            prop::collection::btree_map("a|b|\\$ref", inner.clone(), 0..3)
                .prop_map(|fields| json!({ "properties": fields })),
            prop::collection::vec(inner, 0..3).prop_map(|cases| json!({ "anyOf": cases })),
        ]
    })
}

/// Whether a reference is left where a schema stands.
fn has_reference(schema: &Value) -> bool {
    let Value::Object(fields) = schema else { return false };
    let named = fields.get("properties").and_then(Value::as_object);
    let listed = fields.get("anyOf").and_then(Value::as_array);
    let both = fields.get("allOf").and_then(Value::as_array);
    fields.contains_key("$ref") && fields["$ref"].is_string()
        || fields.get("items").is_some_and(has_reference)
        || named.is_some_and(|named| named.values().any(has_reference))
        || [listed, both].into_iter().flatten().flatten().any(has_reference)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn no_reference_is_left(root in schemas(), defs in prop::collection::btree_map("[abc]", schemas(), 0..4)) {
        let mut root = root;
        if let Some(fields) = root.as_object_mut() {
            fields.insert("$defs".to_owned(), json!(defs));
        }
        let inlined = inlined(&root);
        prop_assert!(!has_reference(&inlined), "{inlined}");
    }
}
