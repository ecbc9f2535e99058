use pretty_assertions::assert_eq;

use super::{super::rescue::KnownTool, *};
use crate::protocol::Raw;

fn reading(grammar: CallGrammar, rescue: Rescue, strip: &[&str]) -> Reading {
    let strip_tokens = strip.iter().map(|token| (*token).to_owned()).collect();
    Reading { grammar, rescue, strip_tokens }
}

fn tools(names: &[&str]) -> Arc<Tools> {
    Arc::new(Tools::new(names.iter().map(|name| KnownTool {
        name: (*name).to_owned(),
        parameters: Raw::parse(r#"{"properties":{"city":{}}}"#).unwrap(),
    })))
}

/// What came out, neighbours of one kind joined: `T:` shown, `R:` thought, `H:` hidden; and `W:`, what is withheld at the end.
fn run(reading: &Reading, required: bool, pieces: &[&str]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut keep = |segment: Segment<'_>| {
        let (kind, text) = match segment {
            Segment::Text(text) => ("T:", text),
            Segment::Reasoning(text) => ("R:", text),
            Segment::Hidden(text) => ("H:", text),
        };
        assert!(!text.is_empty(), "an empty segment in {pieces:?}");
        match out.last_mut() {
            Some(last) if last.starts_with(kind) => last.push_str(text),
            _ => out.push(format!("{kind}{text}")),
        }
    };
    let mut markup = Markup::new(
        reading,
        &tools(&["now", "weather"]),
        Channel::Text { call_is_required: required },
    )
    .unwrap();
    for piece in pieces {
        if piece.is_empty() {
            markup.push(piece, &mut keep);
        } else if markup.passes(piece) {
            keep(Segment::Text(piece));
        } else {
            markup.push(piece, &mut keep);
        }
    }
    markup.finish(&mut keep);
    assert_eq!(markup.raw(), pieces.concat());
    let withheld = markup.withheld();
    if !withheld.is_empty() {
        out.push(format!("W:{withheld}"));
    }
    out
}

const TEXT: Channel = Channel::Text { call_is_required: false };
const AUTO: (CallGrammar, Rescue) = (CallGrammar::None, Rescue::Auto);
const HERMES: (CallGrammar, Rescue) = (CallGrammar::Hermes, Rescue::Off);
const HARMONY: (CallGrammar, Rescue) = (CallGrammar::Harmony, Rescue::Off);
const BARE: (CallGrammar, Rescue) = (CallGrammar::BareJson, Rescue::Off);
const STRIP: (CallGrammar, Rescue) = (CallGrammar::None, Rescue::Off);

type Case = ((CallGrammar, Rescue), &'static str, &'static [&'static str]);
const CASES: &[Case] = &[
    (AUTO, "plain [1] <b>text</b>", &["T:plain [1] <b>text</b>"]),
    (
        AUTO,
        "a <tool_call>{\"name\":\"x\"}</tool_call> b",
        &["T:a ", "H:<tool_call>{\"name\":\"x\"}</tool_call>", "T: b"],
    ),
    (
        AUTO,
        "a <tool_call>\n{\"a\":\"</tool_call>}\"}\n</tool_call>\n b",
        &[
            "T:a ",
            "H:<tool_call>\n{\"a\":\"</tool_call>}\"}\n</tool_call>",
            "T:\n b",
            "W:<tool_call>\n{\"a\":\"</tool_call>}\"}\n</tool_call>",
        ],
    ),
    // Only its name is spoken of.
    (AUTO, "the `<tool_call>` tag", &["T:the `<tool_call>` tag"]),
    (AUTO, "the <tool_call> tag", &["T:the <tool_call> tag"]),
    (AUTO, "<tool_callers> <function_calls_v2>", &["T:<tool_callers> <function_calls_v2>"]),
    // A closing tag that is missing.
    (AUTO, "<tool_call>{\"name\":\"x\"} b", &["H:<tool_call>{\"name\":\"x\"} ", "T:b"]),
    (
        AUTO,
        "a<function=f>\n<parameter=p>\n1\n</parameter>\n</function>b",
        &["T:a", "H:<function=f>\n<parameter=p>\n1\n</parameter>\n</function>", "T:b"],
    ),
    (
        AUTO,
        "[TOOL_CALLS] [{\"name\":\"x\",\"arguments\":{}}]b",
        &["H:[TOOL_CALLS] [{\"name\":\"x\",\"arguments\":{}}]", "T:b"],
    ),
    (
        AUTO,
        "[TOOL_CALLS]x[ARGS]{}[TOOL_CALLS]y[CALL_ID]1[ARGS]{}b",
        &["H:[TOOL_CALLS]x[ARGS]{}[TOOL_CALLS]y[CALL_ID]1[ARGS]{}", "T:b"],
    ),
    (
        AUTO,
        "a [Tool Call] name=x id=1 args={\"a\":1}\nb",
        &["T:a ", "H:[Tool Call] name=x id=1 args={\"a\":1}", "T:\nb"],
    ),
    (
        AUTO,
        "<|tool_calls_section_begin|><|tool_call_begin|>x<|tool_call_end|><|tool_calls_section_end|>b",
        &[
            "H:<|tool_calls_section_begin|><|tool_call_begin|>x<|tool_call_end|><|tool_calls_section_end|>",
            "T:b",
            "W:<|tool_calls_section_begin|><|tool_call_begin|>x<|tool_call_end|><|tool_calls_section_end|>",
        ],
    ),
    // Markup that breaks off.
    (AUTO, "a <tool_call>{\"name", &["T:a ", "H:<tool_call>{\"name", "W:<tool_call>{\"name"]),
    (AUTO, "a <tool_ca", &["T:a <tool_ca"]),
    (AUTO, "a <function_calls", &["T:a <function_calls"]),
    // It shows how a call looks.
    (
        AUTO,
        "So:\n```xml\n<invoke name=\"x\"></invoke>\n```\nand <invoke name=\"x\"></invoke>",
        &[
            "T:So:\n```xml\n<invoke name=\"x\"></invoke>\n```\nand ",
            "H:<invoke name=\"x\"></invoke>",
        ],
    ),
    (
        AUTO,
        "<invoke name=\"x\"><parameter name=\"p\">\n```\n</parameter></invoke> <invoke name=\"x\"></invoke>",
        &[
            "H:<invoke name=\"x\"><parameter name=\"p\">\n```\n</parameter></invoke>",
            "T: ",
            "H:<invoke name=\"x\"></invoke>",
        ],
    ),
    // An answer that may be nothing but a call is held, for as long as it may.
    (AUTO, " {\"name\":\"now\",\"arguments\":{}}\n", &["W: {\"name\":\"now\",\"arguments\":{}}\n"]),
    (
        AUTO,
        "[{\"name\":\"now\"},{\"type\":\"function\",\"function\":{\"name\":\"x\"}}]",
        &["W:[{\"name\":\"now\"},{\"type\":\"function\",\"function\":{\"name\":\"x\"}}]"],
    ),
    (AUTO, "{\"name\":\"Alice\",\"id\":1}", &["T:{\"name\":\"Alice\",\"id\":1}"]),
    (AUTO, "{\"city\":\"Oslo\"}", &["T:{\"city\":\"Oslo\"}"]),
    (AUTO, "[1,{\"name\":\"now\"}]", &["T:[1,{\"name\":\"now\"}]"]),
    (AUTO, "[ 1,{\"name\":\"now\"}]", &["T:[ 1,{\"name\":\"now\"}]"]),
    (AUTO, "[[{\"name\":\"now\"}]]", &["T:[[{\"name\":\"now\"}]]"]),
    (AUTO, "{\"input\":1,\"name\":\"now\"}", &["T:{\"input\":1,\"name\":\"now\"}"]),
    (AUTO, "{\"name\":\"now\"} it is", &["T:{\"name\":\"now\"} it is"]),
    (AUTO, "```json\n{\"name\":\"now\"}\n```\n", &["W:```json\n{\"name\":\"now\"}\n```\n"]),
    (
        AUTO,
        "```json\n{\"name\":\"now\"}\n```\nThat is it.",
        &["T:```json\n{\"name\":\"now\"}\n```\nThat is it."],
    ),
    (
        AUTO,
        "```\n<tool_call>{\"name\":\"now\"}</tool_call>\n```",
        &["W:```\n<tool_call>{\"name\":\"now\"}</tool_call>\n```"],
    ),
    (
        AUTO,
        "```\n<tool_call>{\"name\":\"now\"}</tool_call>\n```\nSo.",
        &["T:```\n<tool_call>{\"name\":\"now\"}</tool_call>\n```\nSo."],
    ),
    (AUTO, "```rust\nfn main() {}\n```\n", &["T:```rust\nfn main() {}\n```\n"]),
    (BARE, "{\"name\":\"now\"}{\"name\":\"rm\"}", &["T:{\"name\":\"now\"}{\"name\":\"rm\"}"]),
    (
        BARE,
        "a <tool_call>{\"name\":\"now\"}</tool_call>",
        &["T:a <tool_call>{\"name\":\"now\"}</tool_call>"],
    ),
    (
        HERMES,
        "{\"name\":\"now\"} <invoke name=\"x\"></invoke>",
        &["T:{\"name\":\"now\"} <invoke name=\"x\"></invoke>"],
    ),
    (
        HERMES,
        "<TOOL_CALL>{}</TOOL_CALL>",
        &["H:<TOOL_CALL>{}</TOOL_CALL>", "W:<TOOL_CALL>{}</TOOL_CALL>"],
    ),
    // Harmony.
    (
        HARMONY,
        "<|channel|>analysis<|message|>need <b> it<|end|><|start|>assistant<|channel|>commentary to=functions.now <|constrain|>json<|message|>{\"a\":1}<|call|>",
        &[
            "H:<|channel|>analysis<|message|>",
            "R:need <b> it",
            "H:<|end|><|start|>assistant<|channel|>commentary to=functions.now <|constrain|>json<|message|>{\"a\":1}<|call|>",
        ],
    ),
    (
        HARMONY,
        "<|channel|>commentary<|message|>I look.<|end|>assistant<|channel|>final<|message|>So 1 < 2<|return|>",
        &[
            "H:<|channel|>commentary<|message|>",
            "T:I look.",
            "H:<|end|>assistant<|channel|>final<|message|>",
            "T:So 1 < 2",
            "H:<|return|>",
        ],
    ),
    (HARMONY, "plain <| text <", &["T:plain <| text <"]),
    (HARMONY, "the <|channel|> token\nis", &["T:the <|channel|> token\nis"]),
    (
        HARMONY,
        "<|channel|>commentary to=functions.now<|message|>{\"a",
        &[
            "H:<|channel|>commentary to=functions.now<|message|>{\"a",
            "W:<|channel|>commentary to=functions.now<|message|>{\"a",
        ],
    ),
    // Markers of the template.
    (
        STRIP,
        "A<｜end｜>B</answer>C</answer",
        &["T:A", "H:<｜end｜>", "T:B", "H:</answer>", "T:C</answer"],
    ),
    (STRIP, "a<|im_end|>b<|im_end|>>", &["T:a", "H:<|im_end|>", "T:b", "H:<|im_end|>>"]),
    (STRIP, "<tool_call>{}</tool_call>", &["T:<tool_call>{}</tool_call>"]),
];

#[test]
fn what_is_shown() {
    for ((grammar, rescue), text, expected) in CASES {
        let strip: &[&str] = if (*grammar, *rescue) == STRIP {
            &["<｜end｜>", "</answer>", "<|im_end|>", "<|im_end|>>"]
        } else {
            &[]
        };
        let reading = reading(*grammar, *rescue, strip);
        assert_eq!(run(&reading, false, &[text]), *expected, "{text}");
        let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        for (number, first) in cuts.iter().enumerate() {
            for second in cuts[number..].iter().step_by(3) {
                let pieces = [&text[..*first], &text[*first..*second], &text[*second..]];
                assert_eq!(run(&reading, false, &pieces), *expected, "{pieces:?}");
            }
        }
        let mut bytes = [0; 4];
        let chars: Vec<String> =
            text.chars().map(|c| c.encode_utf8(&mut bytes).to_owned()).collect();
        let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
        assert_eq!(run(&reading, false, &chars), *expected, "{text} char by char");
    }
}

#[test]
fn bare_arguments_are_held_where_a_call_was_required() {
    let auto = reading(CallGrammar::None, Rescue::Auto, &[]);
    assert_eq!(run(&auto, true, &["{\"city\":\"Oslo\"}"]), ["W:{\"city\":\"Oslo\"}"]);
    assert_eq!(run(&auto, true, &["{\"town\":\"Oslo\"}"]), ["T:{\"town\":\"Oslo\"}"]);
}

#[test]
fn no_more_is_held_than_may_be_a_marker() {
    let auto = reading(CallGrammar::None, Rescue::Auto, &["<|im_end|>"]);
    let mut markup = Markup::new(&auto, &tools(&["now"]), TEXT).unwrap();
    let mut shown = String::new();
    let mut say = |markup: &mut Markup, piece: &str| {
        markup.push(piece, &mut |segment| match segment {
            Segment::Text(text) => shown.push_str(text),
            Segment::Reasoning(_) | Segment::Hidden(_) => (),
        });
        shown.clone()
    };
    for (piece, expected) in [
        ("Say", "Say"),
        (" a <", "Say a "),
        ("b", "Say a <b"),
        (" [", "Say a <b "),
        ("1", "Say a <b [1"),
        (" <tool_call", "Say a <b [1 "),
        ("ed", "Say a <b [1 <tool_called"),
        (" <|im_", "Say a <b [1 <tool_called "),
        ("start", "Say a <b [1 <tool_called <|im_start"),
    ] {
        assert_eq!(say(&mut markup, piece), expected);
    }
}

#[test]
fn where_nothing_is_hidden_there_is_no_stage() {
    let none = tools(&[]);
    assert!(Markup::new(&Reading::default(), &tools(&["now"]), TEXT).is_none());
    assert!(Markup::new(&reading(CallGrammar::None, Rescue::Auto, &[]), &none, TEXT).is_none());
    assert!(Markup::new(&reading(CallGrammar::Hermes, Rescue::Auto, &[]), &none, TEXT).is_none());
    assert!(Markup::new(&reading(CallGrammar::Harmony, Rescue::Off, &[]), &none, TEXT).is_some());
    assert!(
        Markup::new(&reading(CallGrammar::None, Rescue::Off, &["</s>"]), &none, TEXT).is_some()
    );
}

#[test]
fn a_flush_lets_go_of_what_is_no_marker_yet() {
    let auto = reading(CallGrammar::None, Rescue::Auto, &[]);
    let mut markup = Markup::new(&auto, &tools(&["now"]), TEXT).unwrap();
    let mut shown = String::new();
    let mut keep = |segment: Segment<'_>| match segment {
        Segment::Text(text) => shown.push_str(text),
        Segment::Reasoning(text) | Segment::Hidden(text) => panic!("{text}"),
    };
    markup.push("a <tool_", &mut keep);
    markup.flush(&mut keep);
    markup.push("b", &mut keep);
    assert_eq!(shown, "a <tool_b");
}

#[test]
fn an_end_that_only_speaks_of_calls_is_told_from_a_call() {
    let auto = reading(CallGrammar::None, Rescue::Auto, &[]);
    for (text, expected) in [
        ("Use <function_calls> for this. It is", Some("<function_calls> for this. It is")),
        ("Use <function_calls>\n<invo", None),
        ("Use <function_calls>\n<invoke name=\"x\">", None),
        ("Use <function_calls>", None),
        ("Use <tool_call>{\"a", None),
        ("Use it.", None),
    ] {
        let mut markup = Markup::new(&auto, &tools(&["now"]), TEXT).unwrap();
        markup.push(text, &mut |_| ());
        markup.finish(&mut |_| ());
        assert_eq!(markup.stray_end(), expected, "{text}");
    }
}
