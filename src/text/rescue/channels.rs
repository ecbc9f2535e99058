//! The channels of harmony, as gpt-oss writes them: a header says whether a message is thought, said, or a call.

use std::ops::Range;

use super::{
    Strangers, Tools, WrittenCall,
    marked::object_at,
    opening::{Lead, lead},
};

/// What a message is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::text) enum Kind {
    /// Said to the user.
    Text,
    /// Thought.
    Reasoning,
    /// The arguments of a call, or something else that is not for the user.
    Call,
}

/// What the next of the text is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::text) enum Piece {
    /// This many bytes of a message.
    Said(Kind, usize),
    /// This many bytes of markup.
    Markup(usize),
    /// What follows will tell.
    Wait,
}

/// Follows the channels of a text, in pieces.
#[derive(Debug, Default)]
pub(in crate::text) struct Channels {
    state: State,
    /// Who the message is for, when it is a call.
    recipient: String,
    /// How many messages have begun.
    messages: usize,
}

#[derive(Debug, Default)]
enum State {
    /// Outside of messages, in text that has no header.
    #[default]
    Plain,
    In(Kind),
    /// Behind a message.
    Between,
}

/// No header is longer.
const LONGEST_HEADER: usize = 256;

/// What ends a message.
const ENDS: [&str; 3] = ["<|end|>", "<|call|>", "<|return|>"];

impl Channels {
    /// Whether it stands in a call.
    pub(in crate::text) fn in_call(&self) -> bool {
        matches!(self.state, State::In(Kind::Call))
    }

    /// What it stands in.
    pub(in crate::text) fn kind(&self) -> Kind {
        match self.state {
            State::Plain | State::Between => Kind::Text,
            State::In(kind) => kind,
        }
    }

    /// What the next of the text is. `text` is not empty, and begins where the last piece ended.
    pub(in crate::text) fn step(&mut self, text: &str) -> Piece {
        if let State::Between = self.state {
            return self.between(text);
        }
        let kind = self.kind();
        let mut from = 0;
        while let Some(skipped) = text[from..].find('<') {
            let at = from + skipped;
            match marker(&text[at..]) {
                Marker::No => from = at + 1,
                _ if at > 0 => return Piece::Said(kind, at),
                Marker::Part => return Piece::Wait,
                Marker::Whole(length, state) => {
                    self.go(state);
                    return Piece::Markup(length);
                }
            }
        }
        Piece::Said(kind, text.len())
    }

    fn go(&mut self, state: Next) {
        self.state = match state {
            Next::Between => State::Between,
            Next::Message(kind, recipient) => {
                self.messages += 1;
                self.recipient = recipient;
                State::In(kind)
            }
        };
    }

    fn between(&mut self, text: &str) -> Piece {
        let rest = text.trim_start();
        if rest.len() < text.len() {
            return Piece::Markup(text.len() - rest.len());
        }
        // Some backends leave `<|start|>` out.
        match lead(rest, "assistant") {
            Lead::Whole(_) => return Piece::Markup("assistant".len()),
            Lead::Part => return Piece::Wait,
            Lead::No => (),
        }
        match marker(rest) {
            Marker::Whole(length, state) => {
                self.go(state);
                Piece::Markup(length)
            }
            Marker::Part => Piece::Wait,
            Marker::No => {
                self.state = State::Plain;
                self.step(text)
            }
        }
    }
}

/// The marker or header that a text begins with.
fn marker(text: &str) -> Marker {
    let mut part = false;
    for end in ENDS {
        match lead(text, end) {
            Lead::Whole(_) => return Marker::Whole(end.len(), Next::Between),
            Lead::Part => part = true,
            Lead::No => (),
        }
    }
    match header(text) {
        Marker::No if part => Marker::Part,
        found => found,
    }
}

/// The calls of a text in channels. One whose last marker is missing counts when its arguments are whole.
pub(super) fn calls(text: &str, tools: &Tools, strangers: Strangers) -> Vec<WrittenCall> {
    let mut channels = Channels::default();
    let mut calls = Vec::new();
    let mut open: Option<(String, Range<usize>)> = None;
    let mut at = 0;
    let mut close = |open: Option<(String, Range<usize>)>, is_ended: bool| {
        let Some((recipient, span)) = open.filter(|(recipient, _)| recipient != "assistant") else {
            return;
        };
        let arguments = match text[span.clone()].trim() {
            "" => is_ended.then(|| "{}".to_owned()),
            json => object_at(json),
        };
        let made = arguments.and_then(|json| tools.call(&recipient, &json, strangers));
        calls.extend(made.map(|made| made.at(span)));
    };
    while at < text.len() {
        let before = channels.messages;
        match channels.step(&text[at..]) {
            Piece::Said(_, length) | Piece::Markup(length) => at += length,
            Piece::Wait => break,
        }
        if channels.messages != before {
            close(open.take(), /* is_ended */ true);
            open = channels.in_call().then(|| (channels.recipient.clone(), at..at));
        } else if channels.in_call() {
            if let Some((_, span)) = &mut open {
                span.end = at;
            }
        } else {
            close(open.take(), /* is_ended */ true);
        }
    }
    close(open, /* is_ended */ false);
    calls
}

/// Whether a text that breaks off does so in the header of a message.
pub(in crate::text) fn is_header(text: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

/// What a header begins with.
const BEGINNINGS: [&str; 3] = ["<|channel|>", "<|start|>", "<|message|>"];

enum Marker {
    No,
    Part,
    Whole(usize, Next),
}

enum Next {
    Between,
    Message(Kind, String),
}

/// The header that a text begins with, to its `<|message|>`.
fn header(text: &str) -> Marker {
    const MESSAGE: &str = "<|message|>";
    let mut part = false;
    let begins = BEGINNINGS.iter().any(|beginning| match lead(text, beginning) {
        Lead::Whole(_) => true,
        Lead::Part => {
            part = true;
            false
        }
        Lead::No => false,
    });
    if !begins {
        return if part { Marker::Part } else { Marker::No };
    }
    let fits = |c: char| {
        c.is_alphanumeric()
            || matches!(c, ' ' | '_' | '-' | '.' | ':' | '=' | '/' | '<' | '|' | '>')
    };
    let head = &text[..text.floor_char_boundary(LONGEST_HEADER)];
    let Some(at) = head.find(MESSAGE).filter(|at| head[..*at].chars().all(fits)) else {
        let may_go_on =
            head.len() == text.len() && head.len() < LONGEST_HEADER && head.chars().all(fits);
        return if may_go_on { Marker::Part } else { Marker::No };
    };
    let header = &text[..at];
    let recipient =
        header.rfind("to=").map(|at| header[at + "to=".len()..].split(['<', ' ']).next());
    let next = match recipient.flatten() {
        Some(recipient) => Next::Message(Kind::Call, recipient.to_owned()),
        // What a tool is made to say is not for the user.
        None if header.starts_with("<|start|>") && !header.starts_with("<|start|>assistant") => {
            Next::Message(Kind::Call, "assistant".to_owned())
        }
        None if header.contains("analysis") => Next::Message(Kind::Reasoning, String::new()),
        None => Next::Message(Kind::Text, String::new()),
    };
    Marker::Whole(at + MESSAGE.len(), next)
}
