//! Which upstream answers for which model, and the next one when it does not.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use serde::Deserialize;
use time::OffsetDateTime;
use tokio::time::timeout;

use super::{
    Ask, Backend, Deltas, Dialect, Facts, Model, ModelError, ModelErrorKind, SettingError,
    Surroundings,
};
use crate::{config::Upstream, net::read_limited};

/// How long a list of models is taken for true.
const FRESH: Duration = Duration::from_secs(30);
/// How long an upstream is waited for when it is asked for its models.
const LIST_PATIENCE: Duration = Duration::from_secs(5);
/// The longest list of models, in bytes.
const LONGEST_LIST: usize = 8 * 1024 * 1024;
/// Where servers at home usually listen, and what they are called then.
const USUAL_PORTS: [(u16, &str); 5] =
    [(11434, "ollama"), (8000, "vllm"), (8080, "llamacpp"), (1234, "lmstudio"), (30000, "sglang")];

/// All upstreams as one model.
#[derive(Debug)]
pub struct Router {
    backends: Vec<Served>,
    /// Counts questions, so that weights are kept exactly.
    turn: AtomicU64,
}

/// An upstream and what it was last heard to have.
#[derive(Debug)]
struct Served {
    backend: Arc<Backend>,
    list: Mutex<Option<(OffsetDateTime, Vec<ListedModel>)>>,
}

/// A model that can be asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListedModel {
    /// The name to ask for.
    pub id: String,
    /// When it was made, in seconds since 1970; 0 when its upstream does not say.
    pub created: i64,
    /// The name of its upstream.
    pub owned_by: String,
}

/// An upstream that may be asked, and the name by which it knows the model.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) backend: Arc<Backend>,
    pub(super) model: String,
}

impl Router {
    /// Over these upstreams, in this order. None of them is asked anything yet.
    pub fn new(upstreams: Vec<Upstream>, around: &Surroundings) -> Result<Self, SettingError> {
        let mut names = BTreeSet::new();
        let mut backends = Vec::with_capacity(upstreams.len());
        for upstream in upstreams {
            if !names.insert(upstream.name.clone()) {
                return Err(SettingError::Twice(upstream.name));
            }
            let backend = Arc::new(Backend::new(upstream, around.clone())?);
            backends.push(Served { backend, list: Mutex::default() });
        }
        Ok(Self { backends, turn: AtomicU64::new(0) })
    }

    /// How a model is spoken to, at the upstream that would be asked first.
    pub async fn dialect_for(&self, model: &str) -> Arc<Dialect> {
        match self.serving(model).into_iter().next() {
            Some(Candidate { backend, model }) => backend.dialect(&model).await,
            None => Dialect::generic(),
        }
    }

    /// All models. An upstream that does not answer has those that it had before.
    pub async fn models(&self) -> Vec<ListedModel> {
        join_all(self.backends.iter().map(Served::models)).await.into_iter().flatten().collect()
    }

    /// Asks every upstream whether it is there; for a task that runs now and then.
    pub async fn check(&self) {
        join_all(self.backends.iter().map(Served::refresh)).await;
    }

    /// The upstreams of a model in the order in which they are asked this time.
    pub(super) fn candidates(&self, model: &str) -> Vec<Candidate> {
        let mut serving = self.serving(model);
        let total: u64 = serving
            .iter()
            .map(|candidate| u64::from(candidate.backend.settings.weight.get()))
            .sum();
        if serving.len() > 1 {
            let mut place = self.turn.fetch_add(1, Ordering::Relaxed) % total;
            let first = serving.iter().position(|candidate| {
                let weight = u64::from(candidate.backend.settings.weight.get());
                let here = place < weight;
                place = place.saturating_sub(weight);
                here
            });
            serving.rotate_left(first.unwrap_or(0));
            // Stable, so that the order by weight is kept among equals.
            serving.sort_by_key(|candidate| {
                let spared = candidate.backend.health.is_spared(&candidate.backend.around.clock);
                (spared, !self.may_have(candidate))
            });
        }
        serving
    }

    /// The upstream that is asked when a request names no model that can be read.
    pub(super) fn default_backend(&self) -> Option<Arc<Backend>> {
        self.backends.first().map(|served| served.backend.clone())
    }

    /// The upstreams of a model: the one that its name begins with, else all whose aliases or patterns fit.
    fn serving(&self, model: &str) -> Vec<Candidate> {
        if let Some((name, rest)) = model.split_once('/')
            && let Some(served) = self.backends.iter().find(|served| served.backend.name() == name)
            && let Some(candidate) = served.candidate(rest)
        {
            return vec![candidate];
        }
        self.backends.iter().filter_map(|served| served.candidate(model)).collect()
    }

    /// Whether the upstream has the model, as far as is known.
    fn may_have(&self, candidate: &Candidate) -> bool {
        let served =
            self.backends.iter().find(|served| served.backend.name() == candidate.backend.name());
        let list = served.map(|served| served.list.lock().unwrap_or_else(PoisonError::into_inner));
        list.as_deref()
            .and_then(Option::as_ref)
            .is_none_or(|(_, list)| list.iter().any(|model| model.id == candidate.model))
    }

    async fn ask_any(&self, ask: &Ask<'_>) -> Result<Deltas, ModelError> {
        let candidates = self.candidates(ask.model);
        let mut failed: Option<ModelError> = None;
        let last = candidates.len().saturating_sub(1);
        for (at, Candidate { backend, model }) in candidates.into_iter().enumerate() {
            // Another upstream is better than waiting for this one.
            let retries = if at == last { backend.around.patience.retries } else { 0 };
            match backend.ask_for(ask, &model, retries).await {
                Ok(deltas) => return Ok(deltas),
                Err(error) if at < last && another_may_answer(error.kind) => {
                    tracing::warn!(upstream = backend.name(), model, %error, "asking the next upstream");
                    failed = failed
                        .filter(|failed| failed.kind != ModelErrorKind::ModelNotFound)
                        .or(Some(error));
                }
                // That one of several does not know the model says less than why another failed.
                Err(error) if error.kind == ModelErrorKind::ModelNotFound => {
                    return Err(failed.unwrap_or(error));
                }
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| not_served(ask.model)))
    }
}

impl Model for Router {
    fn ask<'a>(&'a self, ask: &'a Ask<'a>) -> BoxFuture<'a, Result<Deltas, ModelError>> {
        Box::pin(self.ask_any(ask))
    }

    fn facts<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Facts> {
        Box::pin(async move {
            let dialect = self.dialect_for(model).await;
            Facts { think: dialect.think(), reading: dialect.reading() }
        })
    }
}

impl Served {
    fn candidate(&self, model: &str) -> Option<Candidate> {
        let settings = &self.backend.settings;
        let known_as = match settings.aliases.get(model) {
            Some(target) => target,
            None if settings.models.iter().any(|glob| glob.is_match(model)) => model,
            None => return None,
        };
        Some(Candidate { backend: self.backend.clone(), model: known_as.to_owned() })
    }

    async fn models(&self) -> Vec<ListedModel> {
        let now = self.backend.around.clock.now();
        let fresh = |at: OffsetDateTime| now - at < FRESH;
        if !self.list().as_ref().is_some_and(|(at, _)| fresh(*at)) {
            self.refresh().await;
        }
        let mut models = self.list().as_ref().map(|(_, list)| list.clone()).unwrap_or_default();
        let settings = &self.backend.settings;
        models.retain(|model| settings.models.iter().any(|glob| glob.is_match(&model.id)));
        models.extend(settings.aliases.keys().map(|alias| ListedModel {
            id: alias.clone(),
            created: 0,
            owned_by: settings.name.clone(),
        }));
        models
    }

    /// Asks for the list; what is no answer leaves the old one.
    async fn refresh(&self) {
        #[derive(Deserialize)]
        struct List<'a> {
            #[serde(borrow)]
            data: Vec<Entry<'a>>,
        }
        #[derive(Deserialize)]
        struct Entry<'a> {
            #[serde(borrow)]
            id: Cow<'a, str>,
            #[serde(default)]
            created: Option<f64>,
        }
        let backend = &self.backend;
        let answer = async {
            let response = match backend.get(backend.settings.endpoint("models")).send().await {
                Ok(response) => response,
                Err(error) => {
                    backend.unreachable(&error);
                    return None;
                }
            };
            backend.health.reached();
            if !response.status().is_success() {
                return None;
            }
            let body = read_limited(response, LONGEST_LIST).await.ok()?;
            let list: List<'_> = serde_json::from_slice(&body).ok()?;
            let models = list.data.into_iter().map(|entry| ListedModel {
                id: entry.id.into_owned(),
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "a time in seconds; a wrong one saturates"
                )]
                created: entry.created.unwrap_or(0.0) as i64,
                owned_by: backend.name().to_owned(),
            });
            Some(models.collect::<Vec<_>>())
        };
        if let Ok(Some(models)) = timeout(LIST_PATIENCE, answer).await {
            *self.list() = Some((backend.around.clock.now(), models));
        }
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Option<(OffsetDateTime, Vec<ListedModel>)>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The model servers on this machine's usual ports that answer.
pub async fn discover(client: &reqwest::Client) -> Vec<Upstream> {
    discover_at(client, &USUAL_PORTS).await
}

/// The model servers on these ports that answer.
pub async fn discover_at(client: &reqwest::Client, ports: &[(u16, &str)]) -> Vec<Upstream> {
    #[derive(Deserialize)]
    struct List {
        #[serde(rename = "data")]
        _data: Vec<serde::de::IgnoredAny>,
    }
    let asked = ports.iter().map(|(port, name)| async move {
        let base = format!("http://127.0.0.1:{port}/v1");
        let response = timeout(Duration::from_secs(1), client.get(format!("{base}/models")).send())
            .await
            .ok()?
            .ok()?;
        let body = timeout(Duration::from_secs(1), read_limited(response, LONGEST_LIST))
            .await
            .ok()?
            .ok()?;
        serde_json::from_slice::<List>(&body).ok()?;
        let settings = format!(r#"{{"name":"{name}","base_url":"{base}"}}"#);
        serde_json::from_str::<Upstream>(&settings).ok()
    });
    join_all(asked).await.into_iter().flatten().collect()
}

pub(super) fn not_served(model: &str) -> ModelError {
    ModelError::new(
        ModelErrorKind::ModelNotFound,
        format!(
            "The model `{model}` does not exist: no upstream of this server has it. `GET /v1/models` lists those there are."
        ),
    )
}

/// Whether another upstream may answer what this one did not.
fn another_may_answer(kind: ModelErrorKind) -> bool {
    match kind {
        ModelErrorKind::ModelNotFound
        | ModelErrorKind::RateLimited(_)
        | ModelErrorKind::QuotaExceeded
        | ModelErrorKind::Unavailable(_)
        | ModelErrorKind::Unauthorized
        | ModelErrorKind::Unreachable
        | ModelErrorKind::Timeout
        | ModelErrorKind::BrokenStream
        | ModelErrorKind::Failed => true,
        ModelErrorKind::ContextOverflow | ModelErrorKind::Rejected => false,
    }
}
