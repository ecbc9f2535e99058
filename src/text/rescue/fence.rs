//! Code fences: what stands inside of one shows how a call looks, unless the fence is the whole answer.

use std::ops::Range;

/// The part of a text that may hold calls: all of it, or the inside of the fence that all of it is. A fence that was not closed ends with the text.
pub(super) fn whole(text: &str) -> Range<usize> {
    let all = 0..text.len();
    let start = text.len() - text.trim_start().len();
    let Some((mark, length)) = fence_mark(&text[start..]) else { return all };
    let Some(line) = text[start..].find('\n') else { return all };
    let first = start + line + 1;
    let mut at = first;
    for line in text[first..].split_inclusive('\n') {
        if closes(line, mark, length) {
            let after = at + line.len();
            return if text[after..].trim().is_empty() { first..at } else { all };
        }
        at += line.len();
    }
    first..text.len()
}

/// Follows the fences of a text that grows.
#[derive(Debug, Default)]
pub(in crate::text) struct Fences {
    /// How far it has been read.
    at: usize,
    /// Whether a line begins there.
    mid_line: bool,
    open: Option<(char, usize)>,
}

impl Fences {
    /// Whether the place `upto` is inside of a fence. Places must be asked about in their order.
    pub(in crate::text) fn are_around(&mut self, text: &str, upto: usize) -> bool {
        while let Some(length) = text[self.at..upto].find('\n') {
            let line = &text[self.at..self.at + length];
            if !self.mid_line {
                self.line(line);
            }
            self.at += length + 1;
            self.mid_line = false;
        }
        let begins_here = !self.mid_line && fence_mark(&text[self.at..upto]).is_some();
        self.open.is_some() || begins_here
    }

    /// Goes on behind markup: what is in it is no fence.
    pub(in crate::text) fn skip_to(&mut self, at: usize) {
        self.at = at;
        self.mid_line = true;
    }

    fn line(&mut self, line: &str) {
        match self.open {
            Some((mark, length)) if closes(line, mark, length) => self.open = None,
            Some(_) => (),
            None => self.open = fence_mark(line),
        }
    }
}

/// The mark and the length of the fence that a line begins with.
pub(in crate::text) fn fence_mark(line: &str) -> Option<(char, usize)> {
    let unindented = line.trim_start_matches(' ');
    let mark = unindented.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = unindented.len() - unindented.trim_start_matches(mark).len();
    (length >= 3 && line.len() - unindented.len() <= 3).then_some((mark, length))
}

/// Whether the line ends a fence of this mark and length.
pub(in crate::text) fn closes(line: &str, mark: char, length: usize) -> bool {
    fence_mark(line).is_some_and(|(other, long)| {
        other == mark && long >= length && line.trim().trim_start_matches(mark).is_empty()
    })
}
