//! Finds JSON in a text that is something else as well.

use std::ops::Range;

use crate::text::json_scan::{JsonScan, JsonState};

/// JSON that was looked for at some place in a text.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Found {
    /// It is whole, and ends here.
    Whole(usize),
    /// It breaks off, or is none.
    Broken {
        /// The lists and objects in it that are whole, outermost ones only.
        parts: Vec<Range<usize>>,
        /// Where other JSON may begin.
        resume: usize,
    },
}

/// Reads the list or object that begins at `start`.
///
/// Whatever had begun inside of it and was open where it breaks off breaks off there too, so that none of it is looked at again. Only the last
/// string may be more than a string: where a quote is astray, the text goes on inside of it. Each byte is so read a bounded number of times.
pub(super) fn json_at(text: &str, start: usize) -> Found {
    let mut scan = JsonScan::default();
    let mut open = Vec::new();
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut string = start;
    let mut end = text.len();
    for (at, byte) in text.bytes().enumerate().skip(start) {
        let in_string = scan.in_string();
        match scan.push_byte(byte) {
            JsonState::Complete => return Found::Whole(at + 1),
            JsonState::Garbage => {
                end = at;
                break;
            }
            JsonState::Blank | JsonState::Inside => (),
        }
        match byte {
            _ if in_string => (),
            b'"' => string = at,
            b'{' | b'[' => open.push(at),
            b'}' | b']' => {
                let Some(begun) = open.pop() else { continue };
                while parts.last().is_some_and(|part| part.start > begun) {
                    parts.pop();
                }
                parts.push(begun..at + 1);
            }
            _ => (),
        }
    }
    let read = parts.last().map_or(start, |part| part.end);
    let resume = if string > read { string } else { end };
    Found::Broken { parts, resume: resume.max(read).max(start + 1) }
}
