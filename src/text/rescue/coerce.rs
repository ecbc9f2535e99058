//! Arguments as the schema wants them: what was written as text becomes the JSON that its type says.

use std::{borrow::Cow, collections::HashMap, fmt, ops::BitOr};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::{protocol::Raw, text::repair::repair_json};

/// What a tool's schema says about its arguments, as far as it matters here.
#[derive(Debug, Default)]
pub(super) struct Schema {
    properties: HashMap<String, Types>,
    required: Vec<String>,
}

/// The JSON types that a property may have; none at all stands for any.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Types(u8);

const TEXT: Types = Types(1);
const NUMBER: Types = Types(2);
const BOOLEAN: Types = Types(4);
const LIST: Types = Types(8);
const OBJECT: Types = Types(16);
const NULL: Types = Types(32);

impl BitOr for Types {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Types {
    fn named(word: &str) -> Self {
        match word {
            "string" => TEXT,
            "number" | "integer" => NUMBER,
            "boolean" => BOOLEAN,
            "array" => LIST,
            "object" => OBJECT,
            "null" => NULL,
            _ => Self::default(),
        }
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => NULL,
            Value::Bool(_) => BOOLEAN,
            Value::Number(_) => NUMBER,
            Value::String(_) => TEXT,
            Value::Array(_) => LIST,
            Value::Object(_) => OBJECT,
        }
    }

    fn are_known(self) -> bool {
        self != Self::default()
    }

    fn allow(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What a property's schema says. `anyOf` and its kin count one level deep, an `enum` or `const` by its values.
    fn read(property: &Value) -> Self {
        let named = |value: &Value| match value {
            Value::String(word) => Self::named(word),
            Value::Array(words) => words
                .iter()
                .filter_map(Value::as_str)
                .fold(Self::default(), |types, word| types | Self::named(word)),
            _ => Self::default(),
        };
        if let Some(types) = property.get("type") {
            return named(types);
        }
        let choices = ["anyOf", "oneOf"].iter().find_map(|key| property.get(*key)?.as_array());
        if let Some(choices) = choices {
            let types: Option<Vec<Self>> =
                choices.iter().map(|choice| choice.get("type").map(named)).collect();
            return types.unwrap_or_default().into_iter().fold(Self::default(), Self::bitor);
        }
        let values = property.get("enum").and_then(Value::as_array).into_iter().flatten();
        values
            .chain(property.get("const"))
            .fold(Self::default(), |types, value| types | Self::of(value))
    }
}

impl Schema {
    pub(super) fn read(parameters: &Raw) -> Self {
        let Ok(schema) = parameters.to::<Value>() else { return Self::default() };
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        Self {
            properties: properties.map(|(name, of)| (name.clone(), Types::read(of))).collect(),
            required: required.filter_map(|name| Some(name.as_str()?.to_owned())).collect(),
        }
    }

    pub(super) fn knows(&self, property: &str) -> bool {
        self.properties.contains_key(property)
    }

    /// How many of the fields are properties; nothing when none is, or when a required one is missing.
    pub(super) fn fit(&self, fields: &Fields<'_>) -> Option<usize> {
        let has = |name: &String| fields.0.iter().any(|(field, _)| field == name);
        let known = fields.0.iter().filter(|(field, _)| self.knows(field)).count();
        (known > 0 && self.required.iter().all(has)).then_some(known)
    }

    /// JSON text of an object, with text opened where the schema wants a list, an object, a number or a truth value. What needs no change is
    /// left byte for byte.
    pub(super) fn coerce_object(&self, json: &str) -> String {
        let json = clean(json);
        let opened = serde_json::from_str::<Fields<'_>>(&json).ok().and_then(|fields| {
            let open = |(name, value): &(String, &RawValue)| self.opened(name, value.get());
            let opened: Vec<Option<String>> = fields.0.iter().map(open).collect();
            opened.iter().any(Option::is_some).then(|| {
                let values = fields.0.iter().zip(&opened);
                object(values.map(|((name, value), opened)| {
                    (name.as_str(), opened.as_deref().unwrap_or(value.get()))
                }))
            })
        });
        opened.unwrap_or_else(|| json.into_owned())
    }

    /// What the text of a string holds, where the schema wants that and no text.
    fn opened(&self, property: &str, json: &str) -> Option<String> {
        let types = self.properties.get(property).copied().unwrap_or_default();
        if !json.starts_with('"') || !types.are_known() || types.allow(TEXT) {
            return None;
        }
        let text: String = serde_json::from_str(json).ok()?;
        json_of(text.trim(), types)
    }

    /// The JSON of an argument that was written as text, between tags.
    pub(super) fn argument(&self, property: &str, written: &str, is_text: bool) -> String {
        let types = self.properties.get(property).copied().unwrap_or_default();
        let trimmed = written.trim();
        if is_text || types == TEXT {
            return string(text_value(written, is_text));
        }
        let others = if types.are_known() { Types(types.0 & !TEXT.0) } else { types };
        json_of(trimmed, others)
            .unwrap_or_else(|| string(text_value(written, /* is_text */ false)))
    }
}

/// The text as JSON of one of these types; of any, where none is known.
fn json_of(text: &str, types: Types) -> Option<String> {
    let json = match text {
        // As Python writes them.
        "True" => "true",
        "False" => "false",
        "None" => "null",
        json => json,
    };
    let value: Value = serde_json::from_str(json).ok()?;
    (!types.are_known() || types.allow(Types::of(&value))).then(|| json.to_owned())
}

/// Text between tags without the line breaks that the template puts around it. White space around a single line is the template's as well,
/// unless the model said that this is text to the last blank.
fn text_value(written: &str, to_the_last_blank: bool) -> &str {
    let start = written.strip_prefix("\r\n").or_else(|| written.strip_prefix('\n'));
    let inner = start.unwrap_or(written);
    let end = inner.strip_suffix("\r\n").or_else(|| inner.strip_suffix('\n'));
    let inner = end.unwrap_or(inner);
    if to_the_last_blank || inner.contains('\n') { inner } else { inner.trim() }
}

/// JSON text of a string, without NUL, which Postgres refuses.
pub(super) fn string(text: &str) -> String {
    let text: Cow<'_, str> =
        if text.contains('\0') { text.replace('\0', "").into() } else { text.into() };
    Value::String(text.into_owned()).to_string()
}

/// JSON text of an object with these fields; the last of one name counts.
pub(super) fn object<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut json = String::from("{");
    for (name, value) in fields {
        if json.len() > 1 {
            json.push(',');
        }
        json.push_str(&string(name));
        json.push(':');
        json.push_str(value);
    }
    json.push('}');
    json
}

/// JSON without escapes of NUL and of lone surrogate halves.
fn clean(json: &str) -> Cow<'_, str> {
    let Some(first) = json.find("\\u") else { return Cow::Borrowed(json) };
    let (mut clean, mut rest) = (json[..first].to_owned(), &json[first..]);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        clean.push_str(before);
        if let Some(after) = escape.strip_prefix("\\u0000") {
            rest = after;
            continue;
        }
        // A backslash that is escaped begins no escape.
        let length = 1 + escape[1..].chars().next().map_or(0, char::len_utf8);
        clean.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    clean.push_str(rest);
    match repair_json(clean.as_bytes()) {
        Cow::Borrowed(_) => clean.into(),
        Cow::Owned(repaired) => String::from_utf8(repaired).unwrap_or(clean).into(),
    }
}

/// The fields of a JSON object, in their order and byte for byte.
#[derive(Debug)]
pub(super) struct Fields<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Fields(fields))
    }
}
