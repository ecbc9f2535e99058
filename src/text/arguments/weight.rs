//! How much work a schema can make of an argument. References let a small schema ask for a huge one.

use std::collections::HashMap;

use serde_json::Value;

use crate::text::schema::local_target;

/// The most that a schema may hold, with what its references point at in their place.
const MAX_NODES: u64 = 100_000;

/// How far references and levels may lead.
const MAX_DEPTH: u32 = 500;

/// What is known of a schema's references.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Weight {
    /// How many references point at what they are inside of.
    loops: u64,
}

impl Weight {
    /// Weighs a schema; `None` when it is too large or leads too deep to be checked against.
    pub(super) fn of(root: &Value) -> Option<Self> {
        let mut scale = Scale { root, known: HashMap::new(), loops: 0 };
        let nodes = scale.nodes(root, 0)?;
        (nodes <= MAX_NODES).then_some(Self { loops: scale.loops })
    }

    /// Whether every fault of a value can be looked for in good time: where a schema is inside of itself in several ways, each level of
    /// the value may multiply the work.
    pub(super) fn bears(self, value: &Value) -> bool {
        self.loops.checked_pow(levels(value)).is_some_and(|ways| ways <= MAX_NODES)
    }
}

struct Scale<'s> {
    root: &'s Value,
    /// The size of what a reference points at; `None` while we are inside of it.
    known: HashMap<&'s str, Option<u64>>,
    loops: u64,
}

impl<'s> Scale<'s> {
    fn nodes(&mut self, value: &'s Value, depth: u32) -> Option<u64> {
        if depth == MAX_DEPTH {
            return None;
        }
        let mut nodes = 1_u64;
        match value {
            Value::Array(items) => {
                for item in items {
                    nodes = nodes.saturating_add(self.nodes(item, depth + 1)?);
                }
            }
            Value::Object(fields) => {
                for field in fields.values() {
                    nodes = nodes.saturating_add(self.nodes(field, depth + 1)?);
                }
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    nodes = nodes.saturating_add(self.target(reference, depth + 1)?);
                }
            }
            _ => (),
        }
        Some(nodes)
    }

    fn target(&mut self, reference: &'s str, depth: u32) -> Option<u64> {
        match self.known.get(reference) {
            Some(Some(nodes)) => Some(*nodes),
            Some(None) => {
                self.loops += 1;
                Some(1)
            }
            None => {
                let Some(target) = local_target(self.root, reference) else { return Some(0) };
                self.known.insert(reference, None);
                let nodes = self.nodes(target, depth)?;
                self.known.insert(reference, Some(nodes));
                Some(nodes)
            }
        }
    }
}

/// How deep the value is nested.
fn levels(value: &Value) -> u32 {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(levels).max().unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_references_bring_in_is_counted() {
        let tree = json!({"properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}});
        // The first one goes into the schema once more, and meets two that point at where it is.
        assert_eq!(Weight::of(&tree), Some(Weight { loops: 2 }));
        let nested = |levels| (0..levels).fold(json!(1), |value, _| json!({ "l": value }));
        let tree = Weight::of(&tree).unwrap();
        assert!(tree.bears(&nested(16)));
        assert!(!tree.bears(&nested(17)));
        let flat =
            Weight::of(&json!({"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {}}}));
        assert!(flat.unwrap().bears(&nested(100)));
    }

    #[test]
    fn too_much_is_too_much() {
        let defs = |next: fn(Value) -> Value, count: usize| {
            let defs: serde_json::Map<_, _> = (0..count)
                .map(|n| (format!("d{n}"), next(json!({"$ref": format!("#/$defs/d{}", n + 1)}))))
                .collect();
            json!({"$ref": "#/$defs/d0", "$defs": defs})
        };
        assert!(Weight::of(&defs(|next| json!({"anyOf": [next, next]}), 8)).is_some());
        assert!(Weight::of(&defs(|next| json!({"anyOf": [next, next]}), 60)).is_none());
        assert!(Weight::of(&defs(|next| next, 100)).is_some());
        assert!(Weight::of(&defs(|next| next, 10_000)).is_none());
    }
}
