//! The inside of one JSON string as models write it, character by character.
//!
//! What is JSON is read as `serde_json` reads it. What models write instead is read as it was meant: a raw line end stays, an escape
//! that JSON does not have (`\d`) is a backslash and its letter. No character comes out that text may not hold: half of a surrogate pair
//! becomes U+FFFD, NUL is left out.

/// Reads one string, from behind its opening quote.
#[derive(Clone, Debug)]
pub(super) struct StringReader {
    quote: char,
    step: Step,
    /// The first half of a surrogate pair, while the second may follow.
    high: Option<u16>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Plain,
    Escape,
    /// So many digits of a `\u` escape were read.
    Hex([char; 3], usize),
}

impl StringReader {
    /// A string that ends at the next `quote` that is not escaped.
    pub(super) fn new(quote: char) -> Self {
        Self { quote, step: Step::Plain, high: None }
    }

    /// Reads a character and appends what it means to `out`. `true`: it was the closing quote.
    pub(super) fn push(&mut self, c: char, out: &mut String) -> bool {
        match (self.step, c) {
            (_, '\0') => (),
            (Step::Plain, '\\') => self.step = Step::Escape,
            (Step::Plain, c) => {
                self.end_half(out);
                if c == self.quote {
                    return true;
                }
                out.push(c);
            }
            (Step::Escape, 'u') => self.step = Step::Hex(['0'; 3], 0),
            (Step::Escape, c) => {
                self.step = Step::Plain;
                self.end_half(out);
                match c {
                    '"' | '\'' | '\\' | '/' => out.push(c),
                    'b' => out.push('\u{8}'),
                    'f' => out.push('\u{c}'),
                    'n' => out.push('\n'),
                    'r' => out.push('\r'),
                    't' => out.push('\t'),
                    _ => out.extend(['\\', c]),
                }
            }
            (Step::Hex(digits, read), c) => return self.digit(digits, read, c, out),
        }
        false
    }

    fn digit(&mut self, mut digits: [char; 3], read: usize, c: char, out: &mut String) -> bool {
        if !c.is_ascii_hexdigit() {
            // No escape after all: what was read of it is text, and the character is on its own.
            self.step = Step::Plain;
            self.end_half(out);
            out.push_str("\\u");
            out.extend(&digits[..read]);
            return self.push(c, out);
        }
        if let Some(free) = digits.get_mut(read) {
            *free = c;
            self.step = Step::Hex(digits, read + 1);
            return false;
        }
        self.step = Step::Plain;
        let unit = digits.into_iter().chain([c]).filter_map(|digit| digit.to_digit(16));
        self.unit(unit.fold(0, |unit, digit| unit << 4 | digit), out);
        false
    }

    /// A `\uXXXX` was read.
    fn unit(&mut self, unit: u32, out: &mut String) {
        let half = u16::try_from(unit).ok().filter(|unit| (0xd800..0xe000).contains(unit));
        match (half, self.high) {
            (Some(low @ 0xdc00..), Some(high)) => {
                self.high = None;
                out.extend(char::decode_utf16([high, low]).flatten());
            }
            (Some(high @ ..0xdc00), _) => {
                self.end_half(out);
                self.high = Some(high);
            }
            (Some(_), None) => out.push(char::REPLACEMENT_CHARACTER),
            (None, _) => {
                self.end_half(out);
                out.extend(char::from_u32(unit).filter(|c| *c != '\0'));
            }
        }
    }

    /// The second half did not come.
    fn end_half(&mut self, out: &mut String) {
        out.extend(self.high.take().map(|_| char::REPLACEMENT_CHARACTER));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a string in double quotes means; `None` when it does not end at its end.
    fn read(json: &str) -> Option<String> {
        let (mut reader, mut out) = (StringReader::new('"'), String::new());
        let mut ends = json.strip_prefix('"')?.chars().map(|c| reader.push(c, &mut out));
        let end = ends.position(|ended| ended);
        (end.is_some() && ends.next().is_none()).then_some(out)
    }

    #[test]
    fn what_models_write_is_read_as_it_was_meant() {
        for (json, expected) in [
            (r#""a\n\"\\\/\u00e9\ud83d\ude00""#, "a\n\"\\/é😀"),
            ("\"a\nb\tc\"", "a\nb\tc"),
            (r#""\d+\'s""#, r"\d+'s"),
            (r#""\u12g\u""#, r"\u12g\u"),
            (r#""a\ud83db""#, "a\u{fffd}b"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\n""#, "\u{fffd}\n"),
            (r#""\ud83d\u00e9""#, "\u{fffd}é"),
            ("\"a\\u0000b\0c\"", "abc"),
        ] {
            assert_eq!(read(json).as_deref(), Some(expected), "{json}");
        }
        assert_eq!(read(r#""a\""#), None);
    }

    proptest! {
        /// Valid strings without NUL are read as the parser reads them.
        #[test]
        fn it_agrees_with_the_parser(parts in prop::collection::vec(prop::sample::select(vec![
            "a", "é", "😀", "\\", "\"", "u", "00e9", "d83d", "\\ud83d", "\\ude00", "n", "/", " ",
        ]), 0..12)) {
            let json = format!("\"{}\"", parts.concat());
            if let Ok(expected) = serde_json::from_str::<String>(&json) {
                prop_assert_eq!(read(&json), Some(expected));
            }
        }
    }
}
