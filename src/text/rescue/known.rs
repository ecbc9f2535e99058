//! The tools that may be called, and what their names look like when markers of a chat template stick to them.

use std::{collections::HashMap, sync::OnceLock};

use crate::protocol::Raw;

use super::{Made, Strangers, coerce::Schema};

/// A tool that the model was offered.
#[derive(Clone, Debug)]
pub struct KnownTool {
    /// Its name for the model.
    pub name: String,
    /// JSON schema of its arguments.
    pub parameters: Raw,
}

/// The tools that the model was offered.
#[derive(Debug, Default)]
pub struct Tools {
    tools: Vec<(KnownTool, OnceLock<Schema>)>,
    by_name: HashMap<String, usize>,
}

impl Tools {
    /// These tools. Of two with one name the first counts.
    pub fn new(tools: impl IntoIterator<Item = KnownTool>) -> Self {
        let mut known = Self::default();
        for tool in tools {
            known.by_name.entry(tool.name.clone()).or_insert(known.tools.len());
            known.tools.push((tool, OnceLock::new()));
        }
        known
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Whether a tool has this name.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The name of the tool that is meant by this one.
    pub(in crate::text) fn meant<'a>(&self, written: &'a str) -> Option<&'a str> {
        let name = clean_name(written, |name| self.has(name));
        self.has(name).then_some(name)
    }

    /// Whether a tool has a property of this name.
    pub(in crate::text) fn knows_property(&self, name: &str) -> bool {
        self.schemas().any(|(_, schema)| schema.knows(name))
    }

    pub(super) fn schema(&self, name: &str) -> Option<&Schema> {
        let (tool, schema) = self.tools.get(*self.by_name.get(name)?)?;
        Some(schema.get_or_init(|| Schema::read(&tool.parameters)))
    }

    /// The names and schemas, in the order they were offered.
    pub(super) fn schemas(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.tools.iter().map(|(tool, schema)| {
            (tool.name.as_str(), schema.get_or_init(|| Schema::read(&tool.parameters)))
        })
    }

    /// A call of the tool that is meant, with JSON text of an object as its arguments.
    pub(super) fn call(
        &self,
        written: &str,
        arguments: &str,
        strangers: Strangers,
    ) -> Option<Made> {
        if let Some(name) = self.meant(written) {
            let arguments = self
                .schema(name)
                .map_or_else(|| arguments.to_owned(), |schema| schema.coerce_object(arguments));
            return Some(Made { name: name.to_owned(), arguments });
        }
        let name = bare_name(written);
        (strangers == Strangers::Keep && is_name(name)).then(|| Made {
            name: name.to_owned(),
            arguments: Schema::default().coerce_object(arguments),
        })
    }
}

/// The name of a tool without the markers of a chat template around it: `functions.x`, `x<|channel|>json`,
/// `<|channel|>commentary to=functions.x`, `functions.x:0`. One that is known is left alone, and so is one that is neither known nor marked.
pub fn clean_name(written: &str, is_known: impl Fn(&str) -> bool) -> &str {
    if is_known(written) {
        return written;
    }
    let bare = bare_name(written);
    if is_known(bare) || written.contains("<|") && !bare.is_empty() { bare } else { written }
}

/// What is left when everything that may be a marker is taken away.
pub(super) fn bare_name(written: &str) -> &str {
    let recipient = written.rfind("to=").map_or(written, |at| &written[at + "to=".len()..]);
    let bare = recipient.split("<|").map(after_marker).find(|part| !part.is_empty()).unwrap_or("");
    let word = bare.split_whitespace().next().unwrap_or("");
    let name = word
        .strip_prefix("functions")
        .and_then(|rest| rest.strip_prefix("::").or_else(|| rest.strip_prefix(['.', '/'])))
        .unwrap_or(word);
    match name.rsplit_once(':') {
        Some((name, number))
            if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            name
        }
        _ => name,
    }
}

/// What follows the end of a marker whose beginning was split off, or all of it where there is none.
fn after_marker(part: &str) -> &str {
    part.split_once("|>").map_or(part, |(_, rest)| rest).trim()
}

/// Whether a model would call a tool this.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    (1..=128).contains(&name.len()) && name.chars().all(fits)
}
