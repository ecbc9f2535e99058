//! How one backend differs from the others, as data.
//!
//! A dialect is a file in `dialects/` that sets every key; an upstream and a model may set keys anew. What a backend may do in its
//! *answers* needs no key: the readers take every form they know from everyone.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde::Deserialize;

use crate::config::{
    CallGrammar, CallIdForm, DialectOverrides, ModelOverride, ReasoningParam, Rescue, SystemPolicy,
    ThinkTags, TokenLimitParam, ToolChoiceForm,
};
use crate::text::{rescue, think::ThinkMode};

/// How one backend differs from the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialect {
    /// The name of the file it comes from.
    pub name: &'static str,
    /// Fields of an answer in which reasoning is looked for; the first that holds some counts.
    pub reasoning_in: Vec<String>,
    /// Fields of a request in which reasoning of earlier Rounds is sent back.
    pub reasoning_out: Vec<String>,
    /// Parameters that may be sent; others are left out.
    pub allowed_params: Vec<String>,
    /// What the limit of output tokens is called.
    pub token_limit_param: TokenLimitParam,
    /// Which forms of `tool_choice` are understood.
    pub tool_choice_form: ToolChoiceForm,
    /// Which ids of calls are accepted.
    pub call_id_form: CallIdForm,
    /// What becomes of system messages after the first.
    pub system_policy: SystemPolicy,
    /// Whether thinking stands in the text, between tags.
    pub think_tags: ThinkTags,
    /// How the reasoning effort is asked for.
    pub reasoning_param: ReasoningParam,
    /// Whether `stream_options.include_usage` may be sent.
    pub usage_option: bool,
    /// Whether images may be sent.
    pub image_support: bool,
    /// How calls are written when they stand in the text.
    pub call_grammar: CallGrammar,
    /// Whether text that merely looks like a call is taken for one.
    pub rescue: Rescue,
    /// Markers of the chat template that are removed from the text.
    pub strip_tokens: Vec<String>,
    /// What stands as the content of a message that only calls.
    pub blank_content: BlankContent,
    /// Size of the context in tokens, where the configuration says it.
    pub window: Option<u32>,
    /// Tokens that one Round may put out at most, where the configuration says it.
    pub max_output_tokens: Option<u32>,
}

/// What stands as the content of a message that only calls.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum BlankContent {
    /// `null`, which the API's owner documents.
    Null,
    /// `""`: some templates and checkers want a string.
    Empty,
}

/// A file of `dialects/`.
#[derive(Deserialize)]
struct File {
    blank_content: BlankContent,
    /// The keys that the configuration knows as well.
    keys: DialectOverrides,
}

/// The files, compiled in.
const FILES: &[(&str, &str)] = &[
    ("generic", include_str!("dialects/generic.toml")),
    ("vllm", include_str!("dialects/vllm.toml")),
    ("ollama", include_str!("dialects/ollama.toml")),
    ("llama.cpp", include_str!("dialects/llama.cpp.toml")),
    ("sglang", include_str!("dialects/sglang.toml")),
    ("lmstudio", include_str!("dialects/lmstudio.toml")),
    ("openai", include_str!("dialects/openai.toml")),
    ("deepseek", include_str!("dialects/deepseek.toml")),
    ("mistral", include_str!("dialects/mistral.toml")),
    ("openrouter", include_str!("dialects/openrouter.toml")),
    ("gemini", include_str!("dialects/gemini.toml")),
];

static BUILT_IN: LazyLock<BTreeMap<&str, Arc<Dialect>>> = LazyLock::new(|| {
    // A test reads every file, so none is lost here.
    FILES
        .iter()
        .filter_map(|(name, text)| Some((*name, Arc::new(read(name, text).ok()?))))
        .collect()
});

impl Dialect {
    /// Where thinking may stand in the text.
    pub fn think(&self) -> ThinkMode {
        match self.think_tags {
            ThinkTags::Off => ThinkMode::Off,
            ThinkTags::On => ThinkMode::On,
            ThinkTags::OpenAtStart => ThinkMode::OpenAtStart,
        }
    }

    /// What stands in the text that is not for the user.
    pub fn reading(&self) -> rescue::Reading {
        rescue::Reading {
            grammar: match self.call_grammar {
                CallGrammar::None => rescue::CallGrammar::None,
                CallGrammar::Hermes => rescue::CallGrammar::Hermes,
                CallGrammar::QwenXml => rescue::CallGrammar::QwenXml,
                CallGrammar::Harmony => rescue::CallGrammar::Harmony,
                CallGrammar::Kimi => rescue::CallGrammar::Kimi,
                CallGrammar::Glm => rescue::CallGrammar::Glm,
                CallGrammar::Mistral => rescue::CallGrammar::Mistral,
                CallGrammar::Llama => rescue::CallGrammar::Llama,
                CallGrammar::BareJson => rescue::CallGrammar::BareJson,
            },
            rescue: match self.rescue {
                Rescue::Off => rescue::Rescue::Off,
                Rescue::Auto => rescue::Rescue::Auto,
            },
            strip_tokens: self
                .strip_tokens
                .iter()
                .filter(|token| !token.is_empty())
                .cloned()
                .collect(),
        }
    }

    /// The names that `dialect = "…"` may give, besides `auto`.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|(name, _)| *name)
    }

    /// The dialect of this name, also under another common spelling of it.
    pub fn named(name: &str) -> Option<Arc<Self>> {
        let name = match name {
            "llamacpp" | "llama-cpp" | "llama_cpp" => "llama.cpp",
            "lm-studio" | "lm_studio" => "lmstudio",
            "gemini-compatible" | "google" => "gemini",
            other => other,
        };
        BUILT_IN.get(name).cloned()
    }

    /// What is right for a server of which nothing is known.
    pub fn generic() -> Arc<Self> {
        Self::named("generic").unwrap_or_else(|| Arc::new(Self::bare("generic")))
    }

    /// This dialect, with what `over` sets anew.
    #[must_use]
    pub fn with(&self, over: &DialectOverrides) -> Self {
        let over = over.clone();
        Self {
            name: self.name,
            reasoning_in: over.reasoning_in.unwrap_or_else(|| self.reasoning_in.clone()),
            reasoning_out: over
                .reasoning_out
                .map_or_else(|| self.reasoning_out.clone(), |word| reasoning_fields(&word)),
            allowed_params: over.allowed_params.unwrap_or_else(|| self.allowed_params.clone()),
            token_limit_param: over.token_limit_param.unwrap_or(self.token_limit_param),
            tool_choice_form: over.tool_choice_form.unwrap_or(self.tool_choice_form),
            call_id_form: over.call_id_form.unwrap_or(self.call_id_form),
            system_policy: over.system_policy.unwrap_or(self.system_policy),
            think_tags: over.think_tags.unwrap_or(self.think_tags),
            reasoning_param: over.reasoning_param.unwrap_or(self.reasoning_param),
            usage_option: over.usage_option.unwrap_or(self.usage_option),
            image_support: over.image_support.unwrap_or(self.image_support),
            call_grammar: over.call_grammar.unwrap_or(self.call_grammar),
            rescue: over.rescue.unwrap_or(self.rescue),
            strip_tokens: over.strip_tokens.unwrap_or_else(|| self.strip_tokens.clone()),
            blank_content: self.blank_content,
            window: self.window,
            max_output_tokens: self.max_output_tokens,
        }
    }

    /// This dialect for one model: with all overrides whose pattern fits, later ones over earlier ones.
    #[must_use]
    pub fn for_model(&self, model: &str, overrides: &[ModelOverride]) -> Self {
        overrides.iter().filter(|over| over.matches.is_match(model)).fold(
            self.clone(),
            |dialect, over| Self {
                window: over.window.map(Into::into).or(dialect.window),
                max_output_tokens: over
                    .max_output_tokens
                    .map(Into::into)
                    .or(dialect.max_output_tokens),
                ..dialect.with(&over.overrides)
            },
        )
    }

    /// Whether a parameter of this name may be sent.
    pub fn allows(&self, param: &str) -> bool {
        self.allowed_params.iter().any(|allowed| allowed == param)
    }

    /// What every file sets anew.
    fn bare(name: &'static str) -> Self {
        Self {
            name,
            reasoning_in: Vec::new(),
            reasoning_out: Vec::new(),
            allowed_params: Vec::new(),
            token_limit_param: TokenLimitParam::MaxTokens,
            tool_choice_form: ToolChoiceForm::Openai,
            call_id_form: CallIdForm::Any,
            system_policy: SystemPolicy::User,
            think_tags: ThinkTags::Off,
            reasoning_param: ReasoningParam::None,
            usage_option: false,
            image_support: true,
            call_grammar: CallGrammar::None,
            rescue: Rescue::Off,
            strip_tokens: Vec::new(),
            blank_content: BlankContent::Empty,
            window: None,
            max_output_tokens: None,
        }
    }
}

fn read(name: &'static str, text: &str) -> Result<Dialect, toml::de::Error> {
    let File { blank_content, keys } = toml::from_str(text)?;
    Ok(Dialect { blank_content, ..Dialect::bare(name).with(&keys) })
}

/// The fields that a word of `reasoning_out` stands for: `none`, `both`, or the field itself.
fn reasoning_fields(word: &str) -> Vec<String> {
    match word {
        "none" => Vec::new(),
        "both" => vec!["reasoning".to_owned(), "reasoning_content".to_owned()],
        field => vec![field.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_can_be_read_and_sets_every_key() {
        for (name, text) in FILES {
            read(name, text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let table: toml::Table = text.parse().unwrap();
            let keys = table["keys"].as_table().unwrap();
            for key in DialectOverrides::KEYS {
                assert!(keys.contains_key(key), "{name} does not set {key}");
            }
            assert_eq!(Dialect::named(name).unwrap().name, *name);
        }
        assert_eq!(Dialect::named("llamacpp").unwrap().name, "llama.cpp");
        assert!(Dialect::named("nonsense").is_none());
    }

    #[test]
    fn overrides_of_models_are_laid_over_in_their_order() {
        let over = |pattern: &str, json: serde_json::Value| ModelOverride {
            matches: pattern.to_owned().try_into().unwrap(),
            window: serde_json::from_value(json["window"].clone()).unwrap(),
            max_output_tokens: None,
            overrides: serde_json::from_value(json["keys"].clone()).unwrap(),
        };
        let overrides = [
            over(
                "m.*",
                serde_json::json!({"window": 8192, "keys": {"think_tags": "on", "reasoning_out": "none"}}),
            ),
            over("m.open*", serde_json::json!({"keys": {"think_tags": "open_at_start"}})),
            over("other", serde_json::json!({"keys": {"image_support": false}})),
        ];
        let generic = Dialect::generic();
        let model = generic.for_model("m.open-1", &overrides);
        let expected = Dialect {
            think_tags: ThinkTags::OpenAtStart,
            reasoning_out: Vec::new(),
            window: Some(8192),
            ..(*generic).clone()
        };
        assert_eq!(model, expected);
        assert_eq!(generic.for_model("n", &overrides), *generic);
    }
}
