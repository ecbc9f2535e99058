//! Where call markup ends.

use memchr::memchr2;

use crate::text::json_scan::{JsonScan, JsonState};

use super::opening::{Form, Lead, Opener, lead};

/// Follows the inside of call markup to its end, in pieces. The end is found in the same place wherever the pieces are cut.
#[derive(Debug)]
pub(in crate::text) struct Closer {
    opener: &'static Opener,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Before the first JSON.
    Head,
    /// In JSON.
    Value(JsonScan),
    /// Behind JSON: at the end, or before more of it.
    After,
    /// In something of which only the closing marker is known.
    Marker,
}

/// What becomes of the text that comes next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::text) enum Step {
    /// This many bytes are markup, and it goes on.
    More(usize),
    /// This many bytes are markup, and there it ends.
    End(usize),
    /// What follows will tell.
    Wait,
}

impl Closer {
    /// At the place behind the opener.
    pub(in crate::text) fn new(opener: &'static Opener) -> Self {
        let state = match opener.form {
            Form::Tagged | Form::Mistral | Form::PythonTag | Form::Line => State::Head,
            Form::Qwen
            | Form::Glm
            | Form::Function
            | Form::FunctionCalls
            | Form::Invoke
            | Form::Kimi
            | Form::DeepSeek
            | Form::Harmony => State::Marker,
        };
        Self { opener, state }
    }

    /// Whether it may as well end here, because the call is whole and only its closing marker is missing.
    pub(super) fn may_end(&self) -> bool {
        matches!(self.state, State::After)
    }

    /// What the next of the text is. `text` is not empty, and begins where the last step ended.
    pub(in crate::text) fn step(&mut self, text: &str) -> Step {
        match &mut self.state {
            State::Head => self.head(text),
            State::Value(scan) => {
                let read = scan.read_value(text);
                match scan.state() {
                    JsonState::Complete if self.opener.form == Form::Mistral => Step::End(read),
                    JsonState::Complete if self.opener.form == Form::Line => Step::End(read),
                    JsonState::Complete => self.go(State::After, read),
                    JsonState::Garbage => self.go(State::Marker, read),
                    JsonState::Blank | JsonState::Inside => Step::More(read),
                }
            }
            State::After => self.after(text),
            State::Marker => self.marker(text),
        }
    }

    fn go(&mut self, state: State, read: usize) -> Step {
        self.state = state;
        Step::More(read)
    }

    fn head(&mut self, text: &str) -> Step {
        let Some(at) = text.find(['{', '[', '\n']) else { return Step::More(text.len()) };
        let rest = &text[at..];
        if rest.starts_with('\n') {
            // A line ends with its line.
            return if self.opener.form == Form::Line { Step::End(at) } else { Step::More(at + 1) };
        }
        if rest.starts_with('[') && self.opener.form == Form::Mistral {
            for label in ["[ARGS]", "[CALL_ID]"] {
                match lead(rest, label) {
                    Lead::Whole(_) => return Step::More(at + label.len()),
                    Lead::Part if at == 0 => return Step::Wait,
                    Lead::Part => return Step::More(at),
                    Lead::No => (),
                }
            }
        }
        self.go(State::Value(JsonScan::default()), at)
    }

    fn after(&mut self, text: &str) -> Step {
        let next = text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        if next.len() < text.len() {
            return Step::More(text.len() - next.len());
        }
        if next.starts_with(['{', '[']) {
            return self.go(State::Value(JsonScan::default()), 0);
        }
        let mut wait = false;
        for close in self.opener.close {
            match lead(next, close) {
                Lead::Whole(_) => return Step::End(close.len()),
                Lead::Part => wait = true,
                Lead::No => (),
            }
        }
        if wait { Step::Wait } else { Step::End(0) }
    }

    fn marker(&mut self, text: &str) -> Step {
        let mut at = 0;
        while let Some(skipped) = memchr2(b'<', b'[', &text.as_bytes()[at..]) {
            at += skipped;
            for close in self.opener.close {
                match lead(&text[at..], close) {
                    Lead::Whole(_) => return Step::End(at + close.len()),
                    Lead::Part if at == 0 => return Step::Wait,
                    Lead::Part => return Step::More(at),
                    Lead::No => (),
                }
            }
            at += 1;
        }
        Step::More(text.len())
    }
}
