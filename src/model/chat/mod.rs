//! The Chat Completions wire: how a question is written, and how an answer is read.
//!
//! **Invariant:** no I/O: bytes and structs only. Whatever a backend may do in an answer is read from every backend.

mod assemble;
mod chunk;
mod details;
mod messages;
mod reading;
mod request;

pub(crate) use chunk::{count, logprobs_of, text as text_of, word};
pub(crate) use reading::{ChatExpected, ChatReading};
pub(crate) use request::body;
