//! What a user tells the demo to do: `call get_weather with {"city":"Oslo"}`, `think about the sea`.

use serde_json::value::RawValue;

use crate::model::AskTool;

/// The most calls of one Round.
const MOST_CALLS: usize = 16;

/// Where a sentence is taken to end that does not, in characters.
const LONGEST_SENTENCE: usize = 1000;

/// What the demo is to do.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wish<'p> {
    /// What it is to call, in this order.
    pub(super) calls: Vec<WishedCall<'p>>,
    /// What it is to think about.
    pub(super) think_about: Option<&'p str>,
}

/// A tool to call.
#[derive(Debug, PartialEq)]
pub(super) enum WishedCall<'p> {
    /// One that there is; with the JSON text of an object, if one was given.
    Of { tool: &'p AskTool, arguments: Option<&'p str> },
    /// One that there is, with arguments that are no JSON object: what is wrong with them.
    NotJson { tool: &'p AskTool, why: String },
    /// One that was called a tool and is none.
    Unknown(&'p str),
}

/// Reads what a user said.
pub(super) fn wish<'p>(said: &'p str, tools: &'p [AskTool]) -> Wish<'p> {
    let mut calls = Vec::new();
    let mut rest = said;
    while calls.len() < MOST_CALLS
        && let Some((before, after)) = split_at_word(rest, "call")
    {
        rest = after;
        if is_negated(before) {
            continue;
        }
        if let Some((call, tail)) = call(after, tools) {
            calls.push(call);
            rest = tail;
        }
    }
    Wish { calls, think_about: think_about(said) }
}

/// Reads what follows the word `call`, and what is left after it. `None`: nothing that could be a tool.
fn call<'p>(after: &'p str, tools: &'p [AskTool]) -> Option<(WishedCall<'p>, &'p str)> {
    let (rest, _) = skip_words(after, &["the", "a", "my"]);
    let (rest, mut is_tool) = skip_words(rest, &["tool", "function"]);
    let rest = rest.trim_start().trim_start_matches(QUOTES);
    let end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
    // A sentence may end with the name.
    let name = rest[..end].trim_end_matches(['.', '-']);
    if name.is_empty() {
        return None;
    }
    let rest = rest[name.len()..].trim_start_matches(QUOTES);
    let (rest, named_tool) = skip_words(rest, &["tool", "function"]);
    is_tool |= named_tool;
    let Some(tool) = find(tools, name) else {
        return is_tool.then_some((WishedCall::Unknown(name), rest));
    };
    let between = [
        "with",
        "using",
        "and",
        "the",
        "these",
        "this",
        "arguments",
        "argument",
        "args",
        "input",
        "parameters",
        "json",
    ];
    let (rest, _) = skip_words(rest, &between);
    let object =
        rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '(' | '=' | '`'));
    if !object.starts_with('{') {
        return Some((WishedCall::Of { tool, arguments: None }, rest));
    }
    let mut values = serde_json::Deserializer::from_str(object).into_iter::<&RawValue>();
    Some(match values.next() {
        Some(Ok(arguments)) => {
            let tail = &object[values.byte_offset()..];
            (WishedCall::Of { tool, arguments: Some(arguments.get()) }, tail)
        }
        Some(Err(error)) => (WishedCall::NotJson { tool, why: error.to_string() }, ""),
        None => (WishedCall::Of { tool, arguments: None }, rest),
    })
}

const QUOTES: [char; 7] = ['`', '"', '\'', '“', '”', '‘', '’'];

const fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// The tool of this name; of this name in a namespace, which the model sees before it.
fn find<'t>(tools: &'t [AskTool], name: &str) -> Option<&'t AskTool> {
    // As a dot cannot stand in a name for a model, it was replaced.
    let name = name.replace('.', "_");
    let inside =
        |tool: &&AskTool| tool.name.strip_suffix(&*name).is_some_and(|space| space.ends_with("__"));
    tools.iter().find(|tool| tool.name == name).or_else(|| tools.iter().find(inside))
}

/// What stands after `think about`, to the end of the sentence or up to a call.
fn think_about(said: &str) -> Option<&str> {
    let mut rest = said;
    while let Some((before, after)) = split_at_word(rest, "think") {
        rest = after;
        let (subject, said_about) = skip_words(after, &["hard", "about", "of"]);
        if is_negated(before) || !said_about {
            continue;
        }
        let subject = subject.trim_start();
        let ends_at = |at: usize, c: char| {
            let before_blank =
                subject[at + c.len_utf8()..].chars().next().is_none_or(char::is_whitespace);
            c == '\n' || (before_blank && matches!(c, '.' | '?' | '!' | ',' | ';'))
        };
        let mut chars = subject.char_indices();
        let end = chars.by_ref().take(LONGEST_SENTENCE).find(|(at, c)| ends_at(*at, *c));
        let end = end.or_else(|| chars.next()).map_or(subject.len(), |(at, _)| at);
        let mut subject = &subject[..end];
        if let Some((before_call, _)) = split_at_word(subject, "call") {
            subject = before_call.trim_end();
            subject =
                subject.strip_suffix(" and").or(subject.strip_suffix(" then")).unwrap_or(subject);
        }
        if !subject.trim().is_empty() {
            return Some(subject.trim());
        }
    }
    None
}

/// Whether what comes next is not to be done.
fn is_negated(before: &str) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default().to_ascii_lowercase();
    matches!(&*last, "not" | "never" | "without" | "cannot")
        || last.ends_with("n't")
        || last.ends_with("n’t")
}

/// Splits around the first `word` that stands for itself, in whatever case.
fn split_at_word<'p>(text: &'p str, word: &str) -> Option<(&'p str, &'p str)> {
    let mut before = None;
    text.char_indices().find_map(|(at, c)| {
        let inside = before.replace(c).is_some_and(joins);
        let after = strip_word(&text[at..], word).filter(|_| !inside)?;
        Some((&text[..at], after))
    })
}

/// Skips these words, in whatever case, as long as one of them is next; and says whether there was one.
fn skip_words<'p>(text: &'p str, words: &[&str]) -> (&'p str, bool) {
    let mut rest = text;
    let mut skipped = false;
    while let Some(after) = words.iter().find_map(|word| strip_word(rest.trim_start(), word)) {
        rest = after;
        skipped = true;
    }
    (rest, skipped)
}

/// What follows `word`, if the text begins with it, in whatever case.
fn strip_word<'p>(text: &'p str, word: &str) -> Option<&'p str> {
    let (begin, after) = text.split_at_checked(word.len())?;
    (begin.eq_ignore_ascii_case(word) && !after.starts_with(joins)).then_some(after)
}

/// Whether a word goes on with this character.
fn joins(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
#[path = "wish_tests.rs"]
mod tests;
