//! A JSON object read field by field, so that an error can name the field and say what it should be.

use std::{borrow::Cow, ops::RangeInclusive};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{error::ApiError, json::located};

/// The fields of a request's body that have not been read yet. `null` counts as absent.
pub struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// The lengths that a text may have, in characters.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    shortest: usize,
    longest: usize,
}

impl Limits {
    /// From `shortest` to `longest` characters.
    pub const fn text(shortest: usize, longest: usize) -> Self {
        Self { shortest, longest }
    }
}

impl<'a> Fields<'a> {
    /// Reads the object; what is no JSON, or no object, is a 400 that says where it breaks.
    pub fn parse(body: &'a str) -> Result<Self, ApiError> {
        serde_json::from_str(body).map_err(|error| {
            ApiError::new(
                super::ErrorKind::InvalidRequest,
                format!("The body is not a JSON object as expected here: {error}."),
            )
            .code("invalid_json")
        })
    }

    /// Whether the field is there.
    pub fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// The field's JSON.
    pub fn raw(&self, name: &str) -> Option<&'a RawValue> {
        let (_, raw) = self.0.iter().rev().find(|(field, _)| field == name)?;
        (raw.get() != "null").then_some(*raw)
    }

    /// Reads a field as a `T`.
    pub fn take<T: Deserialize<'a>>(&mut self, name: &str) -> Result<Option<T>, ApiError> {
        let raw = self.raw(name);
        self.0.retain(|(field, _)| field != name);
        let Some(raw) = raw else { return Ok(None) };
        located(raw.get()).map(Some).map_err(|(path, message)| {
            // What is missing is the field, not what it is missing from.
            let absent = message
                .strip_prefix("missing field `")
                .and_then(|rest| rest.split_once('`'))
                .map_or_else(String::new, |(absent, _)| format!(".{absent}"));
            let param = match path.as_bytes().first() {
                None => format!("{name}{absent}"),
                Some(b'[') => format!("{name}{path}{absent}"),
                Some(_) => format!("{name}.{path}{absent}"),
            };
            let code = match message.as_str() {
                m if m.starts_with("missing field") => "missing_required_parameter",
                m if m.starts_with("invalid type") => "invalid_type",
                _ => "invalid_value",
            };
            ApiError::invalid(&*param, format!("Invalid value for `{param}`: {message}."))
                .code(code)
        })
    }

    /// Reads a text within its limits.
    pub fn string(&mut self, name: &str, limits: Limits) -> Result<Option<String>, ApiError> {
        let Some(text) = self.take::<String>(name)? else { return Ok(None) };
        let (length, Limits { shortest, longest }) = (text.chars().count(), limits);
        if length < shortest {
            return Err(ApiError::invalid(
                name,
                format!("`{name}` must have at least {shortest} character(s)."),
            )
            .code("string_below_min_length"));
        }
        if length > longest {
            return Err(ApiError::invalid(
                name,
                format!("`{name}` has {length} characters; at most {longest} are allowed."),
            )
            .code("string_above_max_length"));
        }
        Ok(Some(text))
    }

    /// Reads a whole number within its range.
    pub fn integer(
        &mut self,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<u64>, ApiError> {
        let Some(number) = self.take::<i64>(name)? else { return Ok(None) };
        let (code, bound) = if number < *range.start() {
            ("integer_below_min_value", format!("at least {}", range.start()))
        } else if number > *range.end() {
            ("integer_above_max_value", format!("at most {}", range.end()))
        } else {
            return Ok(u64::try_from(number).ok());
        };
        Err(ApiError::invalid(name, format!("`{name}` is {number}; it must be {bound}."))
            .code(code))
    }

    /// Reads a number within its range.
    pub fn decimal(
        &mut self,
        name: &str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, ApiError> {
        let Some(number) = self.take::<f64>(name)? else { return Ok(None) };
        let (code, bound) = if number < *range.start() {
            ("decimal_below_min_value", format!("at least {}", range.start()))
        } else if number > *range.end() {
            ("decimal_above_max_value", format!("at most {}", range.end()))
        } else {
            return Ok(Some(number));
        };
        Err(ApiError::invalid(name, format!("`{name}` is {number}; it must be {bound}."))
            .code(code))
    }

    /// The object as JSON, with this text in front in the place of the field of that name.
    pub(super) fn with_text(&self, name: &str, text: &str) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let rest = self.0.iter().filter(|(field, _)| field != name);
        let mut json = format!("{{{}:{}", quoted(name), quoted(text));
        for (field, raw) in rest {
            json.extend([",", &quoted(field), ":", raw.get()]);
        }
        json.push('}');
        json
    }

    /// Refuses a known field that this server cannot honour.
    pub fn refuse(&mut self, name: &str, why: &str) -> Result<(), ApiError> {
        if self.has(name) {
            return Err(ApiError::invalid(name, why).code("unsupported_parameter"));
        }
        self.0.retain(|(field, _)| field != name);
        Ok(())
    }

    /// The names of the fields that nobody read, without those that are `accepted` in silence.
    pub fn rest(self, accepted: &[&str]) -> Vec<String> {
        self.0
            .into_iter()
            .filter(|(field, _)| !accepted.contains(&&**field))
            .map(|(field, _)| field.into_owned())
            .collect()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry::<Name<'de>, _>()? {
                    pairs.push((pair.0.0, pair.1));
                }
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(Pairs).map(Fields)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
