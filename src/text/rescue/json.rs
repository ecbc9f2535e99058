//! Calls that are JSON objects: with a name and arguments, inside of a `function` or `tool_calls`, with the tool's name as the key, or bare
//! arguments that fit one tool best.

use serde_json::value::RawValue;

use super::{
    Made, Strangers, Tools, WrittenCall,
    coerce::{Fields, object},
    fence,
    objects::{Found, json_at},
};

/// The keys of objects that are calls.
pub(in crate::text) const CALL_KEYS: [&str; 13] = [
    "name",
    "arguments",
    "parameters",
    "args",
    "input",
    "type",
    "id",
    "call_id",
    "index",
    "function",
    "tool",
    "tool_name",
    "tool_calls",
];

/// The keys of a name, and those of arguments, in the order in which they count.
const NAMES: [&str; 4] = ["name", "tool_name", "tool", "function"];
const ARGUMENTS: [&str; 4] = ["arguments", "parameters", "args", "input"];

/// The calls of JSON that names its tools. Nothing when no name is in it; an empty list when it names a tool that is no tool, or calls one with
/// what are no arguments: that is nobody's call and no bare arguments either.
pub(super) fn named(json: &str, tools: &Tools, strangers: Strangers) -> Option<Vec<Made>> {
    if json.starts_with('[') {
        let calls: Vec<Vec<Made>> =
            elements(json).iter().filter_map(|json| named(json.get(), tools, strangers)).collect();
        return (!calls.is_empty()).then(|| calls.into_iter().flatten().collect());
    }
    let fields = fields(json)?;
    if let Some(calls) = direct(&fields, tools, strangers) {
        return Some(calls);
    }
    let calls: Vec<Vec<Made>> = fields
        .0
        .iter()
        .filter(|(_, value)| value.get().starts_with(['{', '[']))
        .filter_map(|(_, value)| named(value.get(), tools, strangers))
        .collect();
    (!calls.is_empty()).then(|| calls.into_iter().flatten().collect())
}

/// The calls of bare arguments in JSON that names nobody, the outermost ones. Fields that the tool does not know are left out.
pub(super) fn bare(json: &str, tools: &Tools) -> Vec<Made> {
    if json.starts_with('[') {
        return elements(json).iter().flat_map(|json| bare(json.get(), tools)).collect();
    }
    let Some(fields) = fields(json) else { return Vec::new() };
    if let Some(name) = best_fit(&fields, tools) {
        let schema = tools.schema(name);
        let known =
            fields.0.iter().filter(|(key, _)| schema.is_some_and(|schema| schema.knows(key)));
        let arguments = object(known.map(|(key, value)| (key.as_str(), value.get())));
        return tools.call(name, &arguments, Strangers::Drop).into_iter().collect();
    }
    fields.0.iter().flat_map(|(_, value)| bare(value.get(), tools)).collect()
}

/// The calls of a text that is nothing but calls, in JSON that names tools that are known; in a fence or not.
pub(super) fn whole_answer(text: &str, tools: &Tools) -> Vec<WrittenCall> {
    let inside = fence::whole(text);
    let mut calls = Vec::new();
    let mut at = inside.start;
    loop {
        let rest = &text[at..inside.end];
        let next = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        if next.is_empty() {
            return calls;
        }
        let start = inside.end - next.len();
        let Found::Whole(end) = json_at(text, start) else { return Vec::new() };
        let made = outermost(&text[start..end], tools);
        if made.is_empty() {
            return Vec::new();
        }
        calls.extend(made.into_iter().map(|made| made.at(start..end)));
        at = end;
    }
}

/// JSON text of the object that arguments are, be they an object or text that holds one.
pub(super) fn arguments_of(json: &str) -> Option<String> {
    if json.starts_with('{') {
        return Some(json.to_owned());
    }
    let text: String = serde_json::from_str(json).ok()?;
    match text.trim() {
        "" => Some("{}".to_owned()),
        // Encoded once more.
        again if again.starts_with('"') => {
            arguments_of(&serde_json::from_str::<String>(again).ok()?)
        }
        object => fields(object).map(|_| object.to_owned()),
    }
}

/// A text whose strings hold line breaks and tabs as they are, made JSON.
pub(super) fn escape_controls(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len() + 16);
    let (mut in_string, mut after_backslash) = (false, false);
    for c in json.chars() {
        match c {
            '"' if !after_backslash => in_string = !in_string,
            '\n' if in_string => escaped.push_str("\\n"),
            '\r' if in_string => escaped.push_str("\\r"),
            '\t' if in_string => escaped.push_str("\\t"),
            _ => (),
        }
        after_backslash = c == '\\' && !after_backslash;
        if !(in_string && c.is_control()) {
            escaped.push(c);
        }
    }
    escaped
}

pub(super) fn fields(json: &str) -> Option<Fields<'_>> {
    serde_json::from_str(json).ok()
}

fn elements(json: &str) -> Vec<&RawValue> {
    serde_json::from_str(json).unwrap_or_default()
}

/// The calls that JSON makes without digging for them; none unless all of it is calls.
fn outermost(json: &str, tools: &Tools) -> Vec<Made> {
    if !json.starts_with('[') {
        let calls = fields(json).and_then(|fields| direct(&fields, tools, Strangers::Drop));
        return calls.unwrap_or_default();
    }
    let calls: Vec<Vec<Made>> =
        elements(json).iter().map(|json| outermost(json.get(), tools)).collect();
    if calls.iter().any(Vec::is_empty) { Vec::new() } else { calls.into_iter().flatten().collect() }
}

/// The calls that the object itself makes.
fn direct(fields: &Fields<'_>, tools: &Tools, strangers: Strangers) -> Option<Vec<Made>> {
    let field = |key: &str| fields.0.iter().find(|(name, _)| name == key).map(|(_, raw)| raw.get());
    let name = NAMES.iter().find_map(|key| {
        let name: String = serde_json::from_str(field(key)?).ok()?;
        Some((*key, name))
    });
    if let Some((key, name)) = name {
        let known = tools.meant(&name).is_some();
        match ARGUMENTS.iter().find_map(|key| field(key)) {
            Some(json) if known || strangers == Strangers::Drop || key == "name" => {
                let arguments = arguments_of(json);
                let call = arguments.and_then(|json| tools.call(&name, &json, strangers));
                return Some(call.into_iter().collect());
            }
            None if key == "name" && (known || strangers == Strangers::Keep) => {
                return Some(tools.call(&name, "{}", strangers).into_iter().collect());
            }
            _ => (),
        }
    }
    if let Some(calls) = field("tool_calls").filter(|json| json.starts_with('[')) {
        return named(calls, tools, strangers);
    }
    if let Some(function) = field("function").and_then(self::fields) {
        return direct(&function, tools, strangers);
    }
    let by_key: Vec<Made> = fields
        .0
        .iter()
        .filter(|(key, value)| value.get().starts_with('{') && tools.has(key))
        .filter_map(|(key, value)| tools.call(key, value.get(), Strangers::Drop))
        .collect();
    (!by_key.is_empty()).then_some(by_key)
}

/// The one tool whose properties the fields fit best.
fn best_fit<'t>(fields: &Fields<'_>, tools: &'t Tools) -> Option<&'t str> {
    let fits = tools.schemas().filter_map(|(name, schema)| Some((schema.fit(fields)?, name)));
    let mut best: Option<(usize, &str)> = None;
    let mut tie = false;
    for (fit, name) in fits {
        match best {
            Some((most, _)) if fit < most => (),
            Some((most, _)) if fit == most => tie = true,
            _ => (best, tie) = (Some((fit, name)), false),
        }
    }
    best.filter(|_| !tie).map(|(_, name)| name)
}
