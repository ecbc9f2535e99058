//! What is inside messages, reasoning and tool outputs.

use serde::{Deserialize, Serialize};

use super::json::{Extra, Raw, null_is_default, tagged};

tagged! {
    /// A part of a message's `content`, of a reasoning item or of a tool's output.
    pub enum Part {
        /// Text that was given.
        InputText(InputText) = "input_text" | "text",
        /// A picture that was given.
        InputImage(InputImage) = "input_image",
        /// A file that was given.
        InputFile(InputFile) = "input_file",
        /// Sound that was given.
        InputAudio(InputAudio) = "input_audio",
        /// A film that was given (Open Responses).
        InputVideo(InputVideo) = "input_video",
        /// Text that the model wrote.
        OutputText(OutputText) = "output_text",
        /// The model's refusal.
        Refusal(Refusal) = "refusal",
        /// Raw reasoning.
        ReasoningText(ReasoningText) = "reasoning_text",
        /// A summary of reasoning.
        SummaryText(ReasoningText) = "summary_text",
    }
    untyped: |_| ""
}

impl Part {
    /// Given text.
    pub fn input_text(text: impl Into<String>) -> Self {
        Self::InputText(InputText { text: text.into(), extra: Extra::new() })
    }

    /// Written text without annotations.
    pub fn output_text(text: impl Into<String>) -> Self {
        Self::OutputText(OutputText { text: text.into(), ..OutputText::default() })
    }

    /// The text in it that a reader, or a model, can read.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::InputText(part) => Some(&part.text),
            Self::OutputText(part) => Some(&part.text),
            Self::Refusal(part) => Some(&part.refusal),
            Self::ReasoningText(part) | Self::SummaryText(part) => Some(&part.text),
            Self::InputImage(_)
            | Self::InputFile(_)
            | Self::InputAudio(_)
            | Self::InputVideo(_)
            | Self::Unknown(_) => None,
        }
    }
}

/// Text that was given.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct InputText {
    /// The text.
    pub text: String,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A picture: by URL (also a `data:` URL) or by the id of an uploaded file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct InputImage {
    /// Where it is, or the picture itself as a `data:` URL.
    #[serde(default)]
    pub image_url: Option<String>,
    /// The uploaded file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
    /// `low`, `high`, `auto` or `original`.
    #[serde(default = "auto", deserialize_with = "null_is_auto")]
    pub detail: String,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

fn auto() -> String {
    "auto".to_owned()
}

fn null_is_auto<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(|detail| detail.unwrap_or_else(auto))
}

/// A file: by id, by URL or with its bytes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct InputFile {
    /// The uploaded file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_id: Option<String>,
    /// The bytes, base64 or a `data:` URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_data: Option<String>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_url: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Sound.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct InputAudio {
    /// `data` (base64) and `format`.
    pub input_audio: Raw,
}

/// A film.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct InputVideo {
    /// Where it is.
    pub video_url: String,
}

/// Text that the model wrote.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct OutputText {
    /// The text.
    pub text: String,
    /// Sources of places in it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub annotations: Vec<Annotation>,
    /// How likely each token was; only filled when the request asked for it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub logprobs: Vec<Logprob>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The model's refusal.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Refusal {
    /// What it said.
    pub refusal: String,
}

/// Reasoning, raw or summarised.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ReasoningText {
    /// The text.
    pub text: String,
}

tagged! {
    /// The source of a place in a text. Indexes count characters (code points).
    pub enum Annotation {
        /// A web page.
        UrlCitation(UrlCitation) = "url_citation",
        /// A file of a vector store.
        FileCitation(FileCitation) = "file_citation",
    }
    untyped: |_| ""
}

/// A web page as a source.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UrlCitation {
    /// The page.
    pub url: String,
    /// Its title.
    #[serde(default, deserialize_with = "null_is_default")]
    pub title: String,
    /// The first character of the place.
    pub start_index: u64,
    /// One past its last character.
    pub end_index: u64,
}

/// A file as a source.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct FileCitation {
    /// The file.
    pub file_id: String,
    /// Its name.
    #[serde(default, deserialize_with = "null_is_default")]
    pub filename: String,
    /// The character after which the citation stands.
    pub index: u64,
}

/// How likely a token was, and what else it could have been.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Logprob {
    /// The token.
    pub token: String,
    /// Its log probability.
    pub logprob: f64,
    /// Its UTF-8 bytes.
    #[serde(default, deserialize_with = "null_is_default")]
    pub bytes: Vec<u8>,
    /// The likeliest tokens at this place.
    #[serde(default, deserialize_with = "null_is_default")]
    pub top_logprobs: Vec<TopLogprob>,
}

/// One of the likeliest tokens of a place.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TopLogprob {
    /// The token.
    pub token: String,
    /// Its log probability.
    pub logprob: f64,
    /// Its UTF-8 bytes.
    #[serde(default, deserialize_with = "null_is_default")]
    pub bytes: Vec<u8>,
}
