use pretty_assertions::assert_eq;

use super::*;
use crate::protocol::Raw;

fn tools() -> Vec<AskTool> {
    let tool = |name: &str| AskTool {
        name: name.to_owned(),
        description: None,
        parameters: Raw::of(&serde_json::json!({"type": "object", "properties": {}})),
        strict: false,
        grammar: None,
    };
    ["get_weather", "crm__find", "now"].map(tool).into()
}

/// The calls in short: a name, and `(arguments)`, `!` (no JSON) or `?` (no such tool).
fn calls(said: &str) -> Vec<String> {
    let tools = tools();
    let wish = wish(said, &tools);
    let call = |call: &WishedCall<'_>| match call {
        WishedCall::Of { tool, arguments: None } => tool.name.clone(),
        WishedCall::Of { tool, arguments: Some(arguments) } => {
            format!("{}({arguments})", tool.name)
        }
        WishedCall::NotJson { tool, .. } => format!("{}!", tool.name),
        WishedCall::Unknown(name) => format!("{name}?"),
    };
    wish.calls.iter().map(call).collect()
}

#[test]
fn calls_are_found_in_sentences() {
    for (said, expected) in [
        ("", &[][..]),
        ("What does get_weather do?", &[]),
        ("call get_weather", &["get_weather"]),
        ("Please CALL `get_weather`!", &["get_weather"]),
        ("Call the tool get_weather.", &["get_weather"]),
        ("call the get_weather tool", &["get_weather"]),
        (r#"call get_weather with {"city":"Oslo"}"#, &[r#"get_weather({"city":"Oslo"})"#]),
        (
            r#"call the function "get_weather" with the arguments: { "a": {"b": "}"} } please"#,
            &[r#"get_weather({ "a": {"b": "}"} })"#],
        ),
        (r#"call get_weather({"city": "Zürich"})"#, &[r#"get_weather({"city": "Zürich"})"#]),
        (
            r#"call get_weather {"n":1} and call now, then call now"#,
            &[r#"get_weather({"n":1})"#, "now", "now"],
        ),
        ("call get_weather with {city: Oslo}", &["get_weather!"]),
        (r#"call get_weather with {"city":"#, &["get_weather!"]),
        ("call find", &["crm__find"]),
        ("call crm__find", &["crm__find"]),
        ("call crm..find", &["crm__find"]),
        ("call ind", &[]),
        ("call the tool fetch", &["fetch?"]),
        ("call the fetch function now", &["fetch?"]),
        ("call me tomorrow", &[]),
        ("recall now, a call-now or calling now", &[]),
        ("don't call now", &[]),
        ("Do not call get_weather, call now", &["now"]),
        ("Größe ß call now", &["now"]),
        ("call", &[]),
        ("call call now", &["now"]),
    ] {
        assert_eq!(calls(said), expected, "{said}");
    }
}

#[test]
fn a_subject_to_think_about_is_found() {
    for (said, expected) in [
        ("", None),
        ("I think so", None),
        ("think about the sea", Some("the sea")),
        ("Please think hard about 3.5 apples. Then answer.", Some("3.5 apples")),
        ("Think of life!", Some("life")),
        ("think about rain and call now", Some("rain")),
        ("think about rain, then call now", Some("rain")),
        ("think about\nthe sea\nand so on", Some("the sea")),
        ("don't think about elephants", None),
        ("rethink about it", None),
        ("I think yes. think about no", Some("no")),
        ("think about", None),
    ] {
        assert_eq!(wish(said, &[]).think_about, expected, "{said}");
    }
}

#[test]
fn any_text_is_read() {
    let tools = tools();
    let said =
        "Don’t call „get_weather“ — call the tool ‘now’ with {\"a\":\"日本\"} and think about é🎵.";
    for (start, _) in said.char_indices() {
        for (end, _) in said.char_indices().filter(|(end, _)| *end >= start) {
            wish(&said[start..end], &tools);
        }
    }
}

#[test]
fn a_flood_of_words_is_read_in_one_go() {
    let tools = tools();
    for (flood, calls) in
        [("call ", 0), ("call now ", MOST_CALLS), ("think about call ", 0), ("think ", 0)]
    {
        // Read again from each of them, this would take minutes.
        let flood = flood.repeat(30_000);
        assert_eq!(wish(&flood, &tools).calls.len(), calls);
    }
    let endless = format!("think about {}", "x".repeat(LONGEST_SENTENCE * 2));
    assert_eq!(wish(&endless, &[]).think_about.map(str::len), Some(LONGEST_SENTENCE));
}
