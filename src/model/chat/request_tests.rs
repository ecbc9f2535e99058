use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;
use crate::{
    config::{CallIdForm, SystemPolicy, ToolChoiceForm},
    model::dialect::Dialect,
    protocol::response::{Effort, JsonSchemaFormat},
    turn::prompt::{AssistantMessage, PromptCall, PromptMessage, PromptPart},
};

fn user(text: &str) -> PromptMessage<'_> {
    PromptMessage::User(vec![PromptPart::Text(text.into())])
}

fn ask(messages: Vec<PromptMessage<'_>>) -> Ask<'_> {
    Ask {
        model: "m",
        messages,
        tools: &[],
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

fn tool(name: &str) -> AskTool {
    AskTool {
        name: name.to_owned(),
        description: Some("d".to_owned()),
        parameters: Raw::parse(r#"{"type":"object","properties":{}}"#).unwrap(),
        strict: false,
        grammar: None,
    }
}

fn written(ask: &Ask<'_>, dialect: &Dialect, refused: &[&'static str]) -> Value {
    let terms = Terms { dialect, refused, budget: None };
    serde_json::from_slice(&body(ask, "up", &terms).unwrap()).unwrap()
}

fn generic() -> Dialect {
    (*Dialect::generic()).clone()
}

#[test]
fn a_plain_question_carries_nothing_that_was_not_asked() {
    assert_eq!(
        written(&ask(vec![user("hi")]), &generic(), &[]),
        json!({
            "model": "up",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": true,
            "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn messages_in_the_dialects_form() {
    let signature = Raw::parse(r#"{"google":1}"#).unwrap();
    let call =
        |call_id, data| PromptCall { call_id, name: "f".into(), arguments: "{}".into(), data };
    let messages = vec![
        PromptMessage::System("be brief".into()),
        PromptMessage::User(vec![PromptPart::Text("a".into()), PromptPart::Text("b".into())]),
        PromptMessage::User(vec![
            PromptPart::Text("what?".into()),
            PromptPart::Image { url: "data:image/png;base64,x", detail: "original" },
        ]),
        PromptMessage::Assistant(AssistantMessage {
            reasoning: Some("thought".into()),
            reasoning_data: Some(Raw::parse(r#"[{"type":"reasoning.text"}]"#).unwrap()),
            text: "".into(),
            calls: vec![call("call_1", None), call("call_2", Some(signature))],
        }),
        PromptMessage::Tool {
            call_id: "call_1",
            output: vec![
                PromptPart::Text("one".into()),
                PromptPart::Image { url: "http://x/i.png", detail: "low" },
            ],
        },
        PromptMessage::Tool { call_id: "call_2", output: vec![PromptPart::Text("two".into())] },
        PromptMessage::System("and kind".into()),
        PromptMessage::User(vec![
            PromptPart::File { filename: Some("a.csv"), data: Some("QQ=="), url: None },
            PromptPart::Video("http://x/v"),
        ]),
    ];
    let expected = json!([
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "a\nb"},
        {"role": "user", "content": [
            {"type": "text", "text": "what?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}},
        ]},
        {"role": "assistant", "content": "", "reasoning": "thought", "reasoning_content": "thought", "reasoning_details": [{"type": "reasoning.text"}], "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "call_2", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"google": 1}},
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "one\n[shown in the next message]"},
        {"role": "tool", "tool_call_id": "call_2", "content": "two"},
        {"role": "user", "content": [
            {"type": "text", "text": "What the tools returned besides text:"},
            {"type": "image_url", "image_url": {"url": "http://x/i.png", "detail": "low"}},
        ]},
        {"role": "user", "content": "and kind"},
        {"role": "user", "content": [
            {"type": "file", "file": {"filename": "a.csv", "file_data": "data:text/csv;base64,QQ=="}},
            {"type": "video_url", "video_url": {"url": "http://x/v"}},
        ]},
    ]);
    let ask = ask(messages);
    assert_eq!(written(&ask, &generic(), &[])["messages"], expected);

    let openai = written(
        &ask,
        &Dialect {
            system_policy: SystemPolicy::Keep,
            ..(*Dialect::named("openai").unwrap()).clone()
        },
        &[],
    );
    assert_eq!(openai["messages"][3]["content"], Value::Null);
    assert!(openai["messages"][3].as_object().unwrap().contains_key("content"));
    assert_eq!(openai["messages"][3].get("reasoning"), None);
    assert_eq!(openai["messages"][3].get("reasoning_details"), None);
    assert_eq!(openai["messages"][7], json!({"role": "system", "content": "and kind"}));

    let blind = Dialect { image_support: false, ..generic() };
    let refusal =
        body(&ask, "up", &Terms { dialect: &blind, refused: &[], budget: None }).unwrap_err();
    assert_eq!(
        refusal,
        ModelError::new(ModelErrorKind::Rejected, "The model `m` cannot be shown images.")
    );
}

#[test]
fn ids_of_nine_letters_and_digits() {
    let calls = ["call_1", "call_2", "aB3456789"];
    let messages = vec![
        PromptMessage::Assistant(AssistantMessage {
            calls: calls
                .iter()
                .map(|call_id| PromptCall {
                    call_id,
                    name: "f".into(),
                    arguments: "{}".into(),
                    data: None,
                })
                .collect(),
            ..AssistantMessage::default()
        }),
        PromptMessage::Tool { call_id: "call_2", output: vec![] },
        PromptMessage::Tool { call_id: "call_1", output: vec![] },
    ];
    let nine = Dialect { call_id_form: CallIdForm::Alnum9, ..generic() };
    let body = written(&ask(messages), &nine, &[]);
    let id = |at: usize| body["messages"][0]["tool_calls"][at]["id"].as_str().unwrap();
    for at in 0..3 {
        assert!(
            id(at).len() == 9 && id(at).bytes().all(|c| c.is_ascii_alphanumeric()),
            "{}",
            id(at)
        );
    }
    assert_ne!(id(0), id(1));
    assert_eq!(id(2), "aB3456789");
    assert_eq!(body["messages"][1]["tool_call_id"], id(1));
    assert_eq!(body["messages"][2]["tool_call_id"], id(0));
}

#[test]
fn tools_and_the_word_about_them() {
    let tools = [tool("a"), tool("b")];
    for (choice, form, offered, word) in [
        (Choice::Auto, ToolChoiceForm::Openai, 2, Value::Null),
        (Choice::None, ToolChoiceForm::Openai, 2, json!("none")),
        (Choice::None, ToolChoiceForm::None, 0, Value::Null),
        (Choice::Required, ToolChoiceForm::Openai, 2, json!("required")),
        (Choice::Required, ToolChoiceForm::Any, 2, json!("any")),
        (Choice::Required, ToolChoiceForm::None, 2, Value::Null),
        (
            Choice::Named("b"),
            ToolChoiceForm::Openai,
            2,
            json!({"type": "function", "function": {"name": "b"}}),
        ),
        (Choice::Named("b"), ToolChoiceForm::Word, 1, json!("required")),
        (Choice::Named("b"), ToolChoiceForm::None, 1, Value::Null),
    ] {
        let ask =
            Ask { tools: &tools, choice, parallel_calls: Some(false), ..ask(vec![user("x")]) };
        let body = written(&ask, &Dialect { tool_choice_form: form, ..generic() }, &[]);
        assert_eq!(
            body.get("tools").map_or(0, |tools| tools.as_array().unwrap().len()),
            offered,
            "{choice:?} {form:?}"
        );
        assert_eq!(body["tool_choice"], word, "{choice:?} {form:?}");
        assert_eq!(body.get("parallel_tool_calls").is_some(), offered > 0);
        if offered == 1 {
            assert_eq!(
                body["tools"][0],
                json!({"type": "function", "function": {
                "name": "b", "description": "d", "parameters": {"type": "object", "properties": {}}}})
            );
        }
    }
}

#[test]
fn effort_in_the_backends_own_words() {
    use ReasoningParam::{ChatTemplateKwargs, None as Not, ReasoningEffort, Thinking};
    for (param, effort, expected) in [
        (ReasoningEffort, Effort::None, json!({"reasoning_effort": "none"})),
        (ReasoningEffort, Effort::Low, json!({"reasoning_effort": "low"})),
        (
            ChatTemplateKwargs,
            Effort::None,
            json!({"chat_template_kwargs": {"enable_thinking": false}}),
        ),
        (
            ChatTemplateKwargs,
            Effort::High,
            json!({"chat_template_kwargs": {"enable_thinking": true}, "reasoning_effort": "high"}),
        ),
        (Thinking, Effort::None, json!({"thinking": {"type": "disabled"}})),
        (
            Thinking,
            Effort::High,
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ),
        (Not, Effort::None, json!({})),
        (Not, Effort::High, json!({})),
    ] {
        let ask = Ask { effort: Some(effort), ..ask(vec![user("x")]) };
        let mut body = written(&ask, &Dialect { reasoning_param: param, ..generic() }, &[]);
        let body = body.as_object_mut().unwrap();
        for common in ["model", "messages", "stream", "stream_options"] {
            body.remove(common);
        }
        assert_eq!(Value::Object(body.clone()), expected, "{param:?} {effort:?}");
    }
}

#[test]
fn parameters_as_asked_allowed_and_not_refused() {
    let format = TextFormat::JsonSchema(JsonSchemaFormat {
        name: "n".to_owned(),
        description: None,
        schema: Raw::parse(r#"{"z":1,"a":2}"#).unwrap(),
        strict: true,
    });
    let ask = Ask {
        max_output_tokens: Some(50),
        temperature: Some(0.0),
        top_p: Some(0.5),
        logprobs: Some(3),
        prompt_cache_key: Some("k"),
        format: &format,
        ..ask(vec![user("x")])
    };
    let body = written(&ask, &generic(), &[]);
    assert_eq!(body["max_tokens"], 50);
    assert_eq!(body["temperature"], json!(0));
    assert_eq!(body["top_p"], json!(0.5));
    assert_eq!((&body["logprobs"], &body["top_logprobs"]), (&json!(true), &json!(3)));
    assert_eq!(
        body["response_format"],
        json!({"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": {"z": 1, "a": 2}}})
    );
    assert_eq!(body.get("prompt_cache_key"), None, "not everyone takes it");

    let again = written(&ask, &generic(), &["max_tokens", "top_p", "logprobs", "stream_options"]);
    assert_eq!(again["max_completion_tokens"], 50);
    for gone in ["max_tokens", "top_p", "logprobs", "top_logprobs", "stream_options"] {
        assert_eq!(again.get(gone), None, "{gone}");
    }
    let neither = written(&ask, &generic(), &["max_tokens", "max_completion_tokens"]);
    assert_eq!(neither.get("max_completion_tokens"), None);

    let capped =
        Dialect { max_output_tokens: Some(20), ..(*Dialect::named("openai").unwrap()).clone() };
    let capped = written(&ask, &capped, &[]);
    assert_eq!(capped["max_completion_tokens"], 20);
    assert_eq!(capped["prompt_cache_key"], "k");
}
