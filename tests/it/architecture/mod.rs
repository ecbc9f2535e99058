//! Which module may import which, and other rules of the house that the compiler cannot say within one crate.

mod imports;

use std::{fs, path::Path};

use self::imports::{code_of, imports};

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
    ("documents", &["protocol"]),
    ("model", &["protocol", "text", "turn", "net"]),
    ("index", &["protocol", "rank", "store"]),
    ("ingest", &["protocol", "text", "documents", "model", "index", "store", "net"]),
    ("search", &["protocol", "text", "rank", "model", "index", "store", "net"]),
    ("web", &["protocol", "text", "documents", "net"]),
    ("mcp", &["protocol", "store", "seal", "net"]),
    ("sandbox", &["protocol", "store", "seal", "net"]),
    (
        "tools",
        &[
            "protocol",
            "text",
            "turn",
            "documents",
            "search",
            "web",
            "mcp",
            "sandbox",
            "model",
            "store",
            "seal",
            "net",
        ],
    ),
    (
        "engine",
        &["protocol", "text", "turn", "documents", "model", "tools", "store", "seal", "net"],
    ),
    ("agents", &["protocol", "text", "tools", "engine"]),
    ("jobs", &["protocol", "store", "engine", "ingest", "index", "model", "seal", "net"]),
    (
        "http",
        &[
            "protocol", "text", "auth", "store", "engine", "jobs", "ingest", "search", "tools",
            "model",
        ],
    ),
];

/// The modules that put everything together: they may import all, and nobody imports them. Nor `http`.
const TOP: &[&str] = &["app", "cli", "lib", "main"];

/// What the other rows of the table may import besides: they are shells, and these four are powers that shells are given.
const SHARED: &[&str] = &["config", "clock", "tasks", "telemetry"];

/// Modules that do no I/O, and the words that would give it away.
const PURE: &[&str] = &["protocol", "text", "rank", "turn"];
const IMPURE: &[&str] = &[
    "async fn",
    "async move",
    ".await",
    "tokio::",
    "sqlx::",
    "reqwest::",
    "std::fs",
    "SystemTime",
    "Instant::now",
    "rand::",
];

/// Names that say nothing, and so gather everything.
const NAMELESS: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc"];

/// The one place where `unsafe` is expected, and how often at most.
const UNSAFE_FILE: &str = "src/store/embedded";

/// Longest file, tests excluded.
const MAX_LINES: usize = 500;

/// What breaks a rule, in words; empty when all is well.
type Faults = Vec<String>;

#[test]
fn every_module_has_a_row() {
    let faults: Faults = top_modules(&files("src"))
        .into_iter()
        .filter(|module| !TOP.contains(&module.as_str()) && row(module).is_none() && module != "ui")
        .map(|module| format!("`{module}` is not in the table"))
        .collect();
    assert_eq!(faults, Faults::new());
}

#[test]
fn modules_import_only_what_they_may() {
    let files = sources();
    assert!(files.len() > 5, "the sources were found");
    let modules = top_modules(&files);
    let faults: Faults =
        files.iter().flat_map(|(path, source)| import_faults(path, source, &modules)).collect();
    assert_eq!(faults, Faults::new());
}

#[test]
fn pure_modules_are_pure() {
    let faults: Faults =
        sources().iter().flat_map(|(path, source)| purity_faults(path, source)).collect();
    assert_eq!(faults, Faults::new());
}

#[test]
fn files_are_short() {
    let faults: Faults =
        sources().iter().flat_map(|(path, source)| length_faults(path, source)).collect();
    assert_eq!(faults, Faults::new());
}

#[test]
fn files_have_names() {
    let all = ["src", "tests"].into_iter().flat_map(files);
    let faults: Faults = all.flat_map(|(path, _)| name_faults(&path)).collect();
    assert_eq!(faults, Faults::new());
}

#[test]
fn unsafe_stands_in_one_place() {
    assert_eq!(unsafe_faults(&files("src")), Faults::new());
}

fn import_faults(path: &str, source: &str, modules: &[String]) -> Faults {
    let within = module_path(path);
    let Some(module) = within.first().filter(|module| !TOP.contains(&module.as_str())) else {
        // The top may import everything.
        return Faults::new();
    };
    let allowed = row(module).unwrap_or_default();
    let shell = !PURE.contains(&module.as_str()) && !SHARED.contains(&module.as_str());
    imports(&within, source)
        .into_iter()
        .filter(|import| import != module)
        // A name at the root that is no module of ours is a re-export: nobody imports the root.
        .filter(|import| {
            let known = modules.contains(import) && !TOP.contains(&import.as_str());
            let shared = shell && SHARED.contains(&import.as_str());
            !(known && (allowed.contains(&import.as_str()) || shared))
        })
        .map(|import| format!("{path} imports `{import}`; `{module}` may import only {allowed:?}"))
        .collect()
}

fn purity_faults(path: &str, source: &str) -> Faults {
    let is_pure = module_path(path).first().is_some_and(|module| PURE.contains(&module.as_str()));
    let code = code_of(source);
    let words = IMPURE.iter().filter(|word| is_pure && code.contains(**word));
    words.map(|word| format!("{path} contains `{word}`")).collect()
}

fn length_faults(path: &str, source: &str) -> Faults {
    let lines = source.lines().count();
    if lines > MAX_LINES { vec![format!("{path} has {lines} lines")] } else { Faults::new() }
}

fn name_faults(path: &str) -> Faults {
    let parts = path.trim_end_matches(".rs").split('/');
    let nameless = parts.filter(|part| NAMELESS.contains(part));
    nameless.map(|part| format!("{path} is called `{part}`, which says nothing")).collect()
}

fn unsafe_faults(files: &[(String, String)]) -> Faults {
    let mut faults = Faults::new();
    let mut expected = 0;
    for (path, source) in files {
        let here = code_of(source).matches("unsafe_code").count();
        expected += here;
        if here > 0 && !path.starts_with(UNSAFE_FILE) {
            faults.push(format!("{path} expects `unsafe_code`"));
        }
    }
    if expected > 1 {
        faults.push(format!("`unsafe_code` is expected {expected} times"));
    }
    faults
}

fn row(module: &str) -> Option<&'static [&'static str]> {
    MAY_IMPORT.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed)
}

/// `src/turn/mod.rs` is the module `turn`, `src/turn/prompt.rs` is `turn::prompt`.
fn module_path(path: &str) -> Vec<String> {
    let inside = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    let mut parts: Vec<String> = inside.split('/').map(str::to_owned).collect();
    if parts.len() > 1 && parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

fn top_modules(files: &[(String, String)]) -> Vec<String> {
    let mut modules: Vec<String> =
        files.iter().filter_map(|(path, _)| module_path(path).into_iter().next()).collect();
    modules.dedup();
    modules
}

/// The sources without the tests that stand beside them: those may set up what they need.
fn sources() -> Vec<(String, String)> {
    files("src").into_iter().filter(|(path, _)| !path.ends_with("_tests.rs")).collect()
}

/// The Rust files below a folder of the project, as (path, text), sorted.
fn files(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The checker itself, with snippets that are wrong: it must be able to fail.
mod checker {
    use super::*;

    fn modules() -> Vec<String> {
        MAY_IMPORT
            .iter()
            .map(|(name, _)| *name)
            .chain(TOP.iter().copied())
            .map(str::to_owned)
            .collect()
    }

    fn faults(path: &str, source: &str) -> Faults {
        import_faults(path, source, &modules())
    }

    #[test]
    fn forbidden_imports_are_found() {
        for (path, source, import) in [
            ("src/turn/mod.rs", "use crate::store::Row;", "store"),
            ("src/turn/prompt.rs", "use crate::{protocol::Item, store::{Row, Pool}};", "store"),
            (
                "src/turn/prompt.rs",
                "use crate::{\n    protocol::{self, Item},\n    tasks,\n};",
                "tasks",
            ),
            ("src/turn/prompt.rs", "fn f() { crate::net::get() }", "net"),
            ("src/turn/prompt.rs", "use super::super::net;", "net"),
            ("src/turn/prompt.rs", "use super::{super::net::Client, state};", "net"),
            ("src/turn/prompt.rs", "fn f() -> super::super::clock::Clock {}", "clock"),
            ("src/turn/mod.rs", "use super::engine;", "engine"),
            ("src/turn/mod.rs", "mod tests { use super::super::engine; }", "engine"),
            (
                "src/turn/prompt.rs",
                "use super::*; mod inner { pub(in crate::turn) use super::super::super::http; }",
                "http",
            ),
            ("src/engine/run.rs", "use crate::http::sse;", "http"),
            ("src/engine/run.rs", "use crate::app::App;", "app"),
            ("src/engine/run.rs", "use crate::Map;", "Map"),
            ("src/store/mod.rs", "use antiphon::engine::run;", "engine"),
            ("src/clock.rs", "use crate::config::Config;", "config"),
            ("src/telemetry/mod.rs", "use crate::config::Log;", "config"),
            ("src/seal.rs", "use super::store;", "store"),
            ("src/seal.rs", "use r#crate :: store;", "store"),
            ("src/seal.rs", "use crate as house;", "crate"),
            ("src/seal.rs", "use crate::*;", "*"),
            ("src/seal.rs", "use {std::fmt, crate::{self as house}};", "crate"),
            ("src/seal.rs", "fn f() { Vec::<crate::store::Row>::new() }", "store"),
            ("src/seal.rs", "macro_rules! m { () => { $crate::store::f() } }", "store"),
            ("src/seal.rs", "mod a { mod b {} fn f() { { super::super::store::f() } } }", "store"),
        ] {
            let module = module_path(path)[0].clone();
            let allowed = row(&module).unwrap();
            let expected =
                format!("{path} imports `{import}`; `{module}` may import only {allowed:?}");
            assert_eq!(faults(path, source), [expected], "{source}");
        }
    }

    #[test]
    fn allowed_imports_are_let_through() {
        for (path, source) in [
            (
                "src/turn/prompt.rs",
                "use crate::{protocol::{Item, Event}, text::Stage, turn::State};",
            ),
            ("src/turn/prompt.rs", "use super::state::State; fn f() { self::g(); Self::new() }"),
            ("src/turn/prompt.rs", "mod tests { use super::super::state; use super::*; }"),
            ("src/turn/mod.rs", "mod tests { use super::*; }"),
            (
                "src/turn/prompt.rs",
                "// use crate::store;\n/* crate::store, /* nested */ crate::net */ fn f() {}",
            ),
            (
                "src/turn/prompt.rs",
                "const A: &str = \"crate::store \\\" crate::net\"; const B: &str = r#\"crate::\"store\"\"#;",
            ),
            ("src/turn/prompt.rs", "fn f<'a>(c: &'a str) -> char { '\"' } // ' crate::store"),
            ("src/turn/prompt.rs", "pub(crate) fn f() {} pub(super) struct S;"),
            (
                "src/engine/run.rs",
                "use crate::{clock::Clock, config, tasks::Tasks, telemetry::Metrics};",
            ),
            ("src/app.rs", "use crate::{http, store};"),
            ("src/cli/serve.rs", "use crate::app; use super::super::http;"),
            ("src/main.rs", "use antiphon::{app, cli};"),
        ] {
            assert_eq!(faults(path, source), Faults::new(), "{source}");
        }
    }

    #[test]
    fn other_rules_can_be_broken() {
        assert_eq!(
            purity_faults("src/text/a.rs", "async fn f() {}"),
            ["src/text/a.rs contains `async fn`"]
        );
        assert_eq!(
            purity_faults(
                "src/text/a.rs",
                "// tokio::spawn is for shells\nconst A: &str = \".await\";"
            ),
            Faults::new()
        );
        assert_eq!(purity_faults("src/net/a.rs", "async fn f() {}"), Faults::new());

        assert_eq!(length_faults("src/a.rs", &"\n".repeat(501)), ["src/a.rs has 501 lines"]);
        assert_eq!(length_faults("src/a.rs", &"\n".repeat(500)), Faults::new());
        assert_eq!(
            name_faults("src/utils/a.rs"),
            ["src/utils/a.rs is called `utils`, which says nothing"]
        );
        assert_eq!(
            name_faults("src/net/helpers.rs"),
            ["src/net/helpers.rs is called `helpers`, which says nothing"]
        );

        let expect = "#[expect(unsafe_code, reason = \"pre_exec\")]".to_owned();
        let file = |path: &str, source: &String| (path.to_owned(), source.clone());
        assert_eq!(unsafe_faults(&[file("src/store/embedded.rs", &expect)]), Faults::new());
        assert_eq!(
            unsafe_faults(&[file("src/net/a.rs", &expect)]),
            ["src/net/a.rs expects `unsafe_code`"]
        );
        let twice = [
            file("src/store/embedded/run.rs", &expect),
            file("src/store/embedded/spawn.rs", &expect),
        ];
        assert_eq!(unsafe_faults(&twice), ["`unsafe_code` is expected 2 times"]);
    }
}
