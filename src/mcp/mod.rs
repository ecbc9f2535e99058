//! SHELL: MCP servers. One [`Pool`] for the process keeps the sessions; callers name an [`Endpoint`] and the [`Scope`] they ask for.
//!
//! | | |
//! |---|---|
//! | `pool` | which session serves whom; single flight, renewal, queues, idle sweep, closing |
//! | `session` | one session: handshake, questions, cancellation |
//! | `streamable`, `legacy`, `stdio` | the three transports; the last two share `mux` |
//! | `rpc` | JSON-RPC as MCP writes it |
//! | [`tools`], [`result`] | what a server offers, what a call gave |
//! | [`request`], [`approval`], [`allowed`], [`headers`] | what a request says of a server, and the rules that follow: pure |
//! | [`connectors`] | servers that the configuration or a tenant named before |
//!
//! | [`connectors`] | servers that the configuration or a tenant named before |
//!
//! **Invariants**
//! - A session is used by one tenant and user with one set of headers. When the server keeps state for it (a session id, an event stream of
//!   its own, a process), by one Chain; else it is shared.
//! - Two that want the same session at the same time wait for the same handshake. One that failed is tried anew by the next.
//! - A call is sent once. It is repeated only when the server answered that it does not know the session any more, and then once.
//! - Every body, list and wait has a limit. What a server says is data: a fault of its is a typed [`McpError`], never a panic.
//! - No header value leaves this folder but towards its server: [`Headers`] and [`Secret`](crate::config::Secret) can be neither printed nor
//!   serialised, and an answer that reflects one is masked.
//! - Tools' schemas and arguments pass byte for byte.
//!
//! The client is our own, not that of an SDK: these would have to be told all of the above (typed models drop tools that have no schema and
//! rewrite those that have, sessions are renewed and streams reopened behind the caller's back, tasks are spawned that nobody counts).
//! It knows nothing of items, events, Turns or models.

pub mod allowed;
pub mod approval;
pub mod connectors;

mod endpoint;
mod error;
pub mod headers;
mod legacy;
mod mux;
mod pool;
pub mod request;
pub mod result;
mod rpc;
mod session;
mod stdio;
mod streamable;
pub mod tools;

pub use allowed::Allowed;
pub use approval::Approval;
pub use connectors::{Connectors, Server};

pub use endpoint::{Command, Endpoint, Scope, Transport, call_digest};
pub use error::McpError;
pub use headers::Headers;
pub use pool::{Call, Limits, Pool, Stats};
pub use request::{McpTool, Wrong};
pub use result::{CallResult, ContentPart, Image};
pub use tools::{ToolInfo, ToolList};
