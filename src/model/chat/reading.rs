//! A Chat Completions answer as [`Delta`]s.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{
    assemble::{Assembly, Fragment},
    chunk::{self, Choice, Chunk, Piece},
    details::Details,
};
use crate::{
    model::{
        ModelError,
        intake::{Progress, Reading, broken},
        told::Told,
    },
    protocol::{Raw, content::Logprob},
    text::repair::{HalfJoiner, WireText},
    turn::{Delta, Finish},
};

/// Reads one answer.
pub(crate) struct ChatReading {
    /// Named in sentences of ours.
    model: String,
    /// Blotted out of what the backend says.
    key: Option<String>,
    reasoning_in: Vec<String>,
    wants_logprobs: bool,
    /// The number of the choice that counts: that of the first one.
    choice: Option<u64>,
    text: HalfJoiner,
    refusal: HalfJoiner,
    reasoning: HalfJoiner,
    /// Log probabilities that came with no text of their own.
    logprobs: Vec<Logprob>,
    details: Details,
    calls: Assembly,
    /// Something was said.
    said: bool,
    progress: Progress,
}

/// What an answer is read for.
pub(crate) struct ChatExpected {
    /// The model that was asked.
    pub(crate) model: String,
    /// The key that must not be told.
    pub(crate) key: Option<String>,
    /// Where reasoning is looked for.
    pub(crate) reasoning_in: Vec<String>,
    /// Whether log probabilities were asked for.
    pub(crate) wants_logprobs: bool,
    /// The names of the tools that were offered.
    pub(crate) tools: Vec<String>,
}

impl ChatReading {
    pub(crate) fn new(expected: ChatExpected) -> Self {
        Self {
            model: expected.model,
            key: expected.key,
            reasoning_in: expected.reasoning_in,
            wants_logprobs: expected.wants_logprobs,
            choice: None,
            text: HalfJoiner::default(),
            refusal: HalfJoiner::default(),
            reasoning: HalfJoiner::default(),
            logprobs: Vec::new(),
            details: Details::default(),
            calls: Assembly::new(expected.tools),
            said: false,
            progress: Progress::Open,
        }
    }

    fn chunk(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let chunk: Chunk<'_> = serde_json::from_str(json).map_err(|error| {
            broken(format!("The upstream sent what is no chunk of an answer: {error}."))
        })?;
        let groq = chunk.x_groq.as_ref();
        if self.progress == Progress::Open {
            let choice_error = chunk.choices.iter().flatten().find_map(|choice| choice.error);
            let told = chunk
                .error
                .or(groq.and_then(|groq| groq.error))
                .or(choice_error)
                .filter(|error| error.get() != "null");
            if let Some(error) = told {
                return Err(self.failure(error.get()));
            }
            let bare = chunk.choices.is_none()
                && (chunk.detail.is_some()
                    || chunk::word(chunk.object).is_some_and(|object| object == "error"));
            if bare {
                return Err(self.failure(json));
            }
        }
        let mut finish = None;
        if self.progress == Progress::Open {
            for choice in chunk.choices.into_iter().flatten() {
                if *self.choice.get_or_insert(choice.index.unwrap_or(0))
                    == choice.index.unwrap_or(0)
                {
                    self.choice(&choice, out);
                    finish =
                        finish.or_else(|| chunk::word(choice.finish_reason).map(Cow::into_owned));
                }
            }
        }
        let usage =
            chunk.usage.or(groq.and_then(|groq| groq.usage)).filter(|usage| usage.get() != "null");
        if let Some(usage) = usage.and_then(chunk::usage) {
            out.push(Delta::Usage(usage));
        }
        match finish {
            Some(word) => self.finish(&word, out),
            None => Ok(()),
        }
    }

    fn choice(&mut self, choice: &Choice<'_>, out: &mut Vec<Delta>) {
        if self.wants_logprobs
            && let Some(raw) = choice.logprobs
        {
            self.logprobs.extend(chunk::logprobs(raw));
        }
        if let Some(piece) = choice.delta.as_ref().or(choice.message.as_ref()) {
            self.piece(piece, out);
        }
    }

    fn piece(&mut self, piece: &Piece<'_>, out: &mut Vec<Delta>) {
        // The same thought may stand in several fields: the first one that holds some counts.
        let field = self
            .reasoning_in
            .iter()
            .filter_map(|field| piece.reasoning(field).and_then(chunk::text))
            .find(|text| !text.is_empty());
        let in_details =
            piece.reasoning_details.map(|raw| self.details.push(raw)).unwrap_or_default();
        match field {
            Some(text) => self.think(text, out),
            None if self.reasoning_in.iter().any(|field| field == "reasoning_details") => {
                self.think(WireText::from(in_details.as_str()), out);
            }
            None => (),
        }
        if let Some(raw) = piece.content {
            self.content(raw, out);
        }
        if let Some(text) = piece.refusal.and_then(chunk::text) {
            let text = self.refusal.push(text);
            if !text.is_empty() {
                self.said = true;
                out.push(Delta::Refusal(text.into_owned()));
            }
        }
        let fragments = Fragments::of(piece);
        if !fragments.0.is_empty() {
            self.details.tell(out);
            self.calls.push(fragments.0.iter().map(OwnedFragment::borrow).collect(), out);
        }
    }

    /// Text, or Mistral's list of parts, of which some are thoughts.
    fn content(&mut self, raw: &RawValue, out: &mut Vec<Delta>) {
        #[derive(serde::Deserialize)]
        struct ContentPart<'a> {
            #[serde(borrow, default)]
            text: Option<&'a RawValue>,
            #[serde(borrow, default)]
            thinking: Option<&'a RawValue>,
        }
        if let Some(text) = chunk::text(raw) {
            return self.say(text, out);
        }
        let parts: Vec<ContentPart<'_>> = serde_json::from_str(raw.get()).unwrap_or_default();
        for part in parts {
            if let Some(text) = part.text.and_then(chunk::text) {
                self.say(text, out);
            }
            let Some(thinking) = part.thinking else { continue };
            if let Some(text) = chunk::text(thinking) {
                self.think(text, out);
            }
            let inner: Vec<ContentPart<'_>> =
                serde_json::from_str(thinking.get()).unwrap_or_default();
            for text in inner.iter().filter_map(|part| part.text.and_then(chunk::text)) {
                self.think(text, out);
            }
        }
    }

    fn say(&mut self, text: WireText<'_>, out: &mut Vec<Delta>) {
        let text = self.text.push(text);
        if !text.is_empty() {
            self.details.tell(out);
            self.said = true;
            out.push(Delta::Text {
                text: text.into_owned(),
                logprobs: std::mem::take(&mut self.logprobs),
            });
        }
    }

    fn think(&mut self, text: WireText<'_>, out: &mut Vec<Delta>) {
        let text = self.reasoning.push(text);
        if !text.is_empty() {
            self.said = true;
            out.push(Delta::Reasoning(text.into_owned()));
        }
    }

    /// The model has stopped.
    fn finish(&mut self, word: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let finish = match word.to_ascii_lowercase().as_str() {
            "stop" | "tool_calls" | "tool_call" | "function_call" | "tool_use" | "eos"
            | "eos_token" | "end_turn" | "stop_sequence" | "stop_token" | "end" | "complete"
            | "completed" | "finish" | "done" => Finish::Stop,
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "max_completion_tokens"
            | "model_length"
            | "model_context_window_exceeded"
            | "token_limit" => Finish::Length,
            "content_filter" | "safety" | "recitation" | "blocklist" | "prohibited_content"
            | "spii" | "sensitive" | "refusal" => Finish::ContentFilter,
            "insufficient_system_resource" => {
                return Err(
                    self.failure(r#"{"message":"The upstream ran out of resources.","code":503}"#)
                );
            }
            "error" | "abort" | "aborted" | "cancelled" | "canceled" | "network_error"
            | "unknown" => {
                return Err(broken(format!(
                    "The upstream broke off its answer and gave `{word}` as the reason."
                )));
            }
            _ if self.calls.any() => Finish::Stop,
            _ => {
                return Err(broken(format!(
                    "The upstream ended its answer for a reason that is not known: `{word}`."
                )));
            }
        };
        self.close(finish, out)
    }

    /// Ends what is open.
    fn close(&mut self, finish: Finish, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if let Some(rest) = self.reasoning.finish() {
            out.push(Delta::Reasoning(rest.to_owned()));
        }
        let logprobs = std::mem::take(&mut self.logprobs);
        if let Some(rest) = self.text.finish() {
            out.push(Delta::Text { text: rest.to_owned(), logprobs });
        }
        if let Some(rest) = self.refusal.finish() {
            out.push(Delta::Refusal(rest.to_owned()));
        }
        self.details.tell(out);
        if !self.calls.finish(out) && finish == Finish::Stop {
            return Err(broken("The upstream sent a call of a tool without the tool's name."));
        }
        out.push(Delta::Finish(finish));
        self.progress = Progress::Finished;
        Ok(())
    }

    fn failure(&self, json: &str) -> ModelError {
        Told::of_stream(json).means(&self.model, self.key.as_deref())
    }
}

impl Reading for ChatReading {
    fn frame(
        &mut self,
        event: Option<&str>,
        data: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        if data == "[DONE]" {
            // Who says that it is done, but not why, has still said so.
            if self.progress == Progress::Open && (self.said || self.calls.any()) {
                self.close(Finish::Stop, out)?;
            }
            if self.progress == Progress::Finished {
                self.progress = Progress::Done;
                return Ok(());
            }
            return self.end(out);
        }
        if event == Some("error") && self.progress == Progress::Open {
            return Err(self.failure(data));
        }
        match data.as_bytes().first() {
            Some(b'{') => self.chunk(data, out),
            // A bare text is an error; any other word, such as a heartbeat, says nothing.
            Some(b'"') if self.progress == Progress::Open => Err(self.failure(data)),
            _ => Ok(()),
        }
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if json.trim_start().starts_with('[') {
            return Err(self.failure(json));
        }
        self.chunk(json, out)?;
        if self.progress == Progress::Open && self.choice.is_none() {
            return Err(broken("The upstream's answer holds no choice."));
        }
        if self.progress == Progress::Open {
            self.close(Finish::Stop, out)?;
        }
        self.progress = Progress::Done;
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        match self.progress {
            Progress::Done => Ok(()),
            Progress::Finished => {
                self.progress = Progress::Done;
                Ok(())
            }
            Progress::Open => {
                // What was held back is told, for the text that came is kept.
                if let Some(rest) = self.text.finish() {
                    out.push(Delta::Text { text: rest.to_owned(), logprobs: Vec::new() });
                }
                Err(broken("The upstream ended without a finish reason."))
            }
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

/// The pieces of calls in one chunk, with texts that are made as they are read.
struct Fragments<'a>(Vec<OwnedFragment<'a>>);

struct OwnedFragment<'a> {
    index: Option<u64>,
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    arguments: Option<WireText<'a>>,
    data: Option<Raw>,
}

impl<'a> Fragments<'a> {
    fn of(piece: &Piece<'a>) -> Self {
        let calls = piece.tool_calls.map(chunk::call_pieces).unwrap_or_default();
        let mut fragments: Vec<OwnedFragment<'a>> = calls
            .into_iter()
            .map(|call| {
                let function = call.function.unwrap_or_default();
                OwnedFragment {
                    index: chunk::count(call.index),
                    id: word_or_number(call.id),
                    name: chunk::word(function.name),
                    arguments: function.arguments.and_then(arguments),
                    data: call
                        .extra_content
                        .filter(|raw| raw.get().starts_with('{'))
                        .map(|raw| raw.to_owned().into()),
                }
            })
            .collect();
        if fragments.is_empty()
            && let Some(function) = &piece.function_call
        {
            let (name, arguments) =
                (chunk::word(function.name), function.arguments.and_then(arguments));
            if name.is_some() || arguments.is_some() {
                fragments.push(OwnedFragment {
                    index: None,
                    id: None,
                    name,
                    arguments,
                    data: None,
                });
            }
        }
        Self(fragments)
    }
}

impl OwnedFragment<'_> {
    fn borrow(&self) -> Fragment<'_> {
        Fragment {
            index: self.index,
            id: self.id.as_deref(),
            name: self.name.as_deref(),
            arguments: self.arguments.clone(),
            data: self.data.clone(),
        }
    }
}

fn word_or_number(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    chunk::word(raw).or_else(|| {
        let number = raw?.get();
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(Cow::Borrowed(number))
    })
}

/// Arguments as a text; an object is its own text.
fn arguments(raw: &RawValue) -> Option<WireText<'_>> {
    match raw.get().as_bytes().first() {
        Some(b'"') => chunk::text(raw),
        Some(b'{' | b'[') => Some(WireText::from(raw.get())),
        _ => None,
    }
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
