//! PURE: text that arrives in pieces, calls that models write as text, and the repair of what models write: arguments of calls, and the
//! schemas they are to fit.
//!
//! **Invariants:** no I/O, no clock, no randomness. Every stage has `push` and `finish`, gives the same result wherever the
//! pieces are cut (tested at every cut), keeps order, and holds back no more than what may still turn out to be markup.

pub mod arg_stream;
pub mod arguments;
pub mod batch;
pub mod cap;
pub mod excerpt;
pub mod instance;
pub mod json_scan;
mod json_string;
mod lead;
pub mod markup;
pub mod picture;
pub mod repair;
pub mod rescue;
pub mod schema;
pub mod think;
pub mod tokens;
pub mod tool_name;

#[cfg(test)]
#[path = "vectors_tests.rs"]
pub(crate) mod vectors;
