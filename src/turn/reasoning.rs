//! The reasoning being written: raw text as content, or as summary parts when the request asked for a summary.

use std::sync::Arc;

use crate::protocol::{
    Event, Item, ItemStatus, Part, Raw, content::ReasoningText, item::Reasoning,
};

use super::{Turn, round::Open};

/// The reasoning being written.
pub(super) struct OpenReasoning {
    output_index: usize,
    id: Arc<str>,
    content: Vec<Part>,
    summary: Vec<Part>,
    part: OpenPart,
    /// What the backend wants back.
    data: Option<Raw>,
}

enum OpenPart {
    Nothing,
    Content(String),
    /// With the number that the backend gave the part.
    Summary(usize, String),
}

/// What a sealed reasoning item holds.
#[derive(serde::Deserialize, serde::Serialize)]
pub struct SealedReasoning {
    /// The raw text.
    pub text: String,
    /// What the backend wants back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Raw>,
}

impl Turn {
    /// Writes raw reasoning.
    pub(super) fn think(&mut self, piece: String) {
        let as_summary =
            self.settings.reasoning.as_ref().is_some_and(|settings| settings.summary.is_some());
        if as_summary {
            return self.write_summary(None, piece);
        }
        let Some(piece) = self.begin_thought(piece) else { return };
        self.open_reasoning();
        if !matches!(&self.round.open, Open::Reasoning(open) if matches!(open.part, OpenPart::Content(_)))
        {
            self.end_reasoning_part();
            let Open::Reasoning(open) = &mut self.round.open else { return };
            open.part = OpenPart::Content(String::new());
            let event = Event::PartAdded {
                item_id: Arc::clone(&open.id),
                output_index: open.output_index,
                content_index: open.content.len(),
                part: Part::ReasoningText(ReasoningText::default()),
            };
            self.emit(event);
        }
        let Open::Reasoning(open) = &mut self.round.open else { return };
        let OpenPart::Content(text) = &mut open.part else { return };
        text.push_str(&piece);
        let (item_id, output_index) = (Arc::clone(&open.id), open.output_index);
        let content_index = open.content.len();
        self.emit(if self.rules.open_responses {
            Event::OpenReasoningDelta { item_id, output_index, content_index, delta: piece }
        } else {
            Event::ReasoningDelta { item_id, output_index, content_index, delta: piece }
        });
    }

    /// The piece without the white space that reasoning must not begin with, in one piece or in many; nothing when that is all.
    fn begin_thought(&self, piece: String) -> Option<String> {
        if matches!(self.round.open, Open::Reasoning(_)) {
            return Some(piece);
        }
        let text = piece.trim_start();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Writes a summary that the backend made itself.
    pub(super) fn summarise(&mut self, part: usize, text: String) {
        self.write_summary(Some(part), text);
    }

    fn write_summary(&mut self, part: Option<usize>, piece: String) {
        let Some(piece) = self.begin_thought(piece) else { return };
        self.open_reasoning();
        let goes_on = matches!(&self.round.open, Open::Reasoning(open)
            if matches!(&open.part, OpenPart::Summary(number, _) if part.is_none_or(|part| part == *number)));
        if !goes_on {
            self.end_reasoning_part();
            let Open::Reasoning(open) = &mut self.round.open else { return };
            open.part = OpenPart::Summary(part.unwrap_or(0), String::new());
            let event = Event::SummaryPartAdded {
                item_id: Arc::clone(&open.id),
                output_index: open.output_index,
                summary_index: open.summary.len(),
                part: Part::SummaryText(ReasoningText::default()),
            };
            self.emit(event);
        }
        let Open::Reasoning(open) = &mut self.round.open else { return };
        let OpenPart::Summary(_, text) = &mut open.part else { return };
        text.push_str(&piece);
        let event = Event::SummaryDelta {
            item_id: Arc::clone(&open.id),
            output_index: open.output_index,
            summary_index: open.summary.len(),
            delta: piece,
        };
        self.emit(event);
    }

    /// Keeps what the backend wants back with its reasoning, even when it shows none.
    pub(super) fn keep_reasoning_data(&mut self, data: Raw) {
        self.open_reasoning();
        if let Open::Reasoning(open) = &mut self.round.open {
            open.data = Some(data);
        }
    }

    fn open_reasoning(&mut self) {
        if matches!(self.round.open, Open::Reasoning(_)) {
            return;
        }
        self.close_open(ItemStatus::Completed);
        let (output_index, id) = self.add("rs", |id| {
            Item::Reasoning(Reasoning {
                id,
                status: Some(ItemStatus::InProgress),
                ..Reasoning::default()
            })
        });
        self.round.open = Open::Reasoning(OpenReasoning {
            output_index,
            id,
            content: Vec::new(),
            summary: Vec::new(),
            part: OpenPart::Nothing,
            data: None,
        });
    }

    fn end_reasoning_part(&mut self) {
        let Open::Reasoning(open) = &mut self.round.open else { return };
        let (id, output_index) = (Arc::clone(&open.id), open.output_index);
        let item_id = Arc::clone(&id);
        match std::mem::replace(&mut open.part, OpenPart::Nothing) {
            OpenPart::Nothing => (),
            OpenPart::Content(text) => {
                let content_index = open.content.len();
                let part = Part::ReasoningText(ReasoningText { text: text.clone() });
                open.content.push(part.clone());
                self.emit(if self.rules.open_responses {
                    Event::OpenReasoningDone { item_id, output_index, content_index, text }
                } else {
                    Event::ReasoningDone { item_id, output_index, content_index, text }
                });
                self.emit(Event::PartDone { item_id: id, output_index, content_index, part });
            }
            OpenPart::Summary(_, text) => {
                let summary_index = open.summary.len();
                let part = Part::SummaryText(ReasoningText { text: text.clone() });
                open.summary.push(part.clone());
                self.emit(Event::SummaryDone { item_id, output_index, summary_index, text });
                self.emit(Event::SummaryPartDone {
                    item_id: id,
                    output_index,
                    summary_index,
                    part,
                });
            }
        }
    }

    pub(super) fn close_reasoning(&mut self, open: OpenReasoning, status: ItemStatus) {
        self.round.open = Open::Reasoning(open);
        self.end_reasoning_part();
        let Open::Reasoning(open) = std::mem::replace(&mut self.round.open, Open::Nothing) else {
            return;
        };
        let OpenReasoning { output_index, id, content, summary, data, .. } = open;
        let encrypted_content = self.rules.seal.as_ref().map(|seal| {
            let parts = if content.is_empty() { &summary } else { &content };
            let text = parts.iter().filter_map(Part::text).collect::<Vec<_>>().join("\n\n");
            seal(Raw::of(&SealedReasoning { text, data: data.clone() }).json())
        });
        let item = Reasoning {
            id: id.to_string(),
            status: Some(status),
            summary,
            content,
            encrypted_content,
            data,
            ..Reasoning::default()
        };
        self.done(output_index, Item::Reasoning(item));
    }
}
