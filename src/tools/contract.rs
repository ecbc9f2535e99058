//! What a tool is to the bus.

use std::{sync::Arc, time::Duration};

use futures::future::{BoxFuture, FutureExt as _, join_all, ready};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::{
    protocol::{Include, Principal, Raw, SharedItem},
    turn::{Shape, ToolFailure, ToolOutput},
};

/// A tool that antiphon runs.
pub trait Tool: Send + Sync {
    /// What it is.
    fn spec(&self) -> &Spec;

    /// Whether it can run now. Asked only of tools that a request did not name; an answer is remembered for half a minute.
    fn is_available(&self) -> BoxFuture<'_, bool> {
        ready(true).boxed()
    }

    /// Runs a call. Dropping the future cancels it.
    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// Runs the calls of one Round together, for tools with [`Spec::batched_over`]. The results are in the order of the calls.
    fn run_batch<'a>(
        &'a self,
        calls: Vec<Call<'a>>,
    ) -> BoxFuture<'a, Vec<Result<ToolOutput, ToolError>>> {
        join_all(calls.into_iter().map(|call| self.run(call))).boxed()
    }
}

/// What a tool is, for the model, for people and for those who run it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about a tool")]
pub struct Spec {
    /// Whose it is: `antiphon`, or the label of a server.
    pub label: String,
    /// Its name there.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: Raw,
    /// The type of its calls' items.
    pub shape: Shape,
    /// Other names under which models write an argument, and its own.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Whether the client is asked before a call is run.
    pub needs_approval: bool,
    /// Whether the model calls no more tools after it.
    pub ends_loop: bool,
    /// Whether what it returns can be cited.
    pub is_citable: bool,
    /// Whether it must run alone.
    pub is_exclusive: bool,
    /// Whether a call may be run a second time when the first was interrupted.
    pub is_repeatable: bool,
    /// The list argument over which repeated calls of a Round are run as one.
    pub batched_over: Option<&'static str>,
    /// How long a call may take. One that takes longer is dropped, and the model told.
    pub time_limit: Duration,
}

impl Spec {
    /// A tool of antiphon's own, in the plainest form.
    pub fn own(name: &str, title: &str, description: &str, parameters: &Value) -> Self {
        Self {
            label: super::OWN_LABEL.to_owned(),
            name: name.to_owned(),
            title: title.to_owned(),
            description: description.to_owned(),
            parameters: Raw::of(parameters),
            shape: Shape::Mcp,
            aliases: &[],
            needs_approval: false,
            ends_loop: false,
            is_citable: false,
            is_exclusive: false,
            is_repeatable: true,
            batched_over: None,
            time_limit: Duration::from_mins(1),
        }
    }
}

/// A call as a tool receives it.
#[derive(Clone)]
pub struct Call<'a> {
    /// What the model wrote, mended and checked against the tool's schema.
    pub arguments: &'a Map<String, Value>,
    /// What only the server may give.
    pub context: &'a Context,
    /// Tells the client how far the call is.
    pub progress: Progress,
}

/// What only the server may give to a tool.
#[derive(Clone, Debug)]
pub struct Context {
    /// Who asks.
    pub principal: Principal,
    /// The Response that the call belongs to.
    pub response_id: String,
    /// The first Response of its chain, its conversation, or itself: what state of tools is kept apart by.
    pub chain_id: String,
    /// Whether the Response is stored; otherwise nothing of it may be kept anywhere.
    pub is_stored: bool,
    /// What the client wants to see besides.
    pub include: Arc<std::collections::HashSet<Include>>,
    /// What was said before, the user's own words among it.
    pub history: Arc<[SharedItem]>,
    /// The trace that calls of others belong to.
    pub traceparent: Option<String>,
}

/// Tells the client how far a call is. What nobody reads in time is left out.
#[derive(Clone, Debug)]
pub struct Progress {
    slot: usize,
    heard: mpsc::Sender<Picture>,
}

/// A picture that is not finished.
#[derive(Debug)]
pub struct Picture {
    /// The call, from [`ToolCall::slot`](crate::turn::ToolCall::slot).
    pub slot: usize,
    /// Counts the pictures of the call from 0.
    pub index: u32,
    /// Base64.
    pub base64: String,
}

/// Why a tool gave no output.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// A sentence that the model can act on, and what the client is told besides.
    #[error("{}", .0.told)]
    ForModel(ToolFailure),
    /// Something the model cannot mend: it goes to the log, and the model gets one neutral sentence.
    #[error(transparent)]
    Internal(#[from] anyhow::Error),
}

impl ToolError {
    /// A sentence that the model can act on.
    pub fn told(sentence: impl Into<String>) -> Self {
        Self::ForModel(ToolFailure::new(sentence))
    }
}

impl Progress {
    /// The progress of one call.
    pub(super) fn new(slot: usize, heard: mpsc::Sender<Picture>) -> Self {
        Self { slot, heard }
    }

    /// Shows the client a picture that is not finished.
    pub fn picture(&self, index: u32, base64: String) {
        let picture = Picture { slot: self.slot, index, base64 };
        if self.heard.try_send(picture).is_err() {
            tracing::debug!("a partial picture was left out");
        }
    }
}
