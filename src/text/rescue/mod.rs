//! Calls that a model writes as text, because its server does not take them out or the model does not know better.
//!
//! [`parse`] reads the grammar that the dialect declares; [`guess`] reads whatever looks like a call. A file per family of grammars:
//! JSON objects, tags with JSON or XML in them, the marker tokens of Kimi, Mistral and Llama, the channels of harmony. Which
//! openers begin a call, and where its markup ends, is told in `opening` and `closing` for these readers and for the stream stage
//! ([`super::markup`]) alike: what is hidden is what is read.
//!
//! **Invariants:** linear in the text, whatever it is. Strings are known as strings: a brace or a tag inside of one is not markup. A span
//! that was read once, as a call or as a call of nobody, is never read again. Nothing here fails: what cannot be read is no call.

mod channels;
mod closing;
mod coerce;
mod fence;
mod guess;
mod json;
mod known;
mod marked;
mod objects;
mod opening;
mod walk;
mod xml;

use std::{ops::Range, sync::Arc};

pub use guess::{Said, guess, looks_like_call};
pub use known::{KnownTool, Tools, clean_name};

pub(super) use channels::{Channels, Kind, Piece, is_header};
pub(super) use closing::{Closer, Step};
pub(super) use fence::{Fences, closes, fence_mark};
pub(super) use json::CALL_KEYS;
pub(super) use opening::{Forms, Opening, opening};

/// How calls are written when they stand in the text: the dialect's `call_grammar`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CallGrammar {
    /// They never do.
    #[default]
    None,
    /// JSON between `<tool_call>` tags.
    Hermes,
    /// `<function=…>` with a `<parameter=…>` per argument.
    QwenXml,
    /// The channels of gpt-oss.
    Harmony,
    /// Kimi's section markers.
    Kimi,
    /// GLM's pairs of `<arg_key>` and `<arg_value>`.
    Glm,
    /// `[TOOL_CALLS]`
    Mistral,
    /// `<|python_tag|>`, or a JSON object that is the whole answer.
    Llama,
    /// JSON objects that are the whole answer.
    BareJson,
}

/// Whether text that merely looks like a call is taken for one: the dialect's `rescue`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Rescue {
    /// It is text.
    #[default]
    Off,
    /// It is, once per Response and where a call may be expected.
    Auto,
}

/// How the text of a model is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// How calls are written in it.
    pub grammar: CallGrammar,
    /// Whether what looks like a call is one.
    pub rescue: Rescue,
    /// Markers of the chat template that are taken out.
    pub strip_tokens: Arc<[String]>,
}

impl Reading {
    /// Whether all text is text.
    pub fn hides_nothing(&self) -> bool {
        self.grammar == CallGrammar::None
            && self.rescue == Rescue::Off
            && self.strip_tokens.is_empty()
    }
}

/// A call that stood in a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WrittenCall {
    /// The tool's name: one that is known, unless the grammar was declared.
    pub name: String,
    /// JSON text of an object.
    pub arguments: String,
    /// Where in the text it stood, in bytes.
    pub span: Range<usize>,
}

/// The calls that stand in the text of a model whose grammar is known. A name that is no tool's is kept where the markup leaves no doubt.
pub fn parse(grammar: CallGrammar, text: &str, tools: &Tools) -> Vec<WrittenCall> {
    match grammar {
        CallGrammar::None => Vec::new(),
        CallGrammar::Harmony => channels::calls(text, tools, Strangers::Keep),
        CallGrammar::BareJson => json::whole_answer(text, tools),
        CallGrammar::Llama => {
            let marked = walk::marked(text, Forms::of(grammar), tools, Strangers::Keep);
            if marked.is_empty() { json::whole_answer(text, tools) } else { marked }
        }
        CallGrammar::Hermes
        | CallGrammar::QwenXml
        | CallGrammar::Kimi
        | CallGrammar::Glm
        | CallGrammar::Mistral => walk::marked(text, Forms::of(grammar), tools, Strangers::Keep),
    }
}

/// Whether this markup is a call as a whole, be it of a tool that nobody knows.
pub fn is_payload(markup: &str) -> bool {
    let nobody = Tools::default();
    !walk::marked(markup, Forms::ALL, &nobody, Strangers::Keep).is_empty()
        || !channels::calls(markup, &nobody, Strangers::Keep).is_empty()
}

/// What becomes of calls whose name is no tool's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Strangers {
    /// They are calls.
    Keep,
    /// They are none, and nothing inside of them is one either.
    Drop,
}

/// A call, before it is known where it stood.
#[derive(Debug)]
struct Made {
    name: String,
    arguments: String,
}

impl Made {
    fn at(self, span: Range<usize>) -> WrittenCall {
        WrittenCall { name: self.name, arguments: self.arguments, span }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vector_tests;
