//! WORDS: the Responses API's vocabulary. One serde type per word, and that value is the wire, the database and the prompt.
//!
//! **Invariant:** imports nothing of ours, does no I/O.

pub mod error;

pub use error::{ApiError, ErrorKind};
