//! Which models there are: a script, the configured upstreams, those found on this machine, or the demo.

use std::{path::Path, sync::Arc};

use crate::{config::Config, model::Model};

/// The models of a server, and what is told of them at start.
pub struct Models {
    /// Asks them.
    pub model: Arc<dyn Model>,
    /// What there is, for people.
    pub description: Vec<String>,
    /// What is missing, for people.
    pub missing: Vec<String>,
    /// A model to try.
    pub example: String,
}
