//! What a model plainly meant, made what the schema asks for. What the schema takes is never touched.

use serde_json::{Map, Value};

use super::{
    Aliases, Arguments,
    loose::read_one,
    shape::{Kinds, Shape},
};

/// Opens strings that hold a list or an object where the schema asks for one; without a schema, all of them. One level only.
pub(super) fn open_strings(arguments: &mut Arguments, shape: Option<Shape<'_>>) {
    for (name, value) in arguments.iter_mut() {
        let kinds = match shape {
            Some(shape) => shape.property(name).map_or(Kinds::ALL, Shape::kinds),
            None => Kinds::ARRAY.or(Kinds::OBJECT),
        };
        if let Value::String(text) = value
            && let Some(opened) = opened(text, kinds)
        {
            *value = opened;
        }
    }
}

/// Gives arguments under an alias their name.
pub(super) fn rename(arguments: &mut Arguments, shape: Shape<'_>, aliases: Aliases<'_>) {
    for (alias, name) in aliases {
        if shape.declares(alias) || !arguments.contains_key(*alias) {
            continue;
        }
        match arguments.get(*name) {
            // Both say something: put together where that is possible, else left for the check.
            Some(value) if !says_nothing(value) => {
                let as_list = |value: &Value| match value {
                    Value::Array(items) => items.clone(),
                    value => vec![value.clone()],
                };
                let lists = shape.property(name).is_some_and(|s| s.kinds().has(Kinds::ARRAY));
                let (mut all, more) = (as_list(value), as_list(&arguments[*alias]));
                if all == more {
                    arguments.shift_remove(*alias);
                } else if lists {
                    all.extend(more);
                    arguments.insert((*name).to_owned(), all.into());
                    arguments.shift_remove(*alias);
                }
            }
            _ => {
                arguments.shift_remove(*name);
                // In its place, so that the order stays the model's.
                let renamed = std::mem::take(arguments).into_iter().map(|(key, value)| {
                    if key == *alias { ((*name).to_owned(), value) } else { (key, value) }
                });
                *arguments = renamed.collect();
            }
        }
    }
}

/// Mends the fields of an object and what is in them.
pub(super) fn mend_fields(fields: &mut Map<String, Value>, shape: Shape<'_>) {
    fields.retain(|name, value| {
        let Some(field) = shape.property(name) else { return true };
        let kinds = field.kinds();
        let meant_as_absent = match value {
            Value::Null => !kinds.has(Kinds::NULL),
            Value::String(text) => {
                !kinds.has(Kinds::STRING.or(Kinds::NULL).or(Kinds::ARRAY)) && is_no_word(text)
            }
            _ => false,
        };
        if meant_as_absent && !shape.requires(name) {
            return false;
        }
        mend(value, field);
        true
    });
}

/// Mends one value. As deep as JSON is read, no deeper.
fn mend(value: &mut Value, shape: Shape<'_>) {
    let kinds = shape.kinds();
    if !kinds.has(Kinds::of(value))
        && let Some(meant) = meant(value, kinds)
    {
        *value = meant;
    }
    match value {
        Value::Object(fields) => mend_fields(fields, shape),
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                if let Some(shape) = shape.item(at) {
                    mend(item, shape);
                }
            }
        }
        // `5.0` where a whole number is asked for: some readers take only `5`.
        Value::Number(number) if number.is_f64() && only_whole(kinds) => {
            if let Some(whole) = number.as_f64().and_then(whole) {
                *value = whole.into();
            }
        }
        _ => (),
    }
}

/// The value of one of the kinds that was plainly meant by one of another kind.
fn meant(value: &Value, kinds: Kinds) -> Option<Value> {
    let other = match value {
        Value::String(text) => from_text(text, kinds),
        Value::Number(number) if !number.is_f64() && kinds.has(Kinds::STRING) => {
            Some(number.to_string().into())
        }
        Value::Bool(word) if kinds.has(Kinds::STRING) => Some(word.to_string().into()),
        Value::Array(items) => match items.as_slice() {
            [lone] if kinds.has(Kinds::of(lone)) => Some(lone.clone()),
            _ => None,
        },
        _ => None,
    };
    other.or_else(|| match value {
        Value::Null | Value::Array(_) => None,
        // A list that is broken must not become a list of one odd text.
        Value::String(text) if text.trim_start().starts_with(['[', '{']) && !is_prose(text) => None,
        Value::String(text) if text.trim().is_empty() => {
            kinds.has(Kinds::ARRAY).then(|| Value::Array(Vec::new()))
        }
        lone => kinds.has(Kinds::ARRAY).then(|| Value::Array(vec![lone.clone()])),
    })
}

fn from_text(text: &str, kinds: Kinds) -> Option<Value> {
    let word = text.trim();
    if let Some(opened) = opened(text, kinds) {
        return Some(opened);
    }
    if let Ok(number) = serde_json::from_str::<serde_json::Number>(word) {
        let number = match number.as_f64().and_then(whole) {
            Some(whole) if number.is_f64() && only_whole(kinds) => whole.into(),
            _ => Value::Number(number),
        };
        return kinds.has(Kinds::of(&number)).then_some(number);
    }
    match word {
        "true" | "True" if kinds.has(Kinds::BOOLEAN) => Some(true.into()),
        "false" | "False" if kinds.has(Kinds::BOOLEAN) => Some(false.into()),
        word if kinds.has(Kinds::NULL) && is_no_word(word) => Some(Value::Null),
        _ => None,
    }
}

/// The list or the object that the text holds, where such a thing is asked for and a text is not.
fn opened(text: &str, kinds: Kinds) -> Option<Value> {
    let inner = text.trim();
    let asked = match inner.as_bytes() {
        [b'[', .., b']'] => Kinds::ARRAY,
        [b'{', .., b'}'] => Kinds::OBJECT,
        _ => return None,
    };
    if kinds.has(Kinds::STRING) || !kinds.has(Kinds::ARRAY.or(Kinds::OBJECT)) {
        return None;
    }
    let value = read_one(inner).ok()?;
    // An object where a list is asked for becomes a list of one.
    match value {
        Value::Object(_) if !kinds.has(Kinds::OBJECT) => Some(Value::Array(vec![value])),
        value => kinds.has(asked).then_some(value),
    }
}

/// Whether brackets at the beginning of a text are the writer's own: `[draft] notes`.
fn is_prose(text: &str) -> bool {
    let mut inner = text.trim_start().chars();
    inner.next();
    let first = inner.find(|c| !c.is_whitespace());
    first.is_none_or(char::is_alphabetic) && !text.trim_end().ends_with([']', '}'])
}

/// Whether numbers are asked for, and only whole ones.
fn only_whole(kinds: Kinds) -> bool {
    kinds.has(Kinds::INTEGER) && !kinds.has(Kinds::FRACTION)
}

fn is_no_word(text: &str) -> bool {
    matches!(text.trim(), "" | "null" | "None")
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The whole number, where it is one and nothing is lost.
fn whole(number: f64) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked: it is whole and in the range where f64 is exact"
    )]
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

#[cfg(test)]
#[path = "mend_tests.rs"]
mod tests;
