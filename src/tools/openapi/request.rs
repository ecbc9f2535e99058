//! From the arguments of a call to its request. Pure; what only the server may give is added by [`Access`](super::Access).

use reqwest::{
    Method,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde_json::{Map, Value};
use url::Url;

use super::{
    example::right_arguments,
    expand::{Encoding, Nested, one, pairs},
    operation::{BODY, Operation},
    parameter::{Parameter, Place},
    refs::shortened,
};

/// The longest URL that is asked for, in bytes. Servers refuse longer ones, and in less clear words.
const MAX_URL: usize = 16 * 1024;

/// What is preferred of the media types an API may answer with.
const WISHED: HeaderValue = HeaderValue::from_static("application/json, text/*;q=0.9, */*;q=0.8");

/// Why a call makes no request: a sentence that the model can act on.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct ForModel(pub String);

/// A request as the model's arguments make it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// With which method.
    pub method: Method,
    /// Where to: always below the base of the operation.
    pub url: Url,
    /// The header parameters, and what is said of the body.
    pub headers: HeaderMap,
    /// JSON.
    pub body: Option<Vec<u8>>,
}

/// Builds the request of a call. Arguments that are `null` count as not given.
pub fn build_request(
    operation: &Operation,
    arguments: &Map<String, Value>,
) -> Result<Prepared, ForModel> {
    let call = Call { operation, arguments };
    call.check_names()?;

    let mut path = operation.template.clone();
    let mut query = Vec::new();
    let mut headers = HeaderMap::from_iter([(ACCEPT, WISHED)]);
    for input in &operation.inputs {
        let Some(value) = call.value(&input.argument) else {
            if input.required {
                return Err(call.missing(&input.argument));
            }
            continue;
        };
        match input.place {
            Place::Path => path = call.fill(&path, input, value)?,
            Place::Query => query.extend(call.pairs(input, value)?),
            Place::Header => {
                let (name, value) = call.header(input, value)?;
                headers.insert(name, value);
            }
        }
    }
    let url = call.url(&path, &query)?;
    let body = match (&operation.body, call.value(BODY)) {
        (Some(body), None) if body.required => return Err(call.missing(BODY)),
        (Some(body), Some(value)) => {
            headers.insert(CONTENT_TYPE, body.content_type.clone());
            Some(value.to_string().into_bytes())
        }
        (_, _) => None,
    };
    Ok(Prepared { method: operation.method.clone(), url, headers, body })
}

struct Call<'a> {
    operation: &'a Operation,
    arguments: &'a Map<String, Value>,
}

impl<'a> Call<'a> {
    fn value(&self, argument: &str) -> Option<&'a Value> {
        self.arguments.get(argument).filter(|value| !value.is_null())
    }

    fn check_names(&self) -> Result<(), ForModel> {
        let known = |name: &str| {
            self.operation.inputs.iter().any(|input| input.argument == name)
                || self.operation.body.is_some() && name == BODY
        };
        let Some(unknown) = self.arguments.keys().find(|name| !known(name)) else { return Ok(()) };
        let mut names: Vec<String> =
            self.operation.inputs.iter().map(|input| format!("`{}`", input.argument)).collect();
        names.extend(self.operation.body.is_some().then(|| format!("`{BODY}`")));
        let takes = if names.is_empty() { "no arguments".to_owned() } else { names.join(", ") };
        Err(self.wrong(&format!(
            "`{}` has no argument `{}`; it takes {takes}.",
            self.operation.name,
            shortened(unknown)
        )))
    }

    fn missing(&self, argument: &str) -> ForModel {
        self.wrong(&format!("`{}` needs the argument `{argument}`.", self.operation.name))
    }

    fn nested(&self, input: &Parameter) -> impl FnOnce(Nested) -> ForModel {
        let sentence = format!(
            "`{}` goes into the {}, so it may hold plain values, but no lists or objects inside of one another.",
            input.argument,
            input.place.word()
        );
        let error = self.wrong(&sentence);
        move |_| error
    }

    fn wrong(&self, sentence: &str) -> ForModel {
        let example = right_arguments(self.operation, self.arguments);
        ForModel(format!("{sentence} A right example: {example}"))
    }

    /// The path with this parameter in its place. What is filled in holds no `{`, so it is not taken for a variable later.
    fn fill(&self, path: &str, input: &Parameter, value: &Value) -> Result<String, ForModel> {
        let text = one(input.style, input.explode, Encoding::Strict, &input.name, value)
            .map_err(self.nested(input))?;
        if text.is_empty() {
            return Err(self.wrong(&format!(
                "`{}` must not be empty: it is a part of the path.",
                input.argument
            )));
        }
        let filled = path.replace(&format!("{{{}}}", input.name), &text);
        // These two mean "here" and "one step up", and cannot be encoded: every reader decodes them first.
        if filled.split('/').any(|step| matches!(step, "." | "..")) {
            return Err(self.wrong(&format!(
                "`{}` must not be `.` or `..`: it is a step of the path.",
                input.argument
            )));
        }
        Ok(filled)
    }

    fn pairs(&self, input: &Parameter, value: &Value) -> Result<Vec<(String, String)>, ForModel> {
        let encoding = if input.reserved { Encoding::Reserved } else { Encoding::Strict };
        pairs(input.style, input.explode, encoding, &input.name, value).map_err(self.nested(input))
    }

    fn header(
        &self,
        input: &Parameter,
        value: &Value,
    ) -> Result<(HeaderName, HeaderValue), ForModel> {
        let text = one(input.style, input.explode, Encoding::Plain, &input.name, value)
            .map_err(self.nested(input))?;
        let name = HeaderName::try_from(&*input.name);
        match (name, HeaderValue::from_str(text.trim())) {
            (Ok(name), Ok(value)) if text.is_ascii() => Ok((name, value)),
            _ => Err(self.wrong(&format!(
                "`{}` is sent as a header, so it may hold only printable ASCII on one line.",
                input.argument
            ))),
        }
    }

    fn url(&self, path: &str, query: &[(String, String)]) -> Result<Url, ForModel> {
        let base = &self.operation.base;
        let mut text = base.as_str().trim_end_matches('/').to_owned() + path;
        for (at, (name, value)) in query.iter().enumerate() {
            text.push(if at == 0 { '?' } else { '&' });
            text.extend([name, "=", value]);
        }
        if text.len() > MAX_URL {
            return Err(self.wrong(&format!(
                "The arguments make a URL of more than {MAX_URL} bytes; shorten them."
            )));
        }
        let below = base.path().trim_end_matches('/');
        Url::parse(&text)
            .ok()
            .filter(|url| url.origin() == base.origin() && url.path().starts_with(below))
            .ok_or_else(|| self.wrong("The arguments make no usable URL."))
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
