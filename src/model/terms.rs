//! On which terms a model is asked: its dialect, and what it turned out not to take.

use crate::{
    config::{ReasoningParam, TokenLimitParam, ToolChoiceForm},
    model::{Ask, dialect::Dialect},
    protocol::response::Effort,
};

/// On which terms a model is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    /// How its backend differs from others.
    pub(crate) dialect: &'a Dialect,
    /// Parameters that it refused by name.
    pub(crate) refused: &'a [&'static str],
    /// The most tokens that fit beside the prompt, where the backend said so.
    pub(crate) budget: Option<u64>,
}

/// Parameters that may be left out or called otherwise when a backend refuses them by name: the answer is then less exact, not another one.
pub(crate) const DISPENSABLE: &[&str] = &[
    "max_completion_tokens",
    "max_tokens",
    "max_output_tokens",
    "parallel_tool_calls",
    "stream_options",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "logprobs",
    "reasoning_effort",
    "chat_template_kwargs",
    "thinking",
    "reasoning",
    "verbosity",
    "prompt_cache_key",
    "safety_identifier",
    "tool_choice",
    "include",
    "text.verbosity",
    "reasoning.effort",
];

/// How thinking is switched on and off.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ThinkingSwitch {
    /// By an argument of the chat template.
    Template(bool),
    /// By the field `thinking`.
    Field(bool),
}

impl Terms<'_> {
    /// Whether a parameter of this name goes out.
    pub(crate) fn sends(&self, param: &str) -> bool {
        self.dialect.allows(param) && !self.refused.contains(&param)
    }

    /// The most tokens of this Round.
    pub(crate) fn token_limit(&self, ask: &Ask<'_>) -> Option<u64> {
        let most = self.dialect.max_output_tokens.map(u64::from);
        [ask.max_output_tokens, most, self.budget].into_iter().flatten().min()
    }

    /// What the limit is called: as the dialect says, or the other word once that was refused.
    pub(crate) fn token_limit_param(&self) -> Option<TokenLimitParam> {
        use TokenLimitParam::{MaxCompletionTokens, MaxTokens};
        let order = match self.dialect.token_limit_param {
            MaxTokens => [MaxTokens, MaxCompletionTokens],
            MaxCompletionTokens => [MaxCompletionTokens, MaxTokens],
        };
        order.into_iter().find(|param| {
            let name = match param {
                MaxTokens => "max_tokens",
                MaxCompletionTokens => "max_completion_tokens",
            };
            !self.refused.contains(&name)
        })
    }

    /// Which forms of `tool_choice` may be used: once one was refused, only the offer of tools is left.
    pub(crate) fn tool_choice_form(&self) -> ToolChoiceForm {
        if self.sends("tool_choice") { self.dialect.tool_choice_form } else { ToolChoiceForm::None }
    }

    /// How thinking is switched for this question.
    pub(crate) fn thinking_switch(&self, ask: &Ask<'_>) -> Option<ThinkingSwitch> {
        let on = ask.effort? != Effort::None;
        match self.dialect.reasoning_param {
            ReasoningParam::ChatTemplateKwargs
                if !self.refused.contains(&"chat_template_kwargs") =>
            {
                Some(ThinkingSwitch::Template(on))
            }
            ReasoningParam::Thinking if !self.refused.contains(&"thinking") => {
                Some(ThinkingSwitch::Field(on))
            }
            ReasoningParam::ChatTemplateKwargs
            | ReasoningParam::Thinking
            | ReasoningParam::ReasoningEffort
            | ReasoningParam::None => None,
        }
    }

    /// Whether `reasoning_effort` goes out: where thinking has a switch of its own, only to say how much.
    pub(crate) fn sends_effort(&self, ask: &Ask<'_>) -> bool {
        match self.dialect.reasoning_param {
            ReasoningParam::ReasoningEffort => !self.refused.contains(&"reasoning_effort"),
            ReasoningParam::ChatTemplateKwargs | ReasoningParam::Thinking => {
                ask.effort != Some(Effort::None) && self.sends("reasoning_effort")
            }
            ReasoningParam::None => false,
        }
    }
}
