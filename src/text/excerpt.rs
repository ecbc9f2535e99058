//! Texts made short enough to be shown.

use std::borrow::Cow;

/// At most `most` characters of a text; a dot of three where some are left out.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => text.into(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shortened_between_characters() {
        for (text, most, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "abc…"),
            ("ab cd", 3, "ab…"),
            ("日本語", 2, "日本…"),
            ("", 0, ""),
        ] {
            assert_eq!(shortened(text, most), expected);
        }
    }
}
