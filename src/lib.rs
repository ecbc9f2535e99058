//! antiphon gives any chat model the whole OpenAI Responses API.
//!
//! # The map
//!
//! Read in this order: [`protocol`] (the words), then the rest along a request's way (see the folders' own heads).

pub mod cli;
pub mod clock;
pub mod config;
pub mod model;
pub mod net;
pub mod protocol;
pub mod seal;
pub mod tasks;
pub mod telemetry;
pub mod text;
pub mod turn;
