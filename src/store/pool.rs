//! The one pool of connections: how it is opened, how long a start waits for the database, and the migrations.

use std::{future::Future, str::FromStr, time::Duration};

use sqlx::{
    Connection as _, PgPool,
    migrate::{MigrateError, Migrator},
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::Instant;

use super::{StoreError, error::is_passing};

/// The tables, in the order in which they came to be.
static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// Between two attempts to reach a database that is not up yet.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// A connection that came back so lately is believed to live, for it was tested when it came back: another test would be a third of
/// the round trips of a statement.
const FRESH: Duration = Duration::from_secs(1);

/// Prepared statements that a connection keeps: more than the store has.
const STATEMENTS: usize = 256;

/// How the pool behaves.
#[derive(Clone, Debug)]
pub struct PoolSettings {
    /// Most connections at a time.
    pub max_connections: u32,
    /// How long a query waits for a free connection before the database counts as unavailable.
    pub acquire_timeout: Duration,
    /// How long a start waits for a database that does not answer yet.
    pub patience: Duration,
    /// What `pg_stat_activity` shows.
    pub application_name: String,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            max_connections: 20,
            acquire_timeout: Duration::from_secs(5),
            patience: Duration::from_mins(1),
            application_name: "antiphon".to_owned(),
        }
    }
}

/// Why there is no usable database at start. Each is a sentence for the person who starts antiphon; none holds the password.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL cannot be read.
    #[error("database_url is not a Postgres URL (postgres://user:password@host:5432/name){0}")]
    Url(String),
    /// The server answers, but not to us: wrong password, no such database, no permission.
    #[error(
        "the database at {place} refuses the connection: {cause}. Check the user, password and name in database_url."
    )]
    Refused {
        /// Host and database.
        place: String,
        /// What the server said.
        #[source]
        cause: sqlx::Error,
    },
    /// It did not answer in time.
    #[error("the database at {place} did not answer within {} s: {cause}. Check that it runs and that database_url is right.", waited.as_secs())]
    Silent {
        /// Host and database.
        place: String,
        /// How long it was waited for.
        waited: Duration,
        /// The last failure.
        #[source]
        cause: sqlx::Error,
    },
    /// The tables are those of another version of antiphon.
    #[error(
        "the database holds migration {0}, which this antiphon does not know or knows differently: it was written by another version. \
         Start that version, or restore a dump that this one made."
    )]
    OtherVersion(i64),
    /// A migration failed; nothing of it is kept.
    #[error("the tables could not be brought up to date: {0}")]
    Migrate(#[source] MigrateError),
}

/// Opens the pool, waiting up to [`PoolSettings::patience`] for a database that does not answer yet. Says so in the log meanwhile.
/// A refusal that waiting does not mend (password, name) ends it at once.
pub async fn connect(url: &str, settings: &PoolSettings) -> Result<PgPool, OpenError> {
    let options = options(url)?
        .application_name(&settings.application_name)
        .statement_cache_capacity(STATEMENTS);
    let place = place(&options);
    let pool = PgPoolOptions::new()
        .max_connections(settings.max_connections)
        .acquire_timeout(settings.acquire_timeout)
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > FRESH {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .connect_lazy_with(options.clone());
    // Not through the pool: it hides why a connection fails behind its own timeout.
    wait(&place, settings.patience, || async {
        use sqlx::ConnectOptions as _;
        options.connect().await?.close().await
    })
    .await?;
    Ok(pool)
}

/// Brings the tables up to date. Replicas that start together take turns (Postgres' advisory lock).
pub async fn migrate(pool: &PgPool) -> Result<(), OpenError> {
    MIGRATIONS.run(pool).await.map_err(|error| match error {
        MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version) => {
            OpenError::OtherVersion(version)
        }
        other => OpenError::Migrate(other),
    })
}

/// Whether the database answers now; for readiness.
#[tracing::instrument(name = "db.ping", skip_all)]
pub async fn ping(pool: &PgPool) -> Result<(), StoreError> {
    sqlx::query("select 1").execute(pool).await?;
    Ok(())
}

/// The driver itself takes any scheme and would ask any server for Postgres.
fn options(url: &str) -> Result<PgConnectOptions, OpenError> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(OpenError::Url(": it begins otherwise".to_owned()));
    }
    PgConnectOptions::from_str(url).map_err(|error| OpenError::Url(format!(": {error}")))
}

async fn wait<A, F>(place: &str, patience: Duration, mut attempt: A) -> Result<(), OpenError>
where
    A: FnMut() -> F,
    F: Future<Output = Result<(), sqlx::Error>>,
{
    let start = Instant::now();
    loop {
        let left = patience.saturating_sub(start.elapsed());
        let cause = match tokio::time::timeout(left.max(RETRY_PAUSE), attempt()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(cause)) => cause,
            Err(_) => sqlx::Error::PoolTimedOut,
        };
        if !is_passing(&cause) {
            return Err(OpenError::Refused { place: place.to_owned(), cause });
        }
        let waited = start.elapsed();
        if waited + RETRY_PAUSE >= patience {
            return Err(OpenError::Silent { place: place.to_owned(), waited, cause });
        }
        tracing::info!(%place, %cause, "waiting for the database");
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Where the database is, without user and password.
fn place(options: &PgConnectOptions) -> String {
    let name = options.get_database().unwrap_or(options.get_username());
    match options.get_socket() {
        Some(socket) => format!("{} ({name})", socket.display()),
        None => format!("{}:{}/{name}", options.get_host(), options.get_port()),
    }
}
