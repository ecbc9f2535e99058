//! A server of tools that a request names: what it offers is known only when it is asked.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::future::BoxFuture;

use crate::protocol::Raw;

use super::Tool;

/// A server of tools: one that speaks MCP, or an API that a schema describes.
pub trait ToolServer: Send + Sync {
    /// Its name in the Response.
    fn label(&self) -> &str;

    /// What an approval is good for: this tool of this server, whatever its label, with exactly these arguments.
    fn digest(&self, tool: &str, arguments: &str) -> [u8; 32];

    /// The terms under which its tools are listed. A list of the chain with the same terms is used again.
    fn definition(&self) -> &str;

    /// Asks for its tools. The error is a sentence for the client.
    fn list(&self) -> BoxFuture<'_, Result<Vec<Listed>, String>>;

    /// The tools of a list that the chain has already; nothing when it must be asked for again.
    fn recall<'a>(&'a self, listed: &'a [Raw]) -> BoxFuture<'a, Option<Vec<Arc<dyn Tool>>>>;
}

/// A tool of a server.
#[derive(Clone)]
pub struct Listed {
    /// As the item of the list shows it: `name`, `description`, `input_schema`, `annotations`.
    pub shown: Raw,
    /// As it is run.
    pub tool: Arc<dyn Tool>,
}

/// The terms as a text that fits into a row, from a digest of them.
pub(super) fn terms(digest: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(&digest[..digest.len().min(16)])
}
