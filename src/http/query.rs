//! Query parameters as SDKs write them: `include[]=a&include[]=b`, `include=a`, `include[0]=a`.

use axum::{extract::FromRequestParts, http::request::Parts};
use url::form_urlencoded;

use crate::protocol::ApiError;

/// The parameters of a query, in order.
pub struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        super::ids::refuse_nul(parts)?;
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect()))
    }
}

impl Query {
    /// The last value of a parameter; an empty one counts as absent.
    pub fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().rev().find(|(known, _)| known == name)?;
        (!value.is_empty()).then_some(value.as_str())
    }

    /// All values of a list parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(known, _)| known.split('[').next() == Some(name))
            .flat_map(|(_, value)| value.split(','))
            .filter(|value| !value.is_empty())
    }

    /// A switch: `true`, `1`, `false`, `0`.
    pub fn switch(&self, name: &str) -> Result<bool, ApiError> {
        match self.get(name) {
            Some("true" | "1") => Ok(true),
            None | Some("false" | "0") => Ok(false),
            Some(other) => Err(ApiError::invalid(
                name,
                format!("`{name}` is `{other}`; it must be `true` or `false`."),
            )),
        }
    }

    /// A whole number within a range.
    pub fn integer(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse::<i64>() {
            Ok(number) if range.contains(&number) => Ok(Some(number)),
            Ok(number) => {
                let code = if number < *range.start() {
                    "integer_below_min_value"
                } else {
                    "integer_above_max_value"
                };
                let message = format!(
                    "`{name}` is {number}; it must be from {} to {}.",
                    range.start(),
                    range.end()
                );
                Err(ApiError::invalid(name, message).code(code))
            }
            Err(_) => Err(ApiError::invalid(
                name,
                format!("`{name}` is `{text}`; it must be a whole number."),
            )
            .code("invalid_type")),
        }
    }
}
