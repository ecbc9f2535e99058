//! One question to a model.

use crate::{
    protocol::response::{Effort, TextFormat, Verbosity},
    turn::prompt::PromptMessage,
};

pub use crate::turn::catalog::OfferedTool as AskTool;

/// One question to a model: what it is shown, what it may call, how it is to answer. `None` leaves a thing to the backend.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The model, as the client named it.
    pub model: &'a str,
    /// What it is shown.
    pub messages: Vec<PromptMessage<'a>>,
    /// What it may call.
    pub tools: &'a [AskTool],
    /// Whether it must.
    pub choice: Choice<'a>,
    /// Whether it may make several calls.
    pub parallel_calls: Option<bool>,
    /// The most tokens that it may write in this Round.
    pub max_output_tokens: Option<u64>,
    /// Sampling.
    pub temperature: Option<f64>,
    /// Sampling.
    pub top_p: Option<f64>,
    /// Sampling.
    pub presence_penalty: Option<f64>,
    /// Sampling.
    pub frequency_penalty: Option<f64>,
    /// Asks for log probabilities, with this many of the likeliest tokens.
    pub logprobs: Option<u64>,
    /// The format of the text.
    pub format: &'a TextFormat,
    /// The length of the text.
    pub verbosity: Option<Verbosity>,
    /// How much it is to think.
    pub effort: Option<Effort>,
    /// Hint for the prompt cache.
    pub prompt_cache_key: Option<&'a str>,
    /// The client's id for its user.
    pub safety_identifier: Option<&'a str>,
    /// W3C `traceparent` of the span around the question.
    pub traceparent: Option<String>,
}

/// Whether the model may, must or must not call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Choice<'a> {
    /// It must not.
    None,
    /// It may.
    Auto,
    /// It must call something.
    Required,
    /// It must call this.
    Named(&'a str),
}
