//! What the demo says to a question.

use std::fmt::Write as _;

use super::wish::{Wish, WishedCall, wish};
use crate::{
    model::{Ask, AskTool, Choice, recite},
    protocol::response::{Effort, TextFormat},
    text::{excerpt::shortened, instance},
    turn::prompt::{PromptMessage, PromptPart},
};

/// What it says of itself wherever it says something.
const SELF: &str = "This is antiphon's built-in demo model: scripted answers, no AI behind them.";

/// The most characters of one thing that it repeats.
const MOST: usize = 2000;

/// What is said in one Round.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) reasoning: String,
    pub(super) text: String,
    pub(super) calls: Vec<AnswerCall>,
}

/// A call in it.
#[derive(Debug, PartialEq)]
pub(super) struct AnswerCall {
    pub(super) name: String,
    /// JSON text.
    pub(super) arguments: String,
}

/// What the question comes down to.
struct Question<'m> {
    /// What the user said last.
    asked: &'m str,
    /// What the tools returned that the user waits for: names and outputs.
    returned: Vec<(&'m str, String)>,
}

/// Answers a question.
pub(super) fn answer(ask: &Ask<'_>) -> Answer {
    let asked = last_of_user(ask);
    let question = Question { asked: &asked, returned: returned(ask) };
    // The wish of a user who waits for results has been granted already.
    let granted = !question.returned.is_empty();
    let wish = if granted { Wish::default() } else { wish(&asked, ask.tools) };
    let reasoning = match wish.think_about {
        Some(subject) if ask.effort != Some(Effort::None) => format!(
            "I am to think about {}. I am a script, so this is a made-up thought: it shows where reasoning is streamed. Now I answer.",
            shortened(subject, MOST)
        ),
        Some(_) | None => String::new(),
    };
    match calls(ask, &wish) {
        Ok(calls) if !calls.is_empty() => Answer { reasoning, text: String::new(), calls },
        Ok(_) => Answer { reasoning, text: text(ask, &question, None), calls: Vec::new() },
        Err(why) => Answer { reasoning, text: text(ask, &question, Some(&why)), calls: Vec::new() },
    }
}

/// The calls that are wished for or that there have to be; the error is a sentence about a wish that cannot be granted.
fn calls(ask: &Ask<'_>, wish: &Wish<'_>) -> Result<Vec<AnswerCall>, String> {
    let may = if ask.parallel_calls == Some(false) { 1 } else { usize::MAX };
    let wished = || wish.calls.iter().map(wished_call).collect::<Result<Vec<_>, _>>();
    let mut calls = match ask.choice {
        Choice::None => Vec::new(),
        Choice::Auto => wished()?,
        // It must call something: what was meant, or else the first that there is.
        Choice::Required => match wished() {
            Ok(calls) if !calls.is_empty() => calls,
            Ok(_) | Err(_) => ask.tools.first().map(call_of).into_iter().collect(),
        },
        Choice::Named(name) => {
            let meant = wished().unwrap_or_default().into_iter().filter(|call| call.name == name);
            let mut calls: Vec<_> = meant.collect();
            if calls.is_empty() {
                calls.extend(ask.tools.iter().find(|tool| tool.name == name).map(call_of));
            }
            calls
        }
    };
    calls.truncate(may);
    Ok(calls)
}

fn wished_call(call: &WishedCall<'_>) -> Result<AnswerCall, String> {
    match call {
        WishedCall::Of { tool, arguments: None } => Ok(call_of(tool)),
        WishedCall::Of { tool, arguments: Some(arguments) } => {
            Ok(AnswerCall { name: tool.name.clone(), arguments: (*arguments).to_owned() })
        }
        WishedCall::NotJson { tool, why } => Err(format!(
            "I was to call {}, but what is given as its arguments is no JSON object: {why}.",
            tool.name
        )),
        WishedCall::Unknown(name) => {
            Err(format!("I was to call {name}, but there is no such tool here."))
        }
    }
}

/// A call with the least arguments that the tool takes.
fn call_of(tool: &AskTool) -> AnswerCall {
    let arguments = instance::least_of(&tool.parameters).filter(serde_json::Value::is_object);
    AnswerCall {
        name: tool.name.clone(),
        arguments: arguments.map_or_else(|| "{}".to_owned(), |arguments| arguments.to_string()),
    }
}

/// The text, in the format that was asked for.
fn text(ask: &Ask<'_>, question: &Question<'_>, trouble: Option<&str>) -> String {
    match ask.format {
        TextFormat::Text => plain(ask, question, trouble),
        TextFormat::JsonObject => {
            let mut object = serde_json::Map::new();
            object.insert(
                "note".to_owned(),
                trouble.map_or(SELF.to_owned(), |trouble| format!("{SELF} {trouble}")).into(),
            );
            object.insert("asked".to_owned(), shortened(question.asked, MOST).into());
            if !question.returned.is_empty() {
                let returned = question.returned.iter();
                let returned = returned
                    .map(|(tool, output)| serde_json::json!({"tool": tool, "output": output}));
                object.insert("returned".to_owned(), returned.collect());
            }
            serde_json::Value::Object(object).to_string()
        }
        TextFormat::JsonSchema(format) => instance::least_of(&format.schema)
            .map_or_else(|| "{}".to_owned(), |value| value.to_string()),
    }
}

fn plain(ask: &Ask<'_>, question: &Question<'_>, trouble: Option<&str>) -> String {
    let mut text = SELF.to_owned();
    for (tool, output) in &question.returned {
        // A `String` takes everything.
        let _ = write!(text, "\n\nThe tool {tool} returned: {output}");
    }
    if !question.returned.is_empty() {
        return text;
    }
    if let Some(trouble) = trouble {
        let _ = write!(text, " {trouble}");
    }
    match question.asked {
        "" => text.push_str(" You said nothing that I could repeat."),
        asked => {
            let _ = write!(text, " You said: \"{}\"", shortened(asked, MOST));
        }
    }
    if let Some(before) = before_last(ask) {
        let _ = write!(text, "\n\nBefore that you said: \"{}\"", shortened(&before, 200));
    }
    match (ask.choice, ask.tools) {
        (Choice::None, _) | (_, []) => {
            text.push_str("\n\nTry: \"think about the sea\", or offer me a tool.");
        }
        (_, tools @ [first, ..]) => {
            let names: Vec<&str> = tools.iter().take(20).map(|tool| &*tool.name).collect();
            let _ = write!(
                text,
                "\n\nI can call {}. Try: \"call {} with {}\".",
                names.join(", "),
                first.name,
                call_of(first).arguments
            );
        }
    }
    text
}

/// What the user said last, with a word for each thing that is not text.
fn last_of_user(ask: &Ask<'_>) -> String {
    said_by_user(ask).next().unwrap_or_default()
}

fn before_last(ask: &Ask<'_>) -> Option<String> {
    said_by_user(ask).nth(1)
}

fn said_by_user(ask: &Ask<'_>) -> impl Iterator<Item = String> {
    ask.messages.iter().rev().filter_map(|message| match message {
        PromptMessage::User(parts) => Some(shown(parts)),
        PromptMessage::System(_) | PromptMessage::Assistant(_) | PromptMessage::Tool { .. } => None,
    })
}

/// The results that are the last thing of the prompt, with the names of their tools.
fn returned<'m>(ask: &'m Ask<'_>) -> Vec<(&'m str, String)> {
    let newest = recite::newest(&ask.messages);
    let after_user = newest.iter().rposition(|message| matches!(message, PromptMessage::User(_)));
    if after_user.is_some() {
        return Vec::new();
    }
    let name_of = |id: &str| {
        ask.messages.iter().rev().find_map(|message| match message {
            PromptMessage::Assistant(said) => said.calls.iter().find(|call| call.call_id == id),
            PromptMessage::System(_) | PromptMessage::User(_) | PromptMessage::Tool { .. } => None,
        })
    };
    let results = newest.iter().filter_map(|message| match message {
        PromptMessage::Tool { call_id, output } => {
            let name = name_of(call_id).map_or(*call_id, |call| &*call.name);
            Some((name, shortened(&shown(output), MOST).into_owned()))
        }
        PromptMessage::System(_) | PromptMessage::User(_) | PromptMessage::Assistant(_) => None,
    });
    results.collect()
}

/// A message as text, with a word for each thing in it that is none.
fn shown(parts: &[PromptPart<'_>]) -> String {
    let parts = parts.iter().map(|part| match part {
        PromptPart::Text(text) => text.trim(),
        PromptPart::Image { .. } => "[an image]",
        PromptPart::File { .. } => "[a file]",
        PromptPart::Audio(_) => "[a sound]",
        PromptPart::Video(_) => "[a film]",
    });
    parts.collect::<Vec<_>>().join("\n")
}
