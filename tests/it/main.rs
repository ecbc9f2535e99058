//! All integration tests, in one binary.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may panic")]

mod architecture;
mod auth_oidc;
mod embedded_fetch;
mod embedded_postgres;
mod faults;
mod http_connectors;
mod http_conversations;
mod http_edges;
mod http_input_tokens;
mod http_openapi;
mod http_responses;
mod http_socket;
mod images;
mod mcp;
mod memory;
mod model_data;
mod model_passthrough;
mod model_responses_wire;
mod model_retry;
mod model_routing;
mod model_written;
mod read_file;
mod store_approvals;
mod store_dump;
mod store_keys;
mod store_pool;
mod support;
mod tools;
mod web;
