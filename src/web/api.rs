//! Asking a provider's HTTP API: time limit, retry, size limit, and what its errors mean.

use std::time::Duration;

use reqwest::{Method, Request, RequestBuilder, StatusCode, header::HeaderValue};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use url::Url;

use super::error::Fault;
use crate::{
    clock::{Clock, Ids},
    config::Secret,
    net::{self, Backoff, read_limited, retry_after},
};

/// The largest answer, in bytes.
const LARGEST: usize = 16_000_000;
/// How often a request is sent at most.
const ATTEMPTS: u32 = 3;
/// How long we wait between two attempts when the provider does not say.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(500), most: Duration::from_secs(4) };
/// A provider that wants us to wait longer than this is not asked again.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The longest sentence of a provider that is passed on, in characters.
const LONGEST_MESSAGE: usize = 200;

/// How a provider is reached.
#[derive(Clone, Debug)]
pub struct Access {
    /// A client that may go to [`Access::base`].
    pub client: net::Client,
    /// Where the API begins.
    pub base: Url,
    /// The key.
    pub key: Option<Secret>,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// For waits that a provider gives as a date.
    pub clock: Clock,
    /// For spreading waits.
    pub ids: Ids,
}

/// One provider's API.
#[derive(Clone, Debug)]
pub(super) struct Api {
    name: &'static str,
    access: Access,
    attempts: u32,
}

impl Api {
    /// The API of the provider that people call `name`.
    pub(super) fn new(name: &'static str, access: Access) -> Self {
        Self { name, access, attempts: ATTEMPTS }
    }

    /// The same, but what fails is not asked again.
    pub(super) fn asking_once(self) -> Self {
        Self { attempts: 1, ..self }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.access.clock
    }

    /// The key as the value of a query parameter; it must not leave the request.
    pub(super) fn key(&self) -> &str {
        self.access.key.as_ref().map_or("", Secret::expose)
    }

    /// A request to `path` below the base, without a key.
    pub(super) fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Fault> {
        let mut url = self.access.base.clone();
        if !path.is_empty() {
            let whole = format!("{}/{path}", url.path().trim_end_matches('/'));
            url.set_path(&whole);
        }
        let client = self.access.client.raw(&url).map_err(Fault::Denied)?;
        Ok(client.request(method, url).header("accept", "application/json"))
    }

    /// The key as a header, with what stands before it.
    pub(super) fn key_header(&self, before: &str) -> Result<HeaderValue, Fault> {
        let mut value =
            HeaderValue::try_from(format!("{before}{}", self.key())).map_err(|_| Fault::BadKey)?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Sends the request, again if that may help, and reads the answer.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<T, Fault> {
        let request =
            request.build().map_err(|error| Fault::Unreadable(error.without_url().to_string()))?;
        let mut attempt = 0;
        loop {
            let Some(again) = request.try_clone() else { return Err(Fault::Unreachable) };
            let (fault, asked_to_wait) = match self.attempt(again).await {
                Ok(body) => return read(&body),
                Err(failed) => failed,
            };
            attempt += 1;
            let wait = asked_to_wait
                .unwrap_or_else(|| BACKOFF.wait(attempt - 1, self.access.ids.number()));
            if !fault.passes() || attempt == self.attempts || wait > LONGEST_WAIT {
                return Err(fault);
            }
            tracing::debug!(provider = self.name, %fault, ?wait, "asking again");
            tokio::time::sleep(wait).await;
        }
    }

    async fn attempt(&self, request: Request) -> Result<Vec<u8>, (Fault, Option<Duration>)> {
        let asked = async {
            let response =
                self.access.client.execute(request).await.map_err(|error| (error.into(), None))?;
            let status = response.status();
            let wait = retry_after(response.headers(), &self.access.clock);
            let body =
                read_limited(response, LARGEST).await.map_err(|error| (error.into(), None))?;
            match self.judge(status, &body) {
                Some(fault) => Err((fault, wait)),
                None => Ok(body.into()),
            }
        };
        tokio::time::timeout(self.access.timeout, asked)
            .await
            .unwrap_or(Err((Fault::Timeout, None)))
    }

    /// What is wrong with an answer; `None` when it holds what was asked for.
    fn judge(&self, status: StatusCode, body: &[u8]) -> Option<Fault> {
        let said = Said::of(body);
        let status = if status.is_success() {
            // Some send errors with status 200.
            said.error_code?
        } else {
            status.as_u16()
        };
        let message = self.shown(&said.message);
        Some(classify(status, body, message))
    }

    /// A provider's sentence as it may be passed on: short, and without our key.
    pub(super) fn shown(&self, message: &str) -> String {
        let key = self.key();
        let safe = if key.is_empty() { message.to_owned() } else { message.replace(key, "[key]") };
        super::query::fit(&safe, LONGEST_MESSAGE, usize::MAX)
    }
}

/// Parses an answer that is not an error.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    // Only the kind and place of the fault: the text around it is the provider's.
    serde_json::from_slice(body).map_err(|error| {
        let kind = if error.is_data() {
            "it lacks what its documentation promises"
        } else {
            "it is not JSON"
        };
        tracing::debug!(%error, "a provider's answer cannot be read");
        Fault::Unreadable(kind.to_owned())
    })
}

fn classify(status: u16, body: &[u8], message: String) -> Fault {
    let text = String::from_utf8_lossy(&body[..body.len().min(4096)]).to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let used_up = || {
        says(&[
            "not enough credits",
            "insufficient credits",
            "no_more_credits",
            "budget_exceeded",
            "dailylimitexceeded",
            "queries per day",
            "usage limit",
            "quota_limited",
        ])
    };
    match status {
        401 => Fault::BadKey,
        402 | 432 | 433 => Fault::Quota,
        429 if used_up() => Fault::Quota,
        429 => Fault::RateLimited,
        500.. => Fault::Failed { status },
        _ if says(&["ratelimitexceeded"]) => Fault::RateLimited,
        _ if used_up() => Fault::Quota,
        _ if says(&[
            "token_invalid",
            "api_key_invalid",
            "api key not valid",
            "invalid api key",
            "unauthorized",
        ]) =>
        {
            Fault::BadKey
        }
        _ => Fault::Refused { status, message },
    }
}

/// What a provider says when something is wrong.
#[derive(Default)]
struct Said {
    /// Set when the body says that it is an error, whatever its status says.
    error_code: Option<u16>,
    message: String,
}

/// The forms in which providers say it: `error` as an object or text, `message`, `detail` as text or `{error}`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SaidJson {
    error: Option<Lenient<ErrorJson>>,
    message: Option<Lenient<String>>,
    detail: Option<Lenient<ErrorJson>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorJson {
    Text(String),
    Object {
        code: Option<Lenient<u16>>,
        message: Option<Lenient<String>>,
        detail: Option<Lenient<String>>,
        error: Option<Lenient<String>>,
    },
}

impl ErrorJson {
    fn parts(self) -> (Option<u16>, String) {
        match self {
            Self::Text(text) => (None, text),
            Self::Object { code, message, detail, error } => {
                let text = [message, detail, error].into_iter().flatten().find_map(Lenient::fits);
                (code.and_then(Lenient::fits), text.unwrap_or_default())
            }
        }
    }
}

impl Said {
    fn of(body: &[u8]) -> Self {
        let Ok(json) = serde_json::from_slice::<SaidJson>(body) else { return Self::default() };
        let (code, error) =
            json.error.and_then(Lenient::fits).map(ErrorJson::parts).unwrap_or_default();
        let (_, detail) =
            json.detail.and_then(Lenient::fits).map(ErrorJson::parts).unwrap_or_default();
        let message = json.message.and_then(Lenient::fits).unwrap_or_default();
        let is_error = code.is_some() || !error.is_empty();
        let known = code.filter(|code| (400..600).contains(code));
        let said = [error, detail, message].into_iter().find(|text| !text.is_empty());
        Self {
            error_code: is_error.then(|| known.unwrap_or(400)),
            message: said.unwrap_or_default(),
        }
    }
}

/// A value that is left out when it has another form than expected: one odd result must not cost the others.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Lenient<T> {
    /// As expected.
    Fits(T),
    /// Something else.
    Odd(IgnoredAny),
}

impl<T> Lenient<T> {
    pub(super) fn fits(self) -> Option<T> {
        match self {
            Self::Fits(value) => Some(value),
            Self::Odd(_) => None,
        }
    }
}

/// A text that may be absent or something else.
pub(super) type Text = Option<Lenient<String>>;

/// The text, if there is one.
pub(super) fn text(text: Text) -> Option<String> {
    text.and_then(Lenient::fits).filter(|text| !text.trim().is_empty())
}

/// The results that have the expected form.
pub(super) fn fitting<T>(results: Vec<Lenient<T>>) -> impl Iterator<Item = T> {
    results.into_iter().filter_map(Lenient::fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str) -> (Option<u16>, String) {
        let said = Said::of(body.as_bytes());
        (said.error_code, said.message)
    }

    #[test]
    fn errors_are_found_in_all_forms() {
        for (body, code, message) in [
            (r#"{"error":{"code":403,"message":"no"}}"#, Some(403), "no"),
            (r#"{"error":{"code":"RATE_LIMITED","detail":"slow"}}"#, Some(400), "slow"),
            (r#"{"error":"bad key","tag":"X"}"#, Some(400), "bad key"),
            (r#"{"detail":{"error":"Unauthorized"}}"#, None, "Unauthorized"),
            (r#"{"detail":"gone"}"#, None, "gone"),
            (r#"{"message":"Not enough credits","statusCode":400}"#, None, "Not enough credits"),
            (r#"{"error":null,"results":[]}"#, None, ""),
            (r#"{"error":""}"#, None, ""),
            (r#"{"error":[1],"message":2}"#, None, ""),
            ("<html>", None, ""),
            ("[]", None, ""),
        ] {
            assert_eq!(said(body), (code, message.to_owned()), "{body}");
        }
    }

    #[test]
    fn an_error_is_told_by_status_and_words() {
        for (status, body, expected) in [
            (401, "", "refused the key of this server; its operator has to check `api_key_env`"),
            (
                403,
                r#"{"message":"Unauthorized."}"#,
                "refused the key of this server; its operator has to check `api_key_env`",
            ),
            (
                422,
                r#"{"error":{"code":"SUBSCRIPTION_TOKEN_INVALID"}}"#,
                "refused the key of this server; its operator has to check `api_key_env`",
            ),
            (402, "", "says that the plan or the credits of this server are used up"),
            (
                400,
                r#"{"message":"Not enough credits"}"#,
                "says that the plan or the credits of this server are used up",
            ),
            (
                429,
                "Quota exceeded for 'Queries per day'",
                "says that the plan or the credits of this server are used up",
            ),
            (429, "", "gets too many requests at the moment; try again later"),
            (403, "userRateLimitExceeded", "gets too many requests at the moment; try again later"),
            (503, "", "failed on its side (HTTP 503)"),
            (404, "", "refused the request (HTTP 404): m"),
        ] {
            assert_eq!(
                classify(status, body.as_bytes(), "m".to_owned()).to_string(),
                expected,
                "{status} {body}"
            );
        }
        assert_eq!(
            Fault::Refused { status: 418, message: String::new() }.to_string(),
            "refused the request (HTTP 418)"
        );
    }
}
