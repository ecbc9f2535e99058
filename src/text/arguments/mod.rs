//! What a model wrote as the arguments of a call, made the JSON object that the tool's schema asks for.
//!
//! Three steps: [`normalise`] reads the text as an object, [`mend`] makes of it what was plainly meant, [`ArgumentSchema::check`] says what
//! still does not fit. [`fitting`] does all three.
//!
//! **Invariants:** what fits the schema is left as it is, white space and code in strings above all. What cannot be read is never an
//! empty object, but a sentence that the model can act on. Nothing panics, and everything takes time linear in the text.

mod fault;
mod form;
mod loose;
mod mend;
mod shape;
mod weight;

use std::borrow::Cow;

use serde_json::{Map, Value};

use self::loose::read_one;

pub use self::{
    fault::{ArgumentFault, FaultKind},
    form::ArgumentSchema,
};

/// The arguments of a call.
pub type Arguments = Map<String, Value>;

/// Names that models use for an argument, and its own: `("query", "queries")`.
pub type Aliases<'a> = &'a [(&'a str, &'a str)];

/// How often an object may be written as a string of a string.
const MAX_LAYERS: usize = 4;

/// The arguments that fit the schema, or a sentence for the model that says what is wrong, with a right example where there is one.
pub fn fitting(
    written: &str,
    schema: &ArgumentSchema,
    aliases: Aliases<'_>,
) -> Result<Arguments, String> {
    let mut arguments =
        normalise(written, schema).map_err(|fault| schema.with_example(fault.to_string()))?;
    mend(&mut arguments, schema, aliases);
    schema.check(&arguments)?;
    Ok(arguments)
}

/// Reads what a model wrote as an object, and opens top-level strings that hold a list or an object where the schema asks for such a
/// thing and not for a string; without a schema, all of them.
pub fn normalise(written: &str, schema: &ArgumentSchema) -> Result<Arguments, ArgumentFault> {
    let mut arguments = read(written)?;
    mend::open_strings(&mut arguments, schema.shape());
    Ok(arguments)
}

/// Reads what a model wrote as an object, values as they are.
///
/// Nothing at all, `null` and an empty string are no arguments: `{}`. An object in a string, in a code fence, or written twice is that
/// object; halves of surrogate pairs are replaced, NUL is left out.
pub fn read(written: &str) -> Result<Arguments, ArgumentFault> {
    let mut text = Cow::Borrowed(written);
    for layer in 0..=MAX_LAYERS {
        let inner = unfenced(text.trim_matches(is_blank));
        if inner.is_empty() {
            return Ok(Arguments::new());
        }
        match read_one(inner) {
            Ok(Value::Null) => return Ok(Arguments::new()),
            Ok(Value::Object(fields)) => return Ok(fields),
            Ok(Value::String(inside)) => text = Cow::Owned(inside),
            Ok(Value::Array(_)) => {
                return Err(ArgumentFault::new(FaultKind::NotAnObject("a list")));
            }
            Ok(Value::Number(_)) => {
                return Err(ArgumentFault::new(FaultKind::NotAnObject("a number")));
            }
            Ok(Value::Bool(_)) => {
                return Err(ArgumentFault::new(FaultKind::NotAnObject("true or false")));
            }
            Err(fault) if layer == 0 => return Err(fault),
            // A text, and not one that holds JSON.
            Err(_) => break,
        }
    }
    Err(ArgumentFault::new(FaultKind::NotAnObject("a text")))
}

/// The text of the arguments in a call that a model wrote as JSON: `arguments`, else `parameters`; none at all are `{}`. `None` when they
/// are neither an object nor a text that may be one: then it is no call.
pub fn written_in(call: &Map<String, Value>) -> Option<Cow<'_, str>> {
    match call.get("arguments").or_else(|| call.get("parameters")) {
        None => Some("{}".into()),
        Some(object @ Value::Object(_)) => Some(object.to_string().into()),
        Some(Value::String(text)) => {
            let is_other =
                serde_json::from_str::<Value>(text).is_ok_and(|value| !value.is_object());
            (!is_other).then_some(text.into())
        }
        Some(_) => None,
    }
}

/// Mends what was plainly meant, by the schema: an alias gets its name; a lone value where a list is asked for becomes a list of one;
/// numbers, words and lists written as strings become what they are; `null` for an argument that need not be there is left out.
pub fn mend(arguments: &mut Arguments, schema: &ArgumentSchema, aliases: Aliases<'_>) {
    if let Some(shape) = schema.shape() {
        mend::rename(arguments, shape, aliases);
        mend::mend_fields(arguments, shape);
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\0' | '\u{feff}')
}

/// What a code fence holds, where the fence is all there is.
fn unfenced(text: &str) -> &str {
    let Some(inside) = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return text;
    };
    let language = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '-');
    let body = inside.trim_start_matches(language);
    // Without a language, the first word may be the value itself.
    if body.starts_with(|c: char| c.is_whitespace() || matches!(c, '{' | '"')) {
        body.trim()
    } else {
        inside.trim()
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;

#[cfg(test)]
mod vector_tests;
