//! Text made comparable: lower case, runs of white space as one space, no Markdown characters, and for each byte of it where it came from.

use std::ops::Range;

/// A text made comparable.
pub(super) struct Folded {
    pub(super) text: String,
    /// For each byte of `text` where its character begins in the original, and at the end the original's end.
    origins: Vec<usize>,
}

/// Characters that Markdown adds to a text and a search result does not have.
fn is_markup(c: char) -> bool {
    matches!(c, '*' | '_' | '`' | '\\' | '#' | '>' | '[' | ']' | '|')
}

impl Folded {
    pub(super) fn new(original: &str) -> Self {
        let mut text = String::with_capacity(original.len());
        let mut origins = Vec::with_capacity(original.len() + 1);
        for (at, c) in original.char_indices() {
            let before = text.len();
            if c.is_whitespace() || c.is_control() {
                if !text.ends_with(' ') {
                    text.push(' ');
                }
            } else if !is_markup(c) {
                text.extend(c.to_lowercase());
            }
            origins.extend(std::iter::repeat_n(at, text.len() - before));
        }
        origins.push(original.len());
        Self { text, origins }
    }

    /// The part of the original that a non-empty range of the text was made from.
    pub(super) fn origin(&self, original: &str, range: Range<usize>) -> Range<usize> {
        let start = self.origins[range.start];
        let last = self.origins[range.end - 1];
        start..last + original[last..].chars().next().map_or(0, char::len_utf8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_text_knows_where_it_came_from() {
        let original = "A  **Bold**\n\tİx [Link](u)";
        let folded = Folded::new(original);
        assert_eq!(folded.text, "a bold i\u{307}x link(u)");
        for (part, expected) in [
            ("bold", "Bold"),
            ("a bold", "A  **Bold"),
            ("i\u{307}x", "İx"),
            ("link", "Link"),
            (" ", "  "),
        ] {
            let at = folded.text.find(part).unwrap();
            let origin = folded.origin(original, at..at + part.len());
            // A run of white space is its first character.
            assert_eq!(
                &original[origin],
                if part == " " { &expected[..1] } else { expected },
                "{part}"
            );
        }
    }
}
