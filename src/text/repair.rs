//! JSON and text from outside that hold what no text may: halves of surrogate pairs, and NUL, which Postgres refuses.
//!
//! A whole body is repaired as bytes by [`repair_json`] before it is parsed. In a stream a pair may be cut over two deltas,
//! each of them JSON of its own: [`WireText`] reads a string with its halves, and one [`HalfJoiner`] per channel (content,
//! reasoning, the arguments of one call) puts them together.

use std::{borrow::Cow, fmt};

use memchr::{memchr, memmem};
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// What stands in for a character that cannot be.
const REPLACEMENT: &str = "\u{fffd}";

/// Replaces the escapes of lone surrogate halves and of NUL by `\ufffd`.
///
/// Pairs stay as they are, a backslash that is itself escaped (`\\ud83d`) begins no escape, and what is not JSON is left to
/// the parser. The length never changes, so that a position in a parser's error fits the original too.
pub fn repair_json(json: &[u8]) -> Cow<'_, [u8]> {
    let mut repaired = Cow::Borrowed(json);
    if memmem::find(json, b"\\u").is_none() {
        return repaired;
    }
    let mut at = 0;
    while let Some(skipped) = memchr(b'\\', &json[at..]) {
        at += skipped;
        let Some(unit) = escaped_unit(&json[at..]) else {
            // Another escape, or none: the backslash and the byte after it.
            at = (at + 2).min(json.len());
            continue;
        };
        let low =
            || escaped_unit(&json[at + 6..]).is_some_and(|next| (0xdc00..0xe000).contains(&next));
        match unit {
            0xd800..0xdc00 if low() => at += 12,
            0 | 0xd800..0xe000 => {
                repaired.to_mut()[at..at + 6].copy_from_slice(b"\\ufffd");
                at += 6;
            }
            _ => at += 6,
        }
    }
    repaired
}

/// The UTF-16 unit that the `\uXXXX` at the beginning of `json` stands for.
fn escaped_unit(json: &[u8]) -> Option<u16> {
    let [b'\\', b'u', digits @ ..] = json else { return None };
    digits.get(..4)?.iter().try_fold(0, |unit, digit| {
        let value = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(value).ok()?)
    })
}

/// A JSON string in which halves of surrogate pairs are kept, for a [`HalfJoiner`] to join.
///
/// For structs that are read by `serde_json` itself, `#[serde(borrow)]` where it is in an `Option`. Below `flatten`, an
/// `untagged` enum or a `Value`, serde has made a `String` of it before it comes here: repair the bytes first there.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WireText<'a> {
    /// UTF-8 in which a half stands as the three bytes of its code point, never as two halves that make a pair.
    bytes: Cow<'a, [u8]>,
}

impl WireText<'_> {
    /// Whether it holds nothing at all.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl<'a> From<&'a str> for WireText<'a> {
    fn from(text: &'a str) -> Self {
        Self { bytes: Cow::Borrowed(text.as_bytes()) }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for WireText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // serde_json gives a string with lone halves only to those who ask for bytes.
        deserializer.deserialize_bytes(AsBytes)
    }
}

struct AsBytes;

impl<'de> Visitor<'de> for AsBytes {
    type Value = WireText<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(WireText { bytes: Cow::Borrowed(bytes) })
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(WireText { bytes: Cow::Owned(bytes.to_vec()) })
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        self.visit_borrowed_bytes(text.as_bytes())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        self.visit_bytes(text.as_bytes())
    }
}

/// Joins the halves that were cut over two texts of one channel, and replaces a half that stays alone, a byte that is not
/// UTF-8 and NUL by U+FFFD.
#[derive(Clone, Debug, Default)]
pub struct HalfJoiner {
    /// The high half that the last text ended in.
    high: Option<u16>,
}

impl HalfJoiner {
    /// The next text. Only a high half at its end is held back, for the low one that may come.
    pub fn push<'t>(&mut self, text: WireText<'t>) -> Cow<'t, str> {
        if self.high.is_some() || memchr(0, &text.bytes).is_some() {
            return self.mend(&text.bytes).into();
        }
        match text.bytes {
            Cow::Borrowed(bytes) => {
                std::str::from_utf8(bytes).map_or_else(|_| self.mend(bytes).into(), Cow::Borrowed)
            }
            Cow::Owned(bytes) => String::from_utf8(bytes)
                .unwrap_or_else(|broken| self.mend(broken.as_bytes()))
                .into(),
        }
    }

    /// The channel has ended: a half that is still held stays alone.
    pub fn finish(&mut self) -> Option<&'static str> {
        self.high.take().map(|_| REPLACEMENT)
    }

    fn mend(&mut self, bytes: &[u8]) -> String {
        let mut mended = String::with_capacity(bytes.len() + REPLACEMENT.len());
        let (mut plain, mut at) = (0, 0);
        while let Some(skipped) = memchr(0xed, &bytes[at..]) {
            at += skipped;
            if let Some(half) = leading_half(&bytes[at..]) {
                self.plain(&bytes[plain..at], &mut mended);
                self.half(half, &mut mended);
                at += 3;
                plain = at;
            } else {
                at += 1;
            }
        }
        self.plain(&bytes[plain..], &mut mended);
        mended
    }

    fn plain(&mut self, bytes: &[u8], mended: &mut String) {
        if !bytes.is_empty() {
            mended.extend(self.finish());
            let text = String::from_utf8_lossy(bytes);
            mended.extend(text.chars().map(|c| if c == '\0' { '\u{fffd}' } else { c }));
        }
    }

    fn half(&mut self, half: u16, mended: &mut String) {
        if half < 0xdc00 {
            mended.extend(self.finish());
            self.high = Some(half);
        } else if let Some(high) = self.high.take() {
            mended.extend(char::decode_utf16([high, half]).flatten());
        } else {
            mended.push_str(REPLACEMENT);
        }
    }
}

/// The surrogate half at the beginning of `bytes`, written as if it were a character.
fn leading_half(bytes: &[u8]) -> Option<u16> {
    match bytes {
        [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] => {
            Some(0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f))
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
