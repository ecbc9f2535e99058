//! The beginning of an answer that may turn out to be nothing but a call: JSON that names a tool, or a code fence around a call.
//!
//! Whether it is one is only known at its end, so it is held back for as long as it may be, and not a byte longer.

use super::{
    json_scan::{JsonScan, JsonState},
    rescue::{CALL_KEYS, Forms, Opening, Tools, closes, fence_mark, opening},
};

/// Follows the beginning of an answer.
#[derive(Debug)]
pub(super) struct Lead {
    /// Whether JSON by itself counts.
    json: bool,
    /// Whether its keys may be those of arguments.
    bare: bool,
    /// How far it has been read.
    at: usize,
    phase: Phase,
    fence: Option<(char, usize)>,
}

#[derive(Debug)]
enum Phase {
    /// Before the first call, and before the next one.
    Between,
    Value(Value),
    /// In markup inside of the fence, in the line that begins here.
    Marked(usize),
    /// Behind the fence.
    Behind,
}

/// A JSON value that may be a call.
#[derive(Debug, Default)]
struct Value {
    scan: JsonScan,
    is_list: bool,
    depth: usize,
    string: usize,
    /// Whether it has a key already.
    keys: bool,
    /// Whether the string that follows is the name of a tool.
    names: bool,
}

/// Keys of calls with which no call begins, and much else does.
const NEVER_FIRST: [&str; 4] = ["args", "input", "index", "call_id"];

impl Lead {
    /// At the beginning of an answer.
    pub(super) fn new(json: bool, bare: bool) -> Self {
        Self { json, bare, at: 0, phase: Phase::Between, fence: None }
    }

    /// Whether `held`, the whole answer so far, may still be nothing but a call.
    pub(super) fn may_be_call(&mut self, held: &str, forms: Forms, tools: &Tools) -> bool {
        loop {
            let rest = &held[self.at..];
            if rest.is_empty() {
                return true;
            }
            let goes_on = match &mut self.phase {
                Phase::Between => self.between(rest, forms),
                Phase::Value(_) => Some(self.value(held, tools)),
                Phase::Marked(line) => {
                    let Some(length) = rest.find('\n') else {
                        self.at = held.len();
                        continue;
                    };
                    let (start, end) = (*line, self.at + length);
                    let is_end = self
                        .fence
                        .is_some_and(|(mark, long)| closes(&held[start..end], mark, long));
                    self.at = end + 1;
                    self.phase = if is_end { Phase::Behind } else { Phase::Marked(end + 1) };
                    Some(true)
                }
                Phase::Behind => {
                    self.at = held.len();
                    Some(rest.trim_start().is_empty())
                }
            };
            match goes_on {
                Some(true) => (),
                Some(false) => return false,
                None => return true,
            }
        }
    }

    /// Reads on before a call. Nothing stands for what only the next piece will tell.
    fn between(&mut self, rest: &str, forms: Forms) -> Option<bool> {
        let next = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        if next.len() < rest.len() {
            self.at += rest.len() - next.len();
            return Some(true);
        }
        if next.starts_with(['`', '~']) {
            return self.fence_line(next);
        }
        match opening(next, forms) {
            Opening::Yes(_) if self.fence.is_some() => {
                self.phase = Phase::Marked(self.at);
                Some(true)
            }
            Opening::Maybe => None,
            Opening::No if self.json && next.starts_with(['{', '[']) => {
                self.phase =
                    Phase::Value(Value { is_list: next.starts_with('['), ..Value::default() });
                Some(true)
            }
            Opening::Yes(_) | Opening::No => Some(false),
        }
    }

    /// Reads the line that opens or closes the fence.
    fn fence_line(&mut self, rest: &str) -> Option<bool> {
        // No language has a longer name.
        const LONGEST: usize = 64;
        let line = rest.split('\n').next().unwrap_or(rest);
        let is_whole = line.len() < rest.len();
        let mark = fence_mark(line);
        if mark.is_none() && (is_whole || line.len() >= 3) || line.len() > LONGEST {
            return Some(false);
        }
        if !is_whole {
            return None;
        }
        self.phase = match self.fence {
            None => Phase::Between,
            Some((mark, length)) if closes(line, mark, length) => Phase::Behind,
            Some(_) => return Some(false),
        };
        self.fence = self.fence.or(mark);
        self.at += line.len() + 1;
        Some(true)
    }

    fn value(&mut self, held: &str, tools: &Tools) -> bool {
        let Phase::Value(value) = &mut self.phase else { return true };
        for (at, byte) in held.bytes().enumerate().skip(self.at) {
            let (was_string, was_key) = (value.scan.in_string(), value.scan.in_key());
            match value.scan.push_byte(byte) {
                JsonState::Garbage => return false,
                JsonState::Complete => {
                    self.at = at + 1;
                    self.phase = Phase::Between;
                    return true;
                }
                JsonState::Blank | JsonState::Inside => (),
            }
            if was_string
                && !value.scan.in_string()
                && value.depth == 1 + usize::from(value.is_list)
            {
                let text = &held[value.string..at];
                if was_key {
                    let is_first = !std::mem::replace(&mut value.keys, true);
                    let is_of_a_call = CALL_KEYS.contains(&text)
                        && !(is_first && NEVER_FIRST.contains(&text))
                        || tools.has(text)
                        || self.bare && tools.knows_property(text);
                    if !is_of_a_call {
                        return false;
                    }
                    value.names = text == "name";
                } else if std::mem::take(&mut value.names)
                    && tools.meant(text).is_none()
                    && !self.bare
                {
                    return false;
                }
            }
            match byte {
                _ if was_string => (),
                b'"' => value.string = at + 1,
                b'{' | b'[' => value.depth += 1,
                b'}' | b']' => value.depth -= 1,
                _ => (),
            }
            // A list of something else than objects.
            let is_other = match (byte, value.depth) {
                (b'[', depth) => depth == 2,
                (b'{' | b'}' | b']' | b',' | b' ' | b'\n' | b'\r' | b'\t', _) => false,
                (_, depth) => depth == 1,
            };
            if value.is_list && is_other && !was_string {
                return false;
            }
        }
        self.at = held.len();
        true
    }
}
