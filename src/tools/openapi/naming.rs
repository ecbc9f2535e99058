//! Names of operations as models may be told them.

use std::collections::{HashMap, HashSet};

/// The longest name of a tool, in characters.
pub const MAX_NAME: usize = 64;

/// The name with `_` for whatever may not be in a tool's name, cut to [`MAX_NAME`].
pub fn sanitise(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    name.chars().map(fits).take(MAX_NAME).collect()
}

/// The name of an operation that has no id: `get_pets_id` for `GET /pets/{id}`.
pub(super) fn from_path(method: &str, path: &str) -> String {
    let words = path.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    words
        .filter(|word| !word.is_empty())
        .fold(method.to_lowercase(), |name, word| name + "_" + word)
}

/// Gives each name once. A name that is taken gets a number.
#[derive(Debug, Default)]
pub(super) struct Names {
    given: HashSet<String>,
    /// The next number to try, by name: so many alike cost no more than as many apart.
    next: HashMap<String, usize>,
}

impl Names {
    pub(super) fn unique(&mut self, wished: &str) -> String {
        let base = match sanitise(wished) {
            empty if empty.is_empty() => "operation".to_owned(),
            name => name,
        };
        let number = self.next.entry(base.clone()).or_insert(2);
        let mut name = base.clone();
        while !self.given.insert(name.clone()) {
            let suffix = format!("_{number}");
            name = base[..base.len().min(MAX_NAME - suffix.len())].to_owned() + &suffix;
            *number += 1;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn operations_without_an_id_are_named_by_their_path() {
        for (method, path, name) in [
            ("get", "/pets/{petId}", "get_pets_petId"),
            ("POST", "/", "post"),
            ("put", "/a.b/{c}:run/", "put_a_b_c_run"),
        ] {
            assert_eq!(from_path(method, path), name);
        }
    }

    #[test]
    fn names_are_unique_and_short() {
        let mut names = Names::default();
        let long = "x".repeat(70);
        let given = ["a.b", "a_b", "a b", "", &long, &long].map(|name| names.unique(name));
        let (x64, x62) = ("x".repeat(64), "x".repeat(62) + "_2");
        assert_eq!(given, ["a_b", "a_b_2", "a_b_3", "operation", &x64, &x62]);
    }
}
