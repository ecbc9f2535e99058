use std::sync::{Arc, Mutex, PoisonError};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request as Asked, State},
    response::IntoResponse,
};
use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    config::{ApiCredential, CredentialKind, Secret},
    net::{GuardedSettings, Policy, Reach, guarded},
    tasks::Tasks,
    tools::openapi::{Access, Content, Wanted, build_request, needs_approval, parse},
};

const LIMITS: CallLimits = CallLimits { time: Duration::from_secs(10), answer: 1000 };

/// What a server was asked: a line per request, and what of its headers matters.
type Seen = Arc<Mutex<Vec<String>>>;

/// An API on loopback.
struct Api {
    port: u16,
    seen: Seen,
    _tasks: Tasks,
}

impl Api {
    async fn start() -> Self {
        let (seen, tasks) = (Seen::default(), Tasks::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().fallback(answer).with_state(seen.clone());
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { port, seen, _tasks: tasks }
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn answer(State(seen): State<Seen>, asked: Asked) -> axum::response::Response {
    let shown =
        ["authorization", "x-key", "x-definition", "content-type"].iter().filter_map(|name| {
            Some(format!(" {name}={}", asked.headers().get(*name)?.to_str().unwrap()))
        });
    let mut line = format!("{} {}{}", asked.method(), asked.uri(), shown.collect::<String>());
    let (parts, body) = asked.into_parts();
    let body = axum::body::to_bytes(body, 1000).await.unwrap();
    if !body.is_empty() {
        line.extend([" ", &*String::from_utf8_lossy(&body)]);
    }
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    let query = parts.uri.query().unwrap_or_default();
    let file =
        |kind: &'static str, body: &'static [u8]| ([("content-type", kind)], body).into_response();
    match parts.uri.path() {
        "/v1/do/json" => file("application/json", b"{\"ok\": true}"),
        "/v1/do/csv" => file("text/csv", b"a,b\n1,2\n"),
        "/v1/do/png" => file("image/png", b"\x89PNG"),
        "/v1/do/echo" => {
            format!("you sent {}", parts.headers["authorization"].to_str().unwrap()).into_response()
        }
        "/v1/do/none" => axum::http::StatusCode::NO_CONTENT.into_response(),
        "/v1/do/401" => (axum::http::StatusCode::UNAUTHORIZED, "who are you").into_response(),
        "/v1/do/500" => {
            (axum::http::StatusCode::INTERNAL_SERVER_ERROR, "x".repeat(50_000)).into_response()
        }
        "/v1/do/big" => Body::from_stream(futures::stream::iter(
            [(); 100].map(|()| Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 100]))),
        ))
        .into_response(),
        "/v1/do/hang" => {
            Body::from_stream(futures::stream::pending::<std::io::Result<Bytes>>()).into_response()
        }
        "/v1/do/to" => {
            let (status, to) = query.split_once('=').unwrap();
            let status = axum::http::StatusCode::from_bytes(status.as_bytes()).unwrap();
            let to = percent_encoding::percent_decode_str(to).decode_utf8().unwrap().into_owned();
            (status, [("location", to)]).into_response()
        }
        _ => "plain".into_response(),
    }
}

fn client(reach: Reach) -> Client {
    guarded(GuardedSettings::new(Policy { reach, ..Policy::default() })).unwrap()
}

fn document(port: u16) -> Value {
    json!({
        "openapi": "3.0.3", "info": {"title": "T"}, "servers": [{"url": format!("http://127.0.0.1:{port}/v1")}],
        "paths": {"/do/{what}": {
            "parameters": [{"name": "what", "in": "path"}],
            "get": {"operationId": "get", "parameters": [
                {"name": "q", "in": "query", "style": "deepObject"},
                {"name": "301", "in": "query"}, {"name": "307", "in": "query"},
            ]},
            "head": {"operationId": "head"},
            "post": {"operationId": "post", "requestBody": {"content": {"application/json": {}}},
                "parameters": [{"name": "X-Key", "in": "header"}, {"name": "303", "in": "query"}, {"name": "307", "in": "query"}]},
        }},
    })
}

fn prepare(port: u16, operation: &str, arguments: Value) -> Prepared {
    let wanted = Wanted { server_url: None, schema_url: None, allowed: None, max_operations: 9 };
    let operations = parse(&document(port), &wanted).unwrap();
    let operation = operations.iter().find(|known| known.name == operation).unwrap();
    let arguments: Map<String, Value> = serde_json::from_value(arguments).unwrap();
    build_request(operation, &arguments).unwrap()
}

async fn call(
    port: u16,
    operation: &str,
    arguments: Value,
    access: &Access,
) -> Result<ApiResult, CallError> {
    execute(&client(Reach::Any), access, prepare(port, operation, arguments), LIMITS).await
}

fn credential(port: u16) -> ApiCredential {
    ApiCredential {
        kind: CredentialKind::Bearer,
        name: None,
        value_env: String::new(),
        value: Some(Secret::from("tok".to_owned())),
        hosts: vec![format!("http://127.0.0.1:{port}").try_into().unwrap()],
    }
}

#[tokio::test]
async fn what_goes_over_the_wire_is_encoded() {
    let api = Api::start().await;
    let none = Access::default();
    let get = call(api.port, "get", json!({"what": "../x y", "q": {"a&b": "c=d é"}}), &none)
        .await
        .unwrap();
    assert_eq!(get.content, Content::Text("plain".to_owned()));
    let post = json!({"what": "json", "X-Key": "k", "requestBody": {"b": 1, "a": [2]}});
    let post = call(api.port, "post", post, &none).await.unwrap();
    assert_eq!(post.text(), "{\"ok\": true}");
    assert_eq!(
        api.seen(),
        [
            "GET /v1/do/..%2Fx%20y?q%5Ba%26b%5D=c%3Dd%20%C3%A9",
            "POST /v1/do/json x-key=k content-type=application/json {\"b\":1,\"a\":[2]}",
        ]
    );
}

#[tokio::test]
async fn answers_of_every_kind_are_read() {
    let api = Api::start().await;
    let none = Access::default();
    for (operation, what, text) in [
        ("get", "csv", "The API answered with the file `csv.csv` (text/csv, 8 bytes)."),
        ("get", "png", "The API answered with the file `png.png` (image/png, 4 bytes)."),
        ("get", "none", "Done: the API answered with status 204 and no content."),
        ("head", "json", "Done: the API answered with status 200 and no content."),
    ] {
        let result = call(api.port, operation, json!({"what": what}), &none).await.unwrap();
        assert_eq!(result.text(), text);
    }
    let refused = call(api.port, "get", json!({"what": "401"}), &none).await.unwrap();
    assert_eq!(
        (refused.is_auth_error(), refused.content),
        (true, Content::Text("who are you".to_owned()))
    );
    let broken = call(api.port, "get", json!({"what": "500"}), &none).await.unwrap();
    assert_eq!((broken.status, broken.is_auth_error(), broken.is_cut), (500, false, true));
    assert_eq!(broken.content, Content::Text("x".repeat(1000)));
}

#[tokio::test]
async fn huge_and_endless_answers_end() {
    let api = Api::start().await;
    let none = Access::default();
    let error = call(api.port, "get", json!({"what": "big"}), &none).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "The answer of the API is larger than 1000 bytes. Ask for less of it, with a filter or page by page."
    );
    let hang = prepare(api.port, "get", json!({"what": "hang"}));
    let limits = CallLimits { time: Duration::from_millis(300), ..LIMITS };
    let error = execute(&client(Reach::Any), &none, hang, limits).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
}

#[tokio::test]
async fn no_credential_follows_a_redirect_to_another_origin() {
    let (api, other) = (Api::start().await, Api::start().await);
    let credential = credential(api.port);
    let access = Access::new([("x-definition", "d")], Some(("k", &credential)));
    let to = |port: u16| format!("http://127.0.0.1:{port}/v1/do/json");

    let inside = json!({"what": "to", "301": "/v1/do/json"});
    assert_eq!(call(api.port, "get", inside, &access).await.unwrap().text(), "{\"ok\": true}");
    let with_both = "authorization=Bearer tok x-definition=d";
    let seen = api.seen();
    assert_eq!(seen[1], format!("GET /v1/do/json {with_both}"));
    assert_eq!(seen.len(), 2);

    let outside = json!({"what": "to", "307": to(other.port), "requestBody": {"a": 1}});
    assert_eq!(call(api.port, "post", outside, &access).await.unwrap().text(), "{\"ok\": true}");
    assert!(api.seen()[0].contains(with_both));
    assert_eq!(other.seen(), ["POST /v1/do/json content-type=application/json {\"a\":1}"]);

    let see_other = json!({"what": "to", "303": to(other.port), "requestBody": {"a": 1}});
    call(api.port, "post", see_other, &access).await.unwrap();
    assert_eq!(other.seen(), ["GET /v1/do/json"]);
}

#[tokio::test]
async fn a_secret_that_is_reflected_is_masked_and_one_for_elsewhere_is_not_sent() {
    let api = Api::start().await;
    let mut credential = credential(api.port);
    credential.value = Some(Secret::from("tok-123456".to_owned()));
    let access = Access::new([], Some(("k", &credential)));
    let echo = call(api.port, "get", json!({"what": "echo"}), &access).await.unwrap();
    assert_eq!(echo.text(), "you sent Bearer [secret]");
    assert_eq!(api.seen(), ["GET /v1/do/echo authorization=Bearer tok-123456"]);

    credential.hosts = vec!["api.example".to_owned().try_into().unwrap()];
    let access = Access::new([], Some(("k", &credential)));
    let error = call(api.port, "get", json!({"what": "echo"}), &access).await.unwrap_err();
    assert!(matches!(error, CallError::Credential(_)), "{error}");
    assert_eq!(api.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn the_address_policy_holds() {
    let api = Api::start().await;
    let prepared = prepare(api.port, "get", json!({"what": "json"}));
    let error =
        execute(&client(Reach::Public), &Access::default(), prepared, LIMITS).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "The API could not be called: the host `127.0.0.1` leads to an address that is not allowed."
    );
    assert_eq!(api.seen(), Vec::<String>::new());
}

#[test]
fn what_changes_things_asks_first() {
    let wanted = Wanted { server_url: None, schema_url: None, allowed: None, max_operations: 9 };
    let operations = parse(&document(1), &wanted).unwrap();
    let asking: Vec<(&str, bool)> = operations
        .iter()
        .map(|operation| (&*operation.name, needs_approval(None, operation)))
        .collect();
    assert_eq!(asking, [("get", false), ("head", false), ("post", true)]);
}
