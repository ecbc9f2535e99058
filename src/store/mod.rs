//! SHELL: Postgres. One file per table family, functions not traits, and the private Postgres that is there when no other is named.
//!
//! [`embedded`] runs a private Postgres as a child, [`pool`] connects and migrates, [`dump`] saves and loads a whole database,
//! [`error`] says what a failure means, and the rest are the tables.
//!
//! **Invariants**
//! - Whoever makes a row makes its id and its times; the store writes what it is given.
//! - Queries are checked when compiled (`scripts/sqlx-prepare` refreshes `.sqlx`), name the tenant, and never hold a rule of the product.
//! - Absence is an `Option` or a `bool`; races are settled by named constraints and come back as [`StoreError::Conflict`].

pub mod approvals;
pub mod connectors;
pub mod conversations;
pub mod dump;
pub mod embedded;
pub mod error;
pub mod idempotency;
pub mod items;
mod json;
pub mod keys;
pub mod memories;
pub mod pool;
pub mod responses;

pub use error::StoreError;

/// Through whose eyes a query looks: what is not theirs is absent.
#[derive(Clone, Copy, Debug)]
pub struct Viewer<'a> {
    /// The tenant.
    pub tenant_id: &'a str,
    /// Only what this user owns; `None` when the tenant shares everything.
    pub only_owner: Option<&'a str>,
}
