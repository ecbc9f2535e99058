//! The arguments of a call while they are written: the text of each top-level string value, decoded, as it arrives.

use std::{collections::HashSet, sync::Arc};

use super::json_string::StringReader;

/// More text of a string argument.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ArgPiece {
    /// The argument's name.
    pub name: Arc<str>,
    /// The new text; empty when the argument has only begun.
    pub text: String,
}

/// Decodes the JSON text of a call's arguments as it arrives.
///
/// Only strings come out, and what they hold is what [`super::arguments`] reads, piece by piece: it is lenient in the same ways. Numbers,
/// lists and objects are seen whole when the call is whole. What cannot be read ends the stream in silence: whoever shows text while it is
/// written gets no error for it. An argument that comes twice is heard once. There is no `finish`: nothing is held back but half of an
/// escape, which is no text.
#[derive(Debug, Default)]
pub struct ArgStream {
    step: Step,
    /// Names that were heard already.
    heard: HashSet<Arc<str>>,
}

#[derive(Debug, Default)]
enum Step {
    /// Before the object.
    #[default]
    Start,
    NameOrEnd,
    /// A name in quotes.
    Name(StringReader, String),
    /// A name without quotes.
    BareName(String),
    Colon(String),
    Value(String),
    /// A string that is heard.
    Text(StringReader, Arc<str>),
    /// A number or a word.
    Scalar,
    /// A list or an object that is passed over, so deep.
    Nested(u32),
    /// A string that is passed over; 0: of the arguments themselves, else inside a list or an object that is so deep.
    Unheard(StringReader, u32),
    CommaOrEnd,
    /// After the object, or after what cannot be read.
    Silent,
}

impl ArgStream {
    /// Reads the next piece of the JSON text.
    pub fn push(&mut self, piece: &str) -> Vec<ArgPiece> {
        let mut out: Vec<ArgPiece> = Vec::new();
        let mut text = String::new();
        for c in piece.chars().filter(|c| *c != '\0') {
            text.clear();
            match &mut self.step {
                Step::Silent => break,
                Step::Text(reader, name) => {
                    let ended = reader.push(c, &mut text);
                    match out.last_mut() {
                        _ if text.is_empty() => (),
                        Some(last) if Arc::ptr_eq(&last.name, name) => last.text.push_str(&text),
                        _ => out.push(ArgPiece { name: Arc::clone(name), text: text.clone() }),
                    }
                    if ended {
                        self.step = Step::CommaOrEnd;
                    }
                }
                Step::Name(reader, name) => {
                    if reader.push(c, name) {
                        self.step = Step::Colon(std::mem::take(name));
                    }
                }
                Step::Unheard(reader, depth) => {
                    if reader.push(c, &mut text) {
                        self.step =
                            if *depth == 0 { Step::CommaOrEnd } else { Step::Nested(*depth) };
                    }
                }
                _ => self.between(c, &mut out),
            }
        }
        out
    }

    /// A character outside of strings.
    fn between(&mut self, c: char, out: &mut Vec<ArgPiece>) {
        let step = std::mem::replace(&mut self.step, Step::Silent);
        let blank = c.is_whitespace() || c == '\u{feff}';
        self.step = match (step, c) {
            (Step::BareName(name), _) if blank => Step::Colon(name),
            (Step::Scalar, _) if blank => Step::CommaOrEnd,
            (step, _) if blank => step,
            (Step::NameOrEnd, '"' | '\'') => Step::Name(StringReader::new(c), String::new()),
            (Step::NameOrEnd, c) if is_word(c) && !c.is_ascii_digit() => {
                Step::BareName(c.to_string())
            }
            (Step::BareName(mut name), c) if is_word(c) => {
                name.push(c);
                Step::BareName(name)
            }
            (Step::Colon(name) | Step::BareName(name), ':') => Step::Value(name),
            (Step::Value(name), '"' | '\'') => self.open(&name, c, out),
            (Step::Value(_), '{' | '[') => Step::Nested(1),
            (Step::Value(_) | Step::Scalar, c) if is_word(c) || matches!(c, '+' | '.') => {
                Step::Scalar
            }
            (Step::Nested(depth), '"' | '\'') => Step::Unheard(StringReader::new(c), depth),
            (Step::Nested(depth), '{' | '[') => Step::Nested(depth.saturating_add(1)),
            (Step::Nested(1), '}' | ']') => Step::CommaOrEnd,
            (Step::Nested(depth), '}' | ']') => Step::Nested(depth - 1),
            (Step::Nested(depth), _) => Step::Nested(depth),
            (Step::Start, '{') | (Step::CommaOrEnd | Step::Scalar, ',') => Step::NameOrEnd,
            _ => Step::Silent,
        };
    }

    /// A string value begins.
    fn open(&mut self, name: &str, quote: char, out: &mut Vec<ArgPiece>) -> Step {
        let name: Arc<str> = name.into();
        if !self.heard.insert(Arc::clone(&name)) {
            return Step::Unheard(StringReader::new(quote), 0);
        }
        out.push(ArgPiece { name: Arc::clone(&name), text: String::new() });
        Step::Text(StringReader::new(quote), name)
    }
}

/// Whether the character may stand in a name without quotes.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-')
}

#[cfg(test)]
#[path = "arg_stream_tests.rs"]
mod tests;
