//! Whether the server lives, whether it can serve, and its counters.

use std::time::Duration;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::json;

use crate::store;

use super::Api;

/// How long the database may take to show that it is there: less than probes wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// `GET /healthz`: the process lives.
pub async fn alive() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: what is there and what is missing. 503 when no request could be served.
pub async fn ready(State(api): State<Api>) -> Response {
    let ping = store::pool::ping(&api.engine.parts().pool);
    let database = match tokio::time::timeout(PATIENCE, ping).await {
        Ok(Ok(())) => "ok",
        Ok(Err(_)) | Err(_) => "unreachable",
    };
    let (kind, listed) = (api.models.kind(), api.models.models().await.len());
    let mut missing = Vec::new();
    if database != "ok" {
        missing.push("the database cannot be reached");
    }
    if kind == "demo" {
        missing.push("no model server: only the scripted model `demo` answers");
    } else if listed == 0 {
        missing.push("the upstreams list no models");
    }
    let ready = database == "ok";
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let report = json!({
        "ready": ready,
        "database": database,
        "models": { "source": kind, "listed": listed },
        "missing": missing,
    });
    (status, Json(report)).into_response()
}

/// `GET /metrics`
pub async fn metrics(State(api): State<Api>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], api.engine.parts().metrics.encode())
}
