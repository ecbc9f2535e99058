//! Calls behind marker tokens: JSON in `<tool_call>` or behind `<|python_tag|>`, Kimi's, Mistral's, and lines as a history is told.

use super::{
    Made, Strangers, Tools, json,
    objects::{Found, json_at},
};

/// The calls of JSON objects in markup.
pub(super) fn objects(block: &str, tools: &Tools, strangers: Strangers) -> Vec<Made> {
    let read = |block: &str| -> Option<Vec<Made>> {
        let values = values(block);
        let calls = values.iter().filter_map(|json| json::named(json, tools, strangers));
        (!values.is_empty()).then(|| calls.flatten().collect())
    };
    // Models write line breaks into strings as they are.
    read(block).or_else(|| read(&json::escape_controls(block))).unwrap_or_default()
}

/// `<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`, as often as it stands there.
pub(super) fn kimi(block: &str, tools: &Tools, strangers: Strangers) -> Vec<Made> {
    let calls = block.split("<|tool_call_begin|>").skip(1);
    let read = |call: &str| {
        let (name, rest) = call.split_once("<|tool_call_argument_begin|>")?;
        let arguments = rest.split("<|tool_call_end|>").next().unwrap_or(rest).trim();
        let arguments = if arguments.is_empty() { "{}".to_owned() } else { object_at(arguments)? };
        tools.call(name.trim(), &arguments, strangers)
    };
    calls.filter_map(read).collect()
}

/// `<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>`, or with `function` before the mark and the name behind it, and the arguments in a fence.
pub(super) fn deepseek(block: &str, tools: &Tools, strangers: Strangers) -> Vec<Made> {
    let read = |call: &str| {
        let (head, rest) = call.split_once("<｜tool▁sep｜>")?;
        let body = rest.split("<｜tool▁call▁end｜>").next().unwrap_or(rest);
        let (name, json) = body.split_at(body.find('{')?);
        let name = match head.trim() {
            "function" => name.trim().trim_end_matches("```json").trim_end_matches("```").trim(),
            name => name,
        };
        tools.call(name, &object_at(json)?, strangers)
    };
    block.split("<｜tool▁call▁begin｜>").skip(1).filter_map(read).collect()
}

/// `[TOOL_CALLS]` and a list of objects, or `NAME[ARGS]{…}`, or `NAME{…}`.
pub(super) fn mistral(block: &str, tools: &Tools, strangers: Strangers) -> Vec<Made> {
    let body = block.trim_start_matches("[TOOL_CALLS]").trim_start();
    let name = body.split(['[', '{']).next().unwrap_or_default().trim();
    if name.is_empty() {
        return objects(body, tools, strangers);
    }
    let Some(arguments) = body.find('{').and_then(|at| object_at(&body[at..])) else {
        return Vec::new();
    };
    tools.call(name, &arguments, strangers).into_iter().collect()
}

/// `[Tool Call] name=NAME id=… args={…}`
pub(super) fn line(block: &str, tools: &Tools, strangers: Strangers) -> Vec<Made> {
    let name = block.split_once("name=").and_then(|(_, rest)| rest.split_whitespace().next());
    let arguments = match block.split_once("args=") {
        Some((_, rest)) => object_at(rest.trim_start()),
        None => Some("{}".to_owned()),
    };
    let call = name.zip(arguments).and_then(|(name, arguments)| {
        tools.call(name.trim_matches(['"', '\'', ',']), &arguments, strangers)
    });
    call.into_iter().collect()
}

/// The JSON object that a text begins with, also one whose strings hold line breaks as they are.
pub(super) fn object_at(text: &str) -> Option<String> {
    let whole = |text: &str| match json_at(text, 0) {
        Found::Whole(end) if text.starts_with('{') => Some(text[..end].to_owned()),
        _ => None,
    };
    whole(text).or_else(|| whole(&json::escape_controls(text)))
}

/// The lists and objects of a text, one after the other.
fn values(text: &str) -> Vec<&str> {
    let mut values = Vec::new();
    let mut at = 0;
    // The opener has a bracket of its own in one grammar, but never a brace; a list is read from its first object on.
    while let Some(skipped) = memchr::memchr(b'{', &text.as_bytes()[at..]) {
        at += skipped;
        match json_at(text, at) {
            Found::Whole(end) => {
                values.push(&text[at..end]);
                at = end;
            }
            Found::Broken { resume, .. } => at = resume,
        }
    }
    values
}
