//! SHELL: the only owner of outbound HTTP clients.
//!
//! Two kinds. [`guarded`] is for every URL that a client, a model or a page named: what it connects to is judged by
//! [`Policy`]. [`trusted`] is for what the operator configured, such as an upstream model.
//!
//! **Invariants:** a guarded client judges every connection, not every URL: a literal address and the port when the
//! connection is opened, a name by all addresses it resolves to, and it connects to exactly these. No environment variable
//! changes where a request goes. Nothing here knows what is fetched or why.

mod client;
mod policies;
mod policy;
mod resolve;
mod retry;
#[cfg(test)]
mod vector_tests;

pub use client::{
    BuildError, Client, GuardedSettings, NetError, TrustedSettings, guarded, read_limited, trusted,
};
pub use policies::Policies;
pub use policy::{Allow, AllowError, Denied, Policy, Reach, Schemes, Zone, zone};
pub use retry::{Backoff, retry_after};
