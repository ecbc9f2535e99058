//! `reasoning_details`: thoughts in pieces that OpenRouter wants back whole, with their signatures.

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::{protocol::Raw, text::repair::repair_json, turn::Delta};

/// The details of one message.
#[derive(Debug, Default)]
pub(super) struct Details {
    entries: Vec<Map<String, Value>>,
    /// There is more than was told.
    fresh: bool,
}

impl Details {
    /// The details of a chunk; gives the text in them.
    pub(super) fn push(&mut self, raw: &RawValue) -> String {
        let repaired = repair_json(raw.get().as_bytes());
        let mut deserializer = serde_json::Deserializer::from_slice(&repaired);
        let entries = Option::<Vec<Map<String, Value>>>::deserialize(&mut deserializer)
            .ok()
            .flatten()
            .unwrap_or_default();
        let mut text = String::new();
        for entry in entries {
            for field in ["text", "summary"] {
                text.push_str(entry.get(field).and_then(Value::as_str).unwrap_or_default());
            }
            self.fresh = true;
            self.add(entry);
        }
        text
    }

    /// Tells them once something else begins, and again when more has come; only who wants something back needs them back.
    pub(super) fn tell(&mut self, out: &mut Vec<Delta>) {
        let sealed = |entry: &Map<String, Value>| {
            ["signature", "data"]
                .iter()
                .any(|field| entry.get(*field).is_some_and(Value::is_string))
        };
        if std::mem::take(&mut self.fresh) && self.entries.iter().any(sealed) {
            out.push(Delta::ReasoningData(Raw::of(&self.entries)));
        }
    }

    /// A piece goes on with the entry of its type and number, else it is a new one.
    fn add(&mut self, piece: Map<String, Value>) {
        let same = |entry: &&mut Map<String, Value>| {
            entry.get("type") == piece.get("type") && entry.get("index") == piece.get("index")
        };
        let Some(entry) = self.entries.last_mut().filter(same) else {
            self.entries.push(piece);
            return;
        };
        for (field, value) in piece {
            match (entry.get_mut(&field), value) {
                (Some(Value::String(so_far)), Value::String(more))
                    if matches!(field.as_str(), "text" | "summary" | "data") =>
                {
                    so_far.push_str(&more);
                }
                (_, Value::Null) => (),
                (_, value) => _ = entry.insert(field, value),
            }
        }
    }
}
