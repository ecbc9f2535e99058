use pretty_assertions::assert_eq;

use super::*;

#[test]
fn escapes_that_no_text_may_hold_are_replaced() {
    for (json, expected) in [
        (r#"{"a":"plain"}"#, r#"{"a":"plain"}"#),
        (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
        (r#""\uD83D\uDE00""#, r#""\uD83D\uDE00""#),
        (r#""x \ud83d y""#, r#""x \ufffd y""#),
        (r#""x \uDE00 y""#, r#""x \ufffd y""#),
        (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
        (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
        (r#""\ud83d\u0041""#, r#""\ufffd\u0041""#),
        (r#""\ud83d\n\ude00""#, r#""\ufffd\n\ufffd""#),
        (r#""\ud83d\\ude00""#, r#""\ufffd\\ude00""#),
        (r#""\u0000 \u00e9""#, r#""\ufffd \u00e9""#),
        // An escaped backslash begins no escape; a third one does.
        (r#""\\ud83d""#, r#""\\ud83d""#),
        (r#""\\\ud83d""#, r#""\\\ufffd""#),
        (r#""\\\\ud83d""#, r#""\\\\ud83d""#),
        (r#""\\u0000""#, r#""\\u0000""#),
        (r#""\"\ud83d\"""#, r#""\"\ufffd\"""#),
        (r#"{"\ud83d":1}"#, r#"{"\ufffd":1}"#),
        // What is not JSON is the parser's affair.
        (r#""\ud83"#, r#""\ud83"#),
        (r#""\uzzzz""#, r#""\uzzzz""#),
        (r#""\ud83d\u"#, r#""\ufffd\u"#),
        (r"\u", r"\u"),
        (r"\ud83d", r"\ufffd"),
        ("\\u00e9\\", "\\u00e9\\"),
    ] {
        let got = repair_json(json.as_bytes());
        assert_eq!(std::str::from_utf8(&got).unwrap(), expected, "{json}");
        assert_eq!(matches!(got, Cow::Borrowed(_)), json == expected, "{json}");
    }
}

proptest::proptest! {
    /// Whatever escapes and text stand in a string, the repaired one can be read, and one that could be read is not changed.
    #[test]
    fn repaired_strings_can_be_read(parts in proptest::collection::vec(
        proptest::sample::select(vec![r"\ud83d", r"\ude00", r"\u0000", r"\u00e9", r"\\", r"\n", r#"\""#, "u", "0", "é"]), 0..12,
    )) {
        let json = format!("\"{}\"", parts.concat());
        let repaired: String = serde_json::from_slice(&repair_json(json.as_bytes())).unwrap();
        match serde_json::from_str::<String>(&json) {
            Ok(sound) if !sound.contains('\0') => assert_eq!(repaired, sound),
            _ => assert!(repaired.contains('\u{fffd}') && !repaired.contains('\0')),
        }
    }
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<WireText<'a>>,
}

/// Reads each JSON as a delta of one channel.
fn join(deltas: &[&str]) -> String {
    let mut joiner = HalfJoiner::default();
    let mut text = String::new();
    for json in deltas {
        let delta: Delta<'_> = serde_json::from_str(json).unwrap();
        text.extend(delta.content.map(|content| joiner.push(content)));
    }
    text.extend(joiner.finish());
    text
}

#[test]
fn halves_in_two_deltas_are_joined() {
    assert_eq!(
        join(&[
            r#"{"content":"hi \ud83d"}"#,
            r#"{"content":"\ude00!"}"#,
            r#"{"content":" \ud83d x"}"#
        ]),
        "hi \u{1f600}! \u{fffd} x"
    );
    // Deltas without text in between hold nothing up.
    assert_eq!(
        join(&[
            r#"{"content":"\ud83d"}"#,
            r#"{"content":""}"#,
            r#"{"content":null}"#,
            "{}",
            r#"{"content":"\ude00"}"#
        ]),
        "\u{1f600}"
    );
}

#[test]
fn where_escaped_text_is_cut_does_not_matter() {
    let units: &[(&str, &str)] = &[
        ("a", "a"),
        (r"\ud83d", ""),
        (r"\ude00", "\u{1f600}"),
        ("퟿", "퟿"),
        (r"\ud83d", "\u{fffd}"),
        (r"\ud83d", ""),
        (r"\ude00", "\u{1f600}"),
        (r"\ude00", "\u{fffd}"),
        (r"\u0000", "\u{fffd}"),
        ("\u{1f600}", "\u{1f600}"),
        (r"\n", "\n"),
        (r"\udbff", "\u{fffd}"),
    ];
    let expected: String = units.iter().map(|(_, text)| *text).collect();
    let json = |part: &[(&str, &str)]| {
        format!(
            r#"{{"content":"{}"}}"#,
            part.iter().map(|(escaped, _)| *escaped).collect::<String>()
        )
    };
    for first in 0..=units.len() {
        for second in first..=units.len() {
            let deltas =
                [json(&units[..first]), json(&units[first..second]), json(&units[second..])];
            assert_eq!(
                join(&deltas.each_ref().map(String::as_str)),
                expected,
                "cut at {first} and {second}"
            );
        }
    }
}

#[test]
fn only_a_high_half_is_held_back() {
    let mut joiner = HalfJoiner::default();
    let mut push =
        |json| joiner.push(serde_json::from_str::<WireText<'_>>(json).unwrap()).into_owned();
    assert_eq!(push(r#""a\ud83d""#), "a");
    assert_eq!(push(r#""""#), "");
    assert_eq!(push(r#""b""#), "\u{fffd}b");
    assert_eq!(joiner.finish(), None);
    assert_eq!(joiner.push(WireText::from("c")), "c");
}

#[test]
fn text_without_escapes_is_not_copied() {
    let json = r#"{"content":"plain é"}"#;
    let delta: Delta<'_> = serde_json::from_str(json).unwrap();
    let text = HalfJoiner::default().push(delta.content.unwrap());
    assert!(matches!(text, Cow::Borrowed("plain é")));
}

#[test]
fn only_strings_are_texts() {
    for json in ["1", "{}", "[1]", "true"] {
        assert!(serde_json::from_str::<WireText<'_>>(json).is_err(), "{json}");
    }
    let owned: WireText<'_> = WireText::deserialize(serde_json::json!("a")).unwrap();
    assert_eq!((owned.is_empty(), owned), (false, WireText::from("a")));
}
