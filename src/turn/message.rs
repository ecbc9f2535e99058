//! The message being written: text and refusals, part by part.

use std::sync::Arc;

use crate::protocol::{
    Event, Item, ItemStatus, Part,
    content::{Logprob, OutputText, Refusal},
    item::{Message, Role},
};

use super::{Turn, empty_message, round::Open};

/// The message being written.
pub(super) struct OpenMessage {
    output_index: usize,
    id: Arc<str>,
    parts: Vec<Part>,
    part: OpenPart,
}

enum OpenPart {
    Nothing,
    Text { text: String, logprobs: Vec<Logprob> },
    Refusal(String),
}

impl Turn {
    /// Begins a message, after closing what was open.
    pub(super) fn open_message(&mut self) {
        self.close_open(ItemStatus::Completed);
        let (output_index, id) = self.add("msg", empty_message);
        let parts = Vec::new();
        self.round.open =
            Open::Message(OpenMessage { output_index, id, parts, part: OpenPart::Nothing });
    }

    /// Writes text into the open message.
    pub(super) fn write(&mut self, delta: String, logprobs: Vec<Logprob>) {
        self.begin_part(&OpenPart::Text { text: String::new(), logprobs: Vec::new() });
        let Open::Message(message) = &mut self.round.open else { return };
        let OpenPart::Text { text, logprobs: all } = &mut message.part else { return };
        let logprobs = if self.rules.logprobs { logprobs } else { Vec::new() };
        text.push_str(&delta);
        all.extend_from_slice(&logprobs);
        let (item_id, output_index) = (Arc::clone(&message.id), message.output_index);
        let content_index = message.parts.len();
        self.emit(Event::TextDelta { item_id, output_index, content_index, delta, logprobs });
    }

    /// Writes a refusal into the open message, or into a new one.
    pub(super) fn refuse(&mut self, delta: String) {
        if !matches!(self.round.open, Open::Message(_)) {
            self.open_message();
        }
        self.begin_part(&OpenPart::Refusal(String::new()));
        let Open::Message(message) = &mut self.round.open else { return };
        let OpenPart::Refusal(refusal) = &mut message.part else { return };
        refusal.push_str(&delta);
        let (item_id, output_index) = (Arc::clone(&message.id), message.output_index);
        let content_index = message.parts.len();
        self.emit(Event::RefusalDelta { item_id, output_index, content_index, delta });
    }

    /// Makes sure that a part of this kind is open.
    fn begin_part(&mut self, wanted: &OpenPart) {
        let Open::Message(message) = &self.round.open else { return };
        if std::mem::discriminant(&message.part) == std::mem::discriminant(wanted) {
            return;
        }
        self.end_part();
        let Open::Message(message) = &mut self.round.open else { return };
        let (part, open) = match wanted {
            OpenPart::Text { .. } | OpenPart::Nothing => (
                Part::OutputText(OutputText::default()),
                OpenPart::Text { text: String::new(), logprobs: Vec::new() },
            ),
            OpenPart::Refusal(_) => {
                (Part::Refusal(Refusal::default()), OpenPart::Refusal(String::new()))
            }
        };
        message.part = open;
        let (item_id, output_index) = (Arc::clone(&message.id), message.output_index);
        let content_index = message.parts.len();
        self.emit(Event::PartAdded { item_id, output_index, content_index, part });
    }

    fn end_part(&mut self) {
        let Open::Message(message) = &mut self.round.open else { return };
        let (id, output_index) = (Arc::clone(&message.id), message.output_index);
        let content_index = message.parts.len();
        let item_id = Arc::clone(&id);
        let (event, part) = match std::mem::replace(&mut message.part, OpenPart::Nothing) {
            OpenPart::Nothing => return,
            OpenPart::Text { text, logprobs } => (
                Event::TextDone {
                    item_id,
                    output_index,
                    content_index,
                    text: text.clone(),
                    logprobs: logprobs.clone(),
                },
                Part::OutputText(OutputText { text, logprobs, ..OutputText::default() }),
            ),
            OpenPart::Refusal(refusal) => (
                Event::RefusalDone {
                    item_id,
                    output_index,
                    content_index,
                    refusal: refusal.clone(),
                },
                Part::Refusal(Refusal { refusal }),
            ),
        };
        message.parts.push(part.clone());
        self.emit(event);
        self.emit(Event::PartDone { item_id: id, output_index, content_index, part });
    }

    pub(super) fn close_message(&mut self, message: OpenMessage, status: ItemStatus) {
        self.round.open = Open::Message(message);
        if let Open::Message(OpenMessage { parts, part: OpenPart::Nothing, .. }) = &self.round.open
            && parts.is_empty()
        {
            self.begin_part(&OpenPart::Text { text: String::new(), logprobs: Vec::new() });
        }
        self.end_part();
        let Open::Message(message) = std::mem::replace(&mut self.round.open, Open::Nothing) else {
            return;
        };
        let OpenMessage { output_index, id, parts, .. } = message;
        let item = Message {
            id: id.to_string(),
            status: Some(status),
            role: Role::Assistant,
            content: parts,
            ..Message::default()
        };
        self.done(output_index, Item::Message(item));
    }
}
