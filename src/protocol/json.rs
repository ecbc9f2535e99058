//! JSON kept as its author wrote it, and lenient reading of single fields.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

/// A JSON value, byte for byte as it came: schemas, arguments and whatever this version does not know.
#[derive(Clone)]
pub struct Raw(Arc<RawValue>);

/// Fields of a known object that this version does not know. They are kept and written back.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Extra(serde_json::Map<String, serde_json::Value>);

impl Extra {
    /// No unknown field.
    pub fn new() -> Self {
        Self::default()
    }

    /// The field of this name, `null` counting as absent.
    pub fn get(&self, name: &str) -> Option<&serde_json::Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Sets a field.
    pub fn insert(&mut self, name: &str, value: serde_json::Value) {
        self.0.insert(name.to_owned(), value);
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<serde_json::Value> {
        self.0.shift_remove(name)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = serde_json::Map::deserialize(deserializer)?;
        // The enum around writes it.
        fields.shift_remove("type");
        Ok(Self(fields))
    }
}

impl Raw {
    /// The JSON of any value of ours.
    pub fn of<T: Serialize>(value: &T) -> Self {
        serde_json::value::to_raw_value(value).map_or_else(|_| Self::null(), Into::into)
    }

    /// The value `null`.
    pub fn null() -> Self {
        RawValue::NULL.to_owned().into()
    }

    /// Reads JSON text, checking that it is whole.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// Its JSON text.
    pub fn json(&self) -> &str {
        self.0.get()
    }

    /// Reads it as a `T`.
    pub fn to<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.json())
    }
}

impl From<Box<RawValue>> for Raw {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.into())
    }
}

impl std::fmt::Debug for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.json())
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.json() == other.json()
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Into::into)
    }
}

/// Reads a field whose `null` means what its absence means.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads a word of a closed list; a word that is not on it counts as absent.
pub(crate) fn unknown_is_none<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// The `type` of a JSON object, without reading the rest.
pub(crate) fn tag_of(raw: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Tag {
        #[serde(rename = "type", default)]
        tag: Option<String>,
    }
    serde_json::from_str::<Tag>(raw.get()).ok()?.tag
}

/// Marks where in a nested value an error stands, so that [`located`] can put the whole path together.
const MARK: char = '\u{1}';

/// Reads the object of a tagged enum; the error remembers where inside it stands.
pub(crate) fn read_nested<'a, T, E>(raw: &'a RawValue) -> Result<T, E>
where
    T: Deserialize<'a>,
    E: de::Error,
{
    let mut json = serde_json::Deserializer::from_str(raw.get());
    serde_path_to_error::deserialize(&mut json)
        .map_err(|error| E::custom(format_args!("{MARK}{}{MARK}{}", error.path(), error.inner())))
}

/// Reads `json` as a `T`. An error is the path inside it (empty: the value itself) and a sentence.
pub fn located<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, (String, String)> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let mut path = String::new();
        join(&mut path, &error.path().to_string());
        let mut message = error.inner().to_string();
        while let Some((_, rest)) = message.split_once(MARK) {
            let Some((inner, sentence)) = rest.split_once(MARK) else { break };
            join(&mut path, inner);
            message = sentence.to_owned();
        }
        // Lines and columns count from a nested value's own start: they would only mislead.
        let end = message.find(" at line ").unwrap_or(message.len());
        message.truncate(end);
        (path, in_plain_words(&message))
    })
}

/// The sentence without the names of types, which only this house knows.
fn in_plain_words(message: &str) -> String {
    const WORDS: [(&str, &str); 8] = [
        ("expected f64", "expected a number"),
        ("expected i64", "expected a whole number"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected a sequence", "expected a list"),
        ("expected a map", "expected an object"),
        ("invalid type: sequence", "invalid type: list"),
        ("invalid type: map", "invalid type: object"),
    ];
    let mut message = message.to_owned();
    for (theirs, plain) in WORDS {
        message = message.replace(theirs, plain);
    }
    match message.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected an object"),
        None => message,
    }
}

/// Appends a path of `serde_path_to_error`, which writes `.` for the value itself.
fn join(path: &mut String, inner: &str) {
    if inner == "." {
        return;
    }
    if !path.is_empty() && !inner.starts_with('[') {
        path.push('.');
    }
    path.push_str(inner);
}

/// Defines an enum of objects told apart by their `type`. An object of another `type` is kept as [`Raw`], and written back as it came.
macro_rules! tagged {
    (
        $(#[$meta:meta])* pub enum $name:ident {
            $( $(#[$doc:meta])* $variant:ident($body:ty) = $tag:literal $(| $alias:literal)*, )*
        }
        untyped: $untyped:expr
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(tag = "type")]
        pub enum $name {
            $( $(#[$doc])* #[serde(rename = $tag)] $variant($body), )*
            /// Of a type that this version does not know.
            #[serde(untagged)]
            Unknown($crate::protocol::Raw),
        }

        impl $name {
            /// The `type` on the wire; empty when there is none.
            pub fn kind(&self) -> std::borrow::Cow<'_, str> {
                match self {
                    $( Self::$variant(_) => $tag.into(), )*
                    Self::Unknown(raw) => raw.to::<$crate::protocol::json::TypeOnly>().map(|t| t.kind).unwrap_or_default().into(),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
                let tag = $crate::protocol::json::tag_of(raw);
                let untyped: fn(&str) -> &'static str = $untyped;
                match tag.as_deref().unwrap_or_else(|| untyped(raw.get())) {
                    $( $tag $(| $alias)* => $crate::protocol::json::read_nested(raw).map(Self::$variant), )*
                    _ => Ok(Self::Unknown(raw.to_owned().into())),
                }
            }
        }
    };
}
pub(crate) use tagged;

/// Just the `type` of an object.
#[derive(Deserialize)]
pub(crate) struct TypeOnly {
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
}
