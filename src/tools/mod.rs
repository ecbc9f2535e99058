//! SHELL: the bus of tools that antiphon runs itself: their contract, the toolbox of a server, the registry of a Response, the parallel runner, a
//! file or folder per tool, and servers of tools (MCP, OpenAPI) whose tools are asked for.
//!
//! A tool receives two things apart: what the model wrote, and what only the server may give ([`Context`]). It returns two things apart: parts
//! for the model, and the fields of its item; or an error that says whom it is for.
//!
//! **Invariant:** whatever a tool does, every call has one outcome, and no other call waits for it longer than it must.

mod arguments;
pub mod clock_tool;
pub mod contract;
pub mod image;
mod mcp_server;
pub mod memory;
mod open_url;
pub mod openapi;
pub mod openapi_server;
pub mod read_file;
pub mod registry;
pub mod runner;
pub mod server;
pub mod toolbox;
mod web_search;

pub use crate::mcp::{Connectors, connectors::Shown as ShownConnector};
pub use contract::{Call, Context, Picture, Progress, Spec, Tool, ToolError};
pub use registry::Registry;
pub use toolbox::Toolbox;

pub use crate::turn::call::OWN_LABEL;
