use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::json;

use super::*;

fn schema(json: &Value) -> ArgumentSchema {
    ArgumentSchema::new(&Raw::of(json))
}

fn check(asked: &Value, arguments: &Value) -> Result<(), String> {
    schema(asked).check(arguments.as_object().unwrap())
}

#[test]
fn a_sentence_says_where_and_what() {
    let asked = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 5},
            "unit": {"enum": ["c", "f"]},
            "days": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "places": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
        },
        "required": ["city"],
    });
    let example = "A right example: {\"city\":\"<city\"}";
    for (arguments, expected) in [
        (json!({}), "`city` is missing."),
        (json!({"city": "Berlin"}), "`city`: \"Berlin\" is longer than 5 characters."),
        (json!({"city": "Oslo", "unit": "k"}), "`unit`: \"k\" is not one of \"c\" or \"f\"."),
        (
            json!({"city": "Oslo", "days": "x"}),
            "`days`: \"x\" is not of type \"integer\", or \"x\" is not of type \"null\".",
        ),
        (json!({"city": "Oslo", "places": [{"name": "a"}, {}]}), "`places[1].name` is missing."),
        (
            json!({"city": "Oslo", "places": [1, 2, 3, 4, 5]}),
            "`places[0]`: 1 is not of type \"object\"; `places[1]`: 2 is not of type \"object\"; `places[2]`: 3 is not of type \"object\"; and more.",
        ),
    ] {
        let sentence = format!("The arguments do not fit the tool: {expected} {example}");
        assert_eq!(check(&asked, &arguments), Err(sentence), "{arguments}");
    }
    assert_eq!(check(&asked, &json!({"city": "Oslo", "days": null, "more": 1})), Ok(()));
}

#[test]
fn long_values_are_shown_short() {
    let asked = json!({"properties": {"a": {"type": "integer"}}});
    let sentence = check(&asked, &json!({"a": "x".repeat(100_000)})).unwrap_err();
    assert!(sentence.len() < 300, "{sentence}");
}

#[test]
fn a_schema_that_is_none_takes_everything() {
    for asked in [
        json!({"type": "objekt"}),
        json!({"properties": {"a": {"$ref": "#/$defs/Missing"}}}),
        json!({"properties": {"a": {"$ref": "https://schemas.example/other.json"}}}),
        json!({"properties": {"a": {"type": "string", "pattern": "("}}}),
        json!("text"),
        json!([1]),
    ] {
        let schema = schema(&asked);
        assert!(schema.unusable().is_some(), "{asked}");
        assert_eq!(schema.check(json!({"a": 1}).as_object().unwrap()), Ok(()), "{asked}");
    }
    let long = json!({"description": "x".repeat(MAX_SCHEMA)});
    assert_eq!(schema(&long).unusable(), Some("it is longer than 524288 bytes"));
    for none in [json!(null), json!({}), json!(true)] {
        assert_eq!(schema(&none).unusable(), None);
        assert_eq!(check(&none, &json!({"a": 1})), Ok(()));
    }
}

#[test]
fn a_dialect_of_its_own_is_read_as_the_usual_one() {
    let asked = json!({"$schema": "https://schemas.example/mine", "required": ["a"]});
    assert!(check(&asked, &json!({})).is_err());
}

#[test]
fn an_example_fits_and_tells_what_goes_where() {
    for (asked, expected) in [
        (json!({}), None),
        (json!({"type": "object"}), Some(json!({}))),
        (
            json!({"type": "object", "properties": {
                "urls": {"type": "array", "items": {"type": "string"}}, "unit": {"enum": ["c", "f"]}, "n": {"type": "integer", "default": 5},
                "kind": {"const": "x"}, "city": {"$ref": "#/$defs/City"}, "day": {"type": "string", "format": "date"},
                "like": {"type": "string", "examples": ["cats"]}, "more": {"type": "string"},
            }, "required": ["urls", "unit", "n", "kind", "city", "day", "like"], "$defs": {"City": {"type": "string"}}}),
            Some(json!({
                "urls": ["<urls>"], "unit": "c", "n": 5, "kind": "x", "city": "<city>", "day": "2000-01-01", "like": "cats",
            })),
        ),
        // A default that does not fit, as some generators write: the least value does.
        (
            json!({"type": "object", "properties": {"a": {"type": "integer", "default": "none"}}, "required": ["a"]}),
            Some(json!({"a": 0})),
        ),
        (json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}), None),
        (json!({"type": "array"}), None),
    ] {
        assert_eq!(schema(&asked).example(), expected, "{asked}");
    }
}

/// Runs in a thread with the stack of a worker thread.
fn within_a_worker(run: impl FnOnce() + Send + 'static) -> Duration {
    let start = Instant::now();
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
    start.elapsed()
}

#[test]
fn hostile_schemas_come_to_an_end() {
    let mut chain = serde_json::Map::new();
    for n in 0..3000 {
        chain.insert(format!("d{n}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}));
    }
    chain.insert("d3000".to_owned(), json!({"type": "integer"}));
    let mut doubling = serde_json::Map::new();
    for n in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        doubling.insert(format!("d{n}"), json!({"allOf": [next, next], "anyOf": [next, next]}));
    }
    doubling.insert("d60".to_owned(), json!({"type": "integer"}));
    let mut nested = json!("x");
    for _ in 0..100 {
        nested = json!([nested]);
    }
    let schemas = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}], "required": ["b"]}),
        json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": chain}),
        json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": doubling}),
        json!({"properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": "array", "items": {"allOf": [{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/t"}]}}}}),
        json!({"properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"anyOf": [
            {"type": "array", "items": {"$ref": "#/$defs/t"}, "minItems": 2}, {"type": "array", "items": {"$ref": "#/$defs/t"}, "minItems": 2},
        ]}}}),
        json!({"properties": {"a": {"type": "string", "pattern": "^(a+)+(?!x)$"}}}),
        json!({"properties": {"a": {"type": "string", "pattern": "((a{1,100}){1,100}){1,100}"}}}),
    ];
    for asked in schemas {
        for arguments in
            [json!({"a": 1}), json!({"a": nested}), json!({"a": "a".repeat(60) + "!"}), json!({})]
        {
            let shown = asked.to_string().chars().take(100).collect::<String>();
            let asked = asked.clone();
            let spent = within_a_worker(move || {
                let _ = check(&asked, &arguments);
                let _ = schema(&asked).example();
            });
            assert!(spent < Duration::from_secs(10), "{shown}: {spent:?}");
        }
    }
}
