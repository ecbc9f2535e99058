use serde::Deserialize;

/// The keys of a dialect, each of which an upstream or a model may set anew.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct DialectOverrides {
    /// Fields of an answer in which reasoning is looked for.
    pub reasoning_in: Option<Vec<String>>,
    /// Field of a request in which reasoning of earlier Rounds is sent back; `none`: it is left out.
    pub reasoning_out: Option<String>,
    /// Parameters that may be sent; others are left out.
    pub allowed_params: Option<Vec<String>>,
    /// What the limit of output tokens is called.
    pub token_limit_param: Option<TokenLimitParam>,
    /// Which forms of `tool_choice` are understood.
    pub tool_choice_form: Option<ToolChoiceForm>,
    /// Which ids of calls are accepted.
    pub call_id_form: Option<CallIdForm>,
    /// What becomes of system messages after the first.
    pub system_policy: Option<SystemPolicy>,
    /// Whether thinking stands in the text, between tags.
    pub think_tags: Option<ThinkTags>,
    /// How the reasoning effort is asked for.
    pub reasoning_param: Option<ReasoningParam>,
    /// Whether `stream_options.include_usage` may be sent.
    pub usage_option: Option<bool>,
    /// Whether images may be sent.
    pub image_support: Option<bool>,
    /// How calls are written when they stand in the text.
    pub call_grammar: Option<CallGrammar>,
    /// Whether text that merely looks like a call is taken for one.
    pub rescue: Option<Rescue>,
    /// Markers of the chat template that are removed from the text.
    pub strip_tokens: Option<Vec<String>>,
}

impl DialectOverrides {
    /// The keys, as the file has them.
    pub const KEYS: [&'static str; 14] = [
        "reasoning_in",
        "reasoning_out",
        "allowed_params",
        "token_limit_param",
        "tool_choice_form",
        "call_id_form",
        "system_policy",
        "think_tags",
        "reasoning_param",
        "usage_option",
        "image_support",
        "call_grammar",
        "rescue",
        "strip_tokens",
    ];

    /// The key under which the loader gathers them: serde cannot both flatten them and refuse unknown keys.
    pub(super) const GATHERED: &'static str = "(dialect keys)";

    /// These keys, and those of `over` wherever it sets them.
    #[must_use]
    pub fn with(&self, over: &Self) -> Self {
        let (base, over) = (self.clone(), over.clone());
        Self {
            reasoning_in: over.reasoning_in.or(base.reasoning_in),
            reasoning_out: over.reasoning_out.or(base.reasoning_out),
            allowed_params: over.allowed_params.or(base.allowed_params),
            token_limit_param: over.token_limit_param.or(base.token_limit_param),
            tool_choice_form: over.tool_choice_form.or(base.tool_choice_form),
            call_id_form: over.call_id_form.or(base.call_id_form),
            system_policy: over.system_policy.or(base.system_policy),
            think_tags: over.think_tags.or(base.think_tags),
            reasoning_param: over.reasoning_param.or(base.reasoning_param),
            usage_option: over.usage_option.or(base.usage_option),
            image_support: over.image_support.or(base.image_support),
            call_grammar: over.call_grammar.or(base.call_grammar),
            rescue: over.rescue.or(base.rescue),
            strip_tokens: over.strip_tokens.or(base.strip_tokens),
        }
    }
}

/// What the limit of output tokens is called.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum TokenLimitParam {
    /// `max_tokens`
    MaxTokens,
    /// `max_completion_tokens`
    MaxCompletionTokens,
}

/// Which forms of `tool_choice` are understood.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoiceForm {
    /// `none`, `auto`, `required` and a named function.
    Openai,
    /// As `openai`, but `required` is called `any`.
    Any,
    /// `none`, `auto` and `required`, but no named function: only that one tool is offered.
    Word,
    /// No `tool_choice` at all.
    None,
}

/// Which ids of calls are accepted.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum CallIdForm {
    /// All.
    Any,
    /// Nine letters and digits.
    Alnum9,
}

/// What becomes of system messages after the first.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum SystemPolicy {
    /// They stay where they are.
    Keep,
    /// They are told as the user.
    User,
}

/// Whether thinking stands in the text, between tags.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum ThinkTags {
    /// It does not.
    Off,
    /// Between `<think>` and `</think>`.
    On,
    /// The chat template has opened it already: the text begins inside.
    OpenAtStart,
}

/// How the reasoning effort is asked for.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningParam {
    /// `reasoning_effort`
    ReasoningEffort,
    /// `chat_template_kwargs.enable_thinking`
    ChatTemplateKwargs,
    /// `thinking`
    Thinking,
    /// Not at all.
    None,
}

/// How calls are written when they stand in the text.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum CallGrammar {
    /// They never do.
    None,
    /// JSON between `<tool_call>` tags.
    Hermes,
    /// XML with a tag per parameter.
    QwenXml,
    /// The channels of gpt-oss.
    Harmony,
    /// Kimi's section markers.
    Kimi,
    /// GLM's argument pairs.
    Glm,
    /// `[TOOL_CALLS]`
    Mistral,
    /// `<|python_tag|>`
    Llama,
    /// A bare JSON object.
    BareJson,
}

/// Whether text that merely looks like a call is taken for one.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Rescue {
    /// It is text.
    Off,
    /// It is, once per Response and where a call may be expected.
    Auto,
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_list_of_keys_is_whole() {
        let error = toml::from_str::<DialectOverrides>("no_such_key = 1").unwrap_err();
        let known: Vec<&str> = error.message().split('`').skip(3).step_by(2).collect();
        assert_eq!(known, DialectOverrides::KEYS);
    }

    #[test]
    fn keys_are_laid_over_each_other() {
        let base = DialectOverrides {
            think_tags: Some(ThinkTags::On),
            rescue: Some(Rescue::Auto),
            ..DialectOverrides::default()
        };
        let over = DialectOverrides {
            think_tags: Some(ThinkTags::Off),
            usage_option: Some(false),
            ..DialectOverrides::default()
        };
        let both = DialectOverrides { rescue: Some(Rescue::Auto), ..over.clone() };
        assert_eq!(base.with(&over), both);
        assert_eq!(DialectOverrides::default().with(&over), over);
        assert_eq!(over.with(&DialectOverrides::default()), over);
    }
}
