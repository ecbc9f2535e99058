//! PURE: one Response in the making. Deltas go in, numbered events and what to do next come out.
//!
//! **Invariant:** no I/O, no clock, no randomness: ids and time come in as arguments.
//! **Invariant:** sequence numbers, output and content indexes, item ids and statuses are made here and nowhere else.

pub mod delta;
pub mod prompt;

pub use delta::{Delta, Finish};
