use std::{collections::BTreeMap, num::NonZeroU32};

use serde::Deserialize;
use url::Url;

use super::{DialectOverrides, Glob, Secret, value};

/// `[[upstreams]]`: a server that has models.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// What logs, metrics and errors call it. Each has its own.
    pub name: String,
    /// Where its API begins, usually with `/v1` at the end.
    #[serde(deserialize_with = "value::http_url")]
    pub base_url: Url,
    /// The environment variable that holds its key. `None`: it wants no key.
    #[serde(default, deserialize_with = "value::filled")]
    pub api_key_env: Option<String>,
    /// The key that `api_key_env` names.
    #[serde(skip)]
    pub api_key: Option<Secret>,
    /// Which API it speaks.
    #[serde(default)]
    pub wire: Wire,
    /// How it differs from other servers: the name of a dialect, or `auto` to find out.
    #[serde(default = "auto")]
    pub dialect: String,
    /// Which models it serves.
    #[serde(default = "every_model")]
    pub models: Vec<Glob>,
    /// Names that clients use, and what they are called there.
    #[serde(default)]
    pub aliases: BTreeMap<String, String>,
    /// Its share of the requests among the upstreams that serve the same model.
    #[serde(default = "one")]
    pub weight: NonZeroU32,
    /// Headers that are sent with every request. Their values are secrets, for they often hold keys.
    #[serde(default)]
    pub headers: BTreeMap<String, Secret>,
    /// Dialect keys over those of `dialect`; in the file they stand beside the other keys.
    #[serde(default, rename = "(dialect keys)")]
    pub overrides: DialectOverrides,
}

impl Upstream {
    /// The address of an endpoint such as `chat/completions`, whether or not the base ends in a slash.
    pub fn endpoint(&self, path: &str) -> Url {
        let mut url = self.base_url.clone();
        let base = url.path().trim_end_matches('/');
        let full = format!("{base}/{}", path.trim_start_matches('/'));
        url.set_path(&full);
        url
    }
}

fn auto() -> String {
    "auto".to_owned()
}

fn every_model() -> Vec<Glob> {
    Glob::try_from("*".to_owned()).into_iter().collect()
}

fn one() -> NonZeroU32 {
    NonZeroU32::MIN
}

/// Which API an upstream speaks.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Chat Completions.
    #[default]
    Chat,
    /// Responses.
    Responses,
}

/// `[models]`: which model does what.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Models {
    /// The model of a request that names none. `None`: such a request is refused.
    #[serde(deserialize_with = "value::filled")]
    pub default: Option<String>,
    /// The model of our own small questions, such as a summary. `None`: that of the request.
    #[serde(deserialize_with = "value::filled")]
    pub utility: Option<String>,
    /// The model that turns text into vectors. `None`: search by keywords only.
    #[serde(deserialize_with = "value::filled")]
    pub embedding: Option<String>,
    /// `[[models.overrides]]`: all that match are applied, later ones over earlier ones.
    pub overrides: Vec<ModelOverride>,
}

/// `[[models.overrides]]`: what is different with some models.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelOverride {
    /// Which models, by the name that the upstream knows. Key `match`.
    #[serde(rename = "match")]
    pub matches: Glob,
    /// Size of the context, in tokens.
    #[serde(default)]
    pub window: Option<NonZeroU32>,
    /// Tokens that one Round may put out at most.
    #[serde(default)]
    pub max_output_tokens: Option<NonZeroU32>,
    /// Dialect keys over those of the upstream; in the file they stand beside the other keys.
    #[serde(default, rename = "(dialect keys)")]
    pub overrides: DialectOverrides,
}
