//! Builds and wires everything, serves, and stops it in order: the door first, then what runs, then the database.

mod banner;
mod base;
mod models;
mod toolbox;
mod web;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use axum::serve::ListenerExt as _;
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;

pub use base::{Base, data_dir, embedded};
pub use models::{Models, list};
use toolbox::Tools;
pub use web::{policies, web};

use crate::{
    auth::{
        Gate,
        keys::{self, Holder},
        oidc::Oidc,
    },
    clock::{Clock, Ids},
    config::{Config, Profile, Share},
    engine::{Engine, EngineRules, Parts, idempotency},
    http::{self, Api, ApiParts, DoorRules},
    mcp::Pool,
    store::{self, StoreError},
    tasks::Tasks,
    telemetry::Metrics,
    tools::runner,
};

/// How long what was cut off may take to write down how it ended.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How often what is too old is looked for.
const SWEEP: Duration = Duration::from_hours(1);

/// A server that is ready to serve.
pub struct App {
    listener: TcpListener,
    api: Api,
    base: Base,
    tasks: Tasks,
    sessions: Pool,
    cut: CancellationToken,
    grace: Duration,
    banner: String,
}

impl App {
    /// Opens the database, finds the models, binds the port. Nothing is served yet.
    pub async fn build(
        config: &Config,
        models: Models,
        clock: Clock,
        ids: Ids,
    ) -> anyhow::Result<Self> {
        let tasks = Tasks::default();
        let base = Base::open(config, &tasks).await?;
        let sealer = Arc::new(base.sealer(config)?);
        let tools = Tools::new(config, &base, &models, Arc::clone(&sealer), &clock, &ids, &tasks)?;
        bootstrap(config, &base, &ids, &clock).await?;
        refuse_open_door(config, &base).await?;
        let cut = CancellationToken::new();
        let engine = Engine::new(Parts {
            pool: base.pool.clone(),
            clock: clock.clone(),
            ids,
            tasks: tasks.clone(),
            cut: cut.clone(),
            sealer,
            model: models.source.clone(),
            tools: tools.toolbox,
            metrics: Metrics::default(),
            rules: rules(config),
        });
        let mut gate = Gate::new(
            base.pool.clone(),
            clock.clone(),
            config.auth.open,
            config.auth.trusted_user_header.clone(),
        );
        if let Some(oidc) = &config.auth.oidc {
            gate = gate.with_oidc(Oidc::new(oidc.clone(), clock)?);
        }
        let guarded = gate.is_guarded().await?;
        let api = Api::new(ApiParts {
            engine,
            gate,
            models: models.source.clone(),
            connectors: tools.connectors,
            rules: DoorRules {
                ping: config.http.ping,
                body_limit: config.http.body_limit(),
                cors: config.http.cors.clone(),
                socket_max: config.websocket.max,
            },
        });
        Models::watch(models.source.clone(), &tasks);
        let listener = TcpListener::bind(config.listen).await.with_context(|| {
            format!("cannot listen on {}: is another antiphon running? (`listen`)", config.listen)
        })?;
        let banner = banner::text(&listener, config, &base, &models, guarded);
        let (sessions, grace) = (tools.sessions, config.shutdown.grace);
        Ok(Self { listener, api, base, tasks, sessions, cut, grace, banner })
    }

    /// What is served, for the person who starts it.
    pub fn banner(&self) -> &str {
        &self.banner
    }

    /// Where it listens.
    pub fn address(&self) -> anyhow::Result<std::net::SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves until `stop` resolves; then lets what runs finish within the grace, cuts off the rest, and stops what is behind it.
    pub async fn serve(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> anyhow::Result<()> {
        let Self { listener, api, base, tasks, sessions, cut, grace, .. } = self;
        tasks.spawn(sweep(api.engine.clone(), base.keep));
        let asked = CancellationToken::new();
        let (stopping, asked_here) = (asked.clone(), asked.clone());
        tasks.spawn(async move {
            stop.await;
            asked_here.cancel();
        });
        // Without it a chunked answer waits for the client's acknowledgement.
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "TCP_NODELAY is not set");
            }
        });
        let serving = axum::serve(listener, http::router(&api))
            .with_graceful_shutdown(async move { stopping.cancelled().await })
            .into_future();
        tokio::pin!(serving);
        let mut served = None;
        tokio::select! {
            // Sockets are no requests any more for the server, but tasks that end once they have finished what they write.
            () = async {
                served = Some((&mut serving).await);
                tasks.stop(grace).await;
            } => (),
            lost = base.lost() => {
                tracing::error!(%lost, "the private Postgres ended; stopping");
            }
            () = async { asked.cancelled().await; tokio::time::sleep(grace).await } => (),
        }
        cut.cancel();
        let served = match served {
            Some(served) => served,
            None => tokio::time::timeout(LAST_WORDS, &mut serving).await.unwrap_or(Ok(())),
        };
        // What still runs has been cut off: nobody calls a tool any more.
        if tokio::time::timeout(LAST_WORDS, sessions.shutdown()).await.is_err() {
            tracing::warn!("some MCP servers were not told that their sessions end");
        }
        if !tasks.stop(LAST_WORDS).await {
            tracing::warn!("some tasks did not stop in time");
        }
        base.close().await;
        served.context("the HTTP server failed")
    }
}

/// Deletes what is older than it is kept.
async fn sweep(engine: Engine, keep: Duration) {
    let parts = engine.parts();
    let stopping = parts.tasks.stopping();
    loop {
        let now = parts.clock.now();
        match store::responses::expire(&parts.pool, now - keep, now).await {
            Ok(0) => (),
            Ok(count) => tracing::info!(count, "deleted old responses"),
            Err(error) => tracing::warn!(%error, "old responses could not be deleted"),
        }
        // An approval is for a Response that somebody may still answer.
        if let Err(error) = store::approvals::expire(&parts.pool, now - keep).await {
            tracing::warn!(%error, "old approvals could not be forgotten");
        }
        if let Err(error) = store::idempotency::expire(&parts.pool, now - idempotency::MEMORY).await
        {
            tracing::warn!(%error, "old idempotency keys could not be forgotten");
        }
        if tokio::time::timeout(SWEEP, stopping.cancelled()).await.is_ok() {
            return;
        }
    }
}

/// Makes the key of `ANTIPHON_BOOTSTRAP_KEY` valid, once.
async fn bootstrap(config: &Config, base: &Base, ids: &Ids, clock: &Clock) -> anyhow::Result<()> {
    let Some(key) = &config.bootstrap_key else { return Ok(()) };
    anyhow::ensure!(
        key.expose().len() >= 16,
        "ANTIPHON_BOOTSTRAP_KEY is too short: give at least 16 characters"
    );
    let holder = Holder {
        tenant_id: "default".to_owned(),
        user_id: "bootstrap".to_owned(),
        groups: Vec::new(),
        name: "ANTIPHON_BOOTSTRAP_KEY".to_owned(),
        delegate: false,
        lifetime: None,
    };
    let row = keys::row(key.expose(), holder, ids, clock.now());
    match store::keys::insert(&base.pool, &row).await {
        Err(StoreError::Conflict(constraint)) if constraint == store::keys::HASH_KEY => Ok(()),
        done => Ok(done?),
    }
}

/// An address that others can reach needs keys.
async fn refuse_open_door(config: &Config, base: &Base) -> anyhow::Result<()> {
    let alone = config.listen.ip().is_loopback();
    if alone
        || config.auth.open
        || config.auth.oidc.is_some()
        || store::keys::any(&base.pool).await?
    {
        return Ok(());
    }
    anyhow::bail!(
        "refusing to listen on {} without keys: anyone who reaches it could use it. Make a key with `antiphon keys new`, \
         set ANTIPHON_BOOTSTRAP_KEY, or say that it is meant with `auth.open = true`.",
        config.listen
    )
}

fn rules(config: &Config) -> EngineRules {
    EngineRules {
        default_model: config.models.default.clone(),
        max_rounds: config.engine.max_rounds.get(),
        total: config.engine.total,
        repair_history: config.history.repair,
        open_responses: config.profile == Profile::OpenResponses,
        share_in_tenant: config.tenancy.share == Share::Tenant,
        admin_group: config.tenancy.admin_group.clone(),
        tool_limits: runner::Limits {
            parallel: config.tools.max_parallel.get(),
            everywhere: Arc::new(Semaphore::new(config.tools.max_parallel_total.get())),
            time: config.tools.timeout,
            round: config.tools.round,
            result_tokens: config.tools.max_result_tokens.get(),
        },
    }
}
