use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    extract::{Request as Asked, State},
    response::IntoResponse,
};
use pretty_assertions::assert_eq;
use tokio::sync::Semaphore;

use super::*;
use crate::{
    config::{CredentialKind, Secret},
    net::{GuardedSettings, Policy, Reach, guarded},
    tools::openapi::{Wanted, parse},
};

const YAML: &str = "openapi: 3.1.0\ninfo: {title: T, version: '1'}\nservers: [{url: v2}]\npaths: {/a: {get: {operationId: a}}}\n";

/// What a server was asked, and the gate that its answers wait at.
#[derive(Clone)]
struct Site {
    seen: Arc<Mutex<Vec<String>>>,
    gate: Arc<Semaphore>,
}

impl Site {
    async fn start(tasks: &Tasks) -> (Self, u16) {
        let site = Self { seen: Arc::default(), gate: Arc::new(Semaphore::new(0)) };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().fallback(answer).with_state(site.clone());
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        (site, port)
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(State(site): State<Site>, asked: Asked) -> axum::response::Response {
    let authorization = asked.headers().get("authorization").map(|value| value.to_str().unwrap());
    let line = format!("{} {}", asked.uri(), authorization.unwrap_or("-"));
    site.seen.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    site.gate.acquire().await.unwrap().forget();
    match asked.uri().path() {
        "/api.yaml" | "/deep/api.yaml" => YAML.into_response(),
        "/moved" => {
            (axum::http::StatusCode::FOUND, [("location", "/deep/api.yaml")]).into_response()
        }
        "/large" => "x".repeat(2 << 20).into_response(),
        "/text" => "no document".into_response(),
        _ => axum::http::StatusCode::NOT_FOUND.into_response(),
    }
}

fn documents(tasks: &Tasks) -> (Documents, Client) {
    let settings = OpenApi {
        schema_limit_mib: std::num::NonZeroUsize::MIN,
        timeout: Duration::from_secs(5),
        ..OpenApi::default()
    };
    let policy = Policy { reach: Reach::Any, ..Policy::default() };
    (Documents::new(&settings, tasks.clone()), guarded(GuardedSettings::new(policy)).unwrap())
}

#[tokio::test]
async fn many_who_ask_at_once_cause_one_request() {
    let tasks = Tasks::default();
    let (site, port) = Site::start(&tasks).await;
    let (documents, client) = documents(&tasks);
    let url: Url = format!("http://127.0.0.1:{port}/api.yaml").parse().unwrap();
    let mut asking: futures::stream::FuturesUnordered<_> =
        (0..20).map(|_| documents.fetch(&client, &url, None)).collect();
    // All have asked, and the answer is still held back.
    assert!(futures::poll!(futures::StreamExt::next(&mut asking)).is_pending());
    site.gate.add_permits(100);
    let mut roots = Vec::new();
    while let Some(document) = futures::StreamExt::next(&mut asking).await {
        roots.push(document.unwrap());
    }
    assert_eq!(roots.len(), 20);
    assert!(roots.iter().all(|root| Arc::ptr_eq(root, &roots[0])));
    let operations = parse(
        &roots[0].root,
        &Wanted {
            server_url: None,
            schema_url: Some(&roots[0].url),
            allowed: None,
            max_operations: 9,
        },
    )
    .unwrap();
    assert_eq!(operations[0].base.as_str(), format!("http://127.0.0.1:{port}/v2"));
    assert_eq!(site.seen(), ["/api.yaml -"]);
}

#[tokio::test]
async fn credentials_go_where_they_may_and_documents_are_kept_apart() {
    let tasks = Tasks::default();
    let (site, port) = Site::start(&tasks).await;
    site.gate.add_permits(100);
    let (documents, client) = documents(&tasks);
    let credential = |host: &str| ApiCredential {
        kind: CredentialKind::Bearer,
        name: None,
        value_env: String::new(),
        value: Some(Secret::from("tok".to_owned())),
        hosts: vec![host.to_owned().try_into().unwrap()],
    };
    let (here, elsewhere) =
        (credential(&format!("http://127.0.0.1:{port}")), credential("a.example"));
    let url: Url = format!("http://127.0.0.1:{port}/moved?v=1").parse().unwrap();
    for credential in
        [None, Some(("here", &here)), Some(("elsewhere", &elsewhere)), Some(("here", &here))]
    {
        let document = documents.fetch(&client, &url, credential).await.unwrap();
        assert_eq!(document.url.path(), "/deep/api.yaml");
    }
    assert_eq!(
        site.seen(),
        [
            "/moved?v=1 -",
            "/deep/api.yaml -",
            "/moved?v=1 Bearer tok",
            "/deep/api.yaml Bearer tok",
            "/moved?v=1 -",
            "/deep/api.yaml -",
        ]
    );
}

#[tokio::test]
async fn what_cannot_be_had_says_why_and_is_asked_for_again() {
    let tasks = Tasks::default();
    let (site, port) = Site::start(&tasks).await;
    site.gate.add_permits(100);
    let (documents, client) = documents(&tasks);
    for (path, sentence) in [
        ("gone", "The schema could not be fetched: its server answered with status 404."),
        ("gone", "The schema could not be fetched: its server answered with status 404."),
        (
            "large",
            "The schema is larger than 1048576 bytes. Leave out the operations that are not needed.",
        ),
        ("text", "The schema must be an OpenAPI document, which is an object."),
    ] {
        let url = format!("http://127.0.0.1:{port}/{path}").parse().unwrap();
        let error = documents.fetch(&client, &url, None).await.unwrap_err();
        assert_eq!(error.to_string(), sentence);
    }
    assert_eq!(site.seen().len(), 4);
    let forbidden = "http://169.254.169.254/api.yaml".parse().unwrap();
    let error = documents.fetch(&client, &forbidden, None).await.unwrap_err();
    assert!(error.to_string().contains("not allowed"), "{error}");
}
