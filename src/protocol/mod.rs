//! WORDS: the Responses API's vocabulary. One serde type per word, and that value is the wire, the database and the prompt.
//!
//! Reading is tolerant (what is not known is kept as it came, `null` is absence), writing is strict.
//!
//! **Invariant:** imports nothing of ours, does no I/O.

pub mod content;
pub mod error;
pub mod event;
pub mod fields;
pub mod hosted;
pub mod hosted_tool;
pub mod ids;
pub mod item;
pub mod json;
pub mod principal;
pub mod request;
pub mod response;
pub mod tool;

pub use content::Part;
pub use error::{ApiError, ErrorKind};
pub use event::{Event, Numbered};
pub use item::{Item, ItemStatus, SharedItem};
pub use json::{Extra, Raw};
pub use principal::Principal;
pub use request::{CreateResponse, Include};
pub use response::{Response, Settings, Status, Usage};
pub use tool::{Tool, ToolChoice};

#[cfg(test)]
mod tests;
