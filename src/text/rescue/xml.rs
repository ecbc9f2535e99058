//! Calls in tags: `<invoke name="…"><parameter name="…">`, `<function=…><parameter=…>`, and the pairs of GLM.
//!
//! A text is cut into its tags once. What stands between an opening and a closing tag is a value, whatever it looks like; a closing tag ends
//! a value only where another tag of the grammar follows it, so that code may speak of tags.

use memchr::memchr_iter;

use super::{
    Made, Strangers, Tools,
    coerce::{Schema, object},
    marked::object_at,
    opening::{Lead, lead},
};

/// A tag in a text.
#[derive(Clone, Copy, Debug)]
struct Tag<'a> {
    kind: Kind,
    /// Its attributes, or what follows the `=` in its name.
    inside: &'a str,
    start: usize,
    end: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Call,
    CallEnd,
    Parameter,
    ParameterEnd,
    /// A wrapper's end, where calls end that were not closed.
    WrapperEnd,
}

/// What tags are called in a dialect of XML.
type Names = [(&'static str, Kind)];

const INVOKE: &Names = &[
    ("<invoke", Kind::Call),
    ("</invoke>", Kind::CallEnd),
    ("<parameter", Kind::Parameter),
    ("</parameter>", Kind::ParameterEnd),
    ("</function_calls>", Kind::WrapperEnd),
    ("</minimax:tool_call>", Kind::WrapperEnd),
    ("<｜DSML｜invoke", Kind::Call),
    ("</｜DSML｜invoke>", Kind::CallEnd),
    ("<｜DSML｜parameter", Kind::Parameter),
    ("</｜DSML｜parameter>", Kind::ParameterEnd),
    ("</｜DSML｜function_calls>", Kind::WrapperEnd),
];

const FUNCTION: &Names = &[
    ("<function=", Kind::Call),
    ("</function>", Kind::CallEnd),
    ("<parameter=", Kind::Parameter),
    ("</parameter>", Kind::ParameterEnd),
    ("</tool_call>", Kind::WrapperEnd),
];

/// A call as it was written.
struct Written<'a> {
    inside: &'a str,
    parameters: Vec<Parameter<'a>>,
    /// What stands between the call's tag and its end, where no parameter does.
    body: &'a str,
}

struct Parameter<'a> {
    inside: &'a str,
    value: &'a str,
}

/// The calls of `<invoke>` tags.
pub(super) fn invokes(block: &str, tools: &Tools, strangers: Strangers) -> Vec<Made> {
    let calls = written(block, &tags(block, INVOKE), Unclosed::IsNone);
    let read = |call: &Written<'_>| {
        let name = attribute(call.inside, "name")?;
        let schema = tools.meant(&name).and_then(|name| tools.schema(name));
        let fields: Vec<(String, String)> = call
            .parameters
            .iter()
            .filter_map(|parameter| {
                let name = attribute(parameter.inside, "name").filter(|name| !name.is_empty())?;
                let is_text = attribute(parameter.inside, "string")
                    .is_some_and(|is| is.eq_ignore_ascii_case("true"));
                let value = argument(schema, &name, &unescape(parameter.value), is_text);
                Some((name, value))
            })
            .collect();
        tools.call(&name, &last_of_each(&fields), strangers)
    };
    calls.iter().filter_map(read).collect()
}

/// The calls of `<function=…>` tags, with parameters or with JSON in them.
pub(super) fn functions(block: &str, tools: &Tools, strangers: Strangers) -> Vec<Made> {
    let calls = written(block, &tags(block, FUNCTION), Unclosed::IsWhole);
    let read = |call: &Written<'_>| {
        let name = call.inside.trim();
        if call.parameters.is_empty() && call.body.trim_start().starts_with('{') {
            return tools.call(name, &object_at(call.body.trim_start())?, strangers);
        }
        let schema = tools.meant(name).and_then(|name| tools.schema(name));
        let fields = call.parameters.iter().map(|Parameter { inside, value }| {
            let name = inside.trim();
            (name.to_owned(), argument(schema, name, value, /* is_text */ false))
        });
        tools.call(name, &last_of_each(&fields.collect::<Vec<_>>()), strangers)
    };
    calls.iter().filter_map(read).collect()
}

/// `<tool_call>NAME<arg_key>…</arg_key><arg_value>…</arg_value></tool_call>`
pub(super) fn pairs(block: &str, tools: &Tools, strangers: Strangers) -> Vec<Made> {
    let body = block.get("<tool_call>".len()..).unwrap_or_default();
    let mut parts = body.split("<arg_key>");
    let head = parts.next().unwrap_or_default();
    let name = head.split("</tool_call>").next().unwrap_or(head).trim();
    let schema = tools.meant(name).and_then(|name| tools.schema(name));
    let fields: Option<Vec<(String, String)>> = parts
        .map(|part| {
            let (key, rest) = part.split_once("</arg_key>")?;
            let (_, value) = rest.split_once("<arg_value>")?;
            // The value's own end is the last one: what it holds may look like another.
            let (value, _) = value.rsplit_once("</arg_value>")?;
            Some((key.trim().to_owned(), argument(schema, key.trim(), value, /* is_text */ false)))
        })
        .collect();
    let is_closed = head.contains("</tool_call>") || block.contains("<arg_key>");
    let call = fields
        .filter(|_| is_closed)
        .and_then(|fields| tools.call(name, &last_of_each(&fields), strangers));
    call.into_iter().collect()
}

fn argument(schema: Option<&Schema>, name: &str, value: &str, is_text: bool) -> String {
    match schema {
        Some(schema) => schema.argument(name, value, is_text),
        None => Schema::default().argument(name, value, is_text),
    }
}

/// JSON text of these fields; of those with one name the last counts, in the place of the first.
fn last_of_each(fields: &[(String, String)]) -> String {
    let mut unique = serde_json::Map::new();
    for (at, (name, _)) in fields.iter().enumerate() {
        unique.insert(name.clone(), at.into());
    }
    let last = unique.iter().filter_map(|(name, at)| {
        let at = usize::try_from(at.as_u64()?).ok()?;
        Some((name.as_str(), fields.get(at)?.1.as_str()))
    });
    object(last)
}

/// What becomes of a tag that was not closed.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Unclosed {
    /// It is not there.
    IsNone,
    /// It ends where the next one begins; the last one must have a value that was closed.
    IsWhole,
}

/// The calls that the tags make.
fn written<'a>(text: &'a str, tags: &[Tag<'a>], unclosed: Unclosed) -> Vec<Written<'a>> {
    let mut calls = Vec::new();
    let mut open: Option<(Written<'a>, usize)> = None;
    let mut at = 0;
    while let Some(tag) = tags.get(at) {
        at += 1;
        match (tag.kind, &mut open) {
            (Kind::Call, None) => {
                let call = Written { inside: tag.inside, parameters: Vec::new(), body: "" };
                open = Some((call, tag.end));
            }
            (Kind::Call | Kind::WrapperEnd, Some(_)) if unclosed == Unclosed::IsWhole => {
                if let Some((mut call, from)) = open.take() {
                    call.body = &text[from..tag.start];
                    calls.push(call);
                }
                at -= usize::from(tag.kind == Kind::Call);
            }
            (Kind::CallEnd, Some(_)) => {
                if let Some((mut call, from)) = open.take() {
                    call.body = &text[from..tag.start];
                    calls.push(call);
                }
            }
            (Kind::Parameter, Some((call, _))) => {
                let (value, next) = value(text, tags, at, tag.end, unclosed);
                let inside = tag.inside;
                call.parameters.extend(value.map(|value| Parameter { inside, value }));
                at = next;
            }
            _ => (),
        }
    }
    // The last closing tags are often missing, where the backend takes them for its stop words.
    if unclosed == Unclosed::IsWhole
        && let Some((mut call, from)) = open
    {
        call.body = &text[from..];
        let is_whole = !call.parameters.is_empty() || object_at(call.body.trim_start()).is_some();
        calls.extend(is_whole.then_some(call));
    }
    calls
}

/// The value of the parameter whose tag ends at `from`, and the tag to go on with.
fn value<'a>(
    text: &'a str,
    tags: &[Tag<'a>],
    first: usize,
    from: usize,
    unclosed: Unclosed,
) -> (Option<&'a str>, usize) {
    // A closing tag with something behind it, which ends the value if no better one comes.
    let mut closed = None;
    for (at, tag) in tags.iter().enumerate().skip(first) {
        let is_last = match tags.get(at + 1) {
            Some(next) => {
                text[tag.end..next.start].trim().is_empty() && next.kind != Kind::ParameterEnd
            }
            None => text[tag.end..].trim().is_empty(),
        };
        match tag.kind {
            Kind::ParameterEnd if is_last => return (Some(&text[from..tag.start]), at + 1),
            Kind::ParameterEnd => closed = closed.or(Some(tag.start)),
            Kind::Parameter if closed.is_none() && unclosed == Unclosed::IsNone => (),
            Kind::Parameter | Kind::CallEnd | Kind::WrapperEnd => {
                let end = closed.or((unclosed == Unclosed::IsWhole).then_some(tag.start));
                return (end.map(|end| &text[from..end]), at);
            }
            Kind::Call => (),
        }
    }
    (None, tags.len())
}

/// The tags of a text, in order.
fn tags<'a>(text: &'a str, names: &Names) -> Vec<Tag<'a>> {
    let mut tags = Vec::new();
    // The attributes of a tag that is not closed are looked for once.
    let mut after_last = None;
    for start in memchr_iter(b'<', text.as_bytes()) {
        if tags.last().is_some_and(|last: &Tag<'_>| start < last.end) {
            continue;
        }
        let rest = &text[start..];
        let found = names.iter().find_map(|(name, kind)| match lead(rest, name) {
            Lead::Whole(rest) => Some((*kind, rest)),
            Lead::Part | Lead::No => None,
        });
        let Some((kind, inside)) = found else { continue };
        let from = text.len() - inside.len();
        let mut tag = Tag { kind, inside: "", start, end: from };
        if matches!(kind, Kind::Call | Kind::Parameter) {
            let own_word = text[..from].ends_with('=')
                || inside.starts_with(|c: char| c == '>' || c.is_ascii_whitespace());
            let last = *after_last.get_or_insert_with(|| text.rfind('>').map_or(0, |at| at + 1));
            if !own_word || last <= from {
                continue;
            }
            let length = if text[..from].ends_with('=') {
                inside.bytes().take(LONGEST_TAG).position(|byte| byte == b'>')
            } else {
                tag_length(inside)
            };
            let Some(length) = length else { continue };
            tag.inside = &inside[..length];
            tag.end = from + length + 1;
        }
        tags.push(tag);
    }
    tags
}

/// No tag of a call is longer.
const LONGEST_TAG: usize = 1024;

/// How far it is to the `>` that ends a tag; one between quotes does not.
fn tag_length(inside: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in inside.char_indices().take(LONGEST_TAG) {
        match (quote, c) {
            (None, '>') => return Some(at),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => (),
        }
    }
    None
}

/// The value of an attribute, its entities resolved.
fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        let quoted = after.trim_start();
        let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, after) = quoted[1..].split_once(quote)?;
        if key.split_whitespace().next_back().is_some_and(|key| key.eq_ignore_ascii_case(name)) {
            return Some(unescape(value).trim().to_owned());
        }
        rest = after.trim_start();
    }
    None
}

/// Text without the five entities of XML and without numbered ones.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let resolved = rest.bytes().take(12).position(|b| b == b';').and_then(|end| {
            let entity = &rest[1..end];
            let c = match entity {
                "amp" => '&',
                "lt" => '<',
                "gt" => '>',
                "quot" => '"',
                "apos" => '\'',
                _ => {
                    let number = entity.strip_prefix('#')?;
                    let code = match number.strip_prefix(['x', 'X']) {
                        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                        None => number.parse().ok()?,
                    };
                    char::from_u32(code)?
                }
            };
            Some((c, end + 1))
        });
        let (c, length) = resolved.unwrap_or(('&', 1));
        plain.push(c);
        rest = &rest[length..];
    }
    plain.push_str(rest);
    plain
}
