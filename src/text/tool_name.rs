//! Names of tools, as backends take them: at most 64 of `[a-zA-Z0-9_-]`, each once.

use std::collections::{HashMap, HashSet};

/// What backends allow.
const MAX_LENGTH: usize = 64;

/// A tool's name for a model. A longer one keeps its beginning and gets a digest; one that is empty is `tool`.
pub fn tool_name(namespace: Option<&str>, name: &str) -> String {
    let mut whole = String::new();
    if let Some(namespace) = namespace {
        whole.push_str(namespace);
        if !namespace.ends_with("__") {
            whole.push_str("__");
        }
    }
    whole.push_str(name);
    let clean: String = whole
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' })
        .collect();
    match clean.len() {
        0 => "tool".to_owned(),
        1..=MAX_LENGTH => clean,
        _ => format!("{}_{:08x}", &clean[..MAX_LENGTH - 9], digest(&whole)),
    }
}

/// A tool that is to be named.
#[derive(Clone, Copy, Debug)]
pub struct Unnamed<'a> {
    /// The label of the MCP server that it belongs to.
    pub server: Option<&'a str>,
    /// The namespace tool of the client that it belongs to.
    pub namespace: Option<&'a str>,
    /// Its name where it comes from.
    pub name: &'a str,
}

/// Names for the tools of one Response, in their order, each once.
///
/// A name that several tools would have goes to none of those that belong to a server: they become `mcp_<server>_<tool>`. The others keep
/// theirs, the first one as it is and the next with a number. The same tools get the same names, whatever their order, as far as that goes.
pub fn tool_names(tools: &[Unnamed<'_>]) -> Vec<String> {
    let plain: Vec<String> =
        tools.iter().map(|tool| tool_name(tool.namespace, tool.name)).collect();
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    for name in &plain {
        *wanted.entry(name).or_default() += 1;
    }
    let clashes = |name: &str| wanted.get(name).is_some_and(|tools| *tools > 1);
    let mut names = vec![String::new(); tools.len()];
    let mut taken = Taken::default();
    // First those whose name is settled, then those that must make room.
    let moves = |at: usize| tools[at].server.is_some() && clashes(&plain[at]);
    for at in (0..tools.len()).filter(|at| !moves(*at)) {
        names[at] = taken.take(plain[at].clone());
    }
    for at in (0..tools.len()).filter(|at| moves(*at)) {
        let server = tools[at].server.unwrap_or_default();
        names[at] = taken.take(tool_name(None, &format!("mcp_{server}_{}", tools[at].name)));
    }
    names
}

/// The names that are given.
#[derive(Default)]
struct Taken {
    names: HashSet<String>,
    /// The number that is tried next, by stem.
    next: HashMap<String, usize>,
}

impl Taken {
    /// The name, or the name with a number where another tool has it already.
    fn take(&mut self, name: String) -> String {
        if self.names.insert(name.clone()) {
            return name;
        }
        let stem = &name[..name.len().min(MAX_LENGTH - 8)];
        let next = self.next.entry(stem.to_owned()).or_insert(2);
        loop {
            let numbered = format!("{stem}_{next}");
            *next += 1;
            if self.names.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

/// FNV-1a: stable over versions and machines, so that a history keeps its names.
fn digest(text: &str) -> u32 {
    text.bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(tools: &[(Option<&str>, &str)]) -> Vec<String> {
        let tools: Vec<_> = tools
            .iter()
            .map(|(server, name)| Unnamed { server: *server, namespace: None, name })
            .collect();
        tool_names(&tools)
    }

    #[test]
    fn names_are_what_backends_take() {
        for (namespace, name, expected) in [
            (None, "get_weather", "get_weather"),
            (None, "wetter/für.heute", "wetter_f_r_heute"),
            (Some("crm"), "find", "crm__find"),
            (Some("crm__"), "find", "crm__find"),
            (None, "", "tool"),
            (None, &"a".repeat(64), &"a".repeat(64)),
        ] {
            assert_eq!(tool_name(namespace, name), expected);
        }
        let (one, other) = ("a".repeat(65), format!("{}b", "a".repeat(64)));
        assert_eq!(tool_name(None, &one).len(), 64);
        assert_ne!(tool_name(None, &one), tool_name(None, &other));
    }

    #[test]
    fn tools_of_servers_make_room() {
        assert_eq!(
            named(&[(Some("git"), "search"), (None, "search"), (Some("git"), "log")]),
            ["mcp_git_search", "search", "log"]
        );
        assert_eq!(
            named(&[(Some("a"), "search"), (Some("b"), "search")]),
            ["mcp_a_search", "mcp_b_search"]
        );
        // The room is taken already, even by one that comes later.
        assert_eq!(
            named(&[(Some("a"), "x"), (None, "x"), (None, "mcp_a_x"), (None, "x")]),
            ["mcp_a_x_2", "x", "mcp_a_x", "x_2"]
        );
        // Sanitising makes them clash.
        assert_eq!(named(&[(Some("a"), "x.y"), (Some("a"), "x_y")]), ["mcp_a_x_y", "mcp_a_x_y_2"]);
    }

    #[test]
    fn many_of_one_name_are_numbered_in_linear_time() {
        let names = named(&vec![(None, "same"); 20_000]);
        assert_eq!(names.last().map(String::as_str), Some("same_20000"));
    }

    proptest! {
        #[test]
        fn names_are_valid_and_differ(tools in prop::collection::vec(
            (prop::option::of("[ab.]{0,2}|[a]{60,70}"), "[xy.é_2]{0,3}|[x]{56,70}"), 0..12,
        )) {
            let tools: Vec<_> =
                tools.iter().map(|(server, name)| (server.as_deref(), name.as_str())).collect();
            let names = named(&tools);
            for name in &names {
                prop_assert!((1..=64).contains(&name.len()), "{name}");
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)), "{name}");
            }
            let different: HashSet<_> = names.iter().collect();
            prop_assert_eq!(different.len(), names.len());
        }
    }
}
