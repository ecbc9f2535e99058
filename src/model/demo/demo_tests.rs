use futures::StreamExt as _;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::{
    model::{AskTool, Choice},
    protocol::{
        Raw,
        response::{Effort, JsonSchemaFormat, TextFormat},
    },
    turn::prompt::{AssistantMessage, PromptCall, PromptMessage, PromptPart},
};

fn tools() -> Vec<AskTool> {
    let tool = |name: &str, parameters: Value| AskTool {
        name: name.to_owned(),
        description: None,
        parameters: Raw::of(&parameters),
        strict: false,
        grammar: None,
    };
    let city = json!({"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string"}}, "required": ["city"]});
    vec![tool("get_weather", city), tool("now", json!({"type": "object", "properties": {}}))]
}

fn ask<'a>(messages: Vec<PromptMessage<'a>>, tools: &'a [AskTool]) -> Ask<'a> {
    Ask {
        model: "demo",
        messages,
        tools,
        choice: Choice::Auto,
        parallel_calls: None,
        max_output_tokens: None,
        temperature: None,
        top_p: None,
        presence_penalty: None,
        frequency_penalty: None,
        logprobs: None,
        format: &TextFormat::Text,
        verbosity: None,
        effort: None,
        prompt_cache_key: None,
        safety_identifier: None,
        traceparent: None,
    }
}

fn user(text: &str) -> PromptMessage<'_> {
    PromptMessage::User(vec![PromptPart::Text(text.into())])
}

fn called<'a>(call_id: &'a str, name: &'a str) -> PromptMessage<'a> {
    let call = PromptCall { call_id, name: name.into(), arguments: "{}".into(), data: None };
    PromptMessage::Assistant(AssistantMessage { calls: vec![call], ..AssistantMessage::default() })
}

fn returned<'a>(call_id: &'a str, output: &'a str) -> PromptMessage<'a> {
    PromptMessage::Tool { call_id, output: vec![PromptPart::Text(output.into())] }
}

fn calls(ask: &Ask<'_>) -> Vec<String> {
    let Answer { calls, text, .. } = answer(ask);
    assert_eq!(calls.is_empty(), !text.is_empty(), "either calls or a text");
    calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect()
}

/// What is said in one Round, all of it.
async fn hear(demo: &Demo, ask: &Ask<'_>) -> Vec<Delta> {
    let pieces: Vec<Piece> = demo.ask(ask).await.unwrap_or_else(|e| panic!("{e}")).collect().await;
    pieces.into_iter().flat_map(Result::unwrap).collect()
}

#[test]
fn it_says_what_it_is_and_repeats_what_it_was_asked() {
    let tools = tools();
    let messages =
        vec![user("First."), called("c", "now"), returned("c", "noon"), user("What is 6 × 7?")];
    let Answer { reasoning, text, calls } = answer(&ask(messages, &tools));
    assert_eq!((reasoning.as_str(), calls.len()), ("", 0));
    insta::assert_snapshot!(text, @r#"
    This is antiphon's built-in demo model: scripted answers, no AI behind them. You said: "What is 6 × 7?"

    Before that you said: "First."

    I can call get_weather, now. Try: "call get_weather with {"city":"demo"}".
    "#);
    insta::assert_snapshot!(answer(&ask(vec![], &[])).text, @r#"
    This is antiphon's built-in demo model: scripted answers, no AI behind them. You said nothing that I could repeat.

    Try: "think about the sea", or offer me a tool.
    "#);
}

#[test]
fn what_it_suggests_works() {
    let tools = tools();
    let said = answer(&ask(vec![user("Hi")], &tools)).text;
    let suggestion = said.split_once("Try: ").unwrap().1;
    assert_eq!(calls(&ask(vec![user(suggestion)], &tools)), [r#"get_weather({"city":"demo"})"#]);
    let said = answer(&ask(vec![user("Hi")], &[])).text;
    let suggestion = said.split_once("Try: \"").unwrap().1.split_once('"').unwrap().0;
    assert!(answer(&ask(vec![user(suggestion)], &[])).reasoning.contains("the sea"));
}

#[test]
fn tools_are_called_as_the_choice_allows() {
    let tools = tools();
    let weather = r#"get_weather({"city":"demo"})"#;
    for (said, choice, parallel, expected) in [
        ("hi", Choice::Auto, None, &[][..]),
        ("call now", Choice::Auto, None, &["now({})"]),
        ("call now", Choice::None, None, &[]),
        ("call get_weather", Choice::Auto, None, &[weather]),
        (
            r#"call get_weather with {"city": "Oslo"}"#,
            Choice::Auto,
            None,
            &[r#"get_weather({"city": "Oslo"})"#],
        ),
        ("call get_weather and call now", Choice::Auto, Some(true), &[weather, "now({})"]),
        ("call get_weather and call now", Choice::Auto, Some(false), &[weather]),
        ("call get_weather with {x", Choice::Auto, None, &[]),
        ("call the tool other", Choice::Auto, None, &[]),
        ("hi", Choice::Required, None, &[weather]),
        ("call now", Choice::Required, None, &["now({})"]),
        ("call the tool other", Choice::Required, None, &[weather]),
        ("hi", Choice::Named("now"), None, &["now({})"]),
        ("call get_weather", Choice::Named("now"), None, &["now({})"]),
        (
            r#"call get_weather with {"city":"Rome"}"#,
            Choice::Named("get_weather"),
            None,
            &[r#"get_weather({"city":"Rome"})"#],
        ),
    ] {
        let ask = Ask { choice, parallel_calls: parallel, ..ask(vec![user(said)], &tools) };
        assert_eq!(calls(&ask), expected, "{said} {choice:?}");
    }
}

#[test]
fn a_wish_that_cannot_be_granted_is_explained() {
    let tools = tools();
    let said = |text| answer(&ask(vec![user(text)], &tools)).text;
    assert!(
        said("call the tool other")
            .contains("I was to call other, but there is no such tool here.")
    );
    let broken = said("call now with {a");
    assert!(broken.contains("I was to call now, but what is given as its arguments is no JSON object: key must be a string"), "{broken}");
}

#[test]
fn results_are_told_with_the_names_of_their_tools() {
    let tools = tools();
    let mut messages = vec![
        user("call get_weather, think about it"),
        called("c1", "get_weather"),
        returned("c1", "12 °C\nrain"),
    ];
    let told = answer(&ask(messages.clone(), &tools));
    assert_eq!((told.calls.len(), told.reasoning.as_str()), (0, ""));
    insta::assert_snapshot!(told.text, @"
    This is antiphon's built-in demo model: scripted answers, no AI behind them.

    The tool get_weather returned: 12 °C
    rain
    ");
    // What the user says afterwards counts for more.
    messages.push(user("call now"));
    assert_eq!(calls(&ask(messages, &tools)), ["now({})"]);
}

#[test]
fn thoughts_come_first_unless_they_are_switched_off() {
    let tools = tools();
    for (effort, thinks) in [(None, true), (Some(Effort::High), true), (Some(Effort::None), false)]
    {
        let ask = Ask { effort, ..ask(vec![user("think about rain and call now")], &tools) };
        let Answer { reasoning, calls, .. } = answer(&ask);
        assert_eq!(reasoning.starts_with("I am to think about rain."), thinks, "{reasoning}");
        assert_eq!(calls.len(), 1);
    }
}

#[test]
fn a_format_is_kept_to() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "minimum": 5}}, "required": ["n"]});
    let schema = TextFormat::JsonSchema(JsonSchemaFormat {
        name: "n".to_owned(),
        description: None,
        schema: Raw::of(&schema),
        strict: true,
    });
    assert_eq!(answer(&Ask { format: &schema, ..ask(vec![user("hi")], &[]) }).text, r#"{"n":5}"#);

    let messages = vec![user("a \"b\""), called("c", "now"), returned("c", "noon")];
    let text = answer(&Ask { format: &TextFormat::JsonObject, ..ask(messages, &[]) }).text;
    let said: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(said["asked"], "a \"b\"");
    assert_eq!(said["returned"], json!([{"tool": "now", "output": "noon"}]));
    assert!(said["note"].as_str().unwrap().contains("no AI"));
}

#[test]
fn things_that_are_no_text_are_named_and_long_texts_cut() {
    let picture = PromptPart::Image { url: "http://images.example/a.png", detail: "auto" };
    let message = PromptMessage::User(vec![PromptPart::Text("Look:".into()), picture]);
    let text = answer(&ask(vec![message], &[])).text;
    assert!(text.contains("You said: \"Look:\n[an image]\""), "{text}");
    let long = "x".repeat(100_000);
    assert!(answer(&ask(vec![user(&long)], &[])).text.chars().count() < 3000);
}

#[tokio::test(start_paused = true)]
async fn words_come_one_by_one_up_to_the_limit() {
    let demo = Demo::new(Duration::from_millis(20));
    let tools = tools();
    let question = ask(vec![user("think about rain and call now")], &tools);
    let whole = hear(&demo, &question).await;
    let (end, words) = (&whole[whole.len() - 2..], &whole[..whole.len() - 2]);
    let count = words.len() as u64;
    assert_eq!(
        end,
        [Delta::Usage(recite::usage(6, count, count - 2)), Delta::Finish(Finish::Stop)]
    );
    let [.., call, arguments] = words else { panic!("{words:?}") };
    assert_eq!(*call, Delta::Call { position: 0, id: None, name: "now".to_owned() });
    assert_eq!(*arguments, Delta::Arguments { position: 0, piece: "{}".to_owned() });

    for limit in 0..=count + 1 {
        let begin = tokio::time::Instant::now();
        let said = hear(&demo, &Ask { max_output_tokens: Some(limit), ..question.clone() }).await;
        let most = limit.min(count);
        let finish = if limit < count { Finish::Length } else { Finish::Stop };
        let mut expected = words[..usize::try_from(most).unwrap()].to_vec();
        expected.push(Delta::Usage(recite::usage(6, most, most.min(count - 2))));
        expected.push(Delta::Finish(finish));
        assert_eq!(said, expected, "{limit}");
        // The end belongs to the last word; alone it is a piece.
        assert_eq!(begin.elapsed(), Duration::from_millis(20 * most.max(1)));
    }
}

#[tokio::test]
async fn the_same_question_gets_the_same_answer() {
    let demo = Demo::new(Duration::ZERO);
    let tools = tools();
    let question = ask(vec![user("hello")], &tools);
    assert_eq!(hear(&demo, &question).await, hear(&demo, &question).await);
    assert_eq!(demo.names(), ["demo"]);
}
