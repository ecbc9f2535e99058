//! From sources to [`Config`]: gather, read, check.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use serde_path_to_error::Segment;
use toml::{Table, Value};

use super::{
    Config, ConfigError, DialectOverrides, Environment, Origin, Places, Problem, Secret,
    check::check,
    error::hint,
    overlay::{Key, Layers, shown},
};

/// Sections that the design names and this version does not have yet. Taking them silently would promise what does not happen.
const LATER: [&str; 3] = ["retrieval", "background", "agents"];

/// Where settings are looked for.
#[derive(Clone, Debug)]
pub struct Sources<'a> {
    env: &'a Environment,
    file: Option<&'a Path>,
    options: Vec<(&'static str, &'static str, Value)>,
}

/// The configuration, and how it came about.
#[derive(Clone)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// The keys that variables and options have set, in the order in which they were applied.
    pub set: Vec<(String, Origin)>,
    /// All that was set, as a table. It holds what was written, secrets too: print it only through [`effective()`](super::effective()).
    pub(super) table: Table,
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config, file, set, table: _ } = self;
        f.debug_struct("Loaded")
            .field("config", config)
            .field("file", file)
            .field("set", set)
            .finish_non_exhaustive()
    }
}

impl<'a> Sources<'a> {
    /// `antiphon.toml` in the working directory, if it is there, and the environment.
    pub fn new(env: &'a Environment) -> Self {
        Self { env, file: None, options: Vec::new() }
    }

    /// Reads this file, which must be there, instead of `antiphon.toml`.
    #[must_use]
    pub fn file(mut self, path: Option<&'a Path>) -> Self {
        self.file = path;
        self
    }

    /// Sets a key of the top level or `section.key` from an option of the command line, over everything else.
    #[must_use]
    pub fn option(
        mut self,
        flag: &'static str,
        key: &'static str,
        value: Option<impl Into<Value>>,
    ) -> Self {
        self.options.extend(value.map(|value| (flag, key, value.into())));
        self
    }

    /// Reads and checks everything.
    pub fn load(self) -> Result<Loaded, ConfigError> {
        let path = self.file.unwrap_or(Path::new("antiphon.toml"));
        match fs::read_to_string(path) {
            Ok(text) => self.load_text(path, &text),
            Err(e) if e.kind() == io::ErrorKind::NotFound && self.file.is_none() => {
                self.finish(Layers::new(None))
            }
            Err(e) => Err(about_file(path, format!("the file cannot be read: {e}")).into()),
        }
    }

    /// As [`Sources::load`], with a file that has been read already.
    pub fn load_text(self, path: &Path, text: &str) -> Result<Loaded, ConfigError> {
        // Not the error's own rendering: it quotes the line, which may hold a password.
        let table = text.parse::<Table>().map_err(|e| {
            let line = e
                .span()
                .map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            about_file(path, format!("line {line} is not TOML: {}", e.message()))
        })?;
        self.finish(Layers::new(Some((path.to_owned(), table))))
    }

    fn finish(self, mut layers: Layers) -> Result<Loaded, ConfigError> {
        let env = self.env;
        if let Some(filter) = env.get("RUST_LOG") {
            let key = vec!["log".to_owned(), "filter".to_owned()];
            layers.put(key, filter.into(), Origin::Variable("RUST_LOG".to_owned()), None)?;
        }
        layers.variables(env)?;
        for (flag, key, value) in self.options {
            layers.put(
                key.split('.').map(str::to_owned).collect(),
                value,
                Origin::CommandLine(flag),
                None,
            )?;
        }
        fill_from_well_known_variables(&mut layers, env)?;

        let mut config = typed(&mut layers)?;
        config.places = Places::of(env);
        config.bootstrap_key =
            env.get("ANTIPHON_BOOTSTRAP_KEY").map(|key| Secret::from(key.to_owned()));
        config.seal_keys = env
            .get("ANTIPHON_SEAL_KEYS")
            .map(|keys| keys.split(',').map(|key| Secret::from(key.trim().to_owned())).collect())
            .unwrap_or_default();

        let problems = check(&mut config, env, &layers);
        if !problems.is_empty() {
            return Err(ConfigError { problems });
        }
        let (table, file, set) = layers.into_parts();
        Ok(Loaded { config, file, set, table })
    }
}

/// Variables that others have made usual. They count only where the configuration says nothing.
fn fill_from_well_known_variables(layers: &mut Layers, env: &Environment) -> Result<(), Problem> {
    if let Some(url) = env.get("DATABASE_URL") {
        layers.fill(&["database_url"], url.into(), "DATABASE_URL")?;
    }
    if let Some(endpoint) = env.get("OTEL_EXPORTER_OTLP_ENDPOINT") {
        layers.fill(
            &["telemetry", "otlp_endpoint"],
            endpoint.into(),
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        )?;
    }
    if let Some(url) = env.get("OPENAI_BASE_URL") {
        let mut upstream = Table::from_iter([
            ("name".to_owned(), "openai".into()),
            ("base_url".to_owned(), url.into()),
        ]);
        if env.get("OPENAI_API_KEY").is_some() {
            upstream.insert("api_key_env".to_owned(), "OPENAI_API_KEY".into());
        }
        layers.fill(&["upstreams"], Value::Array(vec![upstream.into()]), "OPENAI_BASE_URL")?;
    }
    Ok(())
}

/// Reads the table into [`Config`]; the problem names the first key that does not fit.
pub(super) fn typed(layers: &mut Layers) -> Result<Config, Problem> {
    loop {
        let mut table = layers.table.clone();
        gather_dialect_keys(&mut table);
        let error = match serde_path_to_error::deserialize::<_, Config>(Value::Table(table)) {
            Ok(config) => return Ok(config),
            Err(error) => error,
        };
        let key = path(error.path());
        let message = error.inner().message();
        if !(message.ends_with("expected a string") && layers.take_as_text(&key)) {
            return Err(explain(layers, key, message));
        }
    }
}

/// Moves the dialect keys of upstreams and model overrides into a table of their own; see [`DialectOverrides::GATHERED`].
fn gather_dialect_keys(table: &mut Table) {
    gather(table.get_mut("upstreams"));
    gather(table.get_mut("models").and_then(|models| models.get_mut("overrides")));
}

fn gather(entries: Option<&mut Value>) {
    let entries = entries.and_then(Value::as_array_mut).into_iter().flatten();
    for entry in entries.filter_map(Value::as_table_mut) {
        let keys = DialectOverrides::KEYS.iter().filter_map(|key| entry.remove_entry(*key));
        let gathered = Table::from_iter(keys.collect::<Vec<_>>());
        if !gathered.is_empty() {
            entry.insert(DialectOverrides::GATHERED.to_owned(), gathered.into());
        }
    }
}

fn path(path: &serde_path_to_error::Path) -> Key {
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Map { key } if key != DialectOverrides::GATHERED => Some(key.clone()),
            Segment::Seq { index } => Some(index.to_string()),
            Segment::Map { .. } | Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}

/// Says what serde says, in the words of somebody who writes this file.
fn explain(layers: &Layers, mut key: Key, message: &str) -> Problem {
    let mut quoted = message.split('`').skip(1).step_by(2).map(str::to_owned);
    let (message, known) = if message.starts_with("unknown field") {
        let wrong = quoted.next().unwrap_or_default();
        if key.last() != Some(&wrong) {
            key.push(wrong.clone());
        }
        let mut known: Vec<String> = quoted.collect();
        if known.iter().any(|name| name == DialectOverrides::GATHERED) {
            known.retain(|name| name != DialectOverrides::GATHERED);
            known.extend(DialectOverrides::KEYS.map(str::to_owned));
        }
        if LATER.contains(&shown(&key).as_str()) {
            ("not in this version of antiphon; please remove it".to_owned(), known)
        } else {
            (format!("there is no such key; {}", hint(&wrong, &known)), known)
        }
    } else if message.starts_with("unknown variant") {
        let wrong = quoted.next().unwrap_or_default();
        let values: Vec<String> = quoted.collect();
        (format!("`{wrong}` is not one of its values; {}", hint(&wrong, &values)), Vec::new())
    } else if message.starts_with("missing field") {
        (format!("the key `{}` is needed here", quoted.next().unwrap_or_default()), Vec::new())
    } else {
        (message.to_owned(), Vec::new())
    };
    Problem { origin: layers.origin(&key), key: shown(&key), message, known }
}

fn about_file(path: &Path, message: String) -> Problem {
    Problem {
        key: String::new(),
        origin: Origin::File(path.to_owned()),
        message,
        known: Vec::new(),
    }
}
