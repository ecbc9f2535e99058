//! Guessing: what may be a call where none was declared.

use memchr::memchr2;

use super::{
    Strangers, Tools, WrittenCall, channels, json,
    opening::{Forms, Opening, opening},
    walk,
};

/// What a model said in one Round without a proper call.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// Its text, with all markup.
    pub text: &'a str,
    /// Its reasoning.
    pub reasoning: &'a str,
    /// Whether anything of the text was for the user.
    pub answered: bool,
    /// Whether it had to call something.
    pub call_was_required: bool,
}

impl Said<'_> {
    /// Whether a call may be looked for: one was required, or it thought and did not answer, or it looks like one.
    pub fn is_worth_guessing(&self, tools: &Tools) -> bool {
        let silent = !self.answered && !self.reasoning.trim().is_empty();
        !tools.is_empty() && (self.call_was_required || silent || looks_like_call(self.text, tools))
    }

    /// The calls in the text, or else in the reasoning of who did not answer or had to call: who answered has made up their mind.
    pub fn guess(&self, tools: &Tools) -> Vec<WrittenCall> {
        let calls = guess(self.text, tools);
        let counts_thought = self.call_was_required || !self.answered;
        if calls.is_empty() && counts_thought { guess(self.reasoning, tools) } else { calls }
    }
}

/// The calls of known tools that stand in a text: in channels, else in JSON that names a tool, else in tags, else as bare arguments.
pub fn guess(text: &str, tools: &Tools) -> Vec<WrittenCall> {
    if tools.is_empty() {
        return Vec::new();
    }
    let calls = channels::calls(text, tools, Strangers::Drop);
    if !calls.is_empty() {
        return calls;
    }
    let found = walk::everything(text, tools);
    if !found.json.is_empty() {
        return found.json;
    }
    if !found.xml.is_empty() {
        return found.xml;
    }
    let bare = found.nameless.into_iter().flat_map(|span| {
        let calls = json::bare(&text[span.clone()], tools);
        calls.into_iter().map(move |made| made.at(span.clone()))
    });
    bare.collect()
}

/// Whether a text has call markup in it, or is as a whole a call.
pub fn looks_like_call(text: &str, tools: &Tools) -> bool {
    has_opener(text) || !json::whole_answer(text, tools).is_empty()
}

fn has_opener(text: &str) -> bool {
    let mut at = 0;
    while let Some(skipped) = memchr2(b'<', b'[', &text.as_bytes()[at..]) {
        at += skipped;
        if matches!(opening(&text[at..], Forms::ALL), Opening::Yes(_)) {
            return true;
        }
        at += 1;
    }
    false
}
