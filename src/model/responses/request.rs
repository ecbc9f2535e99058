//! An [`Ask`] as the body of a Responses request.

use std::borrow::Cow;

use serde::Serialize;

use crate::{
    config::SystemPolicy,
    model::{Ask, AskTool, Choice, ModelError, ModelErrorKind, dialect::Dialect, terms::Terms},
    protocol::{
        Raw,
        response::{Effort, TextFormat, Verbosity},
    },
    turn::prompt::{PromptMessage, PromptPart},
};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    input: Vec<Input<'a>>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    safety_identifier: Option<&'a str>,
}

#[derive(Serialize)]
struct Reasoning {
    effort: &'static str,
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a TextFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ToolChoice<'a> {
    Word(&'static str),
    Named {
        #[serde(rename = "type")]
        kind: &'static str,
        name: &'a str,
    },
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: &'a Raw,
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Message {
        role: &'static str,
        content: Content<'a>,
    },
    Typed(Typed<'a>),
    /// An item as the upstream gave it.
    Given(Raw),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Typed<'a> {
    Reasoning { summary: [&'static str; 0], content: [Part<'a>; 1] },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: &'a str },
    FunctionCallOutput { call_id: &'a str, output: Content<'a> },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText {
        text: &'a str,
    },
    InputImage {
        image_url: &'a str,
        detail: &'a str,
    },
    InputFile {
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_url: Option<&'a str>,
    },
    InputAudio {
        input_audio: &'a Raw,
    },
    InputVideo {
        video_url: &'a str,
    },
    ReasoningText {
        text: &'a str,
    },
}

/// The body that asks `model` on these terms.
pub(crate) fn body(ask: &Ask<'_>, model: &str, terms: &Terms<'_>) -> Result<Vec<u8>, ModelError> {
    let takes = |param: &str| !terms.refused.contains(&param);
    let verbosity = ask.verbosity.filter(|_| takes("text.verbosity")).map(Verbosity::word);
    let format = Some(ask.format).filter(|format| **format != TextFormat::Text);
    let mut include = vec!["reasoning.encrypted_content"];
    if ask.logprobs.is_some() {
        include.push("message.output_text.logprobs");
    }
    if !takes("include") {
        include.clear();
    }
    let body = Body {
        model,
        input: input(ask, terms.dialect),
        stream: true,
        store: false,
        include,
        tools: ask.tools.iter().map(Tool::from).collect(),
        tool_choice: tool_choice(ask).filter(|_| takes("tool_choice")),
        parallel_tool_calls: ask
            .parallel_calls
            .filter(|_| !ask.tools.is_empty() && takes("parallel_tool_calls")),
        max_output_tokens: terms.token_limit(ask).filter(|_| takes("max_output_tokens")),
        temperature: ask.temperature.filter(|_| takes("temperature")),
        top_p: ask.top_p.filter(|_| takes("top_p")),
        top_logprobs: ask.logprobs.filter(|_| takes("top_logprobs")),
        text: (format.is_some() || verbosity.is_some()).then_some(Text { format, verbosity }),
        reasoning: ask
            .effort
            .filter(|_| takes("reasoning.effort") && takes("reasoning"))
            .map(|effort| Reasoning { effort: Effort::word(effort) }),
        prompt_cache_key: ask.prompt_cache_key.filter(|_| takes("prompt_cache_key")),
        safety_identifier: ask.safety_identifier.filter(|_| takes("safety_identifier")),
    };
    serde_json::to_vec(&body).map_err(|error| {
        ModelError::new(
            ModelErrorKind::Rejected,
            format!("The request cannot be written: {error}."),
        )
    })
}

fn tool_choice<'a>(ask: &Ask<'a>) -> Option<ToolChoice<'a>> {
    if ask.tools.is_empty() {
        return None;
    }
    match ask.choice {
        Choice::Auto => None,
        Choice::None => Some(ToolChoice::Word("none")),
        Choice::Required => Some(ToolChoice::Word("required")),
        Choice::Named(name) => Some(ToolChoice::Named { kind: "function", name }),
    }
}

fn input<'a>(ask: &'a Ask<'_>, dialect: &Dialect) -> Vec<Input<'a>> {
    let mut input = Vec::with_capacity(ask.messages.len());
    for (at, message) in ask.messages.iter().enumerate() {
        match message {
            PromptMessage::System(text) => {
                let told = at == 0 || dialect.system_policy == SystemPolicy::Keep;
                let role = if told { "system" } else { "user" };
                input.push(Input::Message { role, content: Content::Text(Cow::Borrowed(text)) });
            }
            PromptMessage::User(parts) => {
                input.push(Input::Message { role: "user", content: content(parts) });
            }
            PromptMessage::Assistant(message) => {
                let given = message.reasoning_data.as_ref().map(given).unwrap_or_default();
                if given.is_empty()
                    && !dialect.reasoning_out.is_empty()
                    && let Some(text) = message.reasoning.as_deref().filter(|text| !text.is_empty())
                {
                    let content = [Part::ReasoningText { text }];
                    input.push(Input::Typed(Typed::Reasoning { summary: [], content }));
                }
                input.extend(given.into_iter().map(Input::Given));
                if !message.text.is_empty() {
                    let content = Content::Text(Cow::Borrowed(&message.text));
                    input.push(Input::Message { role: "assistant", content });
                }
                for call in &message.calls {
                    input.push(Input::Typed(Typed::FunctionCall {
                        call_id: call.call_id,
                        name: &call.name,
                        arguments: &call.arguments,
                    }));
                }
            }
            PromptMessage::Tool { call_id, output } => {
                let output = content(output);
                input.push(Input::Typed(Typed::FunctionCallOutput { call_id, output }));
            }
        }
    }
    input
}

#[derive(serde::Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
}

/// The reasoning items that such an upstream wants back; data of another wire is not for it.
fn given(data: &Raw) -> Vec<Raw> {
    let items: Vec<Raw> = data.to().unwrap_or_default();
    let ours = |item: &Raw| item.to::<Kind>().is_ok_and(|item| item.kind == "reasoning");
    items.into_iter().filter(ours).collect()
}

fn content<'a>(parts: &'a [PromptPart<'a>]) -> Content<'a> {
    if let [PromptPart::Text(text)] = parts {
        return Content::Text(Cow::Borrowed(text));
    }
    let part = |part: &'a PromptPart<'a>| match part {
        PromptPart::Text(text) => Part::InputText { text },
        PromptPart::Image { url, detail } => Part::InputImage { image_url: url, detail },
        PromptPart::File { filename, data, url } => {
            Part::InputFile { filename: *filename, file_data: *data, file_url: *url }
        }
        PromptPart::Audio(audio) => Part::InputAudio { input_audio: audio },
        PromptPart::Video(video_url) => Part::InputVideo { video_url },
    };
    Content::Parts(parts.iter().map(part).collect())
}

impl<'a> From<&'a AskTool> for Tool<'a> {
    fn from(tool: &'a AskTool) -> Self {
        Self {
            kind: "function",
            name: &tool.name,
            description: tool.description.as_deref(),
            parameters: &tool.parameters,
            strict: tool.strict,
        }
    }
}
