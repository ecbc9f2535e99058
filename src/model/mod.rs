//! SHELL: upstream models. Bytes of a backend in, [`Delta`]s out; which backend, which dialect, which retry.
//!
//! **Invariant:** knows nothing of Responses, items or events: it is asked with an [`Ask`] and says [`Delta`]s.
//! **Invariant:** what is asked is always streamed upstream; dropping the stream closes the upstream request.

mod answer;
pub mod ask;
pub mod backend;
mod chat;
pub mod demo;
mod detect;
pub mod dialect;
pub mod error;
mod health;
mod intake;
pub mod passthrough;
mod recite;
mod responses;
pub mod router;
pub mod script;
pub mod source;
pub mod sse;
mod terms;
mod told;

use futures::{future::BoxFuture, stream::BoxStream};

pub use ask::{Ask, AskTool, Choice};
pub use backend::{Backend, Patience, SettingError, Surroundings};
pub use demo::Demo;
pub use dialect::Dialect;
pub use error::{ModelError, ModelErrorKind};
pub use passthrough::{Forward, Forwarded};
pub use router::{ListedModel, Router, discover};
pub use script::{Script, ScriptError};
pub use source::Source;

use crate::{
    text::{rescue, think::ThinkMode},
    turn::Delta,
};

/// What a model says, a batch for each piece that came from the wire. It ends after the Round's last piece; an error is its last entry.
pub type Deltas = BoxStream<'static, Result<Vec<Delta>, ModelError>>;

/// Something that can be asked for a Round: a backend over a wire, or a script.
pub trait Model: Send + Sync {
    /// Asks. Resolves once the backend has accepted (its headers are there), having retried whatever may be retried before that.
    fn ask<'a>(&'a self, ask: &'a Ask<'a>) -> BoxFuture<'a, Result<Deltas, ModelError>>;

    /// What one must know of a model before a Response of it begins.
    fn facts<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Facts>;
}

/// What one must know of a model before a Response of it begins.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Whether thinking stands in its text, in tags.
    pub think: ThinkMode,
    /// Whether calls and markers of its template stand in its text.
    pub reading: rescue::Reading,
}
