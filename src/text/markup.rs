//! Hides the markup of calls, and markers of the chat template, from what is shown while a model writes.
//!
//! What it holds back is the beginning of what may be a marker, never more, except for an answer that may as a whole be a call. Everything that
//! came stays in [`Markup::raw`], for [`super::rescue`] to read.

use std::{ops::Range, sync::Arc};

use super::{
    lead::Lead,
    rescue::{
        CallGrammar, Channels, Closer, Fences, Forms, Kind, Opening, Piece, Reading, Rescue, Step,
        Tools, is_header, is_payload, opening,
    },
};

/// A piece of what came. Every byte that came is in one segment, in order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Segment<'a> {
    /// Shown.
    Text(&'a str),
    /// Thought, as its channel says.
    Reasoning(&'a str),
    /// Markup.
    Hidden(&'a str),
}

/// What is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Channel {
    /// The answer, which may as a whole be a call.
    Text {
        /// Whether bare arguments count as one.
        call_is_required: bool,
    },
    /// Reasoning.
    Reasoning,
}

/// The stage for one channel of one Round.
#[derive(Debug)]
pub struct Markup {
    forms: Forms,
    is_harmony: bool,
    strip_tokens: Arc<[String]>,
    tools: Arc<Tools>,
    /// Whether a byte may begin a marker.
    triggers: Box<[bool; 256]>,
    raw: String,
    /// The end of `raw` that is in no segment yet.
    held: String,
    state: State,
    /// Where in `raw` call markup stood.
    blocks: Vec<Range<usize>>,
    fences: Fences,
}

#[derive(Debug)]
enum State {
    /// At the beginning of what may be nothing but a call.
    Lead(Lead),
    Text,
    /// In call markup that began here.
    Block(usize, Closer),
    Channels(Channels),
}

impl Markup {
    /// The stage for a channel of an answer; none where nothing is ever hidden.
    ///
    /// Without tools there are no calls, and what looks like one is left alone; the channels of a declared harmony are read all the same.
    pub fn new(reading: &Reading, tools: &Arc<Tools>, channel: Channel) -> Option<Self> {
        let declared = Forms::of(reading.grammar);
        let forms = match reading.rescue {
            _ if tools.is_empty() && reading.grammar != CallGrammar::Harmony => Forms::NONE,
            _ if tools.is_empty() => declared,
            Rescue::Auto => Forms::ALL,
            Rescue::Off => declared,
        };
        let json = matches!(reading.grammar, CallGrammar::BareJson | CallGrammar::Llama)
            || reading.rescue == Rescue::Auto;
        let (has_lead, call_is_required) = match channel {
            Channel::Text { call_is_required } => {
                (!tools.is_empty() && (json || !forms.is_empty()), call_is_required)
            }
            Channel::Reasoning => (false, false),
        };
        if forms.is_empty() && !has_lead && reading.strip_tokens.is_empty() {
            return None;
        }
        let mut triggers = Box::new([false; 256]);
        if !forms.is_empty() {
            triggers[usize::from(b'<')] = true;
            triggers[usize::from(b'[')] = true;
        }
        for first in reading.strip_tokens.iter().filter_map(|token| token.bytes().next()) {
            triggers[usize::from(first)] = true;
        }
        let bare = call_is_required && reading.rescue == Rescue::Auto;
        let state = if has_lead {
            State::Lead(Lead::new(json, bare))
        } else if reading.grammar == CallGrammar::Harmony {
            State::Channels(Channels::default())
        } else {
            State::Text
        };
        Some(Self {
            forms,
            is_harmony: reading.grammar == CallGrammar::Harmony,
            strip_tokens: Arc::clone(&reading.strip_tokens),
            tools: Arc::clone(tools),
            triggers,
            raw: String::new(),
            held: String::new(),
            state,
            blocks: Vec::new(),
            fences: Fences::default(),
        })
    }

    /// Takes a piece that is plain text as a whole, and says whether it is: it is one segment then, and need not be pushed.
    pub fn passes(&mut self, piece: &str) -> bool {
        let is_plain = matches!(self.state, State::Text)
            && self.held.is_empty()
            && !piece.bytes().any(|byte| self.triggers[usize::from(byte)]);
        if is_plain {
            self.raw.push_str(piece);
        }
        is_plain
    }

    /// Reads the next piece and hands on what is certain. No segment is empty.
    pub fn push(&mut self, piece: &str, on_segment: &mut dyn FnMut(Segment<'_>)) {
        self.raw.push_str(piece);
        let mut held = std::mem::take(&mut self.held);
        held.push_str(piece);
        let read = self.read(&held, /* ended */ false, on_segment);
        held.drain(..read);
        self.held = held;
    }

    /// Something else than this text follows: what was held back as a marker's beginning is none. An answer that may be a call goes on being
    /// held.
    pub fn flush(&mut self, on_segment: &mut dyn FnMut(Segment<'_>)) {
        if !matches!(self.state, State::Text) {
            return;
        }
        let held = std::mem::take(&mut self.held);
        self.read(&held, /* ended */ true, on_segment);
    }

    /// A proper call or a refusal follows: the answer is no call, and nothing of it is held back for that.
    pub fn release(&mut self, on_segment: &mut dyn FnMut(Segment<'_>)) {
        if matches!(self.state, State::Lead(_)) {
            self.state = self.behind_lead();
        }
        self.flush(on_segment);
    }

    /// The answer has ended. What may be a call as a whole is still held: [`Markup::withheld`] has it.
    pub fn finish(&mut self, on_segment: &mut dyn FnMut(Segment<'_>)) {
        if matches!(self.state, State::Lead(_)) {
            return;
        }
        let held = std::mem::take(&mut self.held);
        self.read(&held, /* ended */ true, on_segment);
        match std::mem::replace(&mut self.state, State::Text) {
            State::Block(start, _) => self.blocks.push(start..self.raw.len()),
            state => self.state = state,
        }
    }

    /// All that came, with all markup.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// What was shown to nobody, of an answer that has ended and in which no call was found: all of what might have been a call as a whole, or
    /// markup that breaks off. A call that is whole, though nobody's, is left out.
    pub fn withheld(&self) -> String {
        if matches!(self.state, State::Lead(_)) {
            return self.raw.clone();
        }
        let blocks = self.blocks.iter().filter_map(|block| self.raw.get(block.clone()));
        blocks.filter(|block| !is_payload(block)).collect()
    }

    /// The end of an answer from where it spoke of `<function_calls>` and then began no call.
    pub fn stray_end(&self) -> Option<&str> {
        let last = self.raw.get(self.blocks.last()?.clone())?;
        let is_open = self.blocks.last()?.end == self.raw.len();
        let (_, inside) = last.split_once('>')?;
        let inside = inside.trim_start();
        let begins = |tag: &str| tag.starts_with(inside) || inside.starts_with(tag);
        let tags = ["<invoke", "</", "<｜DSML｜invoke"];
        let is_wrapper = last.split('>').next()?.contains("function_calls");
        (is_open && is_wrapper && !tags.iter().any(|tag| begins(tag)) && !last.contains("</"))
            .then_some(last)
    }

    fn behind_lead(&self) -> State {
        if self.is_harmony { State::Channels(Channels::default()) } else { State::Text }
    }

    /// Reads `text`, the end of `raw`, and says how much of it is in segments now.
    fn read(&mut self, text: &str, ended: bool, on_segment: &mut dyn FnMut(Segment<'_>)) -> usize {
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let start = self.raw.len() - rest.len();
            match &mut self.state {
                State::Lead(lead) => {
                    if lead.may_be_call(rest, self.forms, &self.tools) {
                        return at;
                    }
                    self.state = self.behind_lead();
                }
                State::Text => match self.text(rest, start, ended, on_segment) {
                    Some(read) => at += read,
                    None => return at,
                },
                State::Block(begun, closer) => {
                    let (read, is_end) = match closer.step(rest) {
                        Step::More(read) => (read, false),
                        Step::End(read) => (read, true),
                        Step::Wait if ended => (rest.len(), false),
                        Step::Wait => return at,
                    };
                    if is_end {
                        self.blocks.push(*begun..start + read);
                        self.fences.skip_to(start + read);
                        self.state = State::Text;
                    }
                    hand_on(Segment::Hidden, &rest[..read], on_segment);
                    at += read;
                }
                State::Channels(channels) => {
                    let was_in_call = channels.in_call();
                    let (kind, length) = match channels.step(rest) {
                        Piece::Said(kind, length) => (Some(kind), length),
                        Piece::Markup(length) => (None, length),
                        Piece::Wait if !ended => return at,
                        Piece::Wait if is_header(rest) => (Some(Kind::Call), rest.len()),
                        Piece::Wait => (Some(channels.kind()), rest.len()),
                    };
                    if kind == Some(Kind::Call)
                        || kind.is_none() && (was_in_call || channels.in_call())
                    {
                        match self.blocks.last_mut() {
                            Some(block) if block.end == start => block.end += length,
                            _ => self.blocks.push(start..start + length),
                        }
                    }
                    let kind = match kind {
                        Some(Kind::Text) => Segment::Text,
                        Some(Kind::Reasoning) => Segment::Reasoning,
                        Some(Kind::Call) | None => Segment::Hidden,
                    };
                    hand_on(kind, &rest[..length], on_segment);
                    at += length;
                }
            }
        }
        at
    }

    /// Reads text up to the next marker or behind it; nothing when what follows must tell, with what was before it handed on.
    fn text(
        &mut self,
        text: &str,
        start: usize,
        ended: bool,
        on_segment: &mut dyn FnMut(Segment<'_>),
    ) -> Option<usize> {
        let mut from = 0;
        loop {
            let next = text[from..].bytes().position(|byte| self.triggers[usize::from(byte)]);
            let Some(skipped) = next else {
                hand_on(Segment::Text, text, on_segment);
                return Some(text.len());
            };
            let at = from + skipped;
            let (before, marker) = text.split_at(at);
            match self.marker(marker, start + at, ended) {
                Found::Nothing => from = at + marker.chars().next().map_or(1, char::len_utf8),
                // What is before it first, so that this place is looked at again from its beginning.
                _ if at > 0 => {
                    hand_on(Segment::Text, before, on_segment);
                    return Some(at);
                }
                Found::Perhaps => return None,
                Found::Hidden(length) => {
                    hand_on(Segment::Hidden, &marker[..length], on_segment);
                    return Some(length);
                }
                Found::State(state, length) => {
                    self.state = state;
                    hand_on(Segment::Hidden, &marker[..length], on_segment);
                    return Some(length);
                }
            }
        }
    }

    fn marker(&mut self, text: &str, start: usize, ended: bool) -> Found {
        let found = if self.forms.is_empty() { Opening::No } else { opening(text, self.forms) };
        let mut perhaps = matches!(found, Opening::Maybe);
        if let Opening::Yes(opener) = found {
            if opener.is_channel() {
                return Found::State(State::Channels(Channels::default()), 0);
            }
            // Between backticks and in fences it shows how a call looks, and directly in another tag it is something else.
            let before = &self.raw[..start];
            let is_behind_call = self.blocks.last().is_some_and(|block| block.end == start);
            let is_shown = before.ends_with('`')
                || opener.is_bare_tag() && before.ends_with('>') && !is_behind_call
                || self.fences.are_around(&self.raw, start);
            if !is_shown {
                return Found::State(State::Block(start, Closer::new(opener)), opener.text.len());
            }
        }
        let mut longest = 0;
        for token in self.strip_tokens.iter() {
            if text.starts_with(token.as_str()) {
                longest = longest.max(token.len());
            } else if token.starts_with(text) {
                perhaps = true;
            }
        }
        match longest {
            _ if perhaps && !ended => Found::Perhaps,
            0 => Found::Nothing,
            longest => Found::Hidden(longest),
        }
    }
}

/// What stands at a place where a marker may begin.
enum Found {
    Nothing,
    Perhaps,
    /// A marker of this length.
    Hidden(usize),
    /// The beginning of something, of this length.
    State(State, usize),
}

fn hand_on<'a>(
    kind: impl FnOnce(&'a str) -> Segment<'a>,
    text: &'a str,
    on_segment: &mut dyn FnMut(Segment<'_>),
) {
    if !text.is_empty() {
        on_segment(kind(text));
    }
}

#[cfg(test)]
#[path = "markup_tests.rs"]
mod tests;
