//! JSON as models write it.
//!
//! Read besides JSON: raw line ends and unknown escapes in strings, strings in single quotes, keys without quotes, commas before a
//! closing bracket, `True`, `False` and `None`. All of these mean one thing only. What is cut off is never completed.

use serde_json::{Map, Number, Value};

use crate::text::json_string::StringReader;

use super::fault::{ArgumentFault, FaultKind};

/// As deep as `serde_json` reads, and writes so that it can be read again.
const MAX_DEPTH: u32 = 127;

/// Reads the one value that the text holds. The same value several times, empty objects beside another value, and closing brackets too
/// many at the end are what some servers make of it, and count for nothing.
pub(super) fn read_one(text: &str) -> Result<Value, ArgumentFault> {
    // The parser does not know that NUL is left out.
    if !text.contains('\0')
        && !text.contains("\\u0000")
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    let mut reader = Reader { text, at: 0 };
    let mut one = reader.value(MAX_DEPTH)?;
    loop {
        reader.skip_space();
        match reader.peek() {
            None => return Ok(one),
            Some('}' | ']') => reader.at += 1,
            Some('{' | '[') => {
                let next = reader.value(MAX_DEPTH)?;
                if is_empty_object(&one) {
                    one = next;
                } else if next != one && !is_empty_object(&next) {
                    return Err(ArgumentFault::new(FaultKind::Several));
                }
            }
            Some(_) => return Err(reader.fault("there is text after the JSON")),
        }
    }
}

fn is_empty_object(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

struct Reader<'t> {
    text: &'t str,
    /// Where the rest begins, in bytes.
    at: usize,
}

impl<'t> Reader<'t> {
    fn value(&mut self, depth: u32) -> Result<Value, ArgumentFault> {
        self.skip_space();
        match self.peek() {
            None => Err(ArgumentFault::new(FaultKind::CutOff)),
            Some('{' | '[') if depth == 0 => Err(ArgumentFault::new(FaultKind::TooDeep)),
            Some('{') => self.object(depth - 1).map(Value::Object),
            Some('[') => self.array(depth - 1).map(Value::Array),
            Some(quote @ ('"' | '\'')) => self.string(quote).map(Value::String),
            Some('-' | '0'..='9') => self.number().map(Value::Number),
            Some(_) => match self.word() {
                "true" | "True" => Ok(true.into()),
                "false" | "False" => Ok(false.into()),
                "null" | "None" => Ok(Value::Null),
                word if self.at == self.text.len() && begins_a_word(word) => {
                    Err(ArgumentFault::new(FaultKind::CutOff))
                }
                word => {
                    self.at -= word.len();
                    Err(self.fault("a value must stand here"))
                }
            },
        }
    }

    fn object(&mut self, depth: u32) -> Result<Map<String, Value>, ArgumentFault> {
        let mut fields = Map::new();
        self.at += 1;
        loop {
            self.skip_space();
            let (name, named) = match self.peek() {
                Some('}') => {
                    self.at += 1;
                    return Ok(fields);
                }
                Some(quote @ ('"' | '\'')) => (self.string(quote)?, true),
                _ => {
                    let word = self.word();
                    (word.to_owned(), !word.is_empty())
                }
            };
            self.skip_space();
            match self.peek() {
                None => return Err(ArgumentFault::new(FaultKind::CutOff)),
                Some(':') if named => self.at += 1,
                Some(_) => return Err(self.fault("a name and a colon must stand here")),
            }
            let value = self.value(depth)?;
            fields.insert(name, value);
            self.comma_before('}')?;
        }
    }

    fn array(&mut self, depth: u32) -> Result<Vec<Value>, ArgumentFault> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip_space();
            if self.peek() == Some(']') {
                self.at += 1;
                return Ok(items);
            }
            items.push(self.value(depth)?);
            self.comma_before(']')?;
        }
    }

    /// Takes the comma; before the closing bracket there need not be one.
    fn comma_before(&mut self, close: char) -> Result<(), ArgumentFault> {
        self.skip_space();
        match self.peek() {
            None => Err(ArgumentFault::new(FaultKind::CutOff)),
            Some(',') => {
                self.at += 1;
                Ok(())
            }
            Some(c) if c == close => Ok(()),
            Some(_) => Err(self.fault(&format!("a comma or `{close}` must stand here"))),
        }
    }

    fn string(&mut self, quote: char) -> Result<String, ArgumentFault> {
        let (mut reader, mut string) = (StringReader::new(quote), String::new());
        let body = &self.text[self.at + 1..];
        let end = body.char_indices().find(|(_, c)| reader.push(*c, &mut string));
        let Some((end, _)) = end else {
            return Err(ArgumentFault::new(FaultKind::CutOff));
        };
        self.at += 1 + end + quote.len_utf8();
        Ok(string)
    }

    fn number(&mut self) -> Result<Number, ArgumentFault> {
        let digits = self.take(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'));
        let number = serde_json::from_str(digits);
        number.map_err(|_| {
            self.at -= digits.len();
            self.fault("this is no number")
        })
    }

    /// A name without quotes: may be empty.
    fn word(&mut self) -> &'t str {
        if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            return "";
        }
        self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '-'))
    }

    fn skip_space(&mut self) {
        self.take(|c| c.is_whitespace() || matches!(c, '\0' | '\u{feff}'));
    }

    fn take(&mut self, part: impl Fn(char) -> bool) -> &'t str {
        let rest = &self.text[self.at..];
        let taken = &rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn fault(&self, what: &str) -> ArgumentFault {
        let near: String = self.text[self.at..].chars().take(20).collect();
        ArgumentFault::new(FaultKind::NotJson { what: what.to_owned(), near })
    }
}

fn begins_a_word(word: &str) -> bool {
    !word.is_empty()
        && ["true", "false", "null", "True", "False", "None"].iter().any(|w| w.starts_with(word))
}
