//! Whether JSON that arrives in pieces is whole: for the arguments of a call, which may only run once they are.
//!
//! One step per byte, nothing kept but a few words: the text itself stays with whoever collects it.

/// How far the text has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JsonState {
    /// Nothing but white space so far.
    Blank,
    /// A value has begun and is not whole.
    Inside,
    /// One whole value, and nothing but white space after it. A number by itself may still grow.
    Complete,
    /// No continuation can make this JSON: a wrong character, or more text after the value.
    Garbage,
}

/// Follows one JSON value as strictly as `serde_json` does, to its depth of 127 and without joining surrogates.
#[derive(Clone, Debug, Default)]
pub struct JsonScan {
    step: Step,
    /// The open containers, innermost in the lowest bit: 1 is an object.
    kinds: u128,
    depth: u32,
    /// The string being read is a key.
    key: bool,
}

/// How deep `serde_json` reads.
const MAX_DEPTH: u32 = 127;

/// What may come next.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Step {
    #[default]
    Value,
    FirstValueOrEnd,
    FirstKeyOrEnd,
    Key,
    Colon,
    CommaOrEnd,
    InString,
    Escape,
    /// This many digits of a `\u` escape.
    Hex(u8),
    /// The rest of `true`, `false` or `null`.
    Literal(&'static [u8]),
    Number(Number),
    Garbage,
}

/// The part of a number that was read last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Number {
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    E,
    Sign,
    Exponent,
}

impl JsonScan {
    /// Reads the next piece, and says how far the text has come with it.
    pub fn push(&mut self, piece: &str) -> JsonState {
        for byte in piece.bytes() {
            self.step = self.next(byte);
        }
        self.state()
    }

    /// Whether the value is whole whatever follows. A number is not: more digits may come.
    pub fn is_closed(&self) -> bool {
        self.depth == 0 && matches!(self.step, Step::CommaOrEnd)
    }

    /// Reads one byte, for whoever looks at the bytes besides.
    pub fn push_byte(&mut self, byte: u8) -> JsonState {
        self.step = self.next(byte);
        self.state()
    }

    /// Reads until the value is whole or cannot become JSON, and says how many bytes that took; all of them when neither happened. A byte that
    /// makes it garbage is not counted, so that the count always ends between two characters.
    pub fn read_value(&mut self, piece: &str) -> usize {
        for (at, byte) in piece.bytes().enumerate() {
            match self.push_byte(byte) {
                JsonState::Garbage => return at,
                JsonState::Complete => return at + 1,
                JsonState::Blank | JsonState::Inside => (),
            }
        }
        piece.len()
    }

    /// Whether it stands inside of a string.
    pub fn in_string(&self) -> bool {
        matches!(self.step, Step::InString | Step::Escape | Step::Hex(_))
    }

    /// Whether it stands inside of a string that is the key of an object.
    pub fn in_key(&self) -> bool {
        self.key && self.in_string()
    }

    /// How far the text has come.
    pub fn state(&self) -> JsonState {
        match self.step {
            Step::Garbage => JsonState::Garbage,
            Step::Value if self.depth == 0 => JsonState::Blank,
            Step::CommaOrEnd if self.depth == 0 => JsonState::Complete,
            Step::Number(number) if self.depth == 0 && number.may_end() => JsonState::Complete,
            _ => JsonState::Inside,
        }
    }

    fn next(&mut self, byte: u8) -> Step {
        match self.step {
            Step::InString => match byte {
                b'"' if self.key => Step::Colon,
                b'"' => Step::CommaOrEnd,
                b'\\' => Step::Escape,
                0..0x20 => Step::Garbage,
                _ => Step::InString,
            },
            Step::Escape => match byte {
                b'u' => Step::Hex(4),
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Step::InString,
                _ => Step::Garbage,
            },
            Step::Hex(left) => match byte {
                b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' if left == 1 => Step::InString,
                b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' => Step::Hex(left - 1),
                _ => Step::Garbage,
            },
            Step::Literal(rest) => match rest {
                [last] if *last == byte => Step::CommaOrEnd,
                [first, rest @ ..] if *first == byte => Step::Literal(rest),
                _ => Step::Garbage,
            },
            Step::Number(number) => match number.next(byte) {
                Some(number) => Step::Number(number),
                None if number.may_end() => self.between(Step::CommaOrEnd, byte),
                None => Step::Garbage,
            },
            between => self.between(between, byte),
        }
    }

    /// A step outside of strings, literals and numbers, where white space may stand.
    fn between(&mut self, step: Step, byte: u8) -> Step {
        match (step, byte) {
            (Step::Garbage, _) => Step::Garbage,
            (_, b' ' | b'\t' | b'\n' | b'\r') => step,
            (Step::FirstKeyOrEnd | Step::Key, b'"') => {
                self.key = true;
                Step::InString
            }
            (Step::FirstKeyOrEnd, b'}') | (Step::FirstValueOrEnd, b']') => self.close(),
            (Step::Colon, b':') => Step::Value,
            (Step::CommaOrEnd, b',') if self.depth > 0 => {
                if self.in_object() {
                    Step::Key
                } else {
                    Step::Value
                }
            }
            (Step::CommaOrEnd, b'}') if self.depth > 0 && self.in_object() => self.close(),
            (Step::CommaOrEnd, b']') if self.depth > 0 && !self.in_object() => self.close(),
            (Step::Value | Step::FirstValueOrEnd, byte) => self.value(byte),
            _ => Step::Garbage,
        }
    }

    fn value(&mut self, first: u8) -> Step {
        match first {
            b'{' => self.open(1, Step::FirstKeyOrEnd),
            b'[' => self.open(0, Step::FirstValueOrEnd),
            b'"' => {
                self.key = false;
                Step::InString
            }
            b't' => Step::Literal(b"rue"),
            b'f' => Step::Literal(b"alse"),
            b'n' => Step::Literal(b"ull"),
            b'-' => Step::Number(Number::Minus),
            b'0' => Step::Number(Number::Zero),
            b'1'..=b'9' => Step::Number(Number::Digits),
            _ => Step::Garbage,
        }
    }

    fn open(&mut self, kind: u128, then: Step) -> Step {
        if self.depth == MAX_DEPTH {
            return Step::Garbage;
        }
        self.kinds = self.kinds << 1 | kind;
        self.depth += 1;
        then
    }

    fn close(&mut self) -> Step {
        self.kinds >>= 1;
        self.depth -= 1;
        Step::CommaOrEnd
    }

    fn in_object(&self) -> bool {
        self.kinds & 1 == 1
    }
}

impl Number {
    fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus | Self::Digits, b'0'..=b'9') => Some(Self::Digits),
            (Self::Zero | Self::Digits, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Digits | Self::Fraction, b'e' | b'E') => Some(Self::E),
            (Self::E, b'+' | b'-') => Some(Self::Sign),
            (Self::E | Self::Sign | Self::Exponent, b'0'..=b'9') => Some(Self::Exponent),
            _ => None,
        }
    }

    fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Digits | Self::Fraction | Self::Exponent)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan(pieces: &[&str]) -> JsonState {
        let mut scan = JsonScan::default();
        pieces.iter().fold(scan.state(), |_, piece| scan.push(piece))
    }

    #[test]
    fn states_are_told_apart() {
        use JsonState::{Blank, Complete, Garbage, Inside};
        for (text, expected) in [
            ("", Blank),
            (" \n\t\r", Blank),
            ("{", Inside),
            (r#"{"a"#, Inside),
            (r#"{"a":"}"#, Inside),
            (r#"{"a":"\"}"#, Inside),
            (r#"{"a":{"b":[1,2]}"#, Inside),
            ("{}", Complete),
            (" {\"a\" : [ ] }\n", Complete),
            (r#"{"a":{"b":[1,-0.5e+10,true,null,"\u00e9\ud83d"]}}"#, Complete),
            ("12", Complete),
            ("-", Inside),
            ("1.", Inside),
            ("1e", Inside),
            ("true", Complete),
            ("tru", Inside),
            ("\"a", Inside),
            ("{}{}", Garbage),
            ("{} x", Garbage),
            ("{]", Garbage),
            ("[}", Garbage),
            ("[1,]", Garbage),
            ("{\"a\":1,}", Garbage),
            ("{a:1}", Garbage),
            ("{'a':1}", Garbage),
            ("01", Garbage),
            ("trux", Garbage),
            ("\"a\nb\"", Garbage),
            (r#""\x""#, Garbage),
            (r#""\u00g""#, Garbage),
            ("]", Garbage),
            (",", Garbage),
            ("\u{a0}{}", Garbage),
        ] {
            assert_eq!(scan(&[text]), expected, "{text}");
            for (cut, _) in text.char_indices() {
                assert_eq!(scan(&[&text[..cut], &text[cut..]]), expected, "{text} cut at {cut}");
            }
        }
    }

    #[test]
    fn it_is_as_deep_as_the_parser() {
        for depth in [1, 126, 127, 128, 200, 100_000] {
            let text = "[".repeat(depth) + &"]".repeat(depth);
            let parses = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            assert_eq!(scan(&[&text]) == JsonState::Complete, parses, "{depth}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        /// Complete is exactly what the parser takes, and garbage is never made whole by what follows.
        #[test]
        fn it_agrees_with_the_parser(parts in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "u", "0", "00e9", "1", "-", ".", "e", "+", "true", "null", " ", "\n", "é", "\"a\"", "\"a\":",
        ]), 0..10)) {
            let text = parts.concat();
            let parses = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            prop_assert_eq!(scan(&[&text]) == JsonState::Complete, parses(&text), "{}", text);
            let mut walk = JsonScan::default();
            if parts.iter().any(|part| walk.push(part) == JsonState::Garbage) {
                prop_assert!(!parses(&text));
            }
        }
    }
}
