//! The request to create a Response, and how it is read: tolerant of what it does not know, exact about what is wrong and where.

use std::collections::HashSet;

use serde::Deserialize;

use super::{
    content::Part,
    error::ApiError,
    fields::{Fields, Limits},
    item::{Item, Message, Role},
    json::Raw,
    response::{
        ConversationRef, Metadata, ReasoningSettings, TextFormat, TextSettings, Truncation,
    },
    tool::{Tool, ToolChoice},
};

/// What may be asked to be shown besides.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Include {
    /// Sealed reasoning, for clients that keep their own history.
    ReasoningEncryptedContent,
    /// How likely each token was.
    OutputTextLogprobs,
    /// What a file search found.
    FileSearchResults,
    /// Which pages a web search found.
    WebSearchSources,
    /// What a web search found.
    WebSearchResults,
    /// Where each item stands in the run; an extension.
    Placement,
    /// A word of the API that concerns tools this version does not run, or parts that are always shown.
    Other,
}

impl Include {
    /// Reads a word of `include`. Words this version does not know are accepted: SDKs add some monthly.
    pub fn parse(word: &str) -> Self {
        match word {
            "reasoning.encrypted_content" => Self::ReasoningEncryptedContent,
            "message.output_text.logprobs" => Self::OutputTextLogprobs,
            "file_search_call.results" => Self::FileSearchResults,
            "web_search_call.action.sources" => Self::WebSearchSources,
            "web_search_call.results" => Self::WebSearchResults,
            "antiphon.placement" => Self::Placement,
            _ => Self::Other,
        }
    }
}

/// The request to create a Response.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the API has them")]
pub struct CreateResponse {
    /// The model.
    pub model: Option<String>,
    /// New items; a string is one user message.
    pub input: Vec<Item>,
    /// System text of this request only.
    pub instructions: Option<String>,
    /// The Response before this one.
    pub previous_response_id: Option<String>,
    /// The conversation to go on with.
    pub conversation: Option<String>,
    /// Whether it can be fetched later.
    pub store: bool,
    /// Whether it runs without a client.
    pub background: bool,
    /// Whether the client wants events.
    pub stream: bool,
    /// What is shown besides.
    pub include: HashSet<Include>,
    /// The tools offered.
    pub tools: Vec<Tool>,
    /// How to choose among them.
    pub tool_choice: ToolChoice,
    /// Whether one Round may make several calls; `None` when the client did not say.
    pub parallel_tool_calls: Option<bool>,
    /// The most calls of hosted tools.
    pub max_tool_calls: Option<u64>,
    /// The most tokens the model may write, over all Rounds.
    pub max_output_tokens: Option<u64>,
    /// Sampling; `None` leaves it to the backend.
    pub temperature: Option<f64>,
    /// Sampling; `None` leaves it to the backend.
    pub top_p: Option<f64>,
    /// Sampling; `None` leaves it to the backend.
    pub presence_penalty: Option<f64>,
    /// Sampling; `None` leaves it to the backend.
    pub frequency_penalty: Option<f64>,
    /// How many likely tokens are told for each place.
    pub top_logprobs: Option<u64>,
    /// Format and length of the text.
    pub text: TextSettings,
    /// How much the model is to think.
    pub reasoning: Option<ReasoningSettings>,
    /// What happens when the history does not fit.
    pub truncation: Truncation,
    /// Compaction in the middle of a run.
    pub context_management: Option<Raw>,
    /// The client's own pairs.
    pub metadata: Metadata,
    /// The tier asked for.
    pub service_tier: Option<String>,
    /// The client's id for its user.
    pub safety_identifier: Option<String>,
    /// The client's hint for the prompt cache.
    pub prompt_cache_key: Option<String>,
    /// A label of the client's.
    pub user: Option<String>,
    /// Whether `input` was there at all.
    pub has_input: bool,
    /// Top-level fields this version does not know.
    pub unknown: Vec<String>,
}

/// The longest id of an item, in bytes.
const LONGEST_ID: usize = 256;

/// Fields of newer SDKs that change nothing here: accepted in silence.
const ACCEPTED: &[&str] = &[
    "access_programs",
    "background_options",
    "betas",
    "client_metadata",
    "extra_body",
    "image",
    "moderation",
    "prompt_cache_options",
    "prompt_cache_retention",
    "stream_options",
    "type",
];

impl CreateResponse {
    /// Reads the body of `POST /v1/responses`. The error names the wrong field by its path.
    pub fn parse(body: &str) -> Result<Self, ApiError> {
        let mut fields = Fields::parse(body)?;
        let request = Self {
            model: fields.string("model", Limits::text(1, 512))?,
            has_input: fields.has("input"),
            input: input(&mut fields)?,
            instructions: instructions(&mut fields)?,
            previous_response_id: fields.string("previous_response_id", Limits::text(1, 256))?,
            conversation: conversation(&mut fields)?,
            store: fields.take("store")?.unwrap_or(true),
            background: fields.take("background")?.unwrap_or(false),
            stream: fields.take("stream")?.unwrap_or(false),
            include: include(&mut fields)?,
            tools: fields.take("tools")?.unwrap_or_default(),
            tool_choice: fields.take("tool_choice")?.unwrap_or_default(),
            parallel_tool_calls: fields.take("parallel_tool_calls")?,
            max_tool_calls: fields.integer("max_tool_calls", 1..=i64::MAX)?,
            max_output_tokens: fields.integer("max_output_tokens", 1..=i64::MAX)?,
            temperature: fields.decimal("temperature", 0.0..=2.0)?,
            top_p: fields.decimal("top_p", 0.0..=1.0)?,
            presence_penalty: fields.decimal("presence_penalty", -2.0..=2.0)?,
            frequency_penalty: fields.decimal("frequency_penalty", -2.0..=2.0)?,
            top_logprobs: fields.integer("top_logprobs", 0..=20)?,
            text: fields.take("text")?.unwrap_or_default(),
            reasoning: fields.take("reasoning")?,
            truncation: fields.take("truncation")?.unwrap_or_default(),
            context_management: fields.take("context_management")?,
            metadata: metadata(&mut fields)?,
            service_tier: fields.string("service_tier", Limits::text(1, 64))?,
            safety_identifier: fields.string("safety_identifier", Limits::text(0, 128))?,
            prompt_cache_key: fields.string("prompt_cache_key", Limits::text(0, 512))?,
            user: fields.string("user", Limits::text(0, 512))?,
            unknown: Vec::new(),
        };
        fields.refuse(
            "prompt",
            "Stored prompt templates are not supported. Send the text itself in `input` and `instructions`.",
        )?;
        let unknown = fields.rest(ACCEPTED);
        let request = Self { unknown, ..request };
        request.check()?;
        Ok(request)
    }

    /// What no single field shows.
    fn check(&self) -> Result<(), ApiError> {
        if self.previous_response_id.is_some() && self.conversation.is_some() {
            return Err(ApiError::invalid(
                "previous_response_id",
                "Use either `previous_response_id` or `conversation`, not both.",
            ));
        }
        if !self.has_input && self.previous_response_id.is_none() && self.conversation.is_none() {
            return Err(ApiError::invalid(
                "input",
                "Missing required parameter: `input`. Send a string or a list of items.",
            )
            .code("missing_required_parameter"));
        }
        check_names(&self.tools, "tools")?;
        if let TextFormat::JsonSchema(format) = &self.text.format {
            check_name(&format.name, 64, "text.format.name")?;
            if !format.schema.json().starts_with('{') {
                return Err(ApiError::invalid(
                    "text.format.schema",
                    "The schema must be a JSON object.",
                )
                .code("invalid_type"));
            }
        }
        Ok(())
    }
}

fn check_names(tools: &[Tool], path: &str) -> Result<(), ApiError> {
    for (at, tool) in tools.iter().enumerate() {
        let path = format!("{path}[{at}]");
        match tool {
            Tool::Function(tool) => check_name(&tool.name, 128, &format!("{path}.name"))?,
            Tool::Custom(tool) => check_name(&tool.name, 128, &format!("{path}.name"))?,
            Tool::Namespace(tool) => {
                check_name(&tool.name, 128, &format!("{path}.name"))?;
                check_names(&tool.tools, &format!("{path}.tools"))?;
            }
            Tool::Mcp(tool) => {
                check_name(&tool.server_label, 128, &format!("{path}.server_label"))?;
            }
            Tool::OpenApi(tool) => {
                check_name(&tool.server_label, 128, &format!("{path}.server_label"))?;
            }
            // They have no names.
            _ => (),
        }
    }
    Ok(())
}

fn check_name(name: &str, longest: usize, path: &str) -> Result<(), ApiError> {
    let fits = !name.is_empty()
        && name.len() <= longest
        && name.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.'));
    if fits {
        return Ok(());
    }
    Err(ApiError::invalid(
        path,
        format!(
            "`{name}` is not a valid name: use 1 to {longest} of the characters a-z, A-Z, 0-9, `_` and `-`."
        ),
    ))
}

fn input(fields: &mut Fields<'_>) -> Result<Vec<Item>, ApiError> {
    read_input(fields, "input")
}

/// Reads a field that holds a string (one user message) or a list of items.
pub fn read_input(fields: &mut Fields<'_>, name: &str) -> Result<Vec<Item>, ApiError> {
    match fields.raw(name).map(|raw| raw.get().as_bytes().first().copied()) {
        Some(Some(b'"')) => {
            let text: String = fields.take(name)?.unwrap_or_default();
            Ok(vec![Item::Message(Message {
                role: Role::User,
                content: vec![Part::input_text(text)],
                ..Message::default()
            })])
        }
        Some(Some(b'[')) => {
            let items: Vec<Item> = fields.take(name)?.unwrap_or_default();
            check_items(&items, name)?;
            Ok(items)
        }
        None => Ok(Vec::new()),
        Some(_) => Err(ApiError::invalid(
            name,
            format!("Invalid type for `{name}`: expected a string or a list of items."),
        )
        .code("invalid_type")),
    }
}

/// What the types of items alone do not show.
pub fn check_items(items: &[Item], path: &str) -> Result<(), ApiError> {
    for (at, item) in items.iter().enumerate() {
        match item {
            Item::Unknown(raw) if !raw.json().starts_with('{') => {
                return Err(ApiError::invalid(
                    format!("{path}[{at}]"),
                    format!(
                        "Invalid type for `{path}[{at}]`: expected an item, that is an object."
                    ),
                )
                .code("invalid_type"));
            }
            Item::Unknown(_) if item.kind().is_empty() => {
                return Err(ApiError::invalid(
                    format!("{path}[{at}].type"),
                    format!("Missing required parameter: `{path}[{at}].type`. A message needs `role` and `content`."),
                )
                .code("missing_required_parameter"));
            }
            Item::FunctionCallOutput(output) | Item::CustomToolCallOutput(output)
                if output.call_id.is_empty() =>
            {
                return Err(ApiError::invalid(
                    format!("{path}[{at}].call_id"),
                    format!("Missing required parameter: `{path}[{at}].call_id`, the id of the call that this output answers."),
                )
                .code("missing_required_parameter"));
            }
            Item::Message(message) => check_message(message, &format!("{path}[{at}]"))?,
            _ => (),
        }
        check_id(item.id(), &format!("{path}[{at}].id"))?;
    }
    Ok(())
}

/// Ids are keys of an index, and nobody's are longer.
fn check_id(id: &str, path: &str) -> Result<(), ApiError> {
    if id.len() <= LONGEST_ID {
        return Ok(());
    }
    Err(ApiError::invalid(
        path,
        format!("`{path}` has {} bytes; at most {LONGEST_ID} are allowed.", id.len()),
    )
    .code("string_above_max_length"))
}

fn check_message(message: &Message, path: &str) -> Result<(), ApiError> {
    for (at, part) in message.content.iter().enumerate() {
        let param = format!("{path}.content[{at}]");
        match part {
            Part::InputImage(image) if image.image_url.is_none() && image.file_id.is_none() => {
                return Err(ApiError::invalid(
                    format!("{param}.image_url"),
                    format!("`{param}` needs an `image_url` or a `file_id`."),
                )
                .code("missing_required_parameter"));
            }
            Part::Unknown(raw) if !raw.json().starts_with('{') || part.kind().is_empty() => {
                return Err(ApiError::invalid(
                    format!("{param}.type"),
                    format!("`{param}` must be an object with a `type`, such as `input_text`."),
                )
                .code("missing_required_parameter"));
            }
            _ => (),
        }
    }
    Ok(())
}

/// A string; the older form, a list of items, is folded into its text.
fn instructions(fields: &mut Fields<'_>) -> Result<Option<String>, ApiError> {
    if fields.raw("instructions").is_some_and(|raw| raw.get().starts_with('[')) {
        let items = read_input(fields, "instructions")?;
        let texts: Vec<&str> = items
            .iter()
            .filter_map(|item| match item {
                Item::Message(message) => Some(message.content.iter().filter_map(Part::text)),
                _ => None,
            })
            .flatten()
            .collect();
        return Ok(Some(texts.join("\n\n")));
    }
    fields.string("instructions", Limits::text(0, 10_485_760))
}

fn conversation(fields: &mut Fields<'_>) -> Result<Option<String>, ApiError> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected an id, or an object with an `id`")]
    enum Either {
        Id(String),
        Object(ConversationRef),
    }
    Ok(fields.take::<Either>("conversation")?.map(|either| match either {
        Either::Id(id) | Either::Object(ConversationRef { id }) => id,
    }))
}

fn include(fields: &mut Fields<'_>) -> Result<HashSet<Include>, ApiError> {
    let words: Vec<String> = fields.take("include")?.unwrap_or_default();
    Ok(words.iter().map(|word| Include::parse(word)).collect())
}

/// Reads `metadata`: at most 16 pairs, keys of 64 characters, string values of 512; `null` is none.
pub fn metadata(fields: &mut Fields<'_>) -> Result<Metadata, ApiError> {
    let metadata: Metadata = fields.take("metadata")?.unwrap_or_default();
    if metadata.len() > 16 {
        return Err(ApiError::invalid(
            "metadata",
            format!("`metadata` has {} pairs; at most 16 are allowed.", metadata.len()),
        )
        .code("object_above_max_properties"));
    }
    for (key, value) in &metadata {
        if key.chars().count() > 64 {
            return Err(ApiError::invalid(
                "metadata",
                format!("The metadata key `{key}` is longer than 64 characters."),
            )
            .code("string_above_max_length"));
        }
        if value.chars().count() > 512 {
            return Err(ApiError::invalid(
                format!("metadata.{key}"),
                format!("The value of the metadata key `{key}` is longer than 512 characters."),
            )
            .code("string_above_max_length"));
        }
    }
    Ok(metadata)
}
