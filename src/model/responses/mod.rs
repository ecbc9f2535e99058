//! The Responses wire, for upstreams that speak it themselves: nothing is stored there, and what they seal comes back with the prompt.
//!
//! **Invariant:** no I/O: bytes and structs only.

mod reading;
mod request;

pub(crate) use reading::ResponsesReading;
pub(crate) use request::body;
