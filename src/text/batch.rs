//! Calls of one Round that go out together: searches and pages that a model asks for in several calls at once.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::arguments::Arguments;

/// A call, as far as it matters here. Its arguments are mended and checked.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// The argument that holds the list of what is asked for (`queries`, `urls`), for a tool that may be asked for all of it at once.
    pub list: Option<&'a str>,
    /// What the model wrote.
    pub arguments: &'a Arguments,
}

/// Calls that are run as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The arguments of the one run: those of the calls, with everything that any of them asks for, each once, in order.
    pub arguments: Arguments,
    /// What is asked for; empty for a call that goes alone.
    pub values: Vec<String>,
    /// The calls, in their order. One at least.
    pub members: Vec<Member>,
}

/// A call of a batch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Member {
    /// Its place among the calls of the Round.
    pub call: usize,
    /// What it asks for itself, as places in [`Batch::values`], in its own order.
    pub values: Vec<usize>,
}

impl Batch {
    /// What a call of it asks for itself.
    pub fn values_of<'b>(&'b self, member: &'b Member) -> impl Iterator<Item = &'b str> {
        member.values.iter().filter_map(|at| self.values.get(*at)).map(String::as_str)
    }
}

/// The calls of a Round as batches, in the order of their first calls.
///
/// Calls go together that are of the same tool and agree in all arguments but the list. One whose list holds anything but texts goes
/// alone, as it is: nothing of it is left out.
pub fn batches(calls: &[Asked<'_>]) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    // Per batch: where each of its values stands.
    let mut places: Vec<HashMap<String, usize>> = Vec::new();
    let mut joinable: HashMap<(&str, String), usize> = HashMap::new();
    for (call, asked) in calls.iter().enumerate() {
        let Some((list, values)) =
            asked.list.and_then(|list| Some((list, texts(asked.arguments.get(list))?)))
        else {
            let alone = Member { call, values: Vec::new() };
            let arguments = asked.arguments.clone();
            batches.push(Batch { arguments, values: Vec::new(), members: vec![alone] });
            places.push(HashMap::new());
            continue;
        };
        let key = (asked.tool, options(asked.arguments, list));
        let at = *joinable.entry(key).or_insert_with(|| {
            let (arguments, members) = (asked.arguments.clone(), Vec::new());
            batches.push(Batch { arguments, values: Vec::new(), members });
            places.push(HashMap::new());
            batches.len() - 1
        });
        let (batch, places) = (&mut batches[at], &mut places[at]);
        let place = |value: &str| {
            *places.entry(value.to_owned()).or_insert_with(|| {
                batch.values.push(value.to_owned());
                batch.values.len() - 1
            })
        };
        let values = values.into_iter().map(place).collect();
        batch.members.push(Member { call, values });
    }
    for batch in &mut batches {
        let list = batch.members.first().and_then(|first| calls[first.call].list);
        // A call that goes alone keeps its list as it is.
        if let Some(list) = list
            && texts(batch.arguments.get(list)).is_some()
        {
            batch.arguments.insert(list.to_owned(), batch.values.clone().into());
        }
    }
    batches
}

/// What a list asks for: texts, a lone one counting as a list. `None` when there is anything else in it.
fn texts(list: Option<&Value>) -> Option<Vec<&str>> {
    let texts: Vec<&str> = match list {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(lone)) => vec![lone],
        Some(Value::Array(items)) => items.iter().map(Value::as_str).collect::<Option<_>>()?,
        Some(_) => return None,
    };
    Some(texts.into_iter().filter(|text| !text.is_empty()).collect())
}

/// All arguments but the list, the same text for the same arguments.
fn options(arguments: &Arguments, list: &str) -> String {
    let others: BTreeMap<&String, &Value> =
        arguments.iter().filter(|(name, _)| *name != list).collect();
    serde_json::to_string(&others).unwrap_or_default()
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
