//! What can be seen of a running server: log lines, traces for a collector (OTLP), and numbers for Prometheus.
//!
//! Invariants: nothing is exported unless a collector is named; what was recorded is flushed by [`Telemetry::shutdown`];
//! labels of metrics are bounded, whatever names clients send. It knows nothing of the other modules: settings come in
//! as [`Settings`], and what a number means is decided where it is counted.

mod context;
mod metrics;

use std::{io, thread, time::Duration};

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Registry,
    fmt::MakeWriter,
    layer::{Layer, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

pub use self::{
    context::{adopt_parent, inject, traceparent},
    metrics::{CallError, Metrics, RescueGround, StreamGuard, TokenKind, ToolEnd},
};

/// What to show, and to whom.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which lines and spans, in the syntax of `RUST_LOG`.
    pub filter: String,
    /// How a line looks.
    pub format: Format,
    /// Base address of an OTLP/HTTP collector; `/v1/traces` is appended. `None`: no traces leave.
    pub otlp_endpoint: Option<String>,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Telemetry cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not one.
    #[error("`log.filter` (or RUST_LOG) cannot be read: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// The exporter of traces cannot be built.
    #[error("traces cannot be exported: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// Something has set a subscriber for this process already.
    #[error("the log is set up already: {0}")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// The running exporters. Keep it until the end and call [`Telemetry::shutdown`], else the last spans are lost.
#[derive(Debug)]
#[must_use = "the last spans are lost without a shutdown"]
pub struct Telemetry {
    traces: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Sends the log of this process to the standard error output, and its spans to the collector. Once per process.
    pub fn start(settings: &Settings) -> Result<Self, TelemetryError> {
        let (subscriber, telemetry) = Self::build(settings, io::stderr)?;
        subscriber.try_init()?;
        Ok(telemetry)
    }

    /// As [`Telemetry::start`], but leaves it to the caller what the subscriber is for.
    pub fn build<W>(
        settings: &Settings,
        writer: W,
    ) -> Result<(impl Subscriber + Send + Sync + use<W>, Self), TelemetryError>
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let traces = settings.otlp_endpoint.as_deref().map(exporting).transpose()?;
        let spans = traces
            .as_ref()
            .map(|traces| tracing_opentelemetry::layer().with_tracer(traces.tracer("antiphon")));
        let lines: Box<dyn Layer<Registry> + Send + Sync> = match settings.format {
            Format::Text => {
                tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer).boxed()
            }
            Format::Json => tracing_subscriber::fmt::layer().json().with_writer(writer).boxed(),
        };
        let filter = EnvFilter::builder().parse(&settings.filter)?;
        Ok((Registry::default().with(lines).with(spans).with(filter), Self { traces }))
    }

    /// Sends what is left and stops, after five seconds at the latest. Blocks: call it when the runtime is gone.
    pub fn shutdown(self) {
        let Some(traces) = self.traces else { return };
        // A thread of its own, for the blocking client refuses to work on a thread of the async runtime.
        let stopping = thread::spawn(move || traces.shutdown_with_timeout(Duration::from_secs(5)));
        match stopping.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last traces were not delivered"),
            Err(_) => tracing::warn!("the exporter of traces panicked while it was stopped"),
        }
    }
}

/// A provider that sends spans in batches from a thread of its own.
fn exporting(endpoint: &str) -> Result<SdkTracerProvider, TelemetryError> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .build()?;
    // The resource also takes OTEL_RESOURCE_ATTRIBUTES, as every program with this library does.
    let resource = Resource::builder().with_service_name("antiphon").build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

#[cfg(test)]
#[path = "telemetry_tests.rs"]
mod tests;
