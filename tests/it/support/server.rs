//! The real router on a real port, before a real Postgres and a scripted model. Ids are seeded and the clock stands still, so that a test
//! can assert whole bodies.

use std::{sync::Arc, time::Duration};

use antiphon::{
    auth::{Gate, oidc::Oidc},
    clock::{Clock, Ids},
    config::{Mcp, Upstream},
    engine::{Engine, EngineRules, Parts},
    http::{Api, ApiParts, DoorRules, router},
    mcp,
    model::{Demo, Model, Patience, Router, Source, Surroundings},
    net,
    seal::Sealer,
    store::keys::{self, KeyRow},
    tasks::Tasks,
    telemetry::Metrics,
    tools::{Connectors, Toolbox, runner::Limits},
};
use axum::serve::ListenerExt as _;
use serde_json::Value;
use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::postgres;

/// When it is.
pub(crate) const NOW: i64 = 1_772_366_400;

/// A server for one test.
pub(crate) struct Server {
    /// `http://127.0.0.1:PORT`
    pub(crate) base: String,
    pub(crate) pool: PgPool,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    /// Cuts off what runs.
    pub(crate) cut: CancellationToken,
    /// The sessions with MCP servers.
    pub(crate) sessions: Option<mcp::Pool>,
    client: reqwest::Client,
}

/// What differs from test to test.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) door: DoorRules,
    pub(crate) share_in_tenant: bool,
    pub(crate) oidc: Option<Oidc>,
    pub(crate) clock: Clock,
    /// Where the ids begin: servers on one database must not make the same.
    pub(crate) first_id: u64,
    /// Another database than a fresh one.
    pub(crate) pool: Option<PgPool>,
    /// How long one Response may take.
    pub(crate) total: Duration,
    /// How long a call of a tool may take.
    pub(crate) tool_time: Duration,
    /// The tools of ours.
    pub(crate) tools: Toolbox,
    /// MCP servers of the operator.
    pub(crate) mcp: Mcp,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            door: DoorRules {
                ping: Duration::from_secs(15),
                body_limit: 1 << 20,
                cors: Vec::new(),
                socket_max: Duration::from_hours(1),
            },
            share_in_tenant: true,
            oidc: None,
            clock: Clock::fixed(NOW),
            first_id: 1,
            pool: None,
            total: Duration::from_mins(1),
            tool_time: Duration::from_secs(10),
            tools: Toolbox::default(),
            mcp: Mcp::default(),
        }
    }
}

/// Waits in tests are short.
pub(crate) const PATIENCE: Patience = Patience {
    first_byte: Duration::from_secs(20),
    between_chunks: Duration::from_secs(20),
    retries: 0,
};

/// The models of these upstreams.
pub(crate) fn upstreams(settings: Vec<Upstream>, patience: Patience) -> Router {
    let around = Surroundings {
        client: net::trusted(net::TrustedSettings::default()).unwrap(),
        patience,
        overrides: Arc::default(),
        clock: Clock::fixed(NOW),
        ids: Ids::seeded(0),
    };
    Router::new(settings, &around).unwrap()
}

/// A server before upstreams.
pub(crate) async fn start_before(router: Router, setup: Setup) -> Server {
    let source = Arc::new(Source::Upstreams(router));
    start_of(source.clone(), source, setup).await
}

/// A server that nobody needs a key for.
pub(crate) async fn start(model: Arc<dyn Model>) -> Server {
    start_with(model, Setup::default()).await
}

/// A server as the test wants it.
pub(crate) async fn start_with(model: Arc<dyn Model>, setup: Setup) -> Server {
    start_of(model, Arc::new(Source::Demo(Demo::new(Demo::READABLE))), setup).await
}

async fn start_of(model: Arc<dyn Model>, models: Arc<Source>, setup: Setup) -> Server {
    let pool = match setup.pool {
        Some(pool) => pool,
        None => postgres::database().await.0,
    };
    let (clock, ids, tasks) = (setup.clock, Ids::seeded(setup.first_id), Tasks::default());
    let cut = CancellationToken::new();
    let sealer = Arc::new(Sealer::from_keys(&["A".repeat(43)]).unwrap());
    // Everything that tests talk to is on this machine.
    let policy = net::Policy { reach: net::Reach::Any, ..net::Policy::default() };
    let connectors = Connectors::new(
        &setup.mcp,
        policy.clone(),
        pool.clone(),
        sealer.clone(),
        clock.clone(),
        ids.clone(),
    )
    .unwrap();
    let places = Connectors::places(&setup.mcp);
    let sessions =
        mcp::Pool::new(policy, places, clock.clone(), tasks.clone(), (&setup.mcp).into()).unwrap();
    let tools = Toolbox { mcp: Some((sessions.clone(), connectors.clone())), ..setup.tools };
    let engine = Engine::new(Parts {
        pool: pool.clone(),
        clock: clock.clone(),
        ids,
        tasks: tasks.clone(),
        cut: cut.clone(),
        sealer,
        model,
        tools,
        metrics: Metrics::default(),
        rules: EngineRules {
            default_model: None,
            max_rounds: 8,
            total: setup.total,
            repair_history: false,
            open_responses: false,
            share_in_tenant: setup.share_in_tenant,
            admin_group: Some("admins".to_owned()),
            tool_limits: Limits { parallel: 4, time: setup.tool_time, ..Limits::default() },
        },
    });
    let mut gate = Gate::new(pool.clone(), clock.clone(), false, None);
    if let Some(oidc) = setup.oidc {
        gate = gate.with_oidc(oidc);
    }
    let api = Api::new(ApiParts { engine, gate, models, connectors, rules: setup.door });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let listener = listener.tap_io(|socket| socket.set_nodelay(true).unwrap());
    Tasks::default().spawn(async move { axum::serve(listener, router(&api)).await.unwrap() });
    let client = net::trusted(net::TrustedSettings::default()).unwrap();
    Server { base, pool, clock, tasks, cut, client, sessions: Some(sessions) }
}

impl Server {
    /// One that was started otherwise.
    pub(crate) fn running(base: String, pool: PgPool) -> Self {
        let client = net::trusted(net::TrustedSettings::default()).unwrap();
        let (tasks, cut) = (Tasks::default(), CancellationToken::new());
        Self { base, pool, clock: Clock::System, tasks, cut, client, sessions: None }
    }

    /// Makes `ak_NAME`, a key of that user and tenant.
    pub(crate) async fn key(&self, name: &str, tenant: &str) -> String {
        let key = format!("ak_{name}");
        let row = KeyRow {
            id: format!("key_{name}"),
            tenant_id: tenant.to_owned(),
            user_id: name.to_owned(),
            groups: Vec::new(),
            name: name.to_owned(),
            hash: antiphon::auth::keys::digest(&key).to_vec(),
            prefix: key.chars().take(8).collect(),
            delegate: false,
            created_at: self.clock.now(),
            expires_at: None,
            revoked_at: None,
        };
        keys::insert(&self.pool, &row).await.unwrap();
        key
    }

    /// A request to be made.
    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method.parse().unwrap(), format!("{}{path}", self.base))
    }

    /// `GET` of a path; the status and the body.
    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, None, None).await
    }

    /// `POST` of a body.
    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send("POST", path, Some(body), None).await
    }

    /// `DELETE` of a path.
    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        self.send("DELETE", path, None, None).await
    }

    /// Any request, with a token when there is one.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        token: Option<&str>,
    ) -> (u16, Value) {
        let mut request = self.request(method, path);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }
}
