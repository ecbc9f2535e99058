//! SHELL: upstream models. Their wires, what each backend does differently (as data), and the reading of their streams.
//!
//! **Invariants:** what an upstream sends is read into this folder's own structs, never into the words of `protocol`;
//! nothing here knows what a Response is.

pub mod sse;
