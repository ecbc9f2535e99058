//! What a model wrote, made what a tool takes.

use serde_json::{Map, Value};

use crate::text::arguments::{ArgumentSchema, fitting};

use super::Spec;

/// The arguments of a call, or a sentence for the model that says what is wrong with them.
pub(super) fn read(written: &str, spec: &Spec) -> Result<Map<String, Value>, String> {
    // Compiled for the calls of this tool only: most tools that a request offers are never called.
    let schema = ArgumentSchema::new(&spec.parameters);
    if let Some(why) = schema.unusable() {
        tracing::debug!(tool = %spec.name, %why, "arguments are not checked");
    }
    fitting(written, &schema, spec.aliases)
}
