//! A script as it stands in its file: TOML, read and checked. An error names the key and its line.

use std::fmt::Write as _;
use std::{fmt, num::NonZeroUsize, path::PathBuf, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{self, Error as _, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_path_to_error::Segment;
use toml::de::{DeTable, DeValue};

use crate::{config::Glob, turn::Finish};

/// Why a script cannot be played.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ScriptError {
    /// The file, when it was read from one.
    pub file: Option<PathBuf>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The key, such as `rounds[1].calls[0].name`; empty when it is about the file as a whole.
    pub key: String,
    /// What is wrong.
    pub message: String,
}

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The names it answers to.
    #[serde(default, deserialize_with = "one_or_many")]
    pub(super) model: Option<Vec<Glob>>,
    #[serde(default)]
    pub(super) rounds: Vec<Round>,
}

/// What is said when the model is asked once.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Round {
    /// Text of the newest input to which this is the answer.
    pub(super) when: Option<String>,
    #[serde(default)]
    pub(super) reasoning: String,
    #[serde(default)]
    pub(super) text: String,
    #[serde(default)]
    pub(super) refusal: String,
    /// Pieces of each of these; a piece for each word where it is not set.
    pub(super) chunks: Option<NonZeroUsize>,
    #[serde(default)]
    pub(super) calls: Vec<Call>,
    #[serde(default)]
    pub(super) usage: Words,
    #[serde(default = "stop", deserialize_with = "FinishWord::deserialize")]
    pub(super) finish: Finish,
    /// Before each piece.
    #[serde(default, rename = "delay_ms", deserialize_with = "milliseconds")]
    pub(super) delay: Duration,
    pub(super) error: Option<Failure>,
}

/// A call of a tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    /// As the model sees it.
    pub(super) name: String,
    /// JSON text, or what was meant for it.
    #[serde(default = "no_arguments", deserialize_with = "arguments")]
    pub(super) arguments: String,
    /// Pieces of the arguments; one where it is not set.
    pub(super) chunks: Option<NonZeroUsize>,
}

/// The usage, as far as it is not counted.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "the keys of the file")]
pub(super) struct Words {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) reasoning_tokens: Option<u64>,
}

/// How a Round fails.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failure {
    #[serde(deserialize_with = "error_status")]
    pub(super) status: u16,
    pub(super) message: Option<String>,
    pub(super) retry_after_seconds: Option<u64>,
    /// Characters of the text that are said before.
    #[serde(default)]
    pub(super) after_chars: usize,
}

/// The words for [`Finish`] in a script.
#[derive(Deserialize)]
#[serde(remote = "Finish", rename_all = "snake_case")]
enum FinishWord {
    Stop,
    Length,
    ContentFilter,
}

impl File {
    /// Reads and checks a script.
    pub(super) fn parse(toml: &str) -> Result<Self, ScriptError> {
        let at_span = |error: &toml::de::Error| error.span().map(|span| line_at(toml, span.start));
        let document = toml::Deserializer::parse(toml)
            .map_err(|error| ScriptError::new(at_span(&error), "", error.message()))?;
        let file: Self = serde_path_to_error::deserialize(document).map_err(|error| {
            let key = key_of(error.path(), error.inner().message());
            ScriptError::new(at_span(error.inner()), key, error.inner().message())
        })?;
        match file.mistake() {
            None => Ok(file),
            Some((key, message)) => Err(ScriptError::new(line_of(toml, &key), key, message)),
        }
    }

    /// The first thing that is well formed and still makes no sense: its key, and why.
    fn mistake(&self) -> Option<(String, String)> {
        if self.model.as_ref().is_some_and(Vec::is_empty) {
            return Some(("model".to_owned(), "a list of names needs at least one".to_owned()));
        }
        if self.rounds.is_empty() {
            return Some((
                "rounds".to_owned(),
                "a script needs at least one [[rounds]]".to_owned(),
            ));
        }
        let with_number = || self.rounds.iter().enumerate();
        with_number().find_map(|(n, round)| {
            let (key, message) = round.mistake().or_else(|| self.unreachable(n, round))?;
            Some((format!("rounds[{n}].{key}"), message))
        })
    }

    /// Whether an earlier round is played wherever this one could be.
    fn unreachable(&self, number: usize, round: &Round) -> Option<(&'static str, String)> {
        let when = round.when.as_ref()?;
        let earlier = self.rounds.iter().take(number).position(|earlier| {
            earlier.when.as_ref().is_some_and(|earlier| when.contains(earlier.as_str()))
        })?;
        let why = format!(
            "never played: the `when` of rounds[{earlier}] is found wherever this one is, and stands before it"
        );
        Some(("when", why))
    }
}

impl Round {
    fn mistake(&self) -> Option<(&'static str, String)> {
        if self.when.as_deref() == Some("") {
            return Some(("when", "the empty text is found in every input; leave `when` out for a round that is played in its turn".to_owned()));
        }
        if let (Some(part), Some(whole)) = (self.usage.reasoning_tokens, self.usage.output_tokens)
            && part > whole
        {
            return Some((
                "usage.reasoning_tokens",
                format!("{part} is more than the `output_tokens`, {whole}, of which it is a part"),
            ));
        }
        let Failure { status, retry_after_seconds, after_chars, .. } = self.error.as_ref()?;
        let chars = self.text.chars().count();
        if *after_chars > chars {
            return Some((
                "error.after_chars",
                format!("the round has only {chars} characters of `text`"),
            ));
        }
        if retry_after_seconds.is_some() && !matches!(status, 429 | 503 | 529) {
            return Some((
                "error.retry_after_seconds",
                format!("goes with the status 429, 503 or 529, not {status}"),
            ));
        }
        None
    }
}

impl ScriptError {
    pub(super) fn new(
        line: Option<usize>,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { file: None, line, key: key.into(), message: message.into() }
    }
}

impl std::error::Error for ScriptError {}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script ")?;
        if let Some(file) = &self.file {
            write!(f, "{} ", file.display())?;
        }
        f.write_str("cannot be played: ")?;
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "`{}`: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// The key as it would be written in a sentence. An unknown one is not always a part of the path yet.
fn key_of(path: &serde_path_to_error::Path, message: &str) -> String {
    let mut key = String::new();
    for segment in path {
        match segment {
            Segment::Map { key: name } if key.is_empty() => key.push_str(name),
            Segment::Map { key: name } => key.extend([".", name]),
            Segment::Seq { index } => {
                let _ = write!(key, "[{index}]");
            }
            Segment::Enum { .. } | Segment::Unknown => (),
        }
    }
    let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    if let Some(name) = unknown
        && key.rsplit('.').next() != Some(name)
    {
        key.extend([if key.is_empty() { "" } else { "." }, name]);
    }
    key
}

fn line_at(toml: &str, offset: usize) -> usize {
    1 + toml.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The line of a key that [`File::mistake`] names; of the nearest thing around it that is there.
fn line_of(toml: &str, key: &str) -> Option<usize> {
    let table = DeTable::parse(toml).ok()?;
    let mut steps = key.split(['.', '[']).map(|step| step.trim_end_matches(']'));
    let mut found = table.get_ref().get(steps.next()?)?;
    for step in steps {
        let inner = match found.get_ref() {
            DeValue::Array(list) => step.parse().ok().and_then(|n: usize| list.get(n)),
            DeValue::Table(table) => table.get(step),
            _ => None,
        };
        let Some(inner) = inner else { break };
        found = inner;
    }
    Some(line_at(toml, found.span().start))
}

const fn stop() -> Finish {
    Finish::Stop
}

fn no_arguments() -> String {
    "{}".to_owned()
}

/// The statuses of HTTP that say that something went wrong.
fn error_status<'de, D: Deserializer<'de>>(d: D) -> Result<u16, D::Error> {
    let status = i64::deserialize(d)?;
    u16::try_from(status).ok().filter(|status| (400..600).contains(status)).ok_or_else(|| {
        D::Error::custom(format_args!("{status} is no status of an error, which is 400 to 599"))
    })
}

/// At most an hour: no test waits longer, and no clock runs over.
fn milliseconds<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
    let number = i64::deserialize(d)?;
    let number = u64::try_from(number).ok().filter(|number| *number <= 3_600_000);
    number
        .map(Duration::from_millis)
        .ok_or_else(|| D::Error::custom("a pause has 0 to 3600000 milliseconds"))
}

/// A text or a list of texts.
fn one_or_many<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Vec<Glob>>, D::Error> {
    struct Names;
    impl<'de> Visitor<'de> for Names {
        type Value = Vec<Glob>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a name or a list of names")
        }

        fn visit_str<E: de::Error>(self, name: &str) -> Result<Vec<Glob>, E> {
            Glob::try_from(name.to_owned()).map(|glob| vec![glob]).map_err(E::custom)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Glob>, A::Error> {
            let mut names = Vec::new();
            while let Some(name) = list.next_element()? {
                names.push(name);
            }
            Ok(names)
        }
    }
    d.deserialize_any(Names).map(Some)
}

/// JSON text as it stands, or a table that is written as JSON.
fn arguments<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    struct Arguments;
    impl<'de> Visitor<'de> for Arguments {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("JSON in a string, or a table")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<String, A::Error> {
            let value = serde_json::Value::deserialize(MapAccessDeserializer::new(map))?;
            let value = without_dates(value);
            if !value.is_object() {
                return Err(A::Error::invalid_type(de::Unexpected::Other("a date"), &Self));
            }
            Ok(value.to_string())
        }
    }
    d.deserialize_any(Arguments)
}

/// The crate hands on a date, which JSON does not have, as a table of one private field: it becomes its text.
fn without_dates(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            let date = fields.get("$__toml_private_datetime").filter(|_| fields.len() == 1);
            if let Some(date) = date {
                return date.clone();
            }
            fields.into_iter().map(|(name, value)| (name, without_dates(value))).collect()
        }
        Value::Array(values) => values.into_iter().map(without_dates).collect(),
        other => other,
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
