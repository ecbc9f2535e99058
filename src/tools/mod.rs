//! SHELL: the bus of tools that antiphon runs itself: their contract, the registry of a Response, the parallel runner, one file per tool.
//!
//! A tool receives two things apart: what the model wrote, and what only the server may give ([`Context`]). It returns text for the model, or
//! an error that says whom it is for.

pub mod clock_tool;
pub mod openapi;
pub mod registry;
pub mod runner;

use std::time::Duration;

use futures::future::BoxFuture;

use crate::protocol::{Principal, Raw};

pub use registry::Registry;

/// A tool that antiphon runs.
pub trait Tool: Send + Sync {
    /// Its name for the model.
    fn name(&self) -> &'static str;

    /// What it does, for the model.
    fn description(&self) -> &'static str;

    /// JSON schema of its arguments.
    fn parameters(&self) -> Raw;

    /// How long it may take; a call that takes longer is dropped, and the model told.
    fn time_limit(&self) -> Duration {
        Duration::from_mins(1)
    }

    /// Runs a call. Dropping the future cancels it.
    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<String, ToolError>>;
}

/// A call as a tool receives it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What the model wrote: a JSON object.
    pub arguments: &'a str,
    /// What only the server may give.
    pub context: &'a Context,
}

/// What only the server may give to a tool.
#[derive(Clone, Debug)]
pub struct Context {
    /// Who asks.
    pub principal: Principal,
    /// The Response that the call belongs to.
    pub response_id: String,
}

/// Why a tool gave no output.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// A sentence that the model can act on.
    #[error("{0}")]
    ForModel(String),
    /// Something the model cannot mend: it goes to the log, and the model gets one neutral sentence.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}
