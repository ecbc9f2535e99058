use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use crate::protocol::Raw;

use super::*;

fn schema(json: &Value) -> ArgumentSchema {
    ArgumentSchema::new(&Raw::of(json))
}

/// What is read, or the sentence.
fn read_or_why(written: &str) -> Result<Value, String> {
    read(written).map(Value::Object).map_err(|fault| fault.to_string())
}

#[test]
fn what_means_no_arguments_is_an_empty_object() {
    for written in
        ["", " \n", "null", "{}", "\"\"", "\"null\"", "\"{}\"", "```json\n```", "\0", "{}{}"]
    {
        assert_eq!(read_or_why(written), Ok(json!({})), "{written:?}");
    }
}

#[test]
fn an_object_is_found_in_its_wrappings() {
    for written in [
        r#"{"a":1}"#,
        "\u{feff}{\"a\": 1}\n",
        r#""{\"a\": 1}""#,
        r#""\"{\\\"a\\\":1}\"""#,
        "```json\n{\"a\": 1}\n```",
        "```{\"a\": 1}```",
        r#"{"a":1}{"a":1}"#,
        r#"{"a":1} {"a":1} {"a":1}"#,
        r#"{}{"a":1}"#,
        r#"{"a":1}{}"#,
        r#"{"a":1}}"#,
        r#"{"a":1,}"#,
        "{a: 1}",
        "{'a': 1}",
    ] {
        assert_eq!(read_or_why(written), Ok(json!({"a": 1})), "{written:?}");
    }
}

#[test]
fn half_broken_json_is_read_where_it_means_one_thing() {
    for (written, expected) in [
        ("{\"a\": \"x\ny\tz\"}", json!({"a": "x\ny\tz"})),
        (r#"{"re": "\d+\.\w"}"#, json!({"re": r"\d+\.\w"})),
        (r#"{"path": "C:\Users\new"}"#, json!({"path": "C:\\Users\new"})),
        (
            "{'a': True, 'b': None, 'c': [False, 'it\\'s']}",
            json!({"a": true, "b": null, "c": [false, "it's"]}),
        ),
        (r#"{"a": "\ud83d\ude00 \ud83d x\u0000y"}"#, json!({"a": "😀 \u{fffd} xy"})),
        ("{\"a\": \"x\0y\"}", json!({"a": "xy"})),
        (r#"{"a": [1, 2,], "b": {"c": 1,},}"#, json!({"a": [1, 2], "b": {"c": 1}})),
        (r#"{"a": 1, "a": 2}"#, json!({"a": 2})),
        (r#"{"n": 18446744073709551615}"#, json!({"n": u64::MAX})),
    ] {
        assert_eq!(read_or_why(written), Ok(expected), "{written:?}");
    }
}

#[test]
fn what_cannot_be_read_is_a_sentence_and_never_an_empty_object() {
    for (written, expected) in [
        (
            "{\"a\": \"b",
            "The arguments are cut off: their JSON has no end. Write the whole call again.",
        ),
        (
            "{\"a\": 1",
            "The arguments are cut off: their JSON has no end. Write the whole call again.",
        ),
        (
            "{\"a\": tr",
            "The arguments are cut off: their JSON has no end. Write the whole call again.",
        ),
        (
            "{\"a\": [1, 2",
            "The arguments are cut off: their JSON has no end. Write the whole call again.",
        ),
        (
            "not valid json {{{",
            "The arguments are not JSON: a value must stand here, at `not valid json {{{`. Write them as one JSON object; inside strings, escape quotes and backslashes.",
        ),
        (
            "{invalid}",
            "The arguments are not JSON: a name and a colon must stand here, at `}`. Write them as one JSON object; inside strings, escape quotes and backslashes.",
        ),
        (
            r#"{"a": "say "hi" to all of them"}"#,
            "The arguments are not JSON: a comma or `}` must stand here, at `hi\" to all of them\"}`. Write them as one JSON object; inside strings, escape quotes and backslashes.",
        ),
        (
            r#"{"a": 01}"#,
            "The arguments are not JSON: this is no number, at `01}`. Write them as one JSON object; inside strings, escape quotes and backslashes.",
        ),
        (
            r#"{"a": 1} and more"#,
            "The arguments are not JSON: there is text after the JSON, at `and more`. Write them as one JSON object; inside strings, escape quotes and backslashes.",
        ),
        ("[1, 2, 3]", "The arguments are a list; they must be one JSON object."),
        ("123", "The arguments are a number; they must be one JSON object."),
        ("true", "The arguments are true or false; they must be one JSON object."),
        ("\"Oslo\"", "The arguments are a text; they must be one JSON object."),
        (
            r#"{"a":1}{"a":2}"#,
            "The arguments are several JSON objects. Make one call for each of them.",
        ),
    ] {
        assert_eq!(read_or_why(written), Err(expected.to_owned()), "{written:?}");
    }
    let deep = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(&deep(126)).is_ok());
    assert_eq!(read(&deep(127)).unwrap_err().kind(), &FaultKind::TooDeep);
    assert_eq!(read(&deep(100_000)).unwrap_err().kind(), &FaultKind::TooDeep);
}

#[test]
fn strings_are_opened_only_where_a_list_or_an_object_is_asked_for() {
    let asked = schema(&json!({"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "string"}},
        "object": {"$ref": "#/$defs/Filter"},
        "code": {"type": "string"},
        "either": {"type": ["string", "array"]},
        "maybe": {"anyOf": [{"type": "array"}, {"type": "null"}]},
        "anything": {},
    }, "$defs": {"Filter": {"type": "object"}}}));
    let written = json!({
        "list": "[\"a\", \"b\"]", "object": " {\"k\": 1}", "code": "[1, 2]\n  x = {}", "either": "[1]",
        "maybe": "['x']", "anything": "[1]", "unknown": "{\"a\": 1}", "nested": {"deep": "[1]"},
    });
    let opened = normalise(&written.to_string(), &asked).unwrap();
    assert_eq!(
        Value::Object(opened),
        json!({
            "list": ["a", "b"], "object": {"k": 1}, "code": "[1, 2]\n  x = {}", "either": "[1]",
            "maybe": ["x"], "anything": "[1]", "unknown": "{\"a\": 1}", "nested": {"deep": "[1]"},
        })
    );
    let unasked =
        normalise(r#"{"a": "[1]", "b": ["[1]"], "c": "{x}"}"#, &schema(&json!({}))).unwrap();
    assert_eq!(Value::Object(unasked), json!({"a": [1], "b": ["[1]"], "c": "{x}"}));
}

#[test]
fn code_and_white_space_are_left_as_they_are() {
    let tool = schema(
        &json!({"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}),
    );
    for code in [
        "  indented\n\tx = [1]  \n",
        "{\"a\": 1}",
        "null",
        "true",
        "42",
        "",
        "```py\nx\n```",
        "\\d \\u00e9",
    ] {
        let written = json!({ "code": code });
        assert_eq!(fitting(&written.to_string(), &tool, &[]).map(Value::Object), Ok(written));
    }
}

#[test]
fn arguments_fit_or_there_is_a_sentence_with_an_example() {
    let search = schema(&json!({
        "type": "object",
        "properties": {"queries": {"type": "array", "items": {"type": "string"}, "minItems": 1}, "limit": {"type": "integer"}},
        "required": ["queries"],
        "additionalProperties": false,
    }));
    let aliases: Aliases<'_> = &[("query", "queries"), ("q", "queries")];
    for (written, expected) in [
        (r#"{"queries": ["a"]}"#, Ok(json!({"queries": ["a"]}))),
        (r#"{"query": "a", "limit": "3"}"#, Ok(json!({"queries": ["a"], "limit": 3}))),
        (r#"{"q": "[\"a\",\"b\"]", "limit": null}"#, Ok(json!({"queries": ["a", "b"]}))),
        (r#""{\"query\":\"a\"}""#, Ok(json!({"queries": ["a"]}))),
        (
            "",
            Err(
                "The arguments do not fit the tool: `queries` is missing. A right example: {\"queries\":[\"<queries>\"]}",
            ),
        ),
        (
            r#"{"queries": ["a"], "depth": 2}"#,
            Err(
                "The arguments do not fit the tool: there is no argument `depth`. A right example: {\"queries\":[\"<queries>\"]}",
            ),
        ),
        (
            r#"{"queries": ["a""#,
            Err(
                "The arguments are cut off: their JSON has no end. Write the whole call again. A right example: {\"queries\":[\"<queries>\"]}",
            ),
        ),
        (
            r#"{"queries": "[\"a\", \"b"}"#,
            Err(
                "The arguments do not fit the tool: `queries`: \"[\\\"a\\\", \\\"b\" is not of type \"array\". A right example: {\"queries\":[\"<queries>\"]}",
            ),
        ),
    ] {
        let found = fitting(written, &search, aliases).map(Value::Object);
        assert_eq!(found, expected.map_err(str::to_owned), "{written}");
    }
}

#[test]
fn hostile_text_takes_linear_time() {
    let long = 400_000;
    for written in [
        "{".repeat(long),
        "[".repeat(long),
        "{\"a\":".repeat(long / 5),
        "\"\\".repeat(long / 2),
        "{}".repeat(long / 2),
        "\\u0000".repeat(long / 6),
        format!("{{\"a\":\"{}", "\\ud83d".repeat(long / 6)),
        "```".repeat(long / 3),
        format!("{{{}}}", "a:1,".repeat(long / 4)),
    ] {
        // Quadratic work would take minutes here.
        let _ = fitting(&written, &schema(&json!({"type": "object"})), &[("a", "b")]);
    }
}

fn pieces() -> impl Strategy<Value = String> {
    let words = vec![
        "{", "}", "[", "]", ":", ",", "\"", "'", "\\", "\\u", "00e9", "\\u0000", "\\ud83d", "a",
        "b", "\"a\":", "1", "-", ".", "e", "true", "None", "null", " ", "\n", "\0", "é", "```",
        "json",
    ];
    prop::collection::vec(prop::sample::select(words), 0..14).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn nothing_panics_and_nothing_comes_of_garbage(written in prop_oneof![pieces(), ".*"]) {
        let schema = ArgumentSchema::new(&Raw::null());
        match fitting(&written, &schema, &[("a", "b")]) {
            Ok(fields) => {
                let json = Value::Object(fields).to_string();
                prop_assert!(!json.contains("\\u0000"), "{json}");
            }
            Err(sentence) => prop_assert!(sentence.ends_with('.'), "{sentence}"),
        }
    }

    /// What is JSON is read as the parser reads it.
    #[test]
    fn valid_objects_are_read_as_they_are(written in pieces()) {
        if !written.contains("\\u0000")
            && let Ok(expected) = serde_json::from_str::<Arguments>(&written)
        {
            prop_assert_eq!(read(&written), Ok(expected));
        }
        if !written.contains("\\u0000")
            && let Ok(expected) = serde_json::from_str::<Value>(&written)
        {
            // The lenient reader alone agrees too: a second empty object sends the text through it.
            prop_assert_eq!(read_one(&format!("{written} {{}}")).ok(), Some(expected));
        }
    }
}
