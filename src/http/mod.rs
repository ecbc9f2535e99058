//! SHELL: the door. One file per resource: a handler extracts, calls and renders; what it may do is decided behind it.
//!
//! Every refusal, also of the framework, has the one JSON envelope of [`ApiError`].

pub mod body;
pub mod connectors;
pub mod conversations;
pub mod door;
pub mod error;
pub mod health;
pub mod ids;
pub mod input_tokens;
pub mod memories;
pub mod models;
pub mod openapi;
pub mod page;
pub mod passthrough;
pub mod query;
pub mod replay;
pub mod responses;
pub mod socket;
pub mod sse;

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::{HeaderName, HeaderValue, Method, header},
    middleware,
    routing::{delete, get, post},
};
use tower_http::{
    cors::{AllowOrigin, CorsLayer},
    decompression::RequestDecompressionLayer,
};

use crate::{auth::Gate, engine::Engine, model::Source, protocol::ApiError, tools::Connectors};

/// What handlers work with.
#[derive(Clone)]
pub struct Api {
    inner: Arc<ApiParts>,
}

/// What an [`Api`] is made of.
pub struct ApiParts {
    /// Makes Responses.
    pub engine: Engine,
    /// Says who asks.
    pub gate: Gate,
    /// The models, for what is not a Response.
    pub models: Arc<Source>,
    /// MCP servers that were set up before.
    pub connectors: Connectors,
    /// The rules of the door.
    pub rules: DoorRules,
}

/// The rules of the door.
#[derive(Clone, Debug)]
pub struct DoorRules {
    /// A stream that says nothing for so long gets a comment.
    pub ping: Duration,
    /// The largest body, and the largest message on a socket, in bytes.
    pub body_limit: usize,
    /// Origins whose pages may call; `*` is any.
    pub cors: Vec<String>,
    /// How long a socket may be open.
    pub socket_max: Duration,
}

impl std::ops::Deref for Api {
    type Target = ApiParts;

    fn deref(&self) -> &ApiParts {
        &self.inner
    }
}

impl Api {
    /// An API of these parts.
    pub fn new(parts: ApiParts) -> Self {
        Self { inner: Arc::new(parts) }
    }
}

/// Everything that is served.
pub fn router(api: &Api) -> Router {
    let v1 = Router::new()
        .route("/responses", post(responses::create).get(socket::open_or_list))
        .route("/responses/input_tokens", post(input_tokens::count))
        .route("/responses/{id}", get(responses::retrieve).delete(responses::delete))
        .route("/responses/{id}/cancel", post(responses::cancel))
        .route("/responses/{id}/input_items", get(responses::input_items))
        .route("/conversations", post(conversations::create).get(conversations::list))
        .route(
            "/conversations/{id}",
            get(conversations::retrieve).post(conversations::update).delete(conversations::delete),
        )
        .route(
            "/conversations/{id}/items",
            post(conversations::add_items).get(conversations::list_items),
        )
        .route(
            "/conversations/{id}/items/{item_id}",
            get(conversations::retrieve_item).delete(conversations::delete_item),
        )
        .route("/connectors", post(connectors::create).get(connectors::list))
        .route(
            "/connectors/{id}",
            get(connectors::retrieve).post(connectors::update).delete(connectors::delete),
        )
        .route("/memories", get(memories::list).delete(memories::clear))
        .route("/memories/{id}", delete(memories::delete))
        .route("/models", get(models::list))
        .route("/models/{*id}", get(models::retrieve));
    let v1 = passthrough::PATHS
        .iter()
        .fold(v1, |v1, path| v1.route(&format!("/{path}"), post(passthrough::forward)));
    Router::new()
        .nest("/v1", v1)
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(openapi::document))
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(RequestDecompressionLayer::new().pass_through_unaccepted(true))
        // `body` reads up to the configured limit itself, after decompression.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(api.clone(), door::pass))
        .layer(cors(&api.rules.cors))
        .with_state(api.clone())
}

async fn unknown_path(method: Method, uri: axum::http::Uri) -> ApiError {
    ApiError::not_found(format!("Invalid URL ({method} {}).", uri.path())).code("unknown_url")
}

async fn unknown_method(method: Method, uri: axum::http::Uri) -> ApiError {
    ApiError::new(
        crate::protocol::ErrorKind::MethodNotAllowed,
        format!("Not allowed to {method} on {}.", uri.path()),
    )
    .code("method_not_supported")
}

fn cors(origins: &[String]) -> CorsLayer {
    let exposed = ["x-request-id", "openai-processing-ms", "retry-after"];
    let layer = CorsLayer::new()
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(tower_http::cors::AllowHeaders::mirror_request())
        .expose_headers(exposed.map(HeaderName::from_static))
        .max_age(Duration::from_hours(1));
    if origins.iter().any(|origin| origin == "*") {
        return layer.allow_origin(AllowOrigin::any());
    }
    let origins: Vec<HeaderValue> =
        origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
    layer.allow_origin(AllowOrigin::list(origins)).vary([header::ORIGIN])
}
