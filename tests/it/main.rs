//! All integration tests, in one binary.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod architecture;
mod embedded_fetch;
mod embedded_postgres;
mod store_dump;
mod store_keys;
mod store_pool;
mod support;
