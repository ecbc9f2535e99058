//! PURE: text that arrives in pieces, and the repair of what models write.
//!
//! **Invariants:** no I/O, no clock, no randomness. Every stage has `push` and `finish`, gives the same result wherever the
//! pieces are cut (tested at every cut), keeps order, and holds back no more than what may still turn out to be markup.

pub mod json_scan;
mod lead;
pub mod markup;
pub mod picture;
pub mod repair;
pub mod rescue;
pub mod think;
pub mod tokens;
