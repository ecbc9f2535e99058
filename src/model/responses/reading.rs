//! A Responses answer as [`Delta`]s.

use std::{borrow::Cow, collections::HashMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    model::{
        ModelError,
        chat::{count, logprobs_of, text_of, word},
        intake::{Progress, Reading, broken},
        told::Told,
    },
    protocol::{Raw, Usage},
    text::repair::HalfJoiner,
    turn::{Delta, Finish},
};

/// Reads one answer.
pub(crate) struct ResponsesReading {
    model: String,
    key: Option<String>,
    text: HalfJoiner,
    refusal: HalfJoiner,
    reasoning: HalfJoiner,
    /// By output index, what of an item was said in pieces.
    said: HashMap<u64, Said>,
    calls: u32,
    /// Reasoning items with something sealed, as they came.
    sealed: Vec<Raw>,
    progress: Progress,
}

/// What of an item was said in pieces.
#[derive(Default)]
struct Said {
    anything: bool,
    position: Option<u32>,
    joiner: HalfJoiner,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(default)]
    output_index: u64,
    #[serde(default)]
    summary_index: usize,
    #[serde(borrow, default)]
    logprobs: Option<&'a RawValue>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    call_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    encrypted_content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<Vec<Part<'a>>>,
    #[serde(borrow, default)]
    summary: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    logprobs: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    incomplete_details: Option<Incomplete<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow, default)]
    reason: Option<Cow<'a, str>>,
}

impl ResponsesReading {
    pub(crate) fn new(model: String, key: Option<String>) -> Self {
        Self {
            model,
            key,
            text: HalfJoiner::default(),
            refusal: HalfJoiner::default(),
            reasoning: HalfJoiner::default(),
            said: HashMap::new(),
            calls: 0,
            sealed: Vec::new(),
            progress: Progress::Open,
        }
    }

    fn event(
        &mut self,
        json: &str,
        event: &Event<'_>,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        let said = self.said.entry(event.output_index).or_default();
        let piece = event.delta.and_then(text_of);
        match event.kind.as_deref().unwrap_or_default() {
            "response.output_text.delta" => {
                said.anything = true;
                let text = piece.map(|piece| self.text.push(piece)).unwrap_or_default();
                if !text.is_empty() {
                    let logprobs = event.logprobs.map(logprobs_of).unwrap_or_default();
                    out.push(Delta::Text { text: text.into_owned(), logprobs });
                }
            }
            "response.refusal.delta" => {
                said.anything = true;
                let text = piece.map(|piece| self.refusal.push(piece)).unwrap_or_default();
                out.extend((!text.is_empty()).then(|| Delta::Refusal(text.into_owned())));
            }
            "response.reasoning_text.delta" | "response.reasoning.delta" => {
                said.anything = true;
                let text = piece.map(|piece| self.reasoning.push(piece)).unwrap_or_default();
                out.extend((!text.is_empty()).then(|| Delta::Reasoning(text.into_owned())));
            }
            "response.reasoning_summary_text.delta" => {
                said.anything = true;
                let text = piece.map(|piece| said.joiner.push(piece)).unwrap_or_default();
                let part = event.summary_index;
                out.extend(
                    (!text.is_empty()).then(|| Delta::Summary { part, text: text.into_owned() }),
                );
            }
            "response.function_call_arguments.delta" => {
                let text = piece.map(|piece| said.joiner.push(piece)).unwrap_or_default();
                if let Some(position) = said.position
                    && !text.is_empty()
                {
                    said.anything = true;
                    out.push(Delta::Arguments { position, piece: text.into_owned() });
                }
            }
            "response.output_item.added" => {
                if let Some(item) = event.item {
                    self.begin(event.output_index, item, out);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.item(event.output_index, item, out);
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                return self.terminal(event.response.map_or("{}", RawValue::get), out);
            }
            "error" => {
                let error = event.error.filter(|error| error.get() != "null");
                return Err(self.failure(error.map_or(json, RawValue::get)));
            }
            "" if event.error.is_some_and(|error| error.get() != "null") => {
                return Err(self.failure(json));
            }
            _ => (),
        }
        Ok(())
    }

    /// A call is told once its name is there.
    fn begin(&mut self, index: u64, raw: &RawValue, out: &mut Vec<Delta>) {
        let Ok(item) = serde_json::from_str::<Item<'_>>(raw.get()) else { return };
        let said = self.said.entry(index).or_default();
        if item.kind.as_deref() != Some("function_call") || said.position.is_some() {
            return;
        }
        let Some(name) = word(item.name) else { return };
        let position = self.calls;
        self.calls += 1;
        said.position = Some(position);
        let id = word(item.call_id).map(Cow::into_owned);
        out.push(Delta::Call { position, id, name: name.into_owned() });
    }

    /// An item is final: what was not said in pieces is said now.
    fn item(&mut self, index: u64, raw: &RawValue, out: &mut Vec<Delta>) {
        self.begin(index, raw, out);
        let Ok(item) = serde_json::from_str::<Item<'_>>(raw.get()) else { return };
        let said = self.said.entry(index).or_default();
        let news = !std::mem::replace(&mut said.anything, true);
        match item.kind.as_deref() {
            Some("function_call") => {
                if let (true, Some(position), Some(piece)) =
                    (news, said.position, word(item.arguments))
                {
                    out.push(Delta::Arguments { position, piece: piece.into_owned() });
                }
            }
            Some("reasoning") => {
                for part in item.content.iter().flatten().filter(|_| news) {
                    out.extend(word(part.text).map(|text| Delta::Reasoning(text.into_owned())));
                }
                for (part, summary) in item.summary.iter().flatten().enumerate().filter(|_| news) {
                    out.extend(
                        word(summary.text)
                            .map(|text| Delta::Summary { part, text: text.into_owned() }),
                    );
                }
                if word(item.encrypted_content).is_some() {
                    self.sealed.push(raw.to_owned().into());
                    out.push(Delta::ReasoningData(Raw::of(&self.sealed)));
                }
            }
            Some("message") => {
                for part in item.content.iter().flatten().filter(|_| news) {
                    if let Some(text) = word(part.text) {
                        let logprobs = part.logprobs.map(logprobs_of).unwrap_or_default();
                        out.push(Delta::Text { text: text.into_owned(), logprobs });
                    }
                    out.extend(word(part.refusal).map(|text| Delta::Refusal(text.into_owned())));
                }
            }
            _ => (),
        }
    }

    fn terminal(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        let whole: Whole<'_> = serde_json::from_str(json)
            .map_err(|error| broken(format!("The upstream sent what is no Response: {error}.")))?;
        if let Some(error) = whole.error.filter(|error| error.get() != "null") {
            return Err(self.failure(error.get()));
        }
        for (index, item) in (0..).zip(whole.output.iter().flatten()) {
            if !self.said.get(&index).is_some_and(|said| said.anything) {
                self.item(index, item, out);
            }
        }
        out.extend(whole.usage.and_then(usage).map(Delta::Usage));
        let reason = whole.incomplete_details.and_then(|details| details.reason);
        let finish = match (whole.status.as_deref(), reason.as_deref()) {
            (Some("failed" | "cancelled"), _) => {
                return Err(broken("The upstream failed without saying why."));
            }
            (Some("incomplete"), Some("content_filter")) => Finish::ContentFilter,
            (Some("incomplete"), _) => Finish::Length,
            _ => Finish::Stop,
        };
        out.push(Delta::Finish(finish));
        self.progress = Progress::Done;
        Ok(())
    }

    fn failure(&self, json: &str) -> ModelError {
        Told::of_stream(json).means(&self.model, self.key.as_deref())
    }
}

impl Reading for ResponsesReading {
    fn frame(
        &mut self,
        event: Option<&str>,
        data: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        let data = data.trim();
        if !data.starts_with('{') {
            return if event == Some("error") { Err(self.failure(data)) } else { Ok(()) };
        }
        let read: Event<'_> = serde_json::from_str(data).map_err(|error| {
            broken(format!("The upstream sent what is no event of an answer: {error}."))
        })?;
        if event == Some("error") && read.kind.is_none() {
            return Err(self.failure(data));
        }
        self.event(data, &read, out)
    }

    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        if json.trim_start().starts_with('[') {
            return Err(self.failure(json));
        }
        self.terminal(json, out)
    }

    fn end(&mut self, _: &mut Vec<Delta>) -> Result<(), ModelError> {
        match self.progress {
            Progress::Done => Ok(()),
            Progress::Open | Progress::Finished => {
                Err(broken("The upstream ended without a terminal event."))
            }
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

#[derive(Deserialize)]
struct WireUsage<'a> {
    #[serde(borrow, default)]
    input_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    output_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    total_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input_tokens_details: Option<UsageDetails<'a>>,
    #[serde(borrow, default)]
    output_tokens_details: Option<UsageDetails<'a>>,
}

#[derive(Default, Deserialize)]
#[expect(clippy::struct_field_names, reason = "the wire has these names")]
struct UsageDetails<'a> {
    #[serde(borrow, default)]
    cached_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cache_write_tokens: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reasoning_tokens: Option<&'a RawValue>,
}

fn usage(raw: &RawValue) -> Option<Usage> {
    let wire = serde_json::from_str::<Option<WireUsage<'_>>>(raw.get()).ok().flatten()?;
    let input = wire.input_tokens_details.unwrap_or_default();
    let output = wire.output_tokens_details.unwrap_or_default();
    let mut usage = Usage {
        input_tokens: count(wire.input_tokens).unwrap_or(0),
        output_tokens: count(wire.output_tokens).unwrap_or(0),
        ..Usage::default()
    };
    usage.input_tokens_details.cached_tokens = count(input.cached_tokens).unwrap_or(0);
    usage.input_tokens_details.cache_write_tokens = count(input.cache_write_tokens).unwrap_or(0);
    usage.output_tokens_details.reasoning_tokens = count(output.reasoning_tokens).unwrap_or(0);
    let sum = usage.input_tokens.saturating_add(usage.output_tokens);
    usage.total_tokens = count(wire.total_tokens).unwrap_or(sum);
    Some(usage)
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
