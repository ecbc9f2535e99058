//! SHELL: bytes of documents to text, in a child process of our own binary (`antiphon parse`).
//!
//! [`Parser`] is what others use: it starts the child, feeds it, and kills it when it takes too long. [`child`] is what the child does.
//!
//! **Invariants:** no parser of documents runs in the server's process: they are written for friendly input, and panic, overflow the stack
//! or eat memory on hostile one. The child gets no environment, sets limits on itself before it reads, and neither writes files nor opens
//! connections. What it says is bounded here too, for it may be anything once a document has broken it.

mod charset;
pub mod child;
mod html;
mod parser;
mod pdf;

use serde::{Deserialize, Serialize};

pub use self::{
    charset::decode,
    parser::{Limits, Parser},
};

/// What the bytes are.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A web page: its article if it has one, else all of its text.
    Html,
    /// A PDF: its text.
    Pdf,
}

/// What is to be parsed, apart from the bytes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Task {
    /// What it is.
    pub kind: Kind,
    /// Where it was found; links are relative to it.
    pub url: Option<String>,
    /// The encoding that its server named.
    pub charset: Option<String>,
}

/// The text of a document.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Parsed {
    /// Its title.
    pub title: Option<String>,
    /// Its text as Markdown.
    pub text: String,
    /// When it was published, as it says itself.
    pub published: Option<String>,
    /// Whether the text was longer than is kept.
    pub truncated: bool,
}

/// Why a document has no text.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ParseError {
    /// It is not what it says it is, or not whole.
    #[error("the document is damaged")]
    Damaged,
    /// It wants a password.
    #[error("the document is encrypted")]
    Encrypted,
    /// Its pages are pictures.
    #[error("there is no text in the document, only pictures")]
    Pictures,
    /// Reading it took too long.
    #[error("reading the document took too long")]
    Slow,
    /// Reading it took more memory than it may, or broke the parser.
    #[error("the document cannot be read: it is damaged, or needs too much memory")]
    Broke,
    /// The child process cannot be started; the log has the reason.
    #[error("documents cannot be read at the moment")]
    Unavailable,
}

/// The longest text that is kept, in bytes.
const LONGEST_TEXT: usize = 4_000_000;

impl Parsed {
    /// Cut to what is kept.
    fn bounded(mut self) -> Self {
        let end = self.text.floor_char_boundary(LONGEST_TEXT);
        self.truncated = end < self.text.len();
        self.text.truncate(end);
        self
    }
}
