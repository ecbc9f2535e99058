//! Which module may import which. The compiler cannot say it within one crate, so a test does.

use std::{fs, path::Path};

/// A module, and the modules it may import: the table of the house. Every shell may also import [`SHARED`].
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("clock", &[]),
    ("config", &[]),
    ("tasks", &[]),
    ("telemetry", &[]),
    ("text", &["protocol"]),
    ("rank", &["protocol"]),
    ("turn", &["protocol", "text", "rank"]),
    ("seal", &["protocol"]),
    ("net", &["protocol"]),
    ("store", &["protocol", "seal"]),
    ("auth", &["protocol", "store", "net"]),
    ("model", &["protocol", "text", "turn", "net"]),
    ("tools", &["protocol", "text", "model", "store", "seal", "net"]),
    ("engine", &["protocol", "text", "turn", "model", "tools", "store", "seal", "net"]),
    ("http", &["protocol", "auth", "store", "engine", "tools", "model"]),
];

/// What every shell may import.
const SHARED: &[&str] = &["config", "clock", "tasks", "telemetry"];

/// Modules that do no I/O, and the words that would give it away.
const PURE: &[&str] = &["protocol", "text", "rank", "turn"];
const IMPURE: &[&str] = &[
    "async fn",
    ".await",
    "tokio::",
    "sqlx::",
    "reqwest::",
    "SystemTime",
    "Instant::now",
    "rand::",
];

/// Longest file, tests excluded.
const MAX_LINES: usize = 500;

#[test]
fn modules_import_only_what_they_may() {
    for (module, allowed) in MAY_IMPORT {
        for (file, source) in module_sources(module) {
            for imported in crate_imports(&source) {
                let shared = !PURE.contains(module) && SHARED.contains(&imported.as_str());
                assert!(
                    imported == *module || allowed.contains(&imported.as_str()) || shared,
                    "{file} imports `{imported}`; `{module}` may import only {allowed:?}",
                );
            }
        }
    }
}

#[test]
fn pure_modules_are_pure() {
    for module in PURE {
        for (file, source) in module_sources(module) {
            for word in IMPURE {
                assert!(!source.contains(word), "{file} contains `{word}`");
            }
        }
    }
}

#[test]
fn no_file_is_too_long() {
    for (file, source) in sources(Path::new("src")) {
        let lines = source.lines().count();
        assert!(lines <= MAX_LINES, "{file} has {lines} lines");
    }
}

/// Every top-level module named after `crate::`, also inside a nested `use crate::{…}`.
fn crate_imports(source: &str) -> Vec<String> {
    let code: String = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => found.push(ident(rest)),
            Some(group) => {
                let mut depth = 0;
                let mut start = true;
                for (i, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        c if start && !c.is_whitespace() => {
                            found.push(ident(&group[i..]));
                            start = false;
                        }
                        _ => (),
                    }
                }
            }
        }
    }
    found
}

fn ident(s: &str) -> String {
    s.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The files of a module, be it a folder or one file.
fn module_sources(module: &str) -> Vec<(String, String)> {
    let file = format!("src/{module}.rs");
    match fs::read_to_string(&file) {
        Ok(source) => vec![(file, source)],
        Err(_) if Path::new("src").join(module).is_dir() => sources(&Path::new("src").join(module)),
        Err(_) => Vec::new(),
    }
}

fn sources(dir: &Path) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs")
            && !path.to_string_lossy().ends_with("_tests.rs")
        {
            out.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
    out
}
