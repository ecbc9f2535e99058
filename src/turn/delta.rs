//! What a model says in one Round, whichever wire it speaks. Made in `model`.

use crate::protocol::{Raw, Usage, content::Logprob};

/// A piece of what a model says.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// More text; never empty.
    Text {
        /// The piece.
        text: String,
        /// How likely its tokens were, when that was asked for.
        logprobs: Vec<Logprob>,
    },
    /// More of a refusal.
    Refusal(String),
    /// More raw reasoning.
    Reasoning(String),
    /// More of a reasoning summary that the backend itself wrote. A new `part` begins a new summary part.
    Summary {
        /// Counts the parts of the current reasoning from 0.
        part: usize,
        /// The piece.
        text: String,
    },
    /// What the backend wants back with this reasoning, opaque to us.
    ReasoningData(Raw),
    /// A call begins, and its name is whole.
    Call {
        /// Tells the calls of one Round apart: 0, 1, 2 … in the order of their first bytes.
        position: u32,
        /// The backend's id of the call, if it gave one; not unique on every backend.
        id: Option<String>,
        /// The name that the model called.
        name: String,
    },
    /// More arguments of a call that began.
    Arguments {
        /// Which.
        position: u32,
        /// The piece, as the model wrote it.
        piece: String,
    },
    /// What the backend wants back with this call, opaque to us.
    CallData {
        /// Which.
        position: u32,
        /// The data.
        data: Raw,
    },
    /// The tokens of this Round; a later one replaces an earlier one.
    Usage(Usage),
    /// Why the model stopped. What comes after it changes nothing but the usage.
    Finish(Finish),
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Finish {
    /// It was done, or wants its calls answered.
    Stop,
    /// The token limit.
    Length,
    /// The backend's filter.
    ContentFilter,
}
