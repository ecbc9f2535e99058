//! Numbers for Prometheus, in the `OpenMetrics` text format.

use std::{
    collections::HashSet,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};

/// Names of models, and of tools, that get a label of their own; all further ones are counted as `other`, for clients can send any name.
const MAX_NAMES: usize = 200;

/// All numbers. Cheap to clone; every clone counts into the same.
#[derive(Clone, Debug)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    streams: Gauge,
    responses: Family<StatusLabel, Counter>,
    rounds: Family<ModelLabel, Counter>,
    call_errors: Family<ErrorLabel, Counter>,
    tokens: Family<TokenLabels, Counter>,
    first_token: Family<ModelLabel, Histogram, fn() -> Histogram>,
    tool_calls: Family<ToolLabels, Counter>,
    tool_time: Family<ToolLabel, Histogram, fn() -> Histogram>,
    rescues: Family<RescueLabels, Counter>,
    models: Mutex<HashSet<Arc<str>>>,
    tools: Mutex<HashSet<Arc<str>>>,
    other: Arc<str>,
}

/// Why a call of an upstream model failed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, EncodeLabelValue)]
#[expect(
    non_camel_case_types,
    reason = "the encoder writes the variant's name as it stands, and labels are snake case"
)]
#[expect(missing_docs, reason = "the names say it")]
pub enum CallError {
    connect,
    timeout,
    rate_limit,
    refused,
    server,
    protocol,
}

/// How a call of a tool ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, EncodeLabelValue)]
#[expect(
    non_camel_case_types,
    reason = "the encoder writes the variant's name as it stands, and labels are snake case"
)]
pub enum ToolEnd {
    /// With a result.
    completed,
    /// With an error that the model can act on.
    failed,
    /// It was not run: its arguments do not fit, or there is no such tool.
    refused,
    /// It took too long.
    timeout,
    /// With an error of ours.
    broken,
}

/// Why the text of a model was read for calls.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, EncodeLabelValue)]
#[expect(
    non_camel_case_types,
    reason = "the encoder writes the variant's name as it stands, and labels are snake case"
)]
pub enum RescueGround {
    /// The dialect declares how they are written.
    declared,
    /// It looked like a call, or one was due.
    guessed,
}

/// Which way tokens went.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum TokenKind {
    /// Into the model.
    Input,
    /// Out of it.
    Output,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: String,
    status: u16,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, EncodeLabelSet)]
struct StatusLabel {
    status: &'static str,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, EncodeLabelSet)]
struct ModelLabel {
    model: Arc<str>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, EncodeLabelSet)]
struct ToolLabel {
    tool: Arc<str>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, EncodeLabelSet)]
struct ToolLabels {
    tool: Arc<str>,
    outcome: ToolEnd,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, EncodeLabelSet)]
struct ErrorLabel {
    kind: CallError,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, EncodeLabelSet)]
struct RescueLabels {
    ground: RescueGround,
    outcome: &'static str,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq, EncodeLabelSet)]
struct TokenLabels {
    model: Arc<str>,
    direction: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut inner = Inner {
            registry: Registry::with_prefix("antiphon"),
            requests: Family::default(),
            streams: Gauge::default(),
            responses: Family::default(),
            rounds: Family::default(),
            call_errors: Family::default(),
            tokens: Family::default(),
            // From 25 ms, a small model that is warm, up to 13 minutes, a large one that is not.
            first_token: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.025, 2.0, 16))
            }),
            tool_calls: Family::default(),
            // From 5 ms, a clock, up to 5 minutes, a picture.
            tool_time: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.005, 3.0, 11))
            }),
            rescues: Family::default(),
            models: Mutex::default(),
            tools: Mutex::default(),
            other: Arc::from("other"),
        };
        let registry = &mut inner.registry;
        registry.register("http_requests", "HTTP requests answered", inner.requests.clone());
        registry.register("streams_active", "Streams that clients read now", inner.streams.clone());
        registry.register("responses", "Responses that ended", inner.responses.clone());
        registry.register("rounds", "Calls of upstream models", inner.rounds.clone());
        registry.register(
            "model_call_errors",
            "Calls of upstream models that failed",
            inner.call_errors.clone(),
        );
        registry.register("tokens", "Tokens into and out of models", inner.tokens.clone());
        registry.register_with_unit(
            "first_token",
            "Time from the call of a model to its first token",
            Unit::Seconds,
            inner.first_token.clone(),
        );
        registry.register("tool_calls", "Calls of tools that ended", inner.tool_calls.clone());
        registry.register_with_unit(
            "tool_time",
            "Time that calls of tools took, waiting for their turn apart",
            Unit::Seconds,
            inner.tool_time.clone(),
        );
        registry.register(
            "rescues",
            "Rounds whose text was read for calls that the model wrote there",
            inner.rescues.clone(),
        );
        Self { inner: Arc::new(inner) }
    }
}

impl Metrics {
    /// A request was answered. `route` is the pattern (`/v1/responses/{id}`), never the path, which has no bound.
    pub fn request(&self, route: &str, method: &str, status: u16) {
        let method = match method {
            "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS" => method,
            _ => "other",
        };
        let labels = RequestLabels { route: route.to_owned(), method: method.to_owned(), status };
        self.inner.requests.get_or_create(&labels).inc();
    }

    /// A client begins to read a stream, until the guard is dropped.
    #[must_use = "the stream counts as over when the guard is dropped"]
    pub fn stream(&self) -> StreamGuard {
        self.inner.streams.inc();
        StreamGuard { streams: self.inner.streams.clone() }
    }

    /// A Response ended with this status.
    pub fn response(&self, status: &'static str) {
        self.inner.responses.get_or_create(&StatusLabel { status }).inc();
    }

    /// A model is called.
    pub fn round(&self, model: &str) {
        self.inner.rounds.get_or_create(&ModelLabel { model: self.bounded(model) }).inc();
    }

    /// A call of a model failed.
    pub fn call_error(&self, kind: CallError) {
        self.inner.call_errors.get_or_create(&ErrorLabel { kind }).inc();
    }

    /// A model read or wrote so many tokens.
    pub fn tokens(&self, model: &str, kind: TokenKind, count: u64) {
        let direction = match kind {
            TokenKind::Input => "input",
            TokenKind::Output => "output",
        };
        let labels = TokenLabels { model: self.bounded(model), direction };
        self.inner.tokens.get_or_create(&labels).inc_by(count);
    }

    /// A model gave its first token after so long.
    pub fn first_token(&self, model: &str, after: Duration) {
        let labels = ModelLabel { model: self.bounded(model) };
        self.inner.first_token.get_or_create(&labels).observe(after.as_secs_f64());
    }

    /// A call of a tool ended. `tool` is a name of ours, or `server` for those of others.
    pub fn tool_call(&self, tool: &str, outcome: ToolEnd) {
        let labels = ToolLabels { tool: self.tool(tool), outcome };
        self.inner.tool_calls.get_or_create(&labels).inc();
    }

    /// A call of a tool took so long.
    pub fn tool_time(&self, tool: &str, elapsed: Duration) {
        let labels = ToolLabel { tool: self.tool(tool) };
        self.inner.tool_time.get_or_create(&labels).observe(elapsed.as_secs_f64());
    }

    /// The text of a model was read for calls, and had so many.
    pub fn rescue(&self, ground: RescueGround, calls: usize) {
        let outcome = if calls > 0 { "found" } else { "nothing" };
        self.inner.rescues.get_or_create(&RescueLabels { ground, outcome }).inc();
    }

    /// The body of `/metrics`, of type `application/openmetrics-text; version=1.0.0; charset=utf-8`.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        // Writing into a `String` cannot fail.
        let _ = text::encode(&mut out, &self.inner.registry);
        out
    }

    fn bounded(&self, model: &str) -> Arc<str> {
        self.label(&self.inner.models, model)
    }

    fn tool(&self, tool: &str) -> Arc<str> {
        self.label(&self.inner.tools, tool)
    }

    /// The label for a name that clients can choose: the name, or `other` when there are too many already.
    fn label(&self, known: &Mutex<HashSet<Arc<str>>>, name: &str) -> Arc<str> {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(name) = known.get(name) {
            return name.clone();
        }
        if known.len() == MAX_NAMES {
            return self.inner.other.clone();
        }
        let name: Arc<str> = Arc::from(name);
        known.insert(name.clone());
        name
    }
}

/// A stream that a client reads. See [`Metrics::stream`].
#[derive(Debug)]
pub struct StreamGuard {
    streams: Gauge,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.streams.dec();
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn numbers_are_encoded() {
        let metrics = Metrics::default();
        metrics.request("/v1/responses/{id}", "GET", 404);
        metrics.request("/v1/responses/{id}", "BREW", 405);
        let open = metrics.stream();
        drop(metrics.clone().stream());
        metrics.response("completed");
        metrics.round("qwen\"3");
        metrics.call_error(CallError::rate_limit);
        metrics.tokens("m", TokenKind::Input, 7);
        metrics.tokens("m", TokenKind::Output, 3);
        metrics.first_token("m", Duration::from_millis(30));
        metrics.rescue(RescueGround::guessed, 0);
        metrics.rescue(RescueGround::declared, 2);
        let encoded = metrics.encode();
        let lines: Vec<&str> = encoded.lines().filter(|line| !line.starts_with('#')).collect();
        for expected in [
            r#"antiphon_http_requests_total{route="/v1/responses/{id}",method="GET",status="404"} 1"#,
            r#"antiphon_http_requests_total{route="/v1/responses/{id}",method="other",status="405"} 1"#,
            "antiphon_streams_active 1",
            r#"antiphon_responses_total{status="completed"} 1"#,
            r#"antiphon_rounds_total{model="qwen\"3"} 1"#,
            r#"antiphon_model_call_errors_total{kind="rate_limit"} 1"#,
            r#"antiphon_tokens_total{model="m",direction="input"} 7"#,
            r#"antiphon_tokens_total{model="m",direction="output"} 3"#,
            r#"antiphon_first_token_seconds_bucket{le="0.025",model="m"} 0"#,
            r#"antiphon_first_token_seconds_bucket{le="0.05",model="m"} 1"#,
            r#"antiphon_first_token_seconds_count{model="m"} 1"#,
            r#"antiphon_rescues_total{ground="guessed",outcome="nothing"} 1"#,
            r#"antiphon_rescues_total{ground="declared",outcome="found"} 1"#,
        ] {
            assert!(lines.contains(&expected), "{expected} is missing from\n{encoded}");
        }
        assert!(encoded.ends_with("# EOF\n"));
        drop(open);
        assert!(metrics.encode().contains("antiphon_streams_active 0\n"));
    }

    #[test]
    fn models_beyond_the_bound_share_a_label() {
        let metrics = Metrics::default();
        for i in 0..MAX_NAMES + 5 {
            metrics.round(&format!("model-{i}"));
        }
        metrics.round("model-0");
        let encoded = metrics.encode();
        assert_eq!(encoded.matches("antiphon_rounds_total{").count(), MAX_NAMES + 1);
        assert!(encoded.contains("antiphon_rounds_total{model=\"other\"} 5\n"), "{encoded}");
        assert!(encoded.contains("antiphon_rounds_total{model=\"model-0\"} 2\n"), "{encoded}");
    }
}
