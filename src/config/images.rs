use std::time::Duration;

use serde::Deserialize;
use url::Url;

use super::{Secret, value};

/// `[tools.image_generation]`: who makes pictures.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImageGeneration {
    /// Where an API begins that speaks OpenAI's `/images/generations`. `None`: requests with this tool are refused.
    #[serde(deserialize_with = "value::filled_http_url")]
    pub base_url: Option<Url>,
    /// The environment variable that holds its key. `None`: none is sent.
    #[serde(deserialize_with = "value::filled")]
    pub api_key_env: Option<String>,
    /// The key that `api_key_env` names.
    #[serde(skip)]
    pub api_key: Option<Secret>,
    /// The model of requests that name none. `None`: that is left to the API.
    #[serde(deserialize_with = "value::filled")]
    pub model: Option<String>,
    /// Such as `1024x1024`, where neither the request nor the chat model asks for another. `None`: that is left to the API.
    #[serde(deserialize_with = "value::filled")]
    pub size: Option<String>,
    /// How long one picture may take. Key `timeout_seconds`.
    #[serde(rename = "timeout_seconds", deserialize_with = "value::seconds")]
    pub timeout: Duration,
}

impl ImageGeneration {
    /// Whether this is a size: width and height in pixels, such as `1024x1536`.
    pub fn is_size(text: &str) -> bool {
        let is_side = |side: &str| {
            matches!(side.len(), 1..=5)
                && side.bytes().all(|digit| digit.is_ascii_digit())
                && !side.starts_with('0')
        };
        text.split_once('x').is_some_and(|(width, height)| is_side(width) && is_side(height))
    }
}

impl Default for ImageGeneration {
    fn default() -> Self {
        Self {
            base_url: None,
            api_key_env: None,
            api_key: None,
            model: None,
            size: None,
            timeout: Duration::from_mins(5),
        }
    }
}
