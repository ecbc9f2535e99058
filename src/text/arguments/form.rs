//! The schema of a tool's arguments, ready for use: what fits, what is wrong with what does not, and an example of what would.

use jsonschema::{
    PatternOptions, ValidationError, Validator,
    error::ValidationErrorKind,
    paths::{Location, LocationSegment},
};
use serde_json::Value;

use crate::{
    protocol::Raw,
    text::{excerpt::shortened, instance},
};

use super::{Arguments, shape::Shape, weight::Weight};

/// The most that a schema may be long, in bytes: a longer one is not checked against.
const MAX_SCHEMA: usize = 512 * 1024;

/// How many faults one sentence tells.
const MAX_FAULTS: usize = 3;

/// How much of a value, or of a fault, a sentence shows.
const MAX_SHOWN: usize = 200;

/// How long an example may be.
const MAX_EXAMPLE: usize = 2000;

/// How far a pattern may backtrack before it counts as met.
const MAX_BACKTRACK: usize = 50_000;

/// The most that a compiled pattern may take, in bytes.
const MAX_PATTERN: usize = 1 << 20;

/// The schema of a tool's arguments.
///
/// One that is no valid schema, points outside of itself or is too large takes everything: a tool's author is not the model's fault.
#[derive(Debug)]
pub struct ArgumentSchema {
    root: Value,
    validator: Result<(Validator, Weight), String>,
}

impl ArgumentSchema {
    /// Reads and compiles a schema. `null` and `{}` are none.
    pub fn new(schema: &Raw) -> Self {
        let too_long = || Err(format!("it is longer than {MAX_SCHEMA} bytes"));
        if schema.json().len() > MAX_SCHEMA {
            return Self { root: Value::Null, validator: too_long() };
        }
        let mut root: Value = match schema.to() {
            Ok(root) => root,
            Err(error) => return Self { root: Value::Null, validator: Err(error.to_string()) },
        };
        if root.is_null() {
            root = Value::Bool(true);
        }
        let weight = Weight::of(&root).ok_or("with its references it is too large".to_owned());
        let validator = weight.and_then(|weight| Ok((compiled(&root)?, weight)));
        let validator = validator.map_err(|why| shortened(&why, MAX_SHOWN).into_owned());
        Self { root, validator }
    }

    /// Why nothing is checked against this schema, for the log; `None` when it is.
    pub fn unusable(&self) -> Option<&str> {
        self.validator.as_ref().err().map(String::as_str)
    }

    /// What it asks; `None` when there is no schema.
    pub(super) fn shape(&self) -> Option<Shape<'_>> {
        let says_something = self.root.as_object().is_some_and(|fields| !fields.is_empty());
        says_something.then(|| Shape::of(&self.root))
    }

    /// Whether the arguments fit; else a sentence for the model that says what does not, with an example of what would.
    pub fn check(&self, arguments: &Arguments) -> Result<(), String> {
        let Ok((validator, weight)) = &self.validator else { return Ok(()) };
        let value = Value::Object(arguments.clone());
        if validator.is_valid(&value) {
            return Ok(());
        }
        if !weight.bears(&value) {
            return Err(self.with_example("The arguments do not fit the tool.".to_owned()));
        }
        let mut faults =
            validator.iter_errors(&value).filter(is_of_the_arguments).map(|error| told(&error));
        let mut shown: Vec<String> = faults.by_ref().take(MAX_FAULTS).collect();
        shown.dedup();
        if shown.is_empty() {
            return Ok(());
        }
        if faults.next().is_some() {
            shown.push("and more".to_owned());
        }
        let sentence = format!("The arguments do not fit the tool: {}.", shown.join("; "));
        Err(self.with_example(sentence))
    }

    /// The least arguments that the tool takes, telling what goes where; `None` when none can be found.
    pub fn example(&self) -> Option<Value> {
        let fits = |value: &Value| {
            value.is_object() && self.validator.as_ref().is_ok_and(|(v, _)| v.is_valid(value))
        };
        instance::example(&self.root)
            .filter(fits)
            .or_else(|| instance::least(&self.root).filter(fits))
    }

    /// The sentence and, where there is a short one, a right example.
    pub(super) fn with_example(&self, sentence: String) -> String {
        match self.example().map(|example| example.to_string()) {
            Some(example) if example.len() <= MAX_EXAMPLE => {
                format!("{sentence} A right example: {example}")
            }
            _ => sentence,
        }
    }
}

fn compiled(root: &Value) -> Result<Validator, String> {
    let build = |root: &Value| {
        let patterns = PatternOptions::fancy_regex();
        let patterns = patterns.backtrack_limit(MAX_BACKTRACK).size_limit(MAX_PATTERN);
        jsonschema::options().offline().with_pattern_options(patterns).build(root)
    };
    build(root).or_else(|error| {
        // A dialect of its own, or one that is only known elsewhere: most of them say the same.
        let mut plain = root.clone();
        match plain.as_object_mut().and_then(|fields| fields.shift_remove("$schema")) {
            Some(_) => build(&plain).map_err(|error| error.to_string()),
            None => Err(error.to_string()),
        }
    })
}

/// Whether the arguments are at fault, and not the schema or what it takes to check it.
fn is_of_the_arguments(error: &ValidationError<'_>) -> bool {
    !matches!(
        error.kind(),
        ValidationErrorKind::BacktrackLimitExceeded { .. }
            | ValidationErrorKind::RegexEngineFailure { .. }
            | ValidationErrorKind::Referencing(_)
    )
}

/// A fault in words, with the place where it is.
fn told(error: &ValidationError<'_>) -> String {
    let place = place(error.instance_path());
    let said = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let whole = if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
            return format!("`{}` is missing", shortened(&whole, MAX_SHOWN));
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> =
                unexpected.iter().take(5).map(|name| format!("`{name}`")).collect();
            format!("there is no argument {}", names.join(", "))
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let cases = context.iter().filter_map(|case| case.first()).take(MAX_FAULTS);
            cases.map(masked).collect::<Vec<_>>().join(", or ")
        }
        _ => masked(error),
    };
    let said = shortened(&said, MAX_SHOWN).into_owned();
    if place.is_empty() { said } else { format!("`{place}`: {said}") }
}

fn masked(error: &ValidationError<'_>) -> String {
    let value = error.instance().to_string();
    error.masked_with(shortened(&value, 60)).to_string()
}

/// `queries[0].text`
fn place(path: &Location) -> String {
    let mut place = String::new();
    for segment in path {
        match segment {
            LocationSegment::Property(name) if place.is_empty() => place.push_str(&name),
            LocationSegment::Property(name) => {
                place.push('.');
                place.push_str(&name);
            }
            LocationSegment::Index(at) => place.extend(["[", &at.to_string(), "]"]),
        }
    }
    shortened(&place, MAX_SHOWN).into_owned()
}

#[cfg(test)]
#[path = "form_tests.rs"]
mod tests;
