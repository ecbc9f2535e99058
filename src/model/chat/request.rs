//! An [`Ask`] as the body of a Chat Completions request. Written once, from borrowed text.

use serde::Serialize;

use super::messages::{Message, messages};
use crate::{
    config::{ReasoningParam, TokenLimitParam, ToolChoiceForm},
    model::{
        Ask, AskTool, Choice, ModelError, ModelErrorKind,
        terms::{Terms, ThinkingSwitch},
    },
    protocol::{Raw, response::TextFormat},
};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<TemplateKwargs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    safety_identifier: Option<&'a str>,
}

/// A number without a fraction is written as an integer, for checkers that compare.
#[derive(Clone, Copy)]
struct Number(f64);

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct TemplateKwargs {
    enable_thinking: bool,
}

#[derive(Serialize)]
struct Thinking {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: &'a Raw,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ToolChoice<'a> {
    Word(&'static str),
    Named {
        #[serde(rename = "type")]
        kind: &'static str,
        function: ChosenFunction<'a>,
    },
}

#[derive(Serialize)]
struct ChosenFunction<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: JsonSchema<'a> },
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    strict: bool,
    schema: &'a Raw,
}

/// The body that asks `model` on these terms. The error says what the model cannot be shown.
pub(crate) fn body(ask: &Ask<'_>, model: &str, terms: &Terms<'_>) -> Result<Vec<u8>, ModelError> {
    let (tools, tool_choice) = tools(ask, terms);
    let limit = terms.token_limit(ask);
    let limit_as = |param| limit.filter(|_| terms.token_limit_param() == Some(param));
    let sampling = |name, value: Option<f64>| value.filter(|_| terms.sends(name)).map(Number);
    let logprobs = ask.logprobs.filter(|_| terms.sends("logprobs"));
    let effort = ask.effort.filter(|_| terms.dialect.reasoning_param != ReasoningParam::None);
    let switch = terms.thinking_switch(ask);
    let body = Body {
        model,
        messages: messages(ask, terms.dialect)?,
        stream: true,
        stream_options: (terms.dialect.usage_option && terms.sends("stream_options"))
            .then_some(StreamOptions { include_usage: true }),
        parallel_tool_calls: ask
            .parallel_calls
            .filter(|_| !tools.is_empty() && terms.sends("parallel_tool_calls")),
        tools,
        tool_choice,
        max_tokens: limit_as(TokenLimitParam::MaxTokens),
        max_completion_tokens: limit_as(TokenLimitParam::MaxCompletionTokens),
        temperature: sampling("temperature", ask.temperature),
        top_p: sampling("top_p", ask.top_p),
        presence_penalty: sampling("presence_penalty", ask.presence_penalty),
        frequency_penalty: sampling("frequency_penalty", ask.frequency_penalty),
        logprobs: logprobs.map(|_| true),
        top_logprobs: logprobs.filter(|top| *top > 0 && terms.sends("top_logprobs")),
        response_format: if terms.dialect.allows("response_format") {
            format(ask.format)
        } else {
            None
        },
        reasoning_effort: effort
            .filter(|_| terms.sends_effort(ask))
            .map(crate::protocol::response::Effort::word),
        chat_template_kwargs: match switch {
            Some(ThinkingSwitch::Template(enable_thinking)) => {
                Some(TemplateKwargs { enable_thinking })
            }
            _ => None,
        },
        thinking: match switch {
            Some(ThinkingSwitch::Field(on)) => {
                Some(Thinking { kind: if on { "enabled" } else { "disabled" } })
            }
            _ => None,
        },
        verbosity: ask
            .verbosity
            .filter(|_| terms.sends("verbosity"))
            .map(crate::protocol::response::Verbosity::word),
        prompt_cache_key: ask.prompt_cache_key.filter(|_| terms.sends("prompt_cache_key")),
        safety_identifier: ask.safety_identifier.filter(|_| terms.sends("safety_identifier")),
    };
    serde_json::to_vec(&body).map_err(|error| {
        ModelError::new(
            ModelErrorKind::Rejected,
            format!("The request cannot be written: {error}."),
        )
    })
}

/// The tools that are offered, and the word about them. What a backend cannot be told is done with the offer.
fn tools<'a>(ask: &Ask<'a>, terms: &Terms<'_>) -> (Vec<Tool<'a>>, Option<ToolChoice<'a>>) {
    let form = terms.tool_choice_form();
    let offer = |only: Option<&str>| -> Vec<Tool<'a>> {
        let offered = ask.tools.iter().filter(|tool| only.is_none_or(|name| tool.name == name));
        offered.map(Tool::from).collect()
    };
    if ask.tools.is_empty() {
        return (Vec::new(), None);
    }
    let must = match form {
        ToolChoiceForm::Openai | ToolChoiceForm::Word => Some(ToolChoice::Word("required")),
        ToolChoiceForm::Any => Some(ToolChoice::Word("any")),
        ToolChoiceForm::None => None,
    };
    match (ask.choice, form) {
        (Choice::Auto, _) => (offer(None), None),
        (Choice::None, ToolChoiceForm::None) => (Vec::new(), None),
        (Choice::None, _) => (offer(None), Some(ToolChoice::Word("none"))),
        (Choice::Required, _) => (offer(None), must),
        (Choice::Named(name), ToolChoiceForm::Openai | ToolChoiceForm::Any) => (
            offer(None),
            Some(ToolChoice::Named { kind: "function", function: ChosenFunction { name } }),
        ),
        (Choice::Named(name), ToolChoiceForm::Word | ToolChoiceForm::None) => {
            (offer(Some(name)), must)
        }
    }
}

fn format(format: &TextFormat) -> Option<ResponseFormat<'_>> {
    match format {
        TextFormat::Text => None,
        TextFormat::JsonObject => Some(ResponseFormat::JsonObject),
        TextFormat::JsonSchema(format) => Some(ResponseFormat::JsonSchema {
            json_schema: JsonSchema {
                name: &format.name,
                description: format.description.as_deref(),
                strict: format.strict,
                schema: &format.schema,
            },
        }),
    }
}

impl<'a> From<&'a AskTool> for Tool<'a> {
    fn from(tool: &'a AskTool) -> Self {
        Self {
            kind: "function",
            function: ToolFunction {
                name: &tool.name,
                description: tool.description.as_deref(),
                parameters: &tool.parameters,
                strict: tool.strict,
            },
        }
    }
}

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_possible_truncation, reason = "checked to be a small whole number")]
        if self.0.fract() == 0.0 && self.0.abs() < 1e9 {
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
