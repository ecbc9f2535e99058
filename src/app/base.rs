//! The database below everything, and the folder that goes with it. What `antiphon keys` and `antiphon db` need, and all that `serve` builds on.

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
use sqlx::PgPool;

use crate::{
    config::{Config, Places, Secret},
    net,
    seal::Sealer,
    store::{
        embedded::{Archive, DEFAULT_ARCHIVE_URL, Embedded, EmbeddedSettings, Fetch},
        pool::{self, PoolSettings},
    },
    tasks::Tasks,
};

/// How long the private Postgres may take to stop, also for the last of those that use it to leave.
const LEAVING: Duration = Duration::from_secs(45);

/// The database and the data directory.
pub struct Base {
    /// Connections.
    pub pool: PgPool,
    /// How long Responses are kept.
    pub keep: Duration,
    embedded: Option<Embedded>,
    data_dir: PathBuf,
}

impl Base {
    /// Connects to the database that is named, or starts the private one; brings the tables up to date.
    pub async fn open(config: &Config, tasks: &Tasks) -> anyhow::Result<Self> {
        let data_dir = data_dir(config)?;
        let settings = PoolSettings {
            max_connections: config.database.max_connections.get(),
            acquire_timeout: config.database.acquire,
            ..PoolSettings::default()
        };
        let embedded = match &config.database_url {
            Some(_) => None,
            None => {
                Some(Embedded::start(embedded(&config.places, data_dir.clone())?, tasks).await?)
            }
        };
        let url = match (&embedded, &config.database_url) {
            (Some(embedded), _) => embedded.url(),
            (None, Some(url)) => url.expose(),
            (None, None) => anyhow::bail!("there is no database"),
        };
        let pool = pool::connect(url, &settings).await?;
        pool::migrate(&pool).await?;
        Ok(Self { pool, keep: config.retention.responses, embedded, data_dir })
    }

    /// Seals with the keys that are configured, else with a generated one beside the private Postgres.
    pub fn sealer(&self, config: &Config) -> anyhow::Result<Sealer> {
        if !config.seal_keys.is_empty() {
            let keys: Vec<&str> = config.seal_keys.iter().map(Secret::expose).collect();
            return Sealer::from_keys(&keys).context("ANTIPHON_SEAL_KEYS");
        }
        anyhow::ensure!(
            self.embedded.is_some(),
            "with an external database ANTIPHON_SEAL_KEYS must be set, so that every replica opens what another one sealed. \
             Make a key with `openssl rand -base64 32`."
        );
        Ok(Sealer::generate_at(&self.data_dir.join("seal.key"))?)
    }

    /// What the database is, for people.
    pub fn description(&self) -> String {
        match &self.embedded {
            Some(_) => format!("private Postgres in {}", self.data_dir.display()),
            None => "Postgres (database_url)".to_owned(),
        }
    }

    /// Where `pg_dump` is and how to reach the database.
    pub fn embedded(&self) -> Option<&Embedded> {
        self.embedded.as_ref()
    }

    /// Resolves with how it ended when a private Postgres of ours has ended by itself.
    pub async fn lost(&self) -> String {
        match &self.embedded {
            Some(embedded) => embedded.ended().await,
            None => std::future::pending().await,
        }
    }

    /// Closes the connections and leaves the private Postgres.
    pub async fn close(self) {
        self.pool.close().await;
        let Some(embedded) = self.embedded else { return };
        match tokio::time::timeout(LEAVING, embedded.stop()).await {
            Ok(Ok(())) => (),
            Ok(Err(error)) => tracing::error!(%error, "the private Postgres did not stop"),
            Err(_elapsed) => {
                tracing::warn!("others still use the private Postgres; it ends with this process");
            }
        }
    }
}

/// Where what belongs to this server lies.
pub fn data_dir(config: &Config) -> anyhow::Result<PathBuf> {
    if let Some(dir) = &config.data_dir {
        return Ok(dir.clone());
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/antiphon"));
    }
    let home = config.places.data_home.as_ref();
    home.map(|home| home.join("antiphon")).context("there is no home directory: set `data_dir`")
}

/// How the private Postgres is found and run.
pub fn embedded(places: &Places, data_dir: PathBuf) -> anyhow::Result<EmbeddedSettings> {
    // Release downloads are redirected to where the files lie.
    let http = net::trusted(net::TrustedSettings { redirects: 5, ..Default::default() })?;
    Ok(EmbeddedSettings {
        pg_bin: places.pg_bin.clone(),
        path: std::env::join_paths(&places.path).ok(),
        fetch: Fetch::From(Archive { base_url: DEFAULT_ARCHIVE_URL.to_owned(), http }),
        ..EmbeddedSettings::new(data_dir)
    })
}
