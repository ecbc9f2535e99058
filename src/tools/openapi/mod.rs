//! An HTTP API that an OpenAPI document describes, as tools: one per operation (`antiphon:openapi`).
//!
//! The way of a document: [`read_document`] or [`Documents::fetch`] -> [`parse`] -> [`Operation`]s, which are told to the model. The way of a
//! call: [`build_request`] from what the model wrote -> [`execute`] with an [`Access`], which only the server may give -> [`ApiResult`].
//!
//! **Invariants:** all but `call` and `fetch` is pure. What the model writes decides values, never places: it cannot leave the path of its
//! operation, add a parameter, or set a header that speaks for somebody. A credential goes to the hosts that the operator listed and nowhere
//! else. Nothing of a document is left out in silence: what cannot be done is a [`SchemaFault`] or a note on the operation. It knows
//! nothing of the contract of tools, of items and of approvals beyond [`needs_approval`].

mod access;
mod answer;
mod approval;
mod call;
mod document;
mod example;
mod expand;
mod fault;
mod fetch;
mod find;
mod inline;
mod naming;
mod operation;
mod parameter;
mod parse;
mod read;
mod refs;
mod request;
mod schema;
mod server;
#[cfg(test)]
mod vector_tests;

pub use access::{Access, CredentialRefused};
pub use answer::{ApiFile, ApiResult, Content};
pub use approval::needs_approval;
pub use call::{CallError, CallLimits, execute};
pub use document::read_document;
pub use fault::SchemaFault;
pub use fetch::{Document, Documents, FetchError};
pub use naming::{MAX_NAME, sanitise};
pub use operation::Operation;
pub use parse::{Wanted, parse};
pub use request::{ForModel, Prepared, build_request};
