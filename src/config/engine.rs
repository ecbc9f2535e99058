use std::{
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use serde::Deserialize;

use super::{ImageGeneration, Memory, OpenApi, OpenUrl, ReadFile, WebSearch, value};

/// `[engine]`: limits of a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Engine {
    /// Calls of the model within one Response; the last one is offered no tools.
    pub max_rounds: NonZeroU32,
    /// How long one Response may take. Key `total_seconds`.
    #[serde(rename = "total_seconds", deserialize_with = "value::seconds")]
    pub total: Duration,
    /// How long the model may take to its first byte; a cold local model needs minutes. Key `first_byte_seconds`.
    #[serde(rename = "first_byte_seconds", deserialize_with = "value::seconds")]
    pub first_byte: Duration,
    /// How long the model may be silent between two pieces. Key `between_chunks_seconds`.
    #[serde(rename = "between_chunks_seconds", deserialize_with = "value::seconds")]
    pub between_chunks: Duration,
    /// How often a call of the model that failed before its first byte is tried again.
    pub retries: u32,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            max_rounds: NonZeroU32::MIN.saturating_add(31),
            total: Duration::from_hours(1),
            first_byte: Duration::from_mins(10),
            between_chunks: Duration::from_mins(2),
            retries: 2,
        }
    }
}

/// `[history]`: what a request brings of earlier turns.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    /// Whether a call without an output is given one that says it was not executed, instead of being refused with 400.
    pub repair: bool,
}

/// `[tools]`: limits of the tools that run here.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tools {
    /// How long one call may take, whatever its tool allows. Key `timeout_seconds`.
    #[serde(rename = "timeout_seconds", deserialize_with = "value::seconds")]
    pub timeout: Duration,
    /// How long the calls of one Round may take together. Key `round_seconds`.
    #[serde(rename = "round_seconds", deserialize_with = "value::seconds")]
    pub round: Duration,
    /// Calls of one Response that run at the same time; more wait.
    pub max_parallel: NonZeroUsize,
    /// Calls of all Responses that run at the same time; more wait.
    pub max_parallel_total: NonZeroUsize,
    /// Tokens of a result that the model is shown, roughly; the middle of a longer one is left out.
    pub max_result_tokens: NonZeroUsize,
    /// `[tools.get_current_time]`
    pub get_current_time: GetCurrentTime,
    /// `[tools.web_search]`
    pub web_search: WebSearch,
    /// `[tools.open_url]`
    pub open_url: OpenUrl,
    /// `[tools.image_generation]`
    pub image_generation: ImageGeneration,
    /// `[tools.memory]`
    pub memory: Memory,
    /// `[tools.read_file]`
    pub read_file: ReadFile,
    /// `[tools.openapi]`
    pub openapi: OpenApi,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(5),
            round: Duration::from_mins(10),
            max_parallel: NonZeroUsize::MIN.saturating_add(7),
            max_parallel_total: NonZeroUsize::MIN.saturating_add(255),
            max_result_tokens: NonZeroUsize::MIN.saturating_add(31_999),
            get_current_time: GetCurrentTime::default(),
            web_search: WebSearch::default(),
            open_url: OpenUrl::default(),
            image_generation: ImageGeneration::default(),
            memory: Memory::default(),
            read_file: ReadFile::default(),
            openapi: OpenApi::default(),
        }
    }
}

/// `[tools.get_current_time]`: tells the model what time it is.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GetCurrentTime {
    /// Whether requests may name this tool.
    pub enabled: bool,
}

impl Default for GetCurrentTime {
    fn default() -> Self {
        Self { enabled: true }
    }
}
