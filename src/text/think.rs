//! Thinking that a model writes into its text, in tags, when its server does not take it out.
//!
//! Only a block at the very beginning counts, as every one of these models writes it: a tag further on is something the
//! text talks about. The white space inside and after the tags belongs to the template, not to what was said, and is
//! dropped (ASCII only: an indent of wide blanks is text).

use memchr::memchr2;

/// Where thinking may stand: the dialect's `think_tags`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ThinkMode {
    /// Nowhere: everything is text.
    Off,
    /// In a block that the model opens.
    On,
    /// From the first character, because the prompt's template has opened the block; the model may open it once more.
    OpenAtStart,
}

/// A piece of what the model wrote.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Segment<'a> {
    /// Said to the user.
    Text(&'a str),
    /// Thought.
    Reasoning(&'a str),
}

/// The tags. What follows `<|end_of_thought|>` in those models, a block for the solution, is markup for another stage.
const TAGS: [Tag; 5] = [
    // DeepSeek R1 and its kin, Qwen 3 and QwQ, GLM, MiniMax: the usual one.
    Tag { open: "<think>", close: "</think>" },
    // Models tuned on the traces of Claude.
    Tag { open: "<thinking>", close: "</thinking>" },
    // Gemma and Gemini behind compatible servers.
    Tag { open: "<thought>", close: "</thought>" },
    // Magistral.
    Tag { open: "[THINK]", close: "[/THINK]" },
    // Sky-T1, OpenThinker.
    Tag { open: "<|begin_of_thought|>", close: "<|end_of_thought|>" },
];

#[derive(Debug)]
struct Tag {
    open: &'static str,
    close: &'static str,
}

/// Splits one channel of text. What it has not handed on is white space and the beginning of a tag, never more.
#[derive(Debug)]
pub struct ThinkSplitter {
    mode: ThinkMode,
    state: State,
    /// White space that is kept only if something follows it.
    spaces: String,
    /// The beginning of what may be a tag.
    tag: String,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// At the beginning.
    Start,
    /// In a block that one of these ends.
    Thinking { tags: &'static [Tag], said: bool },
    /// After the block, before the text.
    Between,
    /// In the text, to the end.
    Text,
}

impl ThinkSplitter {
    /// A splitter at the beginning of an answer.
    pub fn new(mode: ThinkMode) -> Self {
        let state = if mode == ThinkMode::Off { State::Text } else { State::Start };
        Self { mode, state, spaces: String::new(), tag: String::new() }
    }

    /// Reads the next piece and hands on what is certain, in order. No segment is empty.
    pub fn push(&mut self, piece: &str, mut on_segment: impl FnMut(Segment<'_>)) {
        if matches!(self.state, State::Text) {
            if !piece.is_empty() {
                on_segment(Segment::Text(piece));
            }
        } else if self.tag.is_empty() {
            self.read(piece, &mut on_segment);
        } else {
            let mut held = std::mem::take(&mut self.tag);
            held.push_str(piece);
            self.read(&held, &mut on_segment);
        }
    }

    /// The answer has ended: what was held back is no tag. A second time there is nothing left.
    pub fn finish(&mut self, mut on_segment: impl FnMut(Segment<'_>)) {
        let held = std::mem::take(&mut self.tag);
        match self.state {
            State::Start if self.mode == ThinkMode::On => {
                self.spaces.push_str(&held);
                if !self.spaces.is_empty() {
                    on_segment(Segment::Text(&self.spaces));
                }
            }
            State::Start => {
                self.spaces.clear();
                self.think(&held, false, &mut on_segment);
            }
            State::Thinking { said, .. } => self.think(&held, said, &mut on_segment),
            State::Between | State::Text => (),
        }
        self.spaces.clear();
        self.state = State::Text;
    }

    fn read(&mut self, mut rest: &str, on_segment: &mut impl FnMut(Segment<'_>)) {
        while !rest.is_empty() {
            rest = match self.state {
                State::Start => self.start(rest, on_segment),
                State::Thinking { tags, said } => self.thinking(rest, tags, said, on_segment),
                State::Between => {
                    let text = trim_start(rest);
                    if !text.is_empty() {
                        self.state = State::Text;
                    }
                    text
                }
                State::Text => {
                    on_segment(Segment::Text(rest));
                    ""
                }
            };
        }
    }

    /// White space, then a tag or not.
    fn start<'r>(&mut self, rest: &'r str, on_segment: &mut impl FnMut(Segment<'_>)) -> &'r str {
        let first = trim_start(rest);
        self.spaces.push_str(&rest[..rest.len() - first.len()]);
        for (at, tag) in TAGS.iter().enumerate() {
            if let Some(thought) = first.strip_prefix(tag.open) {
                self.spaces.clear();
                self.state = State::Thinking { tags: &TAGS[at..=at], said: false };
                return thought;
            }
        }
        if TAGS.iter().any(|tag| tag.open.starts_with(first)) {
            self.tag.push_str(first);
            return "";
        }
        if self.mode == ThinkMode::OpenAtStart {
            self.spaces.clear();
            self.state = State::Thinking { tags: &TAGS, said: false };
        } else {
            self.state = State::Text;
            if !self.spaces.is_empty() {
                on_segment(Segment::Text(&self.spaces));
            }
        }
        first
    }

    /// Thought up to the closing tag, or to what may be its beginning.
    fn thinking<'r>(
        &mut self,
        rest: &'r str,
        tags: &'static [Tag],
        said: bool,
        on_segment: &mut impl FnMut(Segment<'_>),
    ) -> &'r str {
        let mut at = 0;
        while let Some(skipped) = memchr2(b'<', b'[', &rest.as_bytes()[at..]) {
            at += skipped;
            let (thought, closing) = rest.split_at(at);
            if let Some(after) = tags.iter().find_map(|tag| closing.strip_prefix(tag.close)) {
                self.think(thought, said, on_segment);
                self.spaces.clear();
                self.state = State::Between;
                return after;
            }
            if tags.iter().any(|tag| tag.close.starts_with(closing)) {
                self.think(thought, said, on_segment);
                self.tag.push_str(closing);
                return "";
            }
            at += 1;
        }
        self.think(rest, said, on_segment);
        ""
    }

    /// Hands on thought without the white space around the whole of it.
    fn think(&mut self, thought: &str, said: bool, on_segment: &mut impl FnMut(Segment<'_>)) {
        let thought = if said { thought } else { trim_start(thought) };
        let end = thought.trim_end_matches(|c: char| c.is_ascii_whitespace());
        if !end.is_empty() {
            if !self.spaces.is_empty() {
                on_segment(Segment::Reasoning(&self.spaces));
                self.spaces.clear();
            }
            on_segment(Segment::Reasoning(end));
            if let State::Thinking { said, .. } = &mut self.state {
                *said = true;
            }
        }
        self.spaces.push_str(&thought[end.len()..]);
    }
}

fn trim_start(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_whitespace())
}

#[cfg(test)]
#[path = "think_tests.rs"]
mod tests;
