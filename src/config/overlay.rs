//! The layers of settings as one table that remembers who set what.

use std::path::PathBuf;

use toml::{Table, Value};

use super::{
    Environment,
    error::{Origin, Problem},
};

/// A key as its parts; an index into an array is a part of digits.
pub(super) type Key = Vec<String>;

/// All that was set, later layers over earlier ones.
pub(super) struct Layers {
    pub(super) table: Table,
    file: Option<(PathBuf, Table)>,
    set: Vec<Set>,
}

/// A key that something other than the file has set.
struct Set {
    key: Key,
    origin: Origin,
    /// The text of a variable whose value was read as something other than text.
    text: Option<String>,
}

impl Layers {
    /// Begins with what a file says, or with nothing.
    pub(super) fn new(file: Option<(PathBuf, Table)>) -> Self {
        let table = file.as_ref().map(|(_, table)| table.clone()).unwrap_or_default();
        Self { table, file, set: Vec::new() }
    }

    /// Puts the variables `ANTIPHON_SECTION__KEY` over what is there.
    pub(super) fn variables(&mut self, env: &Environment) -> Result<(), Problem> {
        const PREFIX: &str = "ANTIPHON_";
        let mut variables: Vec<(Key, &str, String)> = env
            .with_prefix(PREFIX)
            .filter(|(name, _)| !is_no_setting(name))
            .map(|(name, text)| {
                (
                    name.to_lowercase().split("__").map(str::to_owned).collect(),
                    text,
                    format!("{PREFIX}{name}"),
                )
            })
            .collect();
        // A whole array before its entries, and entry 2 before entry 10.
        variables.sort_by_key(|(key, ..)| {
            key.iter().map(|part| (part.parse::<usize>().ok(), part.clone())).collect::<Vec<_>>()
        });
        for (key, text, name) in variables {
            // What is no TOML value is text: nobody should have to quote a path or an address.
            let value = text.parse::<Value>().unwrap_or_else(|_| Value::String(text.to_owned()));
            let as_text = (!value.is_str()).then(|| text.to_owned());
            self.put(key, value, Origin::Variable(name), as_text)?;
        }
        Ok(())
    }

    /// Sets a key, over what was there.
    pub(super) fn put(
        &mut self,
        key: Key,
        value: Value,
        origin: Origin,
        text: Option<String>,
    ) -> Result<(), Problem> {
        match place(&mut self.table, &key, value) {
            Ok(()) => {
                self.set.push(Set { key, origin, text });
                Ok(())
            }
            Err(message) => Err(Problem { key: shown(&key), origin, message, known: Vec::new() }),
        }
    }

    /// Sets a key that is absent or empty.
    pub(super) fn fill(
        &mut self,
        key: &[&str],
        value: Value,
        variable: &str,
    ) -> Result<(), Problem> {
        let key: Key = key.iter().map(|part| (*part).to_owned()).collect();
        let empty = match find(&self.table, &key) {
            None => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(entries)) => entries.is_empty(),
            Some(_) => false,
        };
        if empty {
            self.put(key, value, Origin::Variable(variable.to_owned()), None)
        } else {
            Ok(())
        }
    }

    /// Takes a variable's value as text after all: a model may be called `1e3` or `true`. False when there is nothing to change.
    pub(super) fn take_as_text(&mut self, key: &[String]) -> bool {
        let Some(set) = self.set.iter_mut().rfind(|set| set.key == key) else { return false };
        let Some(text) = set.text.take() else { return false };
        place(&mut self.table, key, Value::String(text)).is_ok()
    }

    /// Who set this key, what it stands in or, where the file has no part in it, something in it.
    pub(super) fn origin(&self, key: &[String]) -> Origin {
        let from_file = self.file.as_ref().filter(|(_, table)| find(table, key).is_some());
        let around = self.set.iter().rfind(|set| key.starts_with(&set.key));
        let inside =
            || self.set.iter().rfind(|set| set.key.starts_with(key) && from_file.is_none());
        match (around.or_else(inside), &self.file) {
            (Some(set), _) => set.origin.clone(),
            (None, Some((path, _))) => Origin::File(path.clone()),
            (None, None) => Origin::Default,
        }
    }

    /// The table, the file, and what was set by something other than the file: (key, origin).
    pub(super) fn into_parts(self) -> (Table, Option<PathBuf>, Vec<(String, Origin)>) {
        let set = self.set.into_iter().map(|set| (shown(&set.key), set.origin)).collect();
        (self.table, self.file.map(|(path, _)| path), set)
    }
}

/// Variables with our prefix that set no key: those with a meaning of their own, and those that Kubernetes makes for a service called `antiphon`.
fn is_no_setting(name: &str) -> bool {
    matches!(name, "SEAL_KEYS" | "BOOTSTRAP_KEY" | "CASES" | "VECTORS")
        || name.starts_with("SERVICE_")
        || name == "PORT"
        || name.starts_with("PORT_")
}

/// The value of a key.
fn find<'a>(table: &'a Table, key: &[String]) -> Option<&'a Value> {
    let (first, rest) = key.split_first()?;
    rest.iter().try_fold(table.get(first)?, |value, part| match (value, index(part)) {
        (Value::Array(entries), Some(at)) => entries.get(at),
        _ => value.get(part),
    })
}

/// Writes a value into the table, making tables and entries on the way.
fn place(table: &mut Table, key: &[String], value: Value) -> Result<(), String> {
    let Some((first, rest)) = key.split_first() else { return Ok(()) };
    let Some(next) = rest.first() else {
        table.insert(first.clone(), value);
        return Ok(());
    };
    let fresh =
        if index(next).is_some() { Value::Array(Vec::new()) } else { Value::Table(Table::new()) };
    match table.entry(first.clone()).or_insert(fresh) {
        Value::Table(inner) => place(inner, rest, value),
        Value::Array(entries) => place_in_array(entries, first, rest, value),
        _ => Err(format!("`{first}` is a single value, so nothing can be set inside of it")),
    }
}

fn place_in_array(
    entries: &mut Vec<Value>,
    name: &str,
    key: &[String],
    value: Value,
) -> Result<(), String> {
    let Some((first, rest)) = key.split_first() else { return Ok(()) };
    let Some(at) = index(first) else {
        return Err(format!(
            "`{name}` is a list, so its entries are set by number: {}__0__…",
            name.to_uppercase()
        ));
    };
    if at > entries.len() {
        return Err(format!(
            "`{name}` has {} entries, so the next number is {}",
            entries.len(),
            entries.len()
        ));
    }
    if rest.is_empty() {
        if at == entries.len() {
            entries.push(value);
        } else {
            entries[at] = value;
        }
        return Ok(());
    }
    if at == entries.len() {
        entries.push(Value::Table(Table::new()));
    }
    match &mut entries[at] {
        Value::Table(inner) => place(inner, rest, value),
        _ => Err(format!(
            "entry {at} of `{name}` is a single value, so nothing can be set inside of it"
        )),
    }
}

fn index(part: &str) -> Option<usize> {
    part.parse().ok()
}

/// The key as people write it: `upstreams[0].base_url`.
pub(super) fn shown(key: &[String]) -> String {
    let mut out = String::new();
    for part in key {
        if index(part).is_some() {
            out.extend(["[", part, "]"]);
        } else {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(part);
        }
    }
    out
}
