use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;
use crate::protocol::Raw;

fn tools() -> Tools {
    let tool = |(name, parameters): (&str, &str)| KnownTool {
        name: name.to_owned(),
        parameters: Raw::parse(parameters).unwrap(),
    };
    Tools::new(
        [
            ("weather", r#"{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}"#),
            ("add", r#"{"properties":{"a":{"type":"integer"},"note":{"type":["string","null"]},"deep":{"type":"object"},"on":{"anyOf":[{"type":"boolean"},{"type":"null"}]}}}"#),
            ("run", r#"{"properties":{"code":{"type":"string"}}}"#),
            ("now", r#"{"type":"object","properties":{}}"#),
        ]
        .map(tool),
    )
}

fn shown(calls: &[WrittenCall]) -> Vec<String> {
    calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect()
}

#[test]
fn declared_grammars() {
    use CallGrammar::{BareJson, Glm, Harmony, Hermes, Kimi, Llama, Mistral, None, QwenXml};
    let cases: &[(CallGrammar, &str, &[&str])] = &[
        (None, r#"<tool_call>{"name":"now"}</tool_call>"#, &[]),
        // Hermes.
        (
            Hermes,
            "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>",
            &[r#"weather {"city": "Oslo"}"#],
        ),
        (
            Hermes,
            "I look.\n<tool_call>{\"name\":\"now\"}</tool_call>\n<tool_call>{\"name\":\"weather\",\"arguments\":{\"city\":\"O\"}}</tool_call> Done.",
            &["now {}", r#"weather {"city":"O"}"#],
        ),
        (
            Hermes,
            "<tool_call>{\"name\":\"now\"}\n{\"name\":\"weather\",\"arguments\":{\"city\":\"O\"}}</tool_call>",
            &["now {}", r#"weather {"city":"O"}"#],
        ),
        (
            Hermes,
            "<tool_call>[{\"name\":\"now\"},{\"name\":\"now\",\"arguments\":{}}]</tool_call>",
            &["now {}", "now {}"],
        ),
        // The closing tag is missing, or stands inside of a string.
        (
            Hermes,
            r#"<tool_call>{"name":"weather","arguments":{"city":"Oslo"}}"#,
            &[r#"weather {"city":"Oslo"}"#],
        ),
        (
            Hermes,
            r#"<tool_call>{"name":"run","arguments":{"code":"</tool_call>{"}}</tool_call>"#,
            &[r#"run {"code":"</tool_call>{"}"#],
        ),
        // A line break as it is in a string.
        (
            Hermes,
            "<tool_call>{\"name\":\"run\",\"arguments\":{\"code\":\"a\n\tb\"}}</tool_call>",
            &[r#"run {"code":"a\n\tb"}"#],
        ),
        (Hermes, r#"<tool_call>{"name":"weather","argum"#, &[]),
        (Hermes, r#"<tool_call>{broken <tool_call>{"name":"now"}</tool_call>"#, &["now {}"]),
        // What nobody declared is a call all the same: the markup leaves no doubt.
        (
            Hermes,
            r#"<tool_call>{"name":"stranger","arguments":{"x":1}}</tool_call>"#,
            &[r#"stranger {"x":1}"#],
        ),
        (Hermes, r#"{"name":"now","arguments":{}}"#, &[]),
        // It shows how a call looks.
        (Hermes, "Write:\n```\n<tool_call>{\"name\":\"now\"}</tool_call>\n```\n", &[]),
        (Hermes, "```xml\n<tool_call>{\"name\":\"now\"}</tool_call>\n```\n", &["now {}"]),
        (Hermes, "Write `<tool_call>{\"name\":\"now\"}</tool_call>`.", &[]),
        // Qwen.
        (
            QwenXml,
            "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=note>\n007 <b>x</b>\nline2\n</parameter>\n<parameter=deep>\n{\"k\": [1]}\n</parameter>\n</function>\n</tool_call>",
            &[r#"add {"a":2,"note":"007 <b>x</b>\nline2","deep":{"k": [1]}}"#],
        ),
        (QwenXml, "<function=now>\n</function>", &["now {}"]),
        (
            QwenXml,
            "<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=on>\nTrue\n</parameter>\n<parameter=note>\nnull\n</parameter>",
            &[r#"add {"a":2,"on":true,"note":null}"#],
        ),
        (
            QwenXml,
            "<tool_call>\n<function=run>\n<parameter=code>\nif a:\n    print('</parameter>')\n</parameter>\n</function>\n</tool_call>",
            &[r#"run {"code":"if a:\n    print('</parameter>')"}"#],
        ),
        (
            QwenXml,
            "<tool_call><function=now></function><function=now></function></tool_call>",
            &["now {}", "now {}"],
        ),
        (QwenXml, "<tool_call>\n<function=add>\n<parameter=a>\n2", &[]),
        // GLM.
        (
            Glm,
            "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
            &[r#"weather {"city":"Oslo","days":3}"#],
        ),
        (Glm, "<tool_call>now</tool_call>", &["now {}"]),
        (Glm, "<tool_call>weather<arg_key>city</arg_key><arg_value>Os", &[]),
        // Kimi.
        (
            Kimi,
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{\"city\":\"Oslo\"}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
            &[r#"weather {"city":"Oslo"}"#, "now {}"],
        ),
        (
            Kimi,
            "<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
            &["now {}"],
        ),
        (
            Kimi,
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{\"ci",
            &[],
        ),
        // Mistral.
        (
            Mistral,
            r#"[TOOL_CALLS] [{"name":"weather","arguments":{"city":"Oslo"}},{"name":"now","arguments":{}}]"#,
            &[r#"weather {"city":"Oslo"}"#, "now {}"],
        ),
        (
            Mistral,
            r#"[TOOL_CALLS]weather[ARGS]{"city":"[TOOL_CALLS]"}[TOOL_CALLS]now[CALL_ID]abc[ARGS]{}"#,
            &[r#"weather {"city":"[TOOL_CALLS]"}"#, "now {}"],
        ),
        (Mistral, r#"[TOOL_CALLS]weather{"city":"O"}"#, &[r#"weather {"city":"O"}"#]),
        (Mistral, r#"[TOOL_CALLS] [{"name":"weather","argum"#, &[]),
        // Llama.
        (
            Llama,
            r#"<|python_tag|>{"name":"weather","parameters":{"city":"O"}}; {"name":"now","parameters":{}}<|eom_id|>"#,
            &[r#"weather {"city":"O"}"#, "now {}"],
        ),
        (Llama, r#"{"name":"weather","parameters":{"city":"O"}}"#, &[r#"weather {"city":"O"}"#]),
        (Llama, r#"<function=weather>{"city":"O"}</function>"#, &[r#"weather {"city":"O"}"#]),
        // Harmony.
        (
            Harmony,
            "<|channel|>analysis<|message|>need<|end|><|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\":\"Oslo\"}<|call|>",
            &[r#"weather {"city":"Oslo"}"#],
        ),
        (
            Harmony,
            "<|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}<|call|><|start|>assistant<|channel|>commentary to=functions.weather<|message|>{\"city\":\"O\"}",
            &["now {}", r#"weather {"city":"O"}"#],
        ),
        (Harmony, "<|channel|>commentary to=functions.weather<|message|>{\"ci", &[]),
        (Harmony, "<|channel|>final<|message|>{\"city\":\"O\"}<|return|>", &[]),
        // Bare JSON: all of the answer, and tools that are known.
        (
            BareJson,
            "{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n{\"name\": \"now\"}",
            &[r#"weather {"city": "Oslo"}"#, "now {}"],
        ),
        (BareJson, "```json\n{\"name\": \"now\"}\n```", &["now {}"]),
        (BareJson, "[{\"name\": \"now\"}, {\"name\": \"now\"}]", &["now {}", "now {}"]),
        (BareJson, "Here: {\"name\": \"now\"}", &[]),
        (BareJson, "{\"name\": \"now\"} there", &[]),
        (BareJson, "{\"name\": \"stranger\", \"arguments\": {}}", &[]),
        (BareJson, "{\"name\": \"now\"} {\"name\": \"stranger\"}", &[]),
        (BareJson, "{\"data\": {\"name\": \"now\"}}", &[]),
    ];
    let tools = tools();
    for (grammar, text, expected) in cases {
        assert_eq!(shown(&parse(*grammar, text, &tools)), *expected, "{grammar:?} {text}");
    }
}

#[test]
fn guesses() {
    let cases: &[(&str, &[&str])] = &[
        (
            r#"[Tool Call] name=weather id=call-a args={"city": "Oslo"}"#,
            &[r#"weather {"city": "Oslo"}"#],
        ),
        (
            "[Tool Call] name=now id=1\n[Tool Call] name=weather id=2 args={\"city\":\"O\"} and so on",
            &["now {}", r#"weather {"city":"O"}"#],
        ),
        // All the grammars.
        ("<tool_call>{\"name\":\"now\"}</tool_call>", &["now {}"]),
        (
            "<tool_call>weather\n<arg_key>city</arg_key><arg_value>O</arg_value></tool_call>",
            &[r#"weather {"city":"O"}"#],
        ),
        ("<function=add><parameter=a>1</parameter></function>", &[r#"add {"a":1}"#]),
        (
            "<|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
            &["now {}"],
        ),
        ("<|channel|>commentary to=functions.now<|message|>{}<|call|>", &["now {}"]),
        (
            "<｜DSML｜function_calls><｜DSML｜invoke name=\"weather\"><｜DSML｜parameter name=\"city\" string=\"true\">5</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>",
            &[r#"weather {"city":"5"}"#],
        ),
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\":\"O\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
            &["now {}", r#"weather {"city":"O"}"#],
        ),
        ("<TOOLCALL>[{\"name\":\"now\",\"arguments\":{}}]</TOOLCALL>", &["now {}"]),
        (
            "<|START_ACTION|>[{\"tool_call_id\":\"0\",\"tool_name\":\"weather\",\"parameters\":{\"city\":\"O\"}}]<|END_ACTION|>",
            &[r#"weather {"city":"O"}"#],
        ),
        ("<minimax:tool_call><invoke name=\"now\"></invoke></minimax:tool_call>", &["now {}"]),
        // A stranger's call is nobody's, and nothing in it is one.
        ("<tool_call>{\"name\":\"stranger\",\"arguments\":{\"city\":\"O\"}}</tool_call>", &[]),
        (
            "<invoke name=\"stranger\"><parameter name=\"x\">{\"name\":\"now\"}</parameter></invoke>",
            &[],
        ),
        // Tags before bare arguments.
        (
            "<invoke name=\"run\"><parameter name=\"code\">{\"city\":\"O\"}</parameter></invoke>",
            &[r#"run {"code":"{\"city\":\"O\"}"}"#],
        ),
        // A call in another call's text is text.
        (
            r#"{"name":"run","arguments":{"code":"{\"name\":\"now\",\"arguments\":{}}"}}"#,
            &[r#"run {"code":"{\"name\":\"now\",\"arguments\":{}}"}"#],
        ),
        // A quote that is astray.
        (r#"He said {"oh and then {"name":"now","arguments":{}}"#, &["now {}"]),
        (r#"Write `{"name":"weather","arguments":{"city":"O"}}`."#, &[]),
        (
            r#"{"name":"weather","arguments":"{\"city\":\"O\",\"days\":\"3\"}"}"#,
            &[r#"weather {"city":"O","days":3}"#],
        ),
        (
            r#"{"name":"weather","arguments":{"city":"O","days":12345678901234567890123}}"#,
            &[r#"weather {"city":"O","days":12345678901234567890123}"#],
        ),
        (r#"{"name":"now<|channel|>json","arguments":{}}"#, &["now {}"]),
    ];
    let tools = tools();
    for (text, expected) in cases {
        assert_eq!(shown(&guess(text, &tools)), *expected, "{text}");
    }
    assert_eq!(guess(r#"{"name":"now"}"#, &Tools::default()), []);
}

#[test]
fn spans_lead_back_to_the_text() {
    let text = "é <tool_call>{\"name\":\"now\"}</tool_call> and {\"name\":\"now\"}";
    let spans: Vec<&str> = guess(text, &tools()).into_iter().map(|call| &text[call.span]).collect();
    assert_eq!(spans, ["<tool_call>{\"name\":\"now\"}</tool_call>", "{\"name\":\"now\"}"]);
}

#[test]
fn names_are_cleaned() {
    let is_known = |name: &str| name == "get_weather";
    for written in [
        "get_weather",
        " get_weather ",
        "functions.get_weather",
        "functions.get_weather:3",
        "get_weather:0",
        "get_weather<|channel|>commentary",
        "get_weather<|constrain|>json",
        "get_weather json",
        "assistant<|channel|>analysis to=functions.get_weather",
        "<|channel|>commentary to=functions.get_weather <|constrain|>json",
        "<|start|>get_weather",
    ] {
        assert_eq!(clean_name(written, is_known), "get_weather", "{written}");
    }
    for written in ["other", "functions.other", "other:0", "get_weather2", "", "<|channel|>"] {
        assert_eq!(clean_name(written, is_known), written);
    }
    assert_eq!(clean_name("other<|channel|>json", is_known), "other");
}

#[test]
fn what_is_worth_guessing() {
    let tools = tools();
    let said = |text, reasoning, answered, call_was_required| {
        Said { text, reasoning, answered, call_was_required }.is_worth_guessing(&tools)
    };
    assert!(!said("Fine weather.", "I think so.", true, false));
    assert!(said("Fine weather.", "", true, true));
    assert!(said("", "I think so.", false, false));
    assert!(!said("", "", false, false));
    assert!(said("Well: <invoke name=\"now\"></invoke>", "", true, false));
    assert!(said(r#"{"name":"now"}"#, "", true, false));
    assert!(!said(r#"Well: {"name":"now"}"#, "", true, false));
    assert!(!said(r#"{"name":"Alice"}"#, "", true, false));
    let nothing = Said {
        text: "<invoke name=\"now\"></invoke>",
        reasoning: "",
        answered: false,
        call_was_required: true,
    };
    assert!(!nothing.is_worth_guessing(&Tools::default()));
}

#[test]
fn payloads_are_calls_of_anyone() {
    for whole in [
        "<tool_call>{\"name\":\"x\",\"arguments\":{}}</tool_call>",
        "<function_calls><invoke name=\"x\"></invoke></function_calls>",
        "<|channel|>commentary to=functions.x<|message|>{}<|call|>",
        "[TOOL_CALLS]x{}",
    ] {
        assert!(is_payload(whole), "{whole}");
    }
    for cut in [
        "<tool_call>{\"name\":\"x\",\"argum",
        "<function_calls><invoke name=\"x\">",
        "<|channel|>commentary to=functions.x<|message|>{",
        "[TOOL_CALLS]x{",
        "text",
    ] {
        assert!(!is_payload(cut), "{cut}");
    }
}

/// What a careless parser reads again and again, or out of its bounds.
const HOSTILE: &[&str] = &[
    "{",
    "[",
    "}",
    "]",
    "{\"a\":",
    "[{",
    "{\"a\":[",
    "{\"",
    "\"{",
    "{\"a\":\"",
    "\"}",
    "\\",
    "{\"\\",
    "<",
    "&",
    "&#65;",
    "é{\"",
    "\u{0}",
    "`",
    "`{",
    "<tool_call>",
    "<tool_call>{",
    "<tool_call>{\"a\":\"",
    "</tool_call>",
    "<tool_call>x<arg_key>",
    "<arg_key>",
    "</arg_key><arg_value>",
    "</arg_value>",
    "<invoke ",
    "<invoke name=\"",
    "<invoke name=\"weather\">",
    "</invoke>",
    "<parameter name=\"city\">",
    "</parameter>",
    "<parameter=a>",
    "<function=add>",
    "</function>",
    "[TOOL_CALLS]",
    "[TOOL_CALLS][{\"a\":",
    "[ARGS]",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|channel|>",
    "<|start|>assistant",
    "to=functions.now",
    "<|message|>",
    "<|call|>",
    "<|end|>",
    "```\n",
    "```\n{",
    "\n",
    "[Tool Call] name=now args={",
    "<|python_tag|>",
    "{\"name\":\"weather\",\"arguments\":{\"city\":",
    "\"Oslo\"}}",
    "{\"name\":\"now\"}",
    "{\"city\":\"O\"}",
    "text",
    " ",
    ";",
];

const GRAMMARS: [CallGrammar; 9] = [
    CallGrammar::None,
    CallGrammar::Hermes,
    CallGrammar::QwenXml,
    CallGrammar::Harmony,
    CallGrammar::Kimi,
    CallGrammar::Glm,
    CallGrammar::Mistral,
    CallGrammar::Llama,
    CallGrammar::BareJson,
];

/// Calls are JSON objects, and no part of the text makes two that are not of one span.
fn check(text: &str, calls: &[WrittenCall]) {
    for WrittenCall { arguments, span, .. } in calls {
        assert!(
            serde_json::from_str::<serde_json::Map<_, _>>(arguments).is_ok(),
            "{text}: {arguments}"
        );
        assert!(
            text.is_char_boundary(span.start) && text.is_char_boundary(span.end),
            "{text}: {span:?}"
        );
    }
    for pair in calls.windows(2) {
        let (one, next) = (&pair[0].span, &pair[1].span);
        assert!(one == next || one.end <= next.start, "{text}: {one:?} and {next:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_breaks_them(parts in prop::collection::vec(prop::sample::select(HOSTILE), 0..12), times in 1..4_usize) {
        let text = parts.concat().repeat(times);
        let tools = tools();
        check(&text, &guess(&text, &tools));
        for grammar in GRAMMARS {
            check(&text, &parse(grammar, &text, &tools));
        }
        is_payload(&text);
        looks_like_call(&text, &tools);
    }
}

/// How long it takes is measured by `benches/rescue.rs`.
#[test]
fn long_texts_do_not_exhaust_the_stack() {
    let tools = tools();
    for piece in HOSTILE {
        let text = piece.repeat(10_000 / piece.len());
        check(&text, &guess(&text, &tools));
        for grammar in GRAMMARS {
            check(&text, &parse(grammar, &text, &tools));
        }
    }
}
