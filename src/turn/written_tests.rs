use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{
    super::{
        Next,
        script::{Script, Stage, arguments, call, finish, reasoning, text, whole},
    },
    *,
};
use crate::{
    protocol::{ApiError, ErrorKind, Item, Part, Response},
    text::rescue::{CallGrammar, Reading},
};

fn stage(grammar: CallGrammar, rescue: Rescue) -> Stage {
    Stage::new(&json!({ "tools": [
        { "type": "function", "name": "weather", "parameters": { "type": "object", "properties": { "city": { "type": "string" }, "days": { "type": "integer" } }, "required": ["city"] } },
        { "type": "function", "name": "now" },
        { "type": "custom", "name": "note" },
    ] }))
    .with(|rules| rules.reading = Reading { grammar, rescue, ..Reading::default() })
}

fn hermes() -> Stage {
    stage(CallGrammar::Hermes, Rescue::Off)
}

fn auto() -> Stage {
    stage(CallGrammar::None, Rescue::Auto)
}

/// The items, each as its type, status and what it says.
fn told(response: &Response) -> Vec<String> {
    let tell = |item: &Item| {
        let json = serde_json::to_value(item).unwrap();
        let status = json["status"].as_str().unwrap();
        let said = match item {
            Item::Message(message) => message.content.iter().filter_map(Part::text).collect(),
            Item::Reasoning(reasoning) => reasoning.content.iter().filter_map(Part::text).collect(),
            _ => {
                let what = ["arguments", "input"].iter().find_map(|key| json[*key].as_str());
                format!("{} {}", json["name"].as_str().unwrap(), what.unwrap())
            }
        };
        format!("{} {status}: {said}", item.kind())
    };
    response.output.iter().map(|item| tell(item)).collect()
}

fn after(stage: Stage, deltas: impl IntoIterator<Item = Delta>) -> (Vec<String>, Option<Rescued>) {
    let mut script = stage.begin();
    assert_eq!(script.round(deltas), Next::Finish);
    let rescue = script.turn.take_rescue();
    (told(&script.conclude()), rescue)
}

fn declared(calls: usize) -> Rescued {
    Rescued { ground: Ground::Declared, calls }
}

fn guessed(calls: usize) -> Rescued {
    Rescued { ground: Ground::Guessed, calls }
}

const WEATHER: &str = r#"<tool_call>{"name":"weather","arguments":{"city":"Oslo"}}</tool_call>"#;
const NOW: &str = r#"<function_calls><invoke name="now"></invoke></function_calls>"#;

#[test]
fn declared_calls_are_calls_like_all_others() {
    let (items, rescue) = after(hermes(), [text("I look.\n"), text(WEATHER), text("\nWait.")]);
    assert_eq!(
        items,
        [
            "message completed: I look.\n\nWait.",
            r#"function_call completed: weather {"city":"Oslo"}"#
        ]
    );
    assert_eq!(rescue, Some(declared(1)));
    let (items, _) = after(
        hermes(),
        [
            text(WEATHER),
            text("\n"),
            text(r#"<tool_call>{"name":"note","arguments":{"input":"a"}}</tool_call>"#),
        ],
    );
    assert_eq!(
        items,
        [
            r#"function_call completed: weather {"city":"Oslo"}"#,
            "custom_tool_call completed: note a"
        ]
    );
}

#[test]
fn where_the_text_is_cut_does_not_matter() {
    let said = format!("So:\n{WEATHER} and <b>");
    let whole = after(hermes(), [text(&said)]);
    for at in 1..said.len() {
        assert_eq!(after(hermes(), [text(&said[..at]), text(&said[at..])]), whole, "cut at {at}");
    }
}

#[test]
fn calls_stand_in_reasoning_too() {
    let (items, rescue) = after(hermes(), [reasoning("I must look. "), reasoning(WEATHER)]);
    assert_eq!(
        items,
        [
            "reasoning completed: I must look. ",
            r#"function_call completed: weather {"city":"Oslo"}"#
        ]
    );
    assert_eq!(rescue, Some(declared(1)));
    // What was only thought of is not called where something is called.
    let (items, _) =
        after(hermes(), [reasoning(WEATHER), text(r#"<tool_call>{"name":"now"}</tool_call>"#)]);
    assert_eq!(items, ["function_call completed: now {}"]);
}

#[test]
fn what_breaks_off_is_shown_when_nothing_else_was() {
    let cut = r#"<tool_call>{"name":"weather","argum"#;
    assert_eq!(after(hermes(), [text(cut)]), (vec![format!("message completed: {cut}")], None));
    let mut script = hermes().begin();
    script.round([text(cut), finish(Finish::Length)]);
    assert_eq!(told(&script.conclude()), [format!("message incomplete: {cut}")]);
    let (items, _) = after(hermes(), [text("I look. "), text(cut)]);
    assert_eq!(items, ["message completed: I look. "]);
    // Only a call that is whole is left out.
    let (items, _) =
        after(auto(), [text(r#"<tool_call>{"name":"stranger","arguments":{}}</tool_call>"#)]);
    assert_eq!(items, ["message completed: "]);
}

#[test]
fn a_whole_call_counts_though_the_limit_came_after_it() {
    let mut script = hermes().begin();
    script.round([text(WEATHER), text("<tool_ca"), finish(Finish::Length)]);
    assert_eq!(
        told(&script.conclude()),
        ["message completed: <tool_ca", r#"function_call completed: weather {"city":"Oslo"}"#]
    );
}

#[test]
fn a_round_that_fails_calls_nothing() {
    let mut script = hermes().begin();
    script.turn.feed(text(WEATHER));
    script.fail(&ApiError::new(ErrorKind::BadGateway, "gone"));
    assert_eq!(told(&script.conclude()), [] as [&str; 0]);
    let mut script = auto().begin();
    script.turn.feed(text(r#"{"name":"now""#));
    script.fail(&ApiError::new(ErrorKind::BadGateway, "gone"));
    assert_eq!(told(&script.conclude()), [r#"message incomplete: {"name":"now""#]);
}

#[test]
fn without_a_reading_all_text_is_text() {
    let off = stage(CallGrammar::None, Rescue::Off);
    assert_eq!(after(off, [text(WEATHER)]), (vec![format!("message completed: {WEATHER}")], None));
    let no_tools = Stage::new(&json!({})).with(|rules| {
        rules.reading =
            Reading { grammar: CallGrammar::Hermes, rescue: Rescue::Auto, ..Reading::default() };
    });
    assert_eq!(after(no_tools, [text(NOW)]), (vec![format!("message completed: {NOW}")], None));
}

/// What is said, the items that it makes, and what came of reading it.
type Case = (Stage, Vec<Delta>, Vec<&'static str>, Option<Rescued>);

#[test]
fn guesses_are_made_where_a_call_may_be_expected() {
    let json = r#"{"name":"now","arguments":{}}"#;
    let bare = r#"{"city":"Oslo"}"#;
    let prose = format!("I call {json}");
    let required = || auto().set("tool_choice", "required".into());
    let cases: Vec<Case> = vec![
        // It looks like a call.
        (
            auto(),
            vec![text("So: "), text(NOW)],
            vec!["message completed: So: ", "function_call completed: now {}"],
            Some(guessed(1)),
        ),
        (auto(), vec![text(json)], vec!["function_call completed: now {}"], Some(guessed(1))),
        (
            auto(),
            vec![text("[Tool Call] name=weather id=c args={\"city\":\"Oslo\"}")],
            vec![r#"function_call completed: weather {"city":"Oslo"}"#],
            Some(guessed(1)),
        ),
        // It does not.
        (auto(), vec![text("Fine.")], vec!["message completed: Fine."], None),
        (
            auto(),
            vec![text(&prose)],
            vec![r#"message completed: I call {"name":"now","arguments":{}}"#],
            None,
        ),
        (auto(), vec![text(bare)], vec![r#"message completed: {"city":"Oslo"}"#], None),
        // One was required.
        (
            required(),
            vec![text(&prose)],
            vec![
                r#"message completed: I call {"name":"now","arguments":{}}"#,
                "function_call completed: now {}",
            ],
            Some(guessed(1)),
        ),
        (
            required(),
            vec![text(bare)],
            vec![r#"function_call completed: weather {"city":"Oslo"}"#],
            Some(guessed(1)),
        ),
        (required(), vec![text("No.")], vec!["message completed: No."], Some(guessed(0))),
        // It thought and said nothing.
        (
            auto(),
            vec![reasoning(&prose)],
            vec![
                r#"reasoning completed: I call {"name":"now","arguments":{}}"#,
                "function_call completed: now {}",
            ],
            Some(guessed(1)),
        ),
        (auto(), vec![reasoning("Hm.")], vec!["reasoning completed: Hm."], Some(guessed(0))),
        (
            auto(),
            vec![reasoning(&prose), text("No.")],
            vec![
                r#"reasoning completed: I call {"name":"now","arguments":{}}"#,
                "message completed: No.",
            ],
            None,
        ),
        // A proper call came.
        (
            auto(),
            [text(NOW)].into_iter().chain(whole(0, "c", "weather", "{}")).collect(),
            vec!["function_call completed: weather {}"],
            None,
        ),
        (
            auto().set("tool_choice", "none".into()),
            vec![text(json)],
            vec![r#"message completed: {"name":"now","arguments":{}}"#],
            None,
        ),
    ];
    for (number, (stage, deltas, items, rescue)) in cases.into_iter().enumerate() {
        let items: Vec<String> = items.into_iter().map(str::to_owned).collect();
        assert_eq!(after(stage, deltas), (items, rescue), "case {number}");
    }
}

#[test]
fn it_is_guessed_once() {
    let hosted = |rescue| {
        let reading = Reading { rescue, ..Reading::default() };
        Stage::new(&json!({})).hosted(&["now"]).with(|rules| rules.reading = reading)
    };
    let mut script = hosted(Rescue::Auto).begin();
    script.round_with_tools([text(NOW)], &[Ok("noon")]);
    assert_eq!(script.turn.take_rescue(), Some(guessed(1)));
    assert_eq!(script.round([text("It is noon. "), text(NOW)]), Next::Finish);
    assert_eq!(script.turn.take_rescue(), None);
    assert_eq!(
        told(&script.conclude()),
        ["mcp_call completed: now {}", "message completed: It is noon. "]
    );
}

#[test]
fn declared_calls_are_read_in_every_round() {
    let mut stage = Stage::new(&json!({})).hosted(&["now"]);
    stage = stage.with(|rules| rules.reading.grammar = CallGrammar::Hermes);
    let mut script = stage.begin();
    let now = r#"<tool_call>{"name":"now"}</tool_call>"#;
    script.round_with_tools([text(now)], &[Ok("noon")]);
    script.round_with_tools([text(now), text(now)], &[Ok("noon"), Ok("later")]);
    script.round([text("Noon.")]);
    let items = told(&script.conclude());
    assert_eq!(items.len(), 4, "{items:?}");
    assert_eq!(items[3], "message completed: Noon.");
}

#[test]
fn a_call_that_was_taken_out_and_left_in_counts_once() {
    let both = [text(WEATHER)].into_iter().chain(whole(0, "c", "weather", r#"{"city": "Oslo"}"#));
    let (items, _) = after(hermes(), both);
    assert_eq!(items, [r#"function_call completed: weather {"city": "Oslo"}"#]);
    let other = [text(WEATHER)].into_iter().chain(whole(0, "c", "now", "{}"));
    let (items, _) = after(hermes(), other);
    assert_eq!(
        items,
        ["function_call completed: now {}", r#"function_call completed: weather {"city":"Oslo"}"#]
    );
}

#[test]
fn names_of_proper_calls_are_cleaned() {
    let (items, _) = after(
        stage(CallGrammar::None, Rescue::Off),
        [call(0, "c", "assistant<|channel|>analysis to=functions.now"), arguments(0, "{}")],
    );
    assert_eq!(items, ["function_call completed: now {}"]);
}

#[test]
fn channels_are_told_apart() {
    let said = "<|channel|>analysis<|message|>need weather<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\":\"Oslo\"}<|call|>";
    let (items, _) = after(stage(CallGrammar::Harmony, Rescue::Off), [text(said)]);
    assert_eq!(
        items,
        [
            "reasoning completed: need weather",
            "message completed: I look.",
            r#"function_call completed: weather {"city":"Oslo"}"#
        ]
    );
}

#[test]
fn log_probabilities_stay_with_their_tokens() {
    let token =
        |token: &str| Logprob { token: token.to_owned(), logprob: -0.5, ..Logprob::default() };
    let pieces = [
        "I ",
        "look",
        "</s",
        ">",
        " <",
        "b> ",
        "<tool_call>",
        "{\"name\":\"now\"}",
        "</tool_call>",
        " ok",
    ];
    let deltas =
        pieces.map(|piece| Delta::Text { text: piece.to_owned(), logprobs: vec![token(piece)] });
    let stage = hermes().with(|rules| {
        rules.logprobs = true;
        rules.reading.strip_tokens = vec!["</s>".to_owned()].into();
    });
    let mut script: Script = stage.begin();
    script.round(deltas);
    let message = serde_json::to_value(&script.conclude().output[0]).unwrap();
    let part = &message["content"][0];
    assert_eq!(part["text"], "I look <b>  ok");
    let tokens: Vec<&Value> =
        part["logprobs"].as_array().unwrap().iter().map(|one| &one["token"]).collect();
    assert_eq!(tokens, ["I ", "look", " <", "b> ", " ok"]);
}

#[test]
fn an_answer_that_speaks_of_calls_is_not_lost() {
    let said = "Anthropic's models write <function_calls> around them. That is all.";
    let (items, rescue) = after(auto(), [text(said)]);
    assert_eq!((items, rescue), (vec![format!("message completed: {said}")], Some(guessed(0))));
}
