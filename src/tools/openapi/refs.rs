//! The document, and what the references in it lead to.

use std::cell::Cell;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::fault::SchemaFault;

/// How many references may lead to one another.
const MAX_HOPS: usize = 16;

/// The document, and how much may still be copied out of it.
#[derive(Debug)]
pub(super) struct Source<'a> {
    document: &'a Value,
    /// In bytes of its text, or what comes close to it.
    room: Cell<usize>,
}

impl<'a> Source<'a> {
    /// A document out of which `room` bytes may be copied in all.
    pub(super) fn new(document: &'a Value, room: usize) -> Self {
        Self { document, room: Cell::new(room) }
    }

    /// The object that stands here, behind however many references.
    pub(super) fn object(&self, value: &'a Value) -> Result<&'a Map<String, Value>, SchemaFault> {
        let mut value = value;
        for _ in 0..=MAX_HOPS {
            let object = value
                .as_object()
                .ok_or_else(|| SchemaFault::here("An object is expected here."))?;
            match object.get("$ref") {
                Some(Value::String(reference)) => value = self.target(reference)?,
                _ => return Ok(object),
            }
        }
        Err(SchemaFault::at(
            "$ref",
            "The references here lead to one another and never to an object.",
        ))
    }

    /// A copy of something in the document.
    pub(super) fn copied(&self, data: &Value) -> Result<Value, SchemaFault> {
        self.take(weight(data))?;
        Ok(data.clone())
    }

    /// What a reference leads to.
    pub(super) fn target(&self, reference: &str) -> Result<&'a Value, SchemaFault> {
        let fault = |sentence: &str| {
            SchemaFault::at("$ref", format!("`{}` {sentence}", shortened(reference)))
        };
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(fault(
                "leads to another document. Bundle the schema into one document first.",
            ));
        };
        percent_decode_str(fragment)
            .decode_utf8()
            .ok()
            .and_then(|pointer| self.document.pointer(&pointer))
            .ok_or_else(|| fault("leads to nothing in this document."))
    }

    /// Counts what is about to be copied.
    pub(super) fn take(&self, bytes: usize) -> Result<(), SchemaFault> {
        let left = self.room.get().checked_sub(bytes).ok_or_else(|| {
            SchemaFault::here(
                "The schemas get too large once their references are in place. \
                 Name the operations that are needed in `allowed_operations`.",
            )
        })?;
        self.room.set(left);
        Ok(())
    }
}

/// About as many bytes as its text has.
pub(super) fn weight(data: &Value) -> usize {
    match data {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 8,
        Value::Array(entries) => entries.iter().map(weight).sum::<usize>() + 8,
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + weight(value)).sum::<usize>() + 8
        }
    }
}

/// A text of the document for a sentence.
pub(super) fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(100)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_followed_to_an_object() {
        let document = json!({"a": {"$ref": "#/b~1c"}, "b/c": {"x": 1}, "loop": {"$ref": "#/loop"}, "list": []});
        let source = Source::new(&document, 0);
        assert_eq!(source.object(&document["a"]).unwrap()["x"], 1);
        let fault = source.object(&document["loop"]).unwrap_err();
        assert_eq!(fault.path, "$ref");
        assert!(fault.sentence.starts_with("The references here lead to one another"), "{fault}");
        assert_eq!(
            source.object(&document["list"]).unwrap_err().sentence,
            "An object is expected here."
        );
    }
}
