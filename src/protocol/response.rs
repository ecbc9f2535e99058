//! The Response: what the API returns, complete or on the way.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{
    item::SharedItem,
    json::{Raw, null_is_default},
    tool::{Tool, ToolChoice},
};

/// Where a Response stands.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waits for a worker.
    Queued,
    /// Being written.
    #[default]
    InProgress,
    /// Whole.
    Completed,
    /// Went wrong.
    Failed,
    /// Cut short by a limit.
    Incomplete,
    /// Stopped by the client.
    Cancelled,
}

impl Status {
    /// Its word on the wire and in the database.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Incomplete => "incomplete",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A Response.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Response {
    /// `resp_…`
    pub id: String,
    /// Always `response`.
    pub object: ResponseObject,
    /// When it was accepted, in seconds since 1970.
    pub created_at: i64,
    /// When it was completed; null for every other end.
    pub completed_at: Option<i64>,
    /// Where it stands.
    pub status: Status,
    /// Why it failed.
    pub error: Option<ResponseError>,
    /// Which limit cut it short.
    pub incomplete_details: Option<IncompleteDetails>,
    /// What the model made.
    pub output: Vec<SharedItem>,
    /// Tokens, over all Rounds; null until it has ended.
    pub usage: Option<Usage>,
    /// What was asked, with the defaults that took effect.
    #[serde(flatten)]
    pub settings: Arc<Settings>,
}

/// The constant `response`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub enum ResponseObject {
    /// The only value.
    #[default]
    #[serde(rename = "response")]
    Response,
}

/// Why a Response failed.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ResponseError {
    /// The code.
    pub code: String,
    /// A sentence.
    pub message: String,
}

/// Which limit cut a Response short.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct IncompleteDetails {
    /// The limit.
    pub reason: IncompleteReason,
}

/// A limit that cuts a Response short.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IncompleteReason {
    /// The token budget, or the number of Rounds.
    MaxOutputTokens,
    /// The upstream's filter.
    ContentFilter,
}

/// Tokens.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Usage {
    /// Read.
    pub input_tokens: u64,
    /// Of those, from a cache.
    pub input_tokens_details: InputTokensDetails,
    /// Written, reasoning included.
    pub output_tokens: u64,
    /// Of those, reasoning.
    pub output_tokens_details: OutputTokensDetails,
    /// Read and written.
    pub total_tokens: u64,
}

impl Usage {
    /// Adds the tokens of one more Round.
    pub fn add(&mut self, round: &Self) {
        // Saturating: the numbers are an upstream's.
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.input_tokens, round.input_tokens);
        let (input, more) = (&mut self.input_tokens_details, round.input_tokens_details);
        add(&mut input.cached_tokens, more.cached_tokens);
        add(&mut input.cache_write_tokens, more.cache_write_tokens);
        add(&mut self.output_tokens, round.output_tokens);
        let (output, more) = (&mut self.output_tokens_details, round.output_tokens_details);
        add(&mut output.reasoning_tokens, more.reasoning_tokens);
        add(&mut self.total_tokens, round.total_tokens);
    }
}

/// Of the tokens read.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct InputTokensDetails {
    /// Taken from a cache.
    pub cached_tokens: u64,
    /// Put into a cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
}

/// Of the tokens written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct OutputTokensDetails {
    /// Reasoning.
    pub reasoning_tokens: u64,
}

/// What a Response echoes of its request, with the defaults that took effect. Kept in one piece: the wire and the database have the same.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Settings {
    /// The model as the client named it.
    pub model: String,
    /// The Response before this one.
    pub previous_response_id: Option<String>,
    /// The conversation it belongs to.
    pub conversation: Option<ConversationRef>,
    /// System text of this request only.
    pub instructions: Option<String>,
    /// The tools offered.
    pub tools: Vec<Tool>,
    /// How to choose among them.
    pub tool_choice: ToolChoice,
    /// Whether one Round may make several calls.
    pub parallel_tool_calls: bool,
    /// The most calls of hosted tools.
    pub max_tool_calls: Option<u64>,
    /// The most tokens the model may write, over all Rounds.
    pub max_output_tokens: Option<u64>,
    /// Format and length of the text.
    pub text: TextSettings,
    /// How much the model is to think.
    pub reasoning: Option<ReasoningSettings>,
    /// What happens when the history does not fit.
    pub truncation: Truncation,
    /// 0 to 2.
    pub temperature: f64,
    /// 0 to 1.
    pub top_p: f64,
    /// −2 to 2.
    pub presence_penalty: f64,
    /// −2 to 2.
    pub frequency_penalty: f64,
    /// How many likely tokens are told for each place.
    pub top_logprobs: u64,
    /// Whether it can be fetched later.
    pub store: bool,
    /// Whether it runs without a client.
    pub background: bool,
    /// The tier that served it.
    pub service_tier: String,
    /// The client's own pairs.
    pub metadata: Metadata,
    /// The client's id for its user, for abuse reports.
    pub safety_identifier: Option<String>,
    /// The client's hint for the prompt cache.
    pub prompt_cache_key: Option<String>,
    /// A label of the client's; not who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// At most 16 pairs, keys of 64, values of 512 characters.
pub type Metadata = BTreeMap<String, String>;

/// The conversation a Response belongs to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ConversationRef {
    /// `conv_…`
    pub id: String,
}

/// Format and length of the text.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TextSettings {
    /// The format.
    #[serde(default, deserialize_with = "null_is_default")]
    pub format: TextFormat,
    /// `low`, `medium` or `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<Verbosity>,
}

/// How much the model is to say.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verbosity {
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

impl Verbosity {
    /// Its word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// The format of the text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TextFormat {
    /// Free text.
    #[default]
    Text,
    /// Some JSON object.
    JsonObject,
    /// JSON that fits a schema.
    JsonSchema(JsonSchemaFormat),
}

/// JSON that fits a schema.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct JsonSchemaFormat {
    /// The schema's name: at most 64 of `[A-Za-z0-9_-]`.
    pub name: String,
    /// What it is for, for the model.
    #[serde(default)]
    pub description: Option<String>,
    /// The schema.
    pub schema: Raw,
    /// Whether the text must fit it exactly.
    #[serde(default, deserialize_with = "null_is_default")]
    pub strict: bool,
}

impl<'de> Deserialize<'de> for TextFormat {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
        match super::json::tag_of(raw).as_deref() {
            Some("text") | None => Ok(Self::Text),
            Some("json_object") => Ok(Self::JsonObject),
            Some("json_schema") => super::json::read_nested(raw).map(Self::JsonSchema),
            Some(other) => Err(serde::de::Error::custom(format_args!(
                "`{other}` is not a text format; supported are `text`, `json_object` and `json_schema`"
            ))),
        }
    }
}

/// How much the model is to think, and what is shown of it. Both keys are always written.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ReasoningSettings {
    /// How much.
    #[serde(default)]
    pub effort: Option<Effort>,
    /// `auto`, `concise` or `detailed`: reasoning is shown as summary parts.
    #[serde(default)]
    pub summary: Option<Summary>,
}

/// How much the model is to think.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    /// Its word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// How long the shown summary of reasoning is to be.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum Summary {
    Auto,
    Concise,
    Detailed,
}

/// What happens when the history does not fit the model's window.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncation {
    /// The request fails.
    #[default]
    Disabled,
    /// The oldest turns are left out.
    Auto,
}
