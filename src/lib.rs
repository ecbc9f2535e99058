//! antiphon gives any chat model the whole OpenAI Responses API.
//!
//! # The map
//!
//! Folders are stops on a request's way, named in the field's words. PURE ones think and do no I/O; SHELL ones do I/O and decide nothing about
//! the product. Read in this order:
//!
//! | | | |
//! |---|---|---|
//! | [`protocol`] | words | the API's vocabulary: items, events, requests, errors. One type per word |
//! | [`turn`] | pure | one Response in the making: deltas in, numbered events out, and what to do next |
//! | [`text`] | pure | text that arrives in pieces: thinking, calls written as text, JSON, repair, token counts |
//! | [`engine`] | shell | the loop: prepare, run, commit |
//! | [`model`] | shell | upstream models: wires, dialects, routing; scripts |
//! | [`tools`] | shell | tools that antiphon runs itself: contract, toolbox, runner, one file or folder per tool |
//! | [`mcp`] | shell | MCP servers: sessions, transports, connectors |
//! | [`web`] | shell | search providers and page readers |
//! | [`documents`] | shell | bytes to text, in a child process |
//! | [`store`] | shell | Postgres, also the private one |
//! | [`auth`], [`seal`], [`net`] | shell | who asks; what clients carry for us; outbound HTTP |
//! | [`http`] | shell | the door |
//! | [`app`], [`cli`], [`config`], [`telemetry`], [`clock`], [`tasks`] | | wiring, commands, settings, sight, time and ids, spawn |
//!
//! # The way of a request
//!
//! `http::responses` reads it → `engine::prepare` makes its history whole, asks [`tools::Toolbox`] which tools of ours it names (a 400 for one that
//! nothing is configured for), uses up its approvals and begins a [`turn::Turn`] → `engine::run` asks the model, feeds what it says to the Turn, runs
//! the tools it wants, until the Turn is finished → the Response is committed → its last event leaves. JSON, SSE and WebSocket answers are readers of
//! the same [`engine::Run`].
//!
//! With tools: servers of tools (MCP, OpenAPI) are asked for their lists first, and calls that were approved run before the model is asked. Calls of a
//! round go to [`tools::runner`] together, their items end as they end, and the model gets their outputs in the order of its calls. A call of a
//! function, or one that waits for approval, ends the Response: the client goes on with the next request.
//!
//! # Invariants
//!
//! 1. Sequence numbers, indexes, item ids and statuses are made in [`turn`] and nowhere else.
//! 2. Every accepted Response ends exactly once, from every exit, panic and drop included.
//! 3. The JSON answer, the stream and the stored copy are the same value: folding the events gives the Response.
//! 4. What the client hears as done is already committed.
//! 5. A run is tied to its client: when it goes, the upstream request is closed.
//! 6. A stream stage gives the same result wherever the pieces are cut.
//! 7. Every call the model makes gets exactly one output in the history it sees.
//!
//! Which folder may import which is a table in `tests/it/architecture`, and a test.

pub mod app;
pub mod auth;
pub mod cli;
pub mod clock;
pub mod config;
pub mod documents;
pub mod engine;
pub mod http;
pub mod mcp;
pub mod model;
pub mod net;
pub mod protocol;
pub mod seal;
pub mod store;
pub mod tasks;
pub mod telemetry;
pub mod text;
pub mod tools;
pub mod turn;
pub mod web;
