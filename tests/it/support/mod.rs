//! What the integration tests share.

pub(crate) mod model;
pub(crate) mod postgres;
pub(crate) mod server;
