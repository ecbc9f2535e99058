//! The shared vectors of arguments, as their README says which values are right.

use pretty_assertions::assert_eq;
use serde_json::json;

use crate::{
    protocol::Raw,
    text::vectors::{report, vectors},
};

use super::*;

const FILE: &str = "json-args-normalise.json";

/// What the original makes of it, where that is right. `None`: the case is informative.
fn right(case: &Value) -> Option<&Value> {
    // A value, not a sentence.
    let is_value = |value: &&Value| value.is_string() == case["expected"].is_string();
    let recommended = case.get("recommended").filter(is_value);
    recommended.or_else(|| case.get("expected").filter(|_| case.get("onyx_quirk").is_none()))
}

/// What the provider sent: text, or JSON that it did not put in a text.
fn sent(input: &Value) -> String {
    input.as_str().map_or_else(|| input.to_string(), str::to_owned)
}

/// An object, or the verdict that there is none: what is wrong is told, where the original takes `{}`.
fn or_fault(read: Result<Arguments, ArgumentFault>) -> Value {
    match read {
        Ok(fields) => Value::Object(fields),
        Err(fault) => {
            assert!(fault.to_string().len() > 20);
            json!({})
        }
    }
}

#[test]
fn arguments_are_normalised() {
    let (mut asserted, mut informative) = (0, 0);
    for case in vectors(FILE, "cases") {
        let written = sent(&case["input"]);
        let schema = case.get("schema").map_or_else(Raw::null, Raw::of);
        let found = normalise(&written, &ArgumentSchema::new(&schema));
        let Some(expected) = right(&case) else {
            informative += 1;
            continue;
        };
        // Only what means nothing is an empty object: from anything else it is a fault.
        let means_nothing = matches!(written.as_str(), "" | "null" | "{}");
        assert_eq!(found.as_ref().is_ok_and(Map::is_empty), means_nothing, "{case}");
        assert_eq!(or_fault(found), *expected, "{case}");
        asserted += 1;
    }
    assert!(asserted > 10, "{asserted} asserted");
    report(FILE, "cases", asserted, informative);
}

#[test]
fn the_arguments_of_a_written_call_are_chosen() {
    let (mut asserted, mut informative) = (0, 0);
    for case in vectors(FILE, "resolve") {
        let Some(expected) = right(&case) else {
            informative += 1;
            continue;
        };
        let found = written_in(case["input"].as_object().unwrap());
        let found = found.map_or(Value::Null, |written| or_fault(read(&written)));
        assert_eq!(found, *expected, "{case}");
        asserted += 1;
    }
    assert!(asserted > 5, "{asserted} asserted");
    report(FILE, "resolve", asserted, informative);
}

#[test]
fn text_is_made_such_as_may_be_stored() {
    let mut asserted = 0;
    for case in vectors(FILE, "sanitize") {
        let found = read(&json!({"text": case["input"]}).to_string()).unwrap();
        assert_eq!(found["text"], *right(&case).unwrap(), "{case}");
        asserted += 1;
    }
    for case in vectors(FILE, "sanitize_surrogates") {
        let units = case["input_utf16_units"].as_array().unwrap();
        let units: Vec<&str> = units.iter().filter_map(Value::as_str).collect();
        let found = read(&format!("{{\"text\":\"\\u{}\"}}", units.join("\\u"))).unwrap();
        assert_eq!(found["text"], *right(&case).unwrap(), "{case}");
        asserted += 1;
    }
    assert!(asserted > 10, "{asserted} asserted");
    report(FILE, "sanitize and sanitize_surrogates", asserted, 0);
}

#[test]
fn objects_in_other_texts_of_models_are_found() {
    let (mut asserted, mut informative) = (0, 0);
    for case in vectors(FILE, "llm_json") {
        let text = case["text"].as_str().unwrap();
        if text.is_empty() {
            // No arguments are arguments; of another text that is empty nothing can be read.
            informative += 1;
            continue;
        }
        let found = read(text).map_or(Value::Null, Value::Object);
        assert_eq!(found, *right(&case).unwrap(), "{case}");
        asserted += 1;
    }
    report(FILE, "llm_json", asserted, informative);
    // Lists in prose are no arguments.
    report(FILE, "bracketed_list", 0, vectors(FILE, "bracketed_list").len());
}
