//! The words of a Chat Completions answer, read as leniently as backends write them: leaves are looked at one by one, so that a
//! vendor's object, a `null` or a number where text belongs costs nothing but itself.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    protocol::{Usage, content::Logprob},
    text::repair::{WireText, repair_json},
};

/// One event of a stream, or the whole answer of a backend that does not stream.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    /// Groq's place for usage and errors.
    #[serde(borrow, default)]
    pub(super) x_groq: Option<Groq<'a>>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// `error` in vLLM's older form of an error.
    #[serde(borrow, default)]
    pub(super) object: Option<&'a RawValue>,
    /// `FastAPI`'s form of an error.
    #[serde(borrow, default)]
    pub(super) detail: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Groq<'a> {
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Piece<'a>>,
    /// In place of `delta` in a whole answer, and in some streams.
    #[serde(borrow, default)]
    pub(super) message: Option<Piece<'a>>,
    #[serde(borrow, default)]
    pub(super) logprobs: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// What one chunk adds to the message.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Piece<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<&'a RawValue>,
    /// The older form of a single call.
    #[serde(borrow, default)]
    pub(super) function_call: Option<CallFunction<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
}

/// What one chunk adds to a call.
#[derive(Debug, Default, Deserialize)]
pub(super) struct CallPiece<'a> {
    #[serde(borrow, default)]
    pub(super) index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) function: Option<CallFunction<'a>>,
    /// What Gemini wants back with the call.
    #[serde(borrow, default)]
    pub(super) extra_content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct CallFunction<'a> {
    #[serde(borrow, default)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}

impl<'a> Piece<'a> {
    /// The field of reasoning that a dialect names.
    pub(super) fn reasoning(&self, field: &str) -> Option<&'a RawValue> {
        match field {
            "reasoning" => self.reasoning,
            "reasoning_content" => self.reasoning_content,
            "reasoning_text" => self.reasoning_text,
            "thinking" => self.thinking,
            _ => None,
        }
    }
}

/// A text, if it is one; halves of surrogate pairs are kept.
pub(crate) fn text(raw: &RawValue) -> Option<WireText<'_>> {
    if !raw.get().starts_with('"') {
        return None;
    }
    serde_json::from_str(raw.get()).ok()
}

/// A text that is not empty, whole in itself.
pub(crate) fn word(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    let raw = raw?.get();
    if !raw.starts_with('"') {
        return None;
    }
    let word: Cow<'_, str> = match repair_json(raw.as_bytes()) {
        Cow::Borrowed(_) => serde_json::from_str::<Text<'_>>(raw).ok()?.0,
        Cow::Owned(repaired) => Cow::Owned(serde_json::from_slice(&repaired).ok()?),
    };
    (!word.is_empty()).then_some(word)
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A whole number, also when it is written as a text or with a fraction.
pub(crate) fn count(raw: Option<&RawValue>) -> Option<u64> {
    let text = raw?.get().trim_matches('"');
    text.parse().ok().or_else(|| {
        let float: f64 = text.parse().ok()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be in range"
        )]
        (0.0..1e15).contains(&float).then_some(float as u64)
    })
}

/// The pieces of calls, each for itself, so that a strange one does not cost the others.
pub(super) fn call_pieces(raw: &RawValue) -> Vec<CallPiece<'_>> {
    if raw.get().starts_with('{') {
        return serde_json::from_str(raw.get()).ok().into_iter().collect();
    }
    let list: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    list.into_iter().filter_map(|piece| serde_json::from_str(piece.get()).ok()).collect()
}

/// How likely the tokens of a chunk were.
pub(super) fn logprobs(raw: &RawValue) -> Vec<Logprob> {
    #[derive(Deserialize)]
    struct Logprobs {
        #[serde(default)]
        content: Option<Vec<Logprob>>,
    }
    let repaired = repair_json(raw.get().as_bytes());
    serde_json::from_slice::<Logprobs>(&repaired)
        .ok()
        .and_then(|logprobs| logprobs.content)
        .unwrap_or_default()
}

/// How likely tokens were, given as a plain list.
pub(crate) fn logprobs_of(raw: &RawValue) -> Vec<Logprob> {
    let repaired = repair_json(raw.get().as_bytes());
    serde_json::from_slice::<Option<Vec<Logprob>>>(&repaired).ok().flatten().unwrap_or_default()
}

/// The tokens, under any of the names that backends give them. What is missing is 0, a missing total the sum.
pub(super) fn usage(raw: &RawValue) -> Option<Usage> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow, default)]
        prompt_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        completion_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        input_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        output_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        total_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        prompt_cache_hit_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        reasoning_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        prompt_tokens_details: Option<Details<'a>>,
        #[serde(borrow, default)]
        completion_tokens_details: Option<Details<'a>>,
    }
    #[derive(Default, Deserialize)]
    #[expect(clippy::struct_field_names, reason = "the wire has these names")]
    struct Details<'a> {
        #[serde(borrow, default)]
        cached_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        cache_write_tokens: Option<&'a RawValue>,
        #[serde(borrow, default)]
        reasoning_tokens: Option<&'a RawValue>,
    }
    let wire: Wire<'_> = serde_json::from_str(raw.get()).ok()?;
    let (prompt, completion) = (
        wire.prompt_tokens_details.unwrap_or_default(),
        wire.completion_tokens_details.unwrap_or_default(),
    );
    let mut usage = Usage {
        input_tokens: count(wire.prompt_tokens).or_else(|| count(wire.input_tokens)).unwrap_or(0),
        output_tokens: count(wire.completion_tokens)
            .or_else(|| count(wire.output_tokens))
            .unwrap_or(0),
        ..Usage::default()
    };
    usage.input_tokens_details.cached_tokens =
        count(prompt.cached_tokens).or_else(|| count(wire.prompt_cache_hit_tokens)).unwrap_or(0);
    usage.input_tokens_details.cache_write_tokens = count(prompt.cache_write_tokens).unwrap_or(0);
    usage.output_tokens_details.reasoning_tokens =
        count(completion.reasoning_tokens).or_else(|| count(wire.reasoning_tokens)).unwrap_or(0);
    let sum = usage.input_tokens.saturating_add(usage.output_tokens);
    usage.total_tokens = count(wire.total_tokens).filter(|total| *total > 0).unwrap_or(sum);
    Some(usage)
}
