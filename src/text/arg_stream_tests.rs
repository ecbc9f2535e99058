use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::text::{
    arguments::read,
    vectors::{report, vectors},
};

use super::*;

/// What is heard of the pieces, put together by argument, in order.
fn heard(pieces: &[&str]) -> Map<String, Value> {
    let mut stream = ArgStream::default();
    let mut all: Map<String, Value> = Map::new();
    for piece in pieces.iter().flat_map(|piece| stream.push(piece)) {
        match all.get_mut(&*piece.name) {
            Some(Value::String(text)) => text.push_str(&piece.text),
            _ => {
                all.insert(piece.name.to_string(), piece.text.into());
            }
        }
    }
    all
}

/// What one push gives.
fn told(pieces: &[ArgPiece]) -> Value {
    if pieces.is_empty() {
        return Value::Null;
    }
    Value::Object(
        pieces.iter().map(|piece| (piece.name.to_string(), piece.text.as_str().into())).collect(),
    )
}

fn every_cut(text: &str, expected: &Value) {
    assert_eq!(Value::Object(heard(&[text])), *expected, "{text}");
    for (cut, _) in text.char_indices() {
        let found = heard(&[&text[..cut], &text[cut..]]);
        assert_eq!(Value::Object(found), *expected, "{text} cut at {cut}");
    }
    let chars: Vec<String> = text.chars().map(String::from).collect();
    let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
    assert_eq!(Value::Object(heard(&chars)), *expected, "{text} in characters");
}

#[test]
fn vectors_are_met() {
    const FILE: &str = "arg_delta_stream.json";
    let (mut asserted, mut informative) = (0, 0);
    for case in vectors(FILE, "cases") {
        let fragments: Vec<&str> = case["fragments"]
            .as_array()
            .unwrap()
            .iter()
            .map(|fragment| fragment.as_str().unwrap_or_default())
            .collect();
        let mut stream = ArgStream::default();
        let each: Vec<Value> = fragments.iter().map(|piece| told(&stream.push(piece))).collect();
        let right = match (case.get("recommended"), case.get("onyx_quirk")) {
            (Some(recommended), _) if recommended.is_object() => recommended,
            (_, None) => &case["expected"],
            (_, Some(_)) => {
                informative += 1;
                continue;
            }
        };
        // Whether a tool's arguments are streamed at all is decided by who has the stream.
        if case["tool_opted_in"] == true && case["tool_known"] == true {
            assert_eq!(json!(each), right["per_fragment"], "{case}");
            every_cut(&fragments.concat(), &right["total"]);
        } else {
            assert_eq!(right["total"], json!({}), "{case}");
        }
        asserted += 1;
    }
    assert!(asserted > 15, "{asserted} asserted");
    report(FILE, "cases", asserted, informative);
}

#[test]
fn strings_are_heard_wherever_the_text_is_cut() {
    for (text, expected) in [
        ("{}", json!({})),
        (r#"{"a": ""}"#, json!({"a": ""})),
        (
            r#"{"a": "x\ud83d\ude00\u00e9\ud83d\n\d", "b": 1.5e-3, "c": "y"}"#,
            json!({"a": "x😀é\u{fffd}\n\\d", "c": "y"}),
        ),
        (r#"{"a": {"b": "}", "c": ["]", "\""]}, "d": "x"}"#, json!({"d": "x"})),
        ("\u{feff} {'a': 'it\\'s', b: \"x\", c : true, d: None}", json!({"a": "it's", "b": "x"})),
        // Another argument of the same name: what was shown cannot be taken back.
        (r#"{"a": "x", "a": "y", "b": "z"}"#, json!({"a": "x", "b": "z"})),
        (r#"{"\u0061\"": "x"}"#, json!({"a\"": "x"})),
        ("{\"a\": \"x\0\\u0000y\"}", json!({"a": "xy"})),
        // Cut off, doubled, or no object.
        (r#"{"a": "x\u00"#, json!({"a": "x"})),
        (r#"{"a": "x\ud83d"#, json!({"a": "x"})),
        (r#"{"a": "x"}{"b": "y"}"#, json!({"a": "x"})),
        (r#""{\"a\": \"x\"}""#, json!({})),
        ("[\"a\"]", json!({})),
        ("null", json!({})),
        (r#"{"a": "say "hi", "b": "x"}"#, json!({"a": "say "})),
        (r#"{"a" "x"}"#, json!({})),
        (r#"{"a": }, "b": "x"}"#, json!({})),
        (r#"{"a":: "x"}"#, json!({})),
    ] {
        every_cut(text, &expected);
    }
}

#[test]
fn long_texts_take_linear_time() {
    let long = 300_000;
    for text in [
        format!("{{\"a\":\"{}", "\\ud83d".repeat(long / 6)),
        "{\"a\":[".repeat(long / 6),
        format!(
            "{{{}",
            (0..long / 12).map(|n| format!("\"{n}\":\"x\",")).collect::<Vec<_>>().concat()
        ),
        format!("{{\"{}", "k".repeat(long)),
    ] {
        let mut stream = ArgStream::default();
        let mut at = [0_u8; 4];
        for c in text.chars() {
            stream.push(c.encode_utf8(&mut at));
        }
        ArgStream::default().push(&text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// Of arguments that can be read, each text is heard as it is read, but for names that come twice.
    #[test]
    fn what_is_heard_is_what_is_read(parts in prop::collection::vec(prop::sample::select(vec![
        "{", "}", "[", "]", ":", ",", "\"", "'", "\\", "u00e9", "\\ud83d", "\"a\":", "b:", "\"c\":\"", "\",", "1", "true", " ", "\n", "\0", "é",
    ]), 0..16), cut in 0..40_usize) {
        let text = format!("{{{}", parts.concat());
        let cut = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
        let once = heard(&[&text]);
        prop_assert_eq!(&heard(&[&text[..cut], &text[cut..]]), &once);
        let names = ["\"a\"", "'a'", "a:", "b", "c"].map(|name| text.matches(name).count());
        if names.iter().sum::<usize>() < 2 && text.matches('{').count() == 1
            && let Ok(read) = read(&text)
        {
            let texts: Map<String, Value> = read.into_iter().filter(|(_, value)| value.is_string()).collect();
            prop_assert_eq!(once, texts, "{}", text);
        }
    }

    #[test]
    fn nothing_panics(pieces in prop::collection::vec(".*", 0..4)) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(heard(&pieces), heard(&[&pieces.concat()]));
    }
}
