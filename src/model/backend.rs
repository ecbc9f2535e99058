//! One upstream: asked over its wire, in its dialect, with what it turned out not to take, and again when that may help.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep, timeout},
};

use super::{
    Ask, Deltas, Facts, Model, ModelError, ModelErrorKind,
    answer::Answer,
    chat, detect,
    dialect::Dialect,
    health::Health,
    intake::Reading,
    responses,
    terms::Terms,
    told::{Told, body_text},
};
use crate::{
    clock::{Clock, Ids},
    config::{Engine, ModelOverride, Upstream, Wire},
    net::{Backoff, read_limited, retry_after},
};

/// The longest body of an error that is read, in bytes.
const LONGEST_ERROR: usize = 64 * 1024;
/// How long the body of an error is waited for.
const ERROR_BODY: Duration = Duration::from_secs(10);
/// How often one question is changed to what the backend takes.
const MOST_CHANGES: usize = 4;
/// A longer wait is the client's to decide on.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Between attempts, when the backend names no time.
const BACKOFF: Backoff =
    Backoff { first: Duration::from_millis(500), most: Duration::from_secs(8) };
/// How many models' peculiarities are remembered. Names come from clients.
const MOST_REMEMBERED: usize = 1024;

/// How long an upstream is waited for, and how often it is asked again.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The longest until the model says its first word.
    pub first_byte: Duration,
    /// The longest silence between two pieces.
    pub between_chunks: Duration,
    /// How often a question that failed before the first word is asked again.
    pub retries: u32,
}

impl From<&Engine> for Patience {
    fn from(engine: &Engine) -> Self {
        Self {
            first_byte: engine.first_byte,
            between_chunks: engine.between_chunks,
            retries: engine.retries,
        }
    }
}

/// What all upstreams share.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// For what the operator configured.
    pub client: reqwest::Client,
    /// How long upstreams are waited for.
    pub patience: Patience,
    /// Dialect keys for some models.
    pub overrides: Arc<[ModelOverride]>,
    /// The time.
    pub clock: Clock,
    /// Spreads waits.
    pub ids: Ids,
}

/// A setting of an upstream that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// No such dialect.
    #[error("upstream `{upstream}`: there is no dialect `{dialect}`; use `auto` or one of {known}")]
    Dialect {
        /// The upstream.
        upstream: String,
        /// What it says.
        dialect: String,
        /// What it may say.
        known: String,
    },
    /// A header that no request can carry.
    #[error("upstream `{upstream}`: the header `{header}` is none")]
    Header {
        /// The upstream.
        upstream: String,
        /// The header's name.
        header: String,
    },
    /// Two upstreams have one name.
    #[error("two upstreams are called `{0}`")]
    Twice(String),
}

/// One upstream.
#[derive(Debug)]
pub struct Backend {
    pub(super) settings: Upstream,
    pub(super) around: Surroundings,
    pub(super) health: Health,
    headers: HeaderMap,
    /// The dialect before overrides; empty until it is found out.
    found: OnceCell<Arc<Dialect>>,
    dialects: Mutex<HashMap<String, Arc<Dialect>>>,
    /// Parameters that a model refused by name.
    refused: Mutex<HashMap<String, Vec<&'static str>>>,
}

/// A question that failed before the first word.
struct Failure {
    error: ModelError,
    /// What the backend said, when it refused the question.
    told: Option<Told>,
}

/// A question as it goes over the wire.
struct Question {
    path: &'static str,
    body: Vec<u8>,
    /// Who reads the answer.
    reading: Box<dyn Reading>,
}

impl Backend {
    /// An upstream. It is not asked anything yet.
    pub fn new(settings: Upstream, around: Surroundings) -> Result<Self, SettingError> {
        let found = match settings.dialect.as_str() {
            "auto" => OnceCell::new(),
            name => {
                let dialect = Dialect::named(name).ok_or_else(|| SettingError::Dialect {
                    upstream: settings.name.clone(),
                    dialect: name.to_owned(),
                    known: Dialect::names()
                        .map(|name| format!("`{name}`"))
                        .collect::<Vec<_>>()
                        .join(", "),
                })?;
                OnceCell::new_with(Some(dialect))
            }
        };
        Ok(Self {
            headers: headers(&settings)?,
            settings,
            around,
            health: Health::default(),
            found,
            dialects: Mutex::default(),
            refused: Mutex::default(),
        })
    }

    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// How this model of it is spoken to.
    pub async fn dialect(&self, model: &str) -> Arc<Dialect> {
        let base = match self.found.get() {
            Some(found) => found.clone(),
            // What cannot be reached cannot be known: it is asked again next time.
            None => match self
                .found
                .get_or_try_init(|| async { detect::detect(self).await.ok_or(()) })
                .await
            {
                Ok(found) => found.clone(),
                Err(()) => return Arc::new(self.adjusted(&Dialect::generic(), model)),
            },
        };
        let mut dialects = self.dialects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dialect) = dialects.get(model) {
            return dialect.clone();
        }
        if dialects.len() >= MOST_REMEMBERED {
            dialects.clear();
        }
        let dialect = Arc::new(self.adjusted(&base, model));
        dialects.insert(model.to_owned(), dialect.clone());
        dialect
    }

    /// Asks it for `model`, the name by which it knows it, up to `retries` times more.
    pub async fn ask_for(
        &self,
        ask: &Ask<'_>,
        model: &str,
        retries: u32,
    ) -> Result<Deltas, ModelError> {
        let dialect = self.dialect(model).await;
        let mut refused = self.refused_by(model);
        let (mut budget, mut changes, mut attempt, mut misread) = (None, 0, 0, false);
        loop {
            let terms = Terms { dialect: &dialect, refused: &refused, budget };
            let Failure { error, told } = match self.try_once(ask, model, &terms).await {
                Ok(deltas) => return Ok(deltas),
                Err(failure) => failure,
            };
            if let Some(told) = told.filter(|_| changes < MOST_CHANGES) {
                changes += 1;
                let limit = terms.token_limit(ask).filter(|_| budget.is_none());
                if let Some(fits) = limit.and_then(|asked| told.output_that_fits(asked)) {
                    tracing::debug!(upstream = self.name(), model, fits, "asking for less output");
                    budget = Some(fits);
                    continue;
                }
                if let Some(param) = told.refused_param().filter(|param| !refused.contains(param)) {
                    tracing::info!(
                        upstream = self.name(),
                        model,
                        param,
                        "asking without a parameter that is refused"
                    );
                    self.remember(model, param);
                    refused.push(param);
                    continue;
                }
            }
            // The model's words were at fault, not the question: another throw of the dice may give better ones.
            if !misread && error.is_misread_output() {
                misread = true;
                tracing::debug!(upstream = self.name(), model, %error, "asking again after unreadable output");
                continue;
            }
            let Some(wait) = self.wait(&error, attempt, retries) else { return Err(error) };
            tracing::info!(upstream = self.name(), model, %error, ?wait, "asking again");
            attempt += 1;
            sleep(wait).await;
        }
    }

    async fn try_once(
        &self,
        ask: &Ask<'_>,
        model: &str,
        terms: &Terms<'_>,
    ) -> Result<Deltas, Failure> {
        let Question { path, body, reading } =
            self.question(ask, model, terms).map_err(Failure::plain)?;
        let deadline = Instant::now() + self.around.patience.first_byte;
        let mut request = self
            .around
            .client
            .post(self.settings.endpoint(path))
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json");
        if let Some(traceparent) = &ask.traceparent {
            request = request.header("traceparent", traceparent);
        }
        let sent = timeout(self.around.patience.first_byte, request.body(body).send()).await;
        let response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(Failure::plain(self.unreachable(&error))),
            Err(_) => return Err(Failure::plain(self.late())),
        };
        self.health.reached();
        if !response.status().is_success() {
            let told = self.told(response).await;
            let error = told.means(model, self.key());
            return Err(Failure { error, told: Some(told) });
        }
        let mut answer = Answer::new(response, reading, self.around.patience.between_chunks);
        answer.begin(deadline).await.map_err(Failure::plain)?;
        Ok(answer.deltas())
    }

    /// Where the question goes, its body, and who reads the answer.
    fn question(
        &self,
        ask: &Ask<'_>,
        model: &str,
        terms: &Terms<'_>,
    ) -> Result<Question, ModelError> {
        let key = self.key().map(str::to_owned);
        let (path, body, reading): (_, _, Box<dyn Reading>) = match self.settings.wire {
            Wire::Chat => {
                let reading = chat::ChatReading::new(chat::ChatExpected {
                    model: model.to_owned(),
                    key,
                    reasoning_in: terms.dialect.reasoning_in.clone(),
                    wants_logprobs: ask.logprobs.is_some(),
                    tools: ask.tools.iter().map(|tool| tool.name.clone()).collect(),
                });
                ("chat/completions", chat::body(ask, model, terms)?, Box::new(reading))
            }
            Wire::Responses => {
                let reading = responses::ResponsesReading::new(model.to_owned(), key);
                ("responses", responses::body(ask, model, terms)?, Box::new(reading))
            }
        };
        Ok(Question { path, body, reading })
    }

    /// What the body of an error says.
    pub(super) async fn told(&self, response: reqwest::Response) -> Told {
        let status = response.status().as_u16();
        let after = retry_after(response.headers(), &self.around.clock);
        let body = match timeout(ERROR_BODY, read_limited(response, LONGEST_ERROR)).await {
            Ok(Ok(body)) => body_text(&body),
            Ok(Err(_)) | Err(_) => String::new(),
        };
        Told::of_answer(status, &body, after)
    }

    /// A GET of one of its addresses, with its key.
    pub(super) fn get(&self, url: url::Url) -> reqwest::RequestBuilder {
        self.around.client.get(url).headers(self.headers.clone()).header(ACCEPT, "application/json")
    }

    /// A request to an endpoint, with its key.
    pub(super) fn request(
        &self,
        method: reqwest::Method,
        url: url::Url,
    ) -> reqwest::RequestBuilder {
        self.around.client.request(method, url).headers(self.headers.clone())
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.settings.api_key.as_ref().map(crate::config::Secret::expose)
    }

    /// It could not be reached, or hung up before it answered.
    pub(super) fn unreachable(&self, error: &reqwest::Error) -> ModelError {
        self.health.missed(&self.around.clock);
        tracing::warn!(upstream = self.name(), error = ?error, "the upstream cannot be reached");
        ModelError::new(
            ModelErrorKind::Unreachable,
            format!("The upstream `{}` could not be reached.", self.name()),
        )
    }

    pub(super) fn late(&self) -> ModelError {
        let seconds = self.around.patience.first_byte.as_secs();
        ModelError::new(
            ModelErrorKind::Timeout,
            format!("The upstream `{}` did not answer within {seconds} seconds.", self.name()),
        )
    }

    /// How long to wait before the question is asked again; `None` when that is of no use.
    fn wait(&self, error: &ModelError, attempt: u32, retries: u32) -> Option<Duration> {
        let named = match error.kind {
            ModelErrorKind::RateLimited(after) | ModelErrorKind::Unavailable(after) => after,
            ModelErrorKind::Unreachable => None,
            ModelErrorKind::ContextOverflow
            | ModelErrorKind::ModelNotFound
            | ModelErrorKind::Rejected
            | ModelErrorKind::QuotaExceeded
            | ModelErrorKind::Unauthorized
            | ModelErrorKind::Timeout
            | ModelErrorKind::BrokenStream
            | ModelErrorKind::Failed => return None,
        };
        if attempt >= retries || named.is_some_and(|named| named > LONGEST_WAIT) {
            return None;
        }
        let spread = BACKOFF.wait(attempt, self.around.ids.number());
        // Who named a time is given it, and a little more, so that not all return in the same instant.
        Some(named.map_or(spread, |named| named + spread / 4))
    }

    fn adjusted(&self, base: &Dialect, model: &str) -> Dialect {
        base.with(&self.settings.overrides).for_model(model, &self.around.overrides)
    }

    fn refused_by(&self, model: &str) -> Vec<&'static str> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get(model).cloned().unwrap_or_default()
    }

    fn remember(&self, model: &str, param: &'static str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= MOST_REMEMBERED {
            refused.clear();
        }
        let params = refused.entry(model.to_owned()).or_default();
        if !params.contains(&param) {
            params.push(param);
        }
    }
}

impl Model for Backend {
    fn ask<'a>(&'a self, ask: &'a Ask<'a>) -> BoxFuture<'a, Result<Deltas, ModelError>> {
        Box::pin(self.ask_for(ask, ask.model, self.around.patience.retries))
    }

    fn facts<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Facts> {
        Box::pin(async move {
            let dialect = self.dialect(model).await;
            Facts { think: dialect.think(), reading: dialect.reading() }
        })
    }
}

impl Failure {
    fn plain(error: ModelError) -> Self {
        Self { error, told: None }
    }
}

/// The headers that every request to it carries.
fn headers(settings: &Upstream) -> Result<HeaderMap, SettingError> {
    let wrong = |header: &str| SettingError::Header {
        upstream: settings.name.clone(),
        header: header.to_owned(),
    };
    let mut headers = HeaderMap::new();
    let sensitive = |text: &str| {
        let mut value = HeaderValue::from_str(text).ok()?;
        value.set_sensitive(true);
        Some(value)
    };
    if let Some(key) = &settings.api_key {
        let value =
            sensitive(&format!("Bearer {}", key.expose())).ok_or_else(|| wrong("authorization"))?;
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in &settings.headers {
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(name))?;
        headers.insert(header, sensitive(value.expose()).ok_or_else(|| wrong(name))?);
    }
    Ok(headers)
}
