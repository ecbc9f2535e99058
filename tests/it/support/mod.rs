//! What the integration tests share.

pub(crate) mod folding;
pub(crate) mod model;
pub(crate) mod postgres;
pub(crate) mod schema;
pub(crate) mod server;
pub(crate) mod stream;
pub(crate) mod upstream;
