//! SHELL: the loop. Prepares a Response, runs its Rounds, commits how it ended, and lets whoever listens hear the events.
//!
//! [`Engine::start`] → [`Run`], a stream of event batches. Draining it is the JSON answer, reading it the SSE or WebSocket answer: one path.
//!
//! **Invariant:** decides nothing about the product: what comes next is the [`Turn`](crate::turn::Turn)'s to say.
//! **Invariant:** the terminal event leaves after its state is committed. Dropping a [`Run`] cancels everything in it.

pub mod approvals;
pub mod count;
pub mod idempotency;
pub mod input;
pub mod lease;
pub mod prepare;
pub mod record;
pub mod run;
pub mod tooling;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Clock, Ids},
    model::Model,
    protocol::{ApiError, Principal},
    seal::Sealer,
    store::{self, Viewer},
    tasks::Tasks,
    telemetry::Metrics,
    tools::{Toolbox, runner::Limits},
};

pub use prepare::{Asked, Remembered};
pub use run::Run;

/// Makes Responses.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Parts>,
    /// Whether the database failed when it was last needed.
    doubtful: Arc<AtomicBool>,
}

/// What an engine is made of.
pub struct Parts {
    /// The database.
    pub pool: PgPool,
    /// Time.
    pub clock: Clock,
    /// Ids.
    pub ids: Ids,
    /// What runs beside requests.
    pub tasks: Tasks,
    /// Cancelled when what still runs is to end at once.
    pub cut: CancellationToken,
    /// Seals what clients carry for us.
    pub sealer: Arc<Sealer>,
    /// The models.
    pub model: Arc<dyn Model>,
    /// The tools of ours.
    pub tools: Toolbox,
    /// The counters.
    pub metrics: Metrics,
    /// The rules of this server.
    pub rules: EngineRules,
}

/// The rules of a server that every Response follows.
#[derive(Clone, Debug)]
pub struct EngineRules {
    /// The model of requests that name none.
    pub default_model: Option<String>,
    /// How often a model may be asked for one Response.
    pub max_rounds: u32,
    /// How long a Response may take.
    pub total: Duration,
    /// Whether a call without output is let through, as not executed.
    pub repair_history: bool,
    /// Whether reasoning events have the names of Open Responses.
    pub open_responses: bool,
    /// Whether everyone of a tenant sees everything of it.
    pub share_in_tenant: bool,
    /// Who is in this group may change and delete what others of the tenant own.
    pub admin_group: Option<String>,
    /// How tools are run.
    pub tool_limits: Limits,
}

impl Engine {
    /// An engine of these parts.
    pub fn new(parts: Parts) -> Self {
        Self { inner: Arc::new(parts), doubtful: Arc::default() }
    }

    /// Refuses while the database is gone, so that no model works for what cannot be stored. Costs nothing while it is there.
    async fn check_database(&self) -> Result<(), ApiError> {
        if self.doubtful.load(Ordering::Relaxed) {
            store::pool::ping(&self.parts().pool).await?;
            self.doubtful.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Its parts.
    pub fn parts(&self) -> &Parts {
        &self.inner
    }
}

impl EngineRules {
    /// Through whose eyes a Principal's queries look.
    pub fn viewer<'a>(&self, principal: &'a Principal) -> Viewer<'a> {
        Viewer {
            tenant_id: &principal.tenant_id,
            only_owner: (!self.share_in_tenant).then_some(&*principal.user_id),
        }
    }

    /// Through whose eyes what changes or deletes looks: only what the Principal owns, unless it is an administrator.
    pub fn owner<'a>(&self, principal: &'a Principal) -> Viewer<'a> {
        let is_admin =
            self.admin_group.as_ref().is_some_and(|group| principal.groups.contains(group));
        Viewer {
            tenant_id: &principal.tenant_id,
            only_owner: (!is_admin).then_some(&*principal.user_id),
        }
    }
}
