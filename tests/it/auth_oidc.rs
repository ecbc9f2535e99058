//! Tokens of an identity provider, against a provider of the test's own.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use antiphon::{auth::oidc::Oidc, clock::Clock, tasks::Tasks};
use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use time::Duration;
use tokio::net::TcpListener;

use crate::support::{
    model::Script,
    server::{NOW, Server, Setup, start_with},
};

/// A key of the provider.
struct Key {
    id: &'static str,
    secret: EncodingKey,
    public: Value,
}

impl Key {
    fn new(id: &'static str) -> Self {
        let pair =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
                .unwrap();
        let secret = EncodingKey::from_ec_der(pair.as_ref());
        let mut public =
            serde_json::to_value(Jwk::from_encoding_key(&secret, Algorithm::ES256).unwrap())
                .unwrap();
        public["kid"] = json!(id);
        public["use"] = json!("sig");
        Self { id, secret, public }
    }

    fn token(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.to_owned()), ..Header::new(Algorithm::ES256) };
        encode(&header, claims, &self.secret).unwrap()
    }
}

/// The provider: its keys, whether it is down, and how often it was asked for them.
#[derive(Clone, Default)]
struct Provider {
    keys: Arc<Mutex<Option<Vec<Value>>>>,
    asked: Arc<AtomicUsize>,
    base: String,
}

impl Provider {
    async fn start(keys: &[&Key]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let provider = Self { base, ..Self::default() };
        provider.publish(keys);
        let app = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(jwks))
            .with_state(provider.clone());
        Tasks::default().spawn(async move { axum::serve(listener, app).await.unwrap() });
        provider
    }

    fn publish(&self, keys: &[&Key]) {
        *self.keys.lock().unwrap() = Some(keys.iter().map(|key| key.public.clone()).collect());
    }

    fn go_down(&self) {
        *self.keys.lock().unwrap() = None;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    fn claims(&self) -> Value {
        json!({ "iss": self.base, "aud": "antiphon", "exp": NOW + 600, "sub": "ada", "groups": ["staff"], "org": "acme" })
    }

    /// A server that accepts the tokens of this provider.
    async fn server(&self) -> Server {
        let settings = serde_json::from_value(
            json!({ "issuer": self.base, "audience": "antiphon", "tenant_claim": "org" }),
        )
        .unwrap();
        let clock = Clock::fixed(NOW);
        let oidc = Some(Oidc::new(settings, clock.clone()).unwrap());
        start_with(Script::new([]), Setup { oidc, clock, ..Setup::default() }).await
    }
}

async fn discovery(State(provider): State<Provider>) -> Result<Json<Value>, StatusCode> {
    if provider.keys.lock().unwrap().is_none() {
        return Err(StatusCode::BAD_GATEWAY);
    }
    let base = &provider.base;
    Ok(Json(json!({ "issuer": base, "jwks_uri": format!("{base}/keys") })))
}

async fn jwks(State(provider): State<Provider>) -> Result<Json<Value>, StatusCode> {
    provider.asked.fetch_add(1, Ordering::Relaxed);
    match &*provider.keys.lock().unwrap() {
        Some(keys) => {
            let mut keys = keys.clone();
            // What nobody here can use is no reason to do without the rest.
            keys.push(json!({ "kty": "EC", "crv": "P-999", "x": "AA", "y": "AA", "kid": "odd" }));
            keys.push(json!({ "kty": "oct", "k": "c2VjcmV0", "kid": "shared" }));
            Ok(Json(json!({ "keys": keys })))
        }
        None => Err(StatusCode::BAD_GATEWAY),
    }
}

async fn ask(server: &Server, token: &str) -> (u16, Value) {
    server.send("GET", "/v1/conversations", None, Some(token)).await
}

/// Asks with a token that must be refused; why.
async fn refusal(server: &Server, token: &str) -> String {
    let (status, body) = ask(server, token).await;
    assert_eq!(
        (status, &body["error"]["code"], &body["error"]["type"]),
        (401, &json!("invalid_token"), &json!("authentication_error")),
        "{body}"
    );
    assert!(token.len() < 5 || !body.to_string().contains(token), "the token is not repeated");
    body["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_token_says_whose_things_are_seen() {
    let key = Key::new("one");
    let provider = Provider::start(&[&key]).await;
    let server = provider.server().await;
    let (status, made) = server
        .send("POST", "/v1/conversations", Some(json!({})), Some(&key.token(&provider.claims())))
        .await;
    assert_eq!(status, 200, "{made}");
    let path = format!("/v1/conversations/{}", made["id"].as_str().unwrap());

    // A key of the same tenant sees it, a token of another does not, nobody is let in without either.
    let same = server.key("bob", "acme").await;
    assert_eq!(server.send("GET", &path, None, Some(&same)).await.0, 200);
    let mut other = provider.claims();
    other["org"] = json!("other");
    assert_eq!(server.send("GET", &path, None, Some(&key.token(&other))).await.0, 404);
    assert_eq!(server.get(&path).await.0, 401);
    assert_eq!(
        server.send("GET", &path, None, Some("ak_wrong")).await.1["error"]["code"],
        "invalid_api_key"
    );
    assert_eq!(provider.asked(), 1, "one fetch serves all");
}

#[tokio::test]
async fn wrong_tokens_are_refused_with_the_reason() {
    let (key, stranger) = (Key::new("one"), Key::new("one"));
    let provider = Provider::start(&[&key]).await;
    let server = provider.server().await;
    let with = |field: &str, value: Value| {
        let mut claims = provider.claims();
        claims[field] = value;
        key.token(&claims)
    };
    for (token, why) in [
        (with("aud", json!("another")), "audience"),
        (with("iss", json!("https://evil.example")), "issuer"),
        (with("exp", json!(NOW - 61)), "expired"),
        (with("nbf", json!(NOW + 61)), "not valid yet"),
        (with("org", json!(null)), "`org`"),
        (stranger.token(&provider.claims()), "signature is wrong"),
    ] {
        let said = refusal(&server, &token).await;
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(
        ask(&server, &with("exp", json!(NOW - 59))).await.0,
        200,
        "clocks may differ a little"
    );
}

#[tokio::test]
async fn nobody_chooses_a_weaker_algorithm() {
    let key = Key::new("one");
    let provider = Provider::start(&[&key]).await;
    let server = provider.server().await;
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let claims = provider.claims();

    for header in [
        json!({ "alg": "none", "kid": "one" }),
        json!({ "alg": "None" }),
        json!({ "alg": "nOnE", "typ": "JWT" }),
    ] {
        let token = format!("{}.{}.", part(&header), part(&claims));
        assert!(refusal(&server, &token).await.contains("no signed token"));
    }
    // The public key, known to all, taken as a shared secret; and a secret that stands in the public list.
    for (kid, secret) in
        [("one", key.public["x"].as_str().unwrap().as_bytes()), ("shared", b"secret")]
    {
        let header = Header { kid: Some(kid.to_owned()), ..Header::new(Algorithm::HS256) };
        let token = encode(&header, &claims, &EncodingKey::from_secret(secret).unwrap()).unwrap();
        assert!(refusal(&server, &token).await.contains("algorithm"));
    }
    // The right signature under other contents.
    let token = key.token(&claims);
    let (header, rest) = token.split_once('.').unwrap();
    let (_, signature) = rest.split_once('.').unwrap();
    let mut other = claims.clone();
    other["sub"] = json!("root");
    assert!(
        refusal(&server, &format!("{header}.{}.{signature}", part(&other)))
            .await
            .contains("signature")
    );
    assert_eq!(provider.asked(), 1, "what cannot be right asks nobody");
}

#[tokio::test]
async fn new_keys_are_found_and_made_up_ones_do_not_flood_the_provider() {
    let (old, new, made_up) = (Key::new("old"), Key::new("new"), Key::new("made-up"));
    let provider = Provider::start(&[&old]).await;
    let server = provider.server().await;
    assert_eq!(ask(&server, &old.token(&provider.claims())).await.0, 200);

    provider.publish(&[&new]);
    server.clock.advance(Duration::seconds(31));
    assert_eq!(ask(&server, &new.token(&provider.claims())).await.0, 200);
    assert_eq!(provider.asked(), 2);
    assert!(
        refusal(&server, &old.token(&provider.claims())).await.contains("key"),
        "it was withdrawn"
    );

    for _ in 0..20 {
        refusal(&server, &made_up.token(&provider.claims())).await;
    }
    assert_eq!(provider.asked(), 2, "asked a moment ago");
    server.clock.advance(Duration::seconds(31));
    refusal(&server, &made_up.token(&provider.claims())).await;
    refusal(&server, &made_up.token(&provider.claims())).await;
    assert_eq!(provider.asked(), 3, "once more, and no more");
}

#[tokio::test]
async fn a_provider_that_is_down_is_not_the_clients_fault() {
    let key = Key::new("one");
    let provider = Provider::start(&[&key]).await;
    let server = provider.server().await;
    let mut claims = provider.claims();
    claims["exp"] = json!(NOW + 10 * 86_400);
    let token = key.token(&claims);

    provider.go_down();
    let (status, body) = ask(&server, &token).await;
    assert_eq!((status, &body["error"]["type"]), (503, &json!("server_error")), "{body}");
    // Keys of ours do not need it.
    let own = server.key("bob", "acme").await;
    assert_eq!(ask(&server, &own).await.0, 200);

    provider.publish(&[&key]);
    server.clock.advance(Duration::seconds(6));
    assert_eq!(ask(&server, &token).await.0, 200, "tried again soon");

    // Down again: the keys that are there serve on, but not for ever.
    provider.go_down();
    server.clock.advance(Duration::hours(1));
    assert_eq!(ask(&server, &token).await.0, 200);
    server.clock.advance(Duration::hours(24));
    assert_eq!(ask(&server, &token).await.0, 503);
}
