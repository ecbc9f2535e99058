//! The private Postgres: a child process on a unix socket in the data directory, there when no database is named.
//!
//! ```text
//! <data_dir>/postgres/data    the cluster            <data_dir>/postgres/run   the socket
//! <data_dir>/postgres/log     what Postgres says     <data_dir>/cache          PostgreSQL itself, when it had to be fetched
//! ```
//!
//! Several processes may use one data directory (`antiphon serve` and `antiphon keys new`). The first starts Postgres, the others attach;
//! only the one that started it stops it, after the last attached one has left. Three locked files settle the races: `postgres/lock` is
//! held while starting, `postgres/users` is shared by all who use it and taken alone by the one who stops it, `postgres/owner` is held by
//! the one whose child Postgres is. The kernel lets go of them when a process dies, and Postgres dies with the process that started it.
//!
//! **Invariant:** listens on no network; the socket's folder is open to one user only, which is what stands for a password.

mod account;
mod archive;
mod binaries;
mod cluster;
mod error;
mod live;
mod lock;
mod process;
mod socket;

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Pid, Signal};

pub use archive::{Archive, DEFAULT_ARCHIVE_URL};
pub use error::EmbeddedError;

use crate::tasks::Tasks;
use account::Account;
use binaries::Binaries;
use cluster::Cluster;
use live::Live;
use lock::{Alone, Shared};
use process::Postmaster;

/// How long the orderly end of Postgres may take before it is told to drop everything; it recovers from that at the next start.
const FAST_STOP: Duration = Duration::from_secs(30);
/// How often one who is attached looks whether Postgres still runs; there is nothing to wait for in a process that is not our child.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the immediate end may take.
const IMMEDIATE_STOP: Duration = Duration::from_secs(10);

/// Where the private Postgres lives and where its binaries come from.
#[derive(Clone, Debug)]
pub struct EmbeddedSettings {
    /// antiphon's data directory.
    pub data_dir: PathBuf,
    /// A folder for the socket when the data directory's path is too long for one (`XDG_RUNTIME_DIR`); else `/tmp`.
    pub runtime_dir: Option<PathBuf>,
    /// The folder with `postgres` and `initdb` (`PG_BIN`). When given, no other is looked at.
    pub pg_bin: Option<PathBuf>,
    /// Folders `F` in which `F/*/bin` may hold a PostgreSQL, first ones first.
    pub installed: Vec<PathBuf>,
    /// `PATH`.
    pub path: Option<OsString>,
    /// What to do when none is installed.
    pub fetch: Fetch,
    /// Whether what is committed survives a power cut.
    pub durability: Durability,
}

impl EmbeddedSettings {
    /// The usual places, nothing fetched, durable.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        let installed = [
            "/usr/lib/postgresql",
            "/usr",
            "/opt/homebrew/opt",
            "/usr/local/opt",
            "/home/linuxbrew/.linuxbrew/opt",
        ];
        Self {
            data_dir: data_dir.into(),
            runtime_dir: None,
            pg_bin: None,
            installed: installed.map(PathBuf::from).into(),
            path: None,
            fetch: Fetch::Never,
            durability: Durability::Full,
        }
    }
}

/// What to do when no PostgreSQL is installed.
#[derive(Clone, Debug)]
pub enum Fetch {
    /// Say so and end.
    Never,
    /// Fetch it once into the data directory.
    From(Archive),
}

/// Whether what is committed survives a power cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Durability {
    /// Yes.
    Full,
    /// No, and tests are fast.
    None,
}

/// A private Postgres that runs, ours or one we are attached to.
#[derive(Debug)]
pub struct Embedded {
    url: String,
    binaries: Binaries,
    role: Role,
}

#[derive(Debug)]
enum Role {
    /// Postgres is our child.
    Starter { postmaster: Postmaster, users: Shared },
    /// It is another process's. The lock tells that one to wait for us.
    Attached { pid: Pid, owner: PathBuf, _users: Shared },
    /// Stopped.
    Gone,
}

impl Embedded {
    /// Starts the private Postgres, or attaches to the one that runs on this data directory already.
    pub async fn start(settings: EmbeddedSettings, tasks: &Tasks) -> Result<Self, EmbeddedError> {
        let account = Account::for_postgres()?;
        let cluster = Cluster::open(&settings, account)?;
        let users = lock::share(&cluster.home.join("users")).await?;
        let starting = lock::alone(&cluster.home.join("lock")).await?;

        let data_version = cluster.data_version()?;
        let binaries = binaries::find(&settings, data_version.as_deref(), &cluster, tasks).await?;
        let owner = match cluster.live().await? {
            Live::No { owner } => owner,
            Live::At { url, pid } => {
                tracing::info!(dir = %cluster.data.display(), "attached to the private Postgres that runs already");
                let role = Role::Attached { pid, owner: cluster.owner(), _users: users };
                return Ok(Self { url, binaries, role });
            }
        };
        if data_version.is_none() {
            cluster.create(&binaries, settings.durability).await?;
        }
        let (postmaster, url) = cluster.spawn(&binaries, settings.durability, owner).await?;
        let started = Self { url, binaries, role: Role::Starter { postmaster, users } };
        if let Role::Starter { postmaster, .. } = &started.role {
            cluster.ready(&started.url, postmaster).await?;
        }
        drop(starting);
        tracing::info!(dir = %cluster.data.display(), version = %started.binaries.version, "private Postgres started");
        Ok(started)
    }

    /// Where to connect, for sqlx and for libpq.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder with `pg_dump` and `pg_restore` of the same version.
    pub fn bin(&self) -> &Path {
        &self.binaries.dir
    }

    /// The process id of Postgres, when it is our child.
    pub fn child_pid(&self) -> Option<i32> {
        match &self.role {
            Role::Starter { postmaster, .. } => Some(postmaster.pid()),
            Role::Attached { .. } | Role::Gone => None,
        }
    }

    /// Resolves when Postgres has ended though nobody here stopped it, with how it ended. Nothing starts it again but a new start.
    pub async fn ended(&self) -> String {
        match &self.role {
            Role::Starter { postmaster, .. } => postmaster.ended().await,
            Role::Attached { pid, owner, .. } => {
                // In another container its process id says nothing, and one started by hand has no owner.
                while rustix::process::test_kill_process(*pid) != Err(rustix::io::Errno::SRCH)
                    || matches!(lock::claim(owner), Ok(None))
                {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
                "the process that had started it ended".to_owned()
            }
            Role::Gone => "it was stopped".to_owned(),
        }
    }

    /// Leaves. The process that started Postgres waits here for the last attached one to leave, then stops it: put a deadline around
    /// this; whatever happens, Postgres ends with that process.
    pub async fn stop(mut self) -> Result<(), EmbeddedError> {
        // Until Postgres is told to stop, `self` keeps its role: a deadline that drops this future still ends it.
        let (Role::Starter { postmaster, users }, false) = (&self.role, self.is_over()) else {
            return Ok(());
        };
        let _alone: Alone = users.become_alone().await?;
        postmaster.signal(Signal::INT);
        if tokio::time::timeout(FAST_STOP, postmaster.ended()).await.is_err() {
            tracing::warn!("the private Postgres does not stop, ending it at once");
            postmaster.signal(Signal::QUIT);
            if tokio::time::timeout(IMMEDIATE_STOP, postmaster.ended()).await.is_err() {
                return Err(EmbeddedError::DidNotStop { pid: postmaster.pid() });
            }
        }
        self.role = Role::Gone;
        Ok(())
    }

    fn is_over(&self) -> bool {
        match &self.role {
            Role::Starter { postmaster, .. } => postmaster.is_over(),
            Role::Attached { .. } | Role::Gone => true,
        }
    }
}

impl Drop for Embedded {
    /// Without [`Embedded::stop`]: ends Postgres unless others use it; then it ends with this process.
    fn drop(&mut self) {
        if let Role::Starter { postmaster, users } = &self.role
            && users.is_last()
        {
            postmaster.signal(Signal::INT);
        }
    }
}

/// Finds `pg_dump` and `pg_restore` for a database that is not the private one: the folder of the newest installed version.
pub async fn find_tools(settings: &EmbeddedSettings) -> Result<PathBuf, EmbeddedError> {
    Ok(binaries::find_tools(settings).await?.dir)
}

/// Makes a folder, and its parents where there are none, with these rights whatever the umask; what is there keeps its own.
fn make_dir(path: &Path, mode: u32) -> Result<(), EmbeddedError> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_dir(parent, mode)?;
    }
    match fs::create_dir(path) {
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .map_err(EmbeddedError::file("set the rights of", path)),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(EmbeddedError::file("create", path)(error)),
    }
}
