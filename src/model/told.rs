//! What a backend says when something is wrong, in the words of every backend, and what it means.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    ModelError, ModelErrorKind,
    chat::{count, word},
    terms::DISPENSABLE,
};
use crate::text::repair::repair_json;

/// The longest message that is passed on, in bytes.
const LONGEST_MESSAGE: usize = 1000;

/// What a backend said was wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    /// The HTTP status, or the number that the error itself gives.
    pub(crate) status: Option<u16>,
    /// Its sentence.
    pub(crate) message: String,
    /// Its code, when that is a word.
    pub(crate) code: Option<String>,
    /// Its class.
    pub(crate) kind: Option<String>,
    /// The field that is wrong.
    pub(crate) param: Option<String>,
    /// How long it asks to wait.
    pub(crate) retry_after: Option<Duration>,
}

impl Told {
    /// Reads the body of an answer with an error's status.
    pub(crate) fn of_answer(status: u16, body: &str, retry_after: Option<Duration>) -> Self {
        let told = Self::of_json(body).unwrap_or_else(|| Self::of_text(body));
        Self { status: Some(status), retry_after: retry_after.or(told.retry_after), ..told }
    }

    /// Reads an `error` found in a stream, or a frame that announces one: an object, a list of them, or just a text.
    pub(crate) fn of_stream(json: &str) -> Self {
        Self::of_json(json).unwrap_or_else(|| Self::of_text(json))
    }

    /// A sentence without form. A page of a proxy is no sentence.
    fn of_text(text: &str) -> Self {
        let text = text.trim();
        let message = if text.starts_with('<') { String::new() } else { capped(text) };
        Self { message, ..Self::default() }
    }

    fn of_json(json: &str) -> Option<Self> {
        #[derive(Default, Deserialize)]
        struct Wire<'a> {
            #[serde(borrow, default)]
            error: Option<&'a RawValue>,
            #[serde(borrow, default)]
            message: Option<&'a RawValue>,
            #[serde(borrow, default)]
            msg: Option<&'a RawValue>,
            #[serde(borrow, default)]
            detail: Option<&'a RawValue>,
            #[serde(borrow, default)]
            code: Option<&'a RawValue>,
            #[serde(borrow, default)]
            status: Option<&'a RawValue>,
            #[serde(borrow, default, rename = "type")]
            kind: Option<&'a RawValue>,
            #[serde(borrow, default)]
            param: Option<&'a RawValue>,
            #[serde(borrow, default)]
            details: Option<&'a RawValue>,
            #[serde(borrow, default)]
            metadata: Option<Metadata<'a>>,
        }
        /// OpenRouter's place for what the backend behind it said.
        #[derive(Deserialize)]
        struct Metadata<'a> {
            #[serde(borrow, default)]
            raw: Option<&'a RawValue>,
        }
        let json = json.trim();
        if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(json) {
            return Self::of_json(list.first()?.get());
        }
        if json.starts_with('"') {
            let raw: &RawValue = serde_json::from_str(json).ok()?;
            return Some(Self::of_text(&word(Some(raw)).unwrap_or_default()));
        }
        let wire: Wire<'_> = serde_json::from_str(json).ok()?;
        if let Some(inner) = wire.error.filter(|raw| raw.get() != "null") {
            let inner_told = Self::of_json(inner.get())?;
            // Some write the class or the status beside the error.
            let status = inner_told
                .status
                .or_else(|| status_of(wire.code).or_else(|| status_of(wire.status)));
            if inner_told.message.is_empty() {
                return Some(Self {
                    message: text_of(wire.message.or(wire.detail)),
                    status,
                    ..inner_told
                });
            }
            return Some(Self { status, ..inner_told });
        }
        let said = text_of(wire.message.or(wire.msg).or(wire.detail));
        let behind = text_of(wire.metadata.and_then(|metadata| metadata.raw));
        Some(Self {
            status: status_of(wire.code).or_else(|| status_of(wire.status)),
            message: capped(&if behind.is_empty() { said } else { format!("{said}: {behind}") }),
            code: word(wire.code).or_else(|| word(wire.status)).map(Into::into),
            kind: word(wire.kind).map(Into::into),
            param: word(wire.param).map(Into::into),
            retry_after: wire.details.and_then(|details| retry_delay(details.get())),
        })
    }

    /// What it means. `model` is named in sentences of ours; `key` is blotted out.
    pub(crate) fn means(&self, model: &str, key: Option<&str>) -> ModelError {
        let kind = self.class();
        let status = self.status.map(|status| format!(" (status {status})")).unwrap_or_default();
        let message = match kind {
            // What a backend says of a key may hold the key.
            ModelErrorKind::Unauthorized => {
                format!("The upstream refused the credentials of this server{status}.")
            }
            _ if self.message.is_empty() => match kind {
                ModelErrorKind::ContextOverflow => {
                    format!("The input does not fit what the model `{model}` can take.")
                }
                _ => format!(
                    "The upstream of the model `{model}` failed without saying why{status}."
                ),
            },
            _ => match key.filter(|key| !key.is_empty()) {
                Some(key) => self.message.replace(key, "[key]"),
                None => self.message.clone(),
            },
        };
        ModelError::new(kind, message)
    }

    fn class(&self) -> ModelErrorKind {
        let message = self.message.to_ascii_lowercase();
        let code = self.code.as_deref().unwrap_or_default().to_ascii_lowercase();
        let kind = self.kind.as_deref().unwrap_or_default().to_ascii_lowercase();
        let says = |word: &str| code == word || kind == word;
        if self.status == Some(413) || overflows(&message, &code, &kind) {
            return ModelErrorKind::ContextOverflow;
        }
        if matches!(self.status, Some(401 | 403))
            || says("invalid_api_key")
            || says("authentication_error")
        {
            return ModelErrorKind::Unauthorized;
        }
        // Gemini says "quota" for what passes in a moment, and then how long.
        let quota = says("insufficient_quota")
            || self.status == Some(402)
            || (message.contains("exceeded your current quota")
                && self.retry_after.is_none()
                && !message.contains("retry in"))
            || message.contains("insufficient balance");
        if quota {
            return ModelErrorKind::QuotaExceeded;
        }
        let limited = self.status == Some(429)
            || [
                "rate_limit_error",
                "rate_limit_exceeded",
                "too_many_requests",
                "resource_exhausted",
            ]
            .into_iter()
            .any(says)
            || (self.status.is_none()
                && (message.contains("rate limit") || message.contains("too many requests")));
        if limited {
            return ModelErrorKind::RateLimited(self.retry_after);
        }
        if says("model_not_found")
            || (matches!(self.status, None | Some(400 | 404)) && lacks_model(&message))
        {
            return ModelErrorKind::ModelNotFound;
        }
        match self.status {
            Some(503 | 529) => ModelErrorKind::Unavailable(self.retry_after),
            Some(408 | 504) => ModelErrorKind::Timeout,
            // No such path: the address is wrong, not the question.
            Some(404 | 405 | 500..) => ModelErrorKind::Failed,
            Some(400..=499) => ModelErrorKind::Rejected,
            None if says("overloaded_error")
                || says("overloaded")
                || says("unavailable")
                || says("server_busy") =>
            {
                ModelErrorKind::Unavailable(self.retry_after)
            }
            None if says("invalid_request_error")
                || says("badrequesterror")
                || says("invalid_argument") =>
            {
                ModelErrorKind::Rejected
            }
            Some(..400) | None => ModelErrorKind::Failed,
        }
    }

    /// The parameter of ours that the backend does not know or take, if that is what it says.
    pub(crate) fn refused_param(&self) -> Option<&'static str> {
        if !matches!(self.status, Some(400 | 422)) {
            return None;
        }
        let message = self.message.to_ascii_lowercase();
        let code = self.code.as_deref().unwrap_or_default();
        let refuses =
            matches!(code, "unknown_parameter" | "unsupported_parameter" | "unsupported_value")
                || [
                    "unknown parameter",
                    "unknown field",
                    "unknown name",
                    "unknown argument",
                    "unknown key",
                    "unsupported",
                    "not supported",
                    "does not support",
                    "doesn't support",
                    "unrecognized",
                    "unrecognised",
                    "not permitted",
                    "not allowed",
                    "extra inputs",
                    "extra fields",
                    "unexpected",
                    "additional properties",
                    "cannot find field",
                    "extra_forbidden",
                    "not a valid parameter",
                    "not recognized",
                ]
                .iter()
                .any(|sign| message.contains(sign));
        if !refuses {
            return None;
        }
        match self.param.as_deref().filter(|param| !param.is_empty() && *param != "body") {
            Some(param) => DISPENSABLE.iter().copied().find(|name| *name == param),
            // The first one that it names; a later one is often what it proposes instead.
            None => DISPENSABLE
                .iter()
                .copied()
                .filter_map(|name| Some((place_of_word(&message, name)?, name)))
                .min()
                .map(|(_, name)| name),
        }
    }

    /// The output that still fits, when only the output that was asked for does not.
    pub(crate) fn output_that_fits(&self, asked: u64) -> Option<u64> {
        let message = self.message.to_ascii_lowercase();
        let after = |sign: &str| number_after(&message, sign);
        let before = |sign: &str| number_before(&message, sign);
        // The model's own limit: "supports at most 16384 completion tokens", "valid range of max_tokens is [1, 8192]".
        let most =
            after("supports at most ").or_else(|| after("valid range of max_tokens is [1, "));
        let fits = most.or_else(|| {
            let window = after("maximum context length is ")
                .or_else(|| after("maximum context length of "))
                .or_else(|| after("context window of "))?;
            let prompt = after("your request has ")
                .or_else(|| after("your prompt contains at least "))
                .or_else(|| before(" in the messages"))
                .or_else(|| before(" of text input"))
                .or_else(|| before(" tokens from the input messages"))
                .or_else(|| before(" input tokens"))?;
            window.checked_sub(prompt)
        })?;
        (fits > 0 && fits < asked).then_some(fits)
    }
}

/// Whether the prompt is too long, in any backend's words.
fn overflows(message: &str, code: &str, kind: &str) -> bool {
    const CODES: &[&str] = &[
        "context_length_exceeded",
        "exceed_context_size_error",
        "context_window_exceeded",
        "string_above_max_length",
    ];
    const SIGNS: &[&str] = &[
        "maximum context length", // OpenAI, vLLM, DeepSeek, OpenRouter
        "context length exceeded",
        "exceeds the available context size", // llama.cpp
        "context shift is disabled",          // llama.cpp
        "exceeds the context window",
        "context window exceeded",
        "exceed context window",
        "exceeds the maximum context",
        "longer than the model's context length", // SGLang
        "longer than the maximum model length",   // vLLM, offline
        "exceeds the model's context length",
        "exceeds the maximum length",
        "exceeds the limit of",
        "exceeds maximum input length",
        "greater than the context length", // LM Studio
        "exceeds context length",
        "input length exceeds", // Ollama
        "exceed the context length",
        "input is too long",
        "prompt is too long",
        "prompt too long",
        "prompt contains too many tokens",
        "too large for model with", // Mistral
        "reduce the length of the",
        "input token count", // Gemini
        "total message size",
        "context_length_exceeded",
        "exceed_context_size",
    ];
    CODES.iter().any(|word| code == *word || kind == *word)
        || SIGNS.iter().any(|sign| message.contains(sign))
        || (message.contains("tokens") && message.contains("exceed") && message.contains("context"))
}

/// Whether the model does not exist, in any backend's words.
fn lacks_model(message: &str) -> bool {
    message.contains("model")
        && [
            "not found",
            "does not exist",
            "not exist",
            "no such model",
            "unknown model",
            "is not a valid model",
            "invalid model",
            "no models loaded",
            "model_not_found",
            "not installed",
            "try pulling",
        ]
        .iter()
        .any(|sign| message.contains(sign))
}

/// Where `name` stands in `text` as a word of its own.
fn place_of_word(text: &str, name: &str) -> Option<usize> {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.match_indices(name).map(|(at, _)| at).find(|at| {
        let at = *at;
        let before = at.checked_sub(1).map(|at| text.as_bytes()[at]);
        let after = text.as_bytes().get(at + name.len()).copied();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

fn number_after(text: &str, sign: &str) -> Option<u64> {
    let (_, rest) = text.split_once(sign)?;
    let digits: String = rest
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(|c| *c != ',')
        .collect();
    digits.parse().ok()
}

fn number_before(text: &str, sign: &str) -> Option<u64> {
    let (head, _) = text.split_once(sign)?;
    let head = head.trim_end_matches(" tokens");
    let start = head.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    head[start..].parse().ok()
}

/// The wait in Gemini's `details`: `{"retryDelay":"17s"}`.
fn retry_delay(details: &str) -> Option<Duration> {
    let (_, rest) = details.split_once("\"retryDelay\"")?;
    let text: String = rest
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

fn status_of(raw: Option<&RawValue>) -> Option<u16> {
    count(raw).and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code))
}

/// A text as it is, anything else as its JSON.
fn text_of(raw: Option<&RawValue>) -> String {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return String::new() };
    let text = if raw.get().starts_with('"') {
        word(Some(raw)).unwrap_or_default().into_owned()
    } else {
        raw.get().to_owned()
    };
    capped(&text)
}

fn capped(text: &str) -> String {
    if text.len() <= LONGEST_MESSAGE {
        return text.to_owned();
    }
    format!("{} …", &text[..text.floor_char_boundary(LONGEST_MESSAGE)])
}

/// The text of a body of bytes, without what no text may hold.
pub(crate) fn body_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&repair_json(bytes)).into_owned()
}

#[cfg(test)]
#[path = "told_tests.rs"]
mod tests;
