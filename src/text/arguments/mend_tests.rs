use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use crate::{
    protocol::Raw,
    text::arguments::{ArgumentSchema, mend as mend_arguments},
};

use super::*;

fn mended(properties: &Value, mut arguments: Value, aliases: Aliases<'_>) -> Value {
    let schema =
        json!({"type": "object", "properties": properties, "$defs": {"Id": {"type": "integer"}}});
    let schema = ArgumentSchema::new(&Raw::of(&schema));
    let fields = arguments.as_object_mut().unwrap();
    mend_arguments(fields, &schema, aliases);
    arguments
}

#[test]
fn a_value_becomes_what_the_schema_asks_for() {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let integers = json!({"type": "array", "items": {"type": "integer"}});
    for (asked, written, expected) in [
        // A list of one.
        (strings.clone(), json!("a"), json!(["a"])),
        (strings.clone(), json!("[draft] notes"), json!(["[draft] notes"])),
        (strings.clone(), json!("[\"a\""), json!("[\"a\"")),
        (strings.clone(), json!(""), json!([])),
        (strings.clone(), json!("[\"a\", \"b\"]"), json!(["a", "b"])),
        (strings.clone(), json!([1, true]), json!(["1", "true"])),
        (integers.clone(), json!("5"), json!([5])),
        (integers, json!(5), json!([5])),
        (json!({"type": "array", "items": {"type": "object"}}), json!({"a": 1}), json!([{"a": 1}])),
        (
            json!({"type": "array", "items": {"type": "object"}}),
            json!("{\"a\": 1}"),
            json!([{"a": 1}]),
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}]}),
            json!(["1", "true"]),
            json!([1, true]),
        ),
        // And out of one.
        (json!({"type": "string"}), json!(["a"]), json!("a")),
        (json!({"type": "string"}), json!(["a", "b"]), json!(["a", "b"])),
        // Numbers and words.
        (json!({"type": "integer"}), json!("42"), json!(42)),
        (json!({"type": "integer"}), json!(" -7 "), json!(-7)),
        (json!({"type": "integer"}), json!("5.0"), json!(5)),
        (json!({"type": "integer"}), json!(5.0), json!(5)),
        (json!({"type": "integer"}), json!("5.5"), json!("5.5")),
        (json!({"type": "integer"}), json!("0x10"), json!("0x10")),
        (json!({"type": "integer"}), json!("five"), json!("five")),
        (json!({"type": "number"}), json!("0.5"), json!(0.5)),
        (json!({"type": "number"}), json!(5.0), json!(5.0)),
        (json!({"type": "boolean"}), json!("True"), json!(true)),
        (json!({"type": "boolean"}), json!("false"), json!(false)),
        (json!({"type": "boolean"}), json!("yes"), json!("yes")),
        (json!({"$ref": "#/$defs/Id"}), json!("42"), json!(42)),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), json!("42"), json!(42)),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), json!("null"), json!(null)),
        (json!({"enum": [1, 2]}), json!("2"), json!(2)),
        (json!({"type": "string"}), json!(42), json!("42")),
        (json!({"type": "string"}), json!(4.5), json!(4.5)),
        (json!({"type": "string"}), json!(2.0), json!(2.0)),
        // What fits is left alone, whatever it looks like.
        (json!({"type": "string"}), json!("42"), json!("42")),
        (json!({"type": ["string", "integer"]}), json!("42"), json!("42")),
        (json!({"type": "string"}), json!("null"), json!("null")),
        (json!({}), json!("[1]"), json!("[1]")),
        (json!(true), json!("5"), json!("5")),
        // Inside.
        (
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}),
            json!("{\"n\": \"1\", \"s\": \"2\"}"),
            json!({"n": 1, "s": "2"}),
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
            json!({"x": "true"}),
            json!({"x": true}),
        ),
    ] {
        let found = mended(&json!({ "v": asked }), json!({ "v": written }), &[]);
        assert_eq!(found, json!({ "v": expected }), "{asked}");
    }
}

#[test]
fn what_is_null_and_need_not_be_there_is_left_out() {
    let schema = ArgumentSchema::new(&Raw::of(&json!({
        "type": "object",
        "properties": {
            "need": {"type": "string"}, "text": {"type": "string"}, "count": {"type": "integer"}, "word": {"type": "integer"},
            "empty": {"type": "boolean"}, "open": {"type": ["string", "null"]}, "old": {"type": "string", "nullable": true},
            "inner": {"type": "object", "properties": {"a": {"type": "integer"}}},
        },
        "required": ["need"],
    })));
    let mut arguments = json!({
        "need": null, "text": null, "count": null, "word": "None", "empty": "", "open": null, "old": null, "inner": {"a": null},
        "unknown": null,
    });
    mend_arguments(arguments.as_object_mut().unwrap(), &schema, &[]);
    assert_eq!(
        arguments,
        json!({"need": null, "open": null, "old": null, "inner": {}, "unknown": null})
    );
}

#[test]
fn an_alias_gets_its_name_in_its_place() {
    let list = json!({"queries": {"type": "array", "items": {"type": "string"}}, "n": {}});
    let aliases: Aliases<'_> = &[("query", "queries"), ("q", "queries"), ("n", "queries")];
    for (written, expected) in [
        (json!({"query": "a", "n": 1}), json!({"queries": ["a"], "n": 1})),
        (json!({"n": 1, "q": ["a", "b"]}), json!({"n": 1, "queries": ["a", "b"]})),
        (json!({"queries": [], "query": "a"}), json!({"queries": ["a"]})),
        (json!({"queries": ["a"], "query": "b"}), json!({"queries": ["a", "b"]})),
        (json!({"queries": ["a"], "query": "a"}), json!({"queries": ["a"]})),
        (json!({"queries": "a", "query": "b", "q": "c"}), json!({"queries": ["a", "b", "c"]})),
    ] {
        let found = mended(&list, written, aliases);
        assert_eq!(found.to_string(), expected.to_string());
    }
    // Two that say different things where there is room for one are left for the check.
    let both = json!({"url": "a", "link": "b"});
    assert_eq!(mended(&json!({"url": {"type": "string"}}), both.clone(), &[("link", "url")]), both);
}

#[test]
fn cases_that_differ_are_not_guessed_between() {
    let schema = ArgumentSchema::new(&Raw::of(&json!({"anyOf": [
        {"properties": {"x": {"type": "integer"}, "same": {"type": "integer"}}},
        {"properties": {"x": {"type": "string"}, "same": {"type": "integer"}}},
    ]})));
    let mut arguments = json!({"x": "5", "same": "5"});
    mend_arguments(arguments.as_object_mut().unwrap(), &schema, &[]);
    assert_eq!(arguments, json!({"x": "5", "same": 5}));
    // A case that says nothing takes it as it is; one that takes no object has no say.
    for (case, expected) in
        [(json!({}), json!({"b": {"a": null}})), (json!({"type": "null"}), json!({"b": {}}))]
    {
        let cases = json!({"b": {"anyOf": [case, {"type": "object", "properties": {"a": {"type": "string"}}}]}});
        assert_eq!(mended(&cases, json!({"b": {"a": null}}), &[]), expected);
    }
}

#[test]
fn endless_schemas_come_to_an_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}], "anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}}),
    ] {
        let schema = ArgumentSchema::new(&Raw::of(&schema));
        let mut arguments = json!({"a": {"a": {"a": "[1]", "b": null}}, "c": "5"});
        mend_arguments(arguments.as_object_mut().unwrap(), &schema, &[("c", "a")]);
    }
}

/// Values, and schemas for them.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(1),
        json!(1.5),
        json!(2.0),
        json!("a"),
        json!("5"),
        json!("true"),
        json!("null"),
        json!("[1]"),
        json!("{\"a\":\"1\"}"),
        json!("[\"x"),
        json!(""),
    ]);
    leaf.prop_recursive(3, 20, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!({}),
        json!(true),
        json!({"type": "string"}),
        json!({"type": "integer"}),
        json!({"type": "number"}),
        json!({"type": "boolean"}),
        json!({"type": "null"}),
        json!({"type": ["string", "null"]}),
        json!({"enum": ["a", 1]}),
        json!({"$ref": "#"}),
    ]);
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            (prop::collection::btree_map("[abc]", inner.clone(), 0..3), prop::collection::vec("[abc]", 0..2))
                .prop_map(|(fields, required)| json!({"type": "object", "properties": fields, "required": required})),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|cases| json!({ "anyOf": cases })),
            prop::collection::vec(inner, 1..3).prop_map(|all| json!({ "allOf": all })),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    /// Mending twice is mending once, and what fits stays as it is and goes on fitting.
    #[test]
    fn mending_only_ever_helps(
        fields in prop::collection::btree_map("[abc]", values(), 0..4),
        properties in prop::collection::btree_map("[abc]", schemas(), 0..4),
    ) {
        let schema = ArgumentSchema::new(&Raw::of(&json!({"type": "object", "properties": properties})));
        let before: Arguments = fields.into_iter().collect();
        let fitted = schema.check(&before).is_ok();
        let mut once = before.clone();
        mend_arguments(&mut once, &schema, &[]);
        if fitted {
            prop_assert!(schema.check(&once).is_ok(), "{:?} became {:?}", before, once);
            // But for 2.0, which is 2.
            prop_assert_eq!(
                Value::Object(once.clone()).to_string().replace("2.0", "2"),
                Value::Object(before).to_string().replace("2.0", "2")
            );
        }
        let mut twice = once.clone();
        mend_arguments(&mut twice, &schema, &[]);
        prop_assert_eq!(twice, once);
    }
}
