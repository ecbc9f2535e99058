//! How many tokens a prompt has. Nobody knows the template of every model, so what stands between the texts is counted by one rule.

use crate::{protocol::response::TextFormat, text::tokens::TokenCounter};

use super::{
    OfferedTool,
    prompt::{PromptMessage, PromptPart},
};

/// The marks around a message and its role.
const MESSAGE: u64 = 4;
/// The marks around a call, or around the definition of a tool or a format.
const BRACKET: u64 = 8;
/// The opening of the answer.
const ANSWER: u64 = 3;

/// The tokens of a prompt with its tools and its format.
pub fn prompt_tokens(
    messages: &[PromptMessage<'_>],
    tools: &[OfferedTool],
    format: &TextFormat,
    counter: &mut TokenCounter,
) -> u64 {
    let messages: u64 = messages.iter().map(|message| MESSAGE + of_message(message, counter)).sum();
    let tools: u64 = tools.iter().map(|tool| BRACKET + of_tool(tool, counter)).sum();
    messages + tools + of_format(format, counter) + ANSWER
}

fn of_message(message: &PromptMessage<'_>, counter: &mut TokenCounter) -> u64 {
    match message {
        PromptMessage::System(text) => counter.text(text),
        PromptMessage::User(parts) => of_parts(parts, counter),
        PromptMessage::Tool { call_id: _, output } => of_parts(output, counter),
        PromptMessage::Assistant(message) => {
            let said = counter.text(&message.text);
            let thought = message.reasoning.as_deref().map_or(0, |text| counter.text(text));
            let called: u64 = message
                .calls
                .iter()
                .map(|call| BRACKET + counter.text(&call.name) + counter.text(&call.arguments))
                .sum();
            said + thought + called
        }
    }
}

fn of_parts(parts: &[PromptPart<'_>], counter: &mut TokenCounter) -> u64 {
    parts
        .iter()
        .map(|part| match part {
            PromptPart::Text(text) => counter.text(text),
            PromptPart::Image { url, detail } => counter.image(url, detail),
            PromptPart::File { filename, data, url: _ } => {
                filename.map_or(0, |name| counter.text(name))
                    + data.map_or(0, |data| counter.file(data))
            }
            PromptPart::Audio(audio) => counter.audio(audio.json()),
            PromptPart::Video(url) => counter.image(url, "high"),
        })
        .sum()
}

fn of_tool(tool: &OfferedTool, counter: &mut TokenCounter) -> u64 {
    counter.text(&tool.name)
        + tool.description.as_deref().map_or(0, |text| counter.text(text))
        + counter.text(tool.parameters.json())
        + tool.grammar.as_ref().map_or(0, |grammar| counter.text(grammar.json()))
}

fn of_format(format: &TextFormat, counter: &mut TokenCounter) -> u64 {
    match format {
        TextFormat::Text | TextFormat::JsonObject => 0,
        TextFormat::JsonSchema(format) => {
            BRACKET
                + counter.text(&format.name)
                + format.description.as_deref().map_or(0, |text| counter.text(text))
                + counter.text(format.schema.json())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{protocol::Raw, turn::prompt::AssistantMessage};

    fn count(messages: &[PromptMessage<'_>], tools: &[OfferedTool]) -> u64 {
        let mut counter = TokenCounter::for_model("gpt-4o");
        prompt_tokens(messages, tools, &TextFormat::Text, &mut counter)
    }

    #[test]
    fn everything_that_is_shown_counts() {
        assert_eq!(count(&[], &[]), ANSWER);
        let user = PromptMessage::User(vec![PromptPart::Text("hello world".into())]);
        let base = count(std::slice::from_ref(&user), &[]);
        assert_eq!(base, ANSWER + MESSAGE + 2);
        let system = PromptMessage::System("hello".into());
        assert_eq!(count(&[system, user.clone()], &[]), base + MESSAGE + 1);
        let assistant = PromptMessage::Assistant(AssistantMessage {
            reasoning: Some("hello".into()),
            ..AssistantMessage::default()
        });
        assert_eq!(count(&[user.clone(), assistant], &[]), base + MESSAGE + 1);
        let tool = OfferedTool {
            name: "hello".to_owned(),
            description: Some("world".to_owned()),
            parameters: Raw::parse("{}").unwrap(),
            strict: false,
            grammar: None,
        };
        assert_eq!(count(&[user], &[tool]), base + BRACKET + 3);
    }
}
