//! W3C trace context: whose trace a request belongs to, in and out.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::{
    propagation::{Extractor, Injector, TextMapPropagator as _},
    trace::TraceContextExt as _,
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Makes `span` a part of the trace that `traceparent` and `tracestate` name; one that does not parse is ignored, as W3C
/// says. To be called before the span is entered.
pub fn adopt_parent(span: &Span, headers: &HeaderMap) {
    let parent = TraceContextPropagator::new().extract(&Headers(headers));
    if parent.span().span_context().is_valid() {
        // Fails only where no traces are exported, and then there is nothing to belong to.
        let _ = span.set_parent(parent);
    }
}

/// Tells the server that `headers` go to which trace and span the request belongs to. Without a collector: nothing.
pub fn inject(span: &Span, headers: &mut HeaderMap) {
    TraceContextPropagator::new().inject_context(&span.context(), &mut HeadersMut(headers));
}

/// The `traceparent` of a span. `None` without a collector.
pub fn traceparent(span: &Span) -> Option<String> {
    let mut headers = HeaderMap::new();
    inject(span, &mut headers);
    headers.get("traceparent")?.to_str().ok().map(str::to_owned)
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct HeadersMut<'a>(&'a mut HeaderMap);

impl Injector for HeadersMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        // An empty tracestate says nothing.
        if !value.is_empty()
            && let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value))
        {
            self.0.insert(name, value);
        }
    }
}
