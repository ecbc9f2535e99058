//! What a model is shown: the one renderer of history, for chains, conversations, stateless input and compaction.

use std::borrow::Cow;

use crate::protocol::Raw;

/// One message of a prompt, in the order in which the model reads them. Borrowed from the items where it can be.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptMessage<'a> {
    /// The operator's text. Leading ones are merged into one already; a later one is for the dialect to place.
    System(Cow<'a, str>),
    /// What the person said or showed.
    User(Vec<PromptPart<'a>>),
    /// What the model said, thought and called in one go.
    Assistant(AssistantMessage<'a>),
    /// What a call returned. It stands after the message with the call, in the order of the calls.
    Tool {
        /// The call.
        call_id: &'a str,
        /// The result.
        output: Vec<PromptPart<'a>>,
    },
}

/// What the model said, thought and called in one go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage<'a> {
    /// What it thought before.
    pub reasoning: Option<Cow<'a, str>>,
    /// What its backend wants back with that thought.
    pub reasoning_data: Option<Raw>,
    /// What it said; empty when it only called.
    pub text: Cow<'a, str>,
    /// What it called.
    pub calls: Vec<PromptCall<'a>>,
}

/// A call in a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptCall<'a> {
    /// Unique in the prompt, and the same in its output.
    pub call_id: &'a str,
    /// The name under which this prompt's tools offer it.
    pub name: Cow<'a, str>,
    /// JSON text, as the model wrote it.
    pub arguments: Cow<'a, str>,
    /// What the backend wants back with the call.
    pub data: Option<Raw>,
}

/// A piece of a user's message or of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptPart<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// A picture, by URL or `data:` URL.
    Image {
        /// The URL.
        url: &'a str,
        /// `low`, `high`, `auto`, …
        detail: &'a str,
    },
    /// A file with its bytes (base64 or `data:` URL) or its URL.
    File {
        /// Its name.
        filename: Option<&'a str>,
        /// Its bytes.
        data: Option<&'a str>,
        /// Where it is.
        url: Option<&'a str>,
    },
    /// Sound: the object `{data, format}`.
    Audio(Raw),
    /// A film, by URL.
    Video(&'a str),
}
