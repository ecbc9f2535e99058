//! The data of the private Postgres: making them, starting Postgres on them, finding one that runs on them already.

use std::{
    fs::{self, File},
    io,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use sqlx::{Connection as _, PgConnection};
use tokio::time::Instant;

use super::{
    Durability, EmbeddedError, EmbeddedSettings, account::Account, binaries::Binaries, lock::Alone,
    make_dir, process::Postmaster, socket,
};

/// How long Postgres may take until it answers; after a crash it first replays what it had not written.
const PATIENCE: Duration = Duration::from_mins(5);
const PAUSE: Duration = Duration::from_millis(10);
const TELL_EVERY: Duration = Duration::from_secs(5);
/// How long a single attempt to connect may take.
const ATTEMPT: Duration = Duration::from_secs(5);
const INITDB_DEADLINE: Duration = Duration::from_mins(5);
/// The log is put aside at a start once it is longer.
const LOG_BYTES: u64 = 10 << 20;

/// A character set that every system has: macOS has no `C.UTF-8`.
const LOCALE: &str = if cfg!(target_os = "linux") { "C.UTF-8" } else { "C" };

/// A place for one Postgres.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) home: PathBuf,
    pub(super) data: PathBuf,
    pub(super) account: Option<Account>,
    runtime_dir: Option<PathBuf>,
}

impl Cluster {
    /// Makes the folders and checks that Postgres can get to them.
    pub(super) fn open(
        settings: &EmbeddedSettings,
        account: Option<Account>,
    ) -> Result<Self, EmbeddedError> {
        let rights = if account.is_some() { 0o755 } else { 0o700 };
        make_dir(&settings.data_dir, rights)?;
        let home = settings.data_dir.join("postgres");
        make_dir(&home, rights)?;
        let home = fs::canonicalize(&home).map_err(EmbeddedError::file("find", &home))?;
        if let Some(account) = &account {
            account.reach(&home)?;
        }
        let runtime_dir = settings.runtime_dir.clone();
        Ok(Self { data: home.join("data"), home, account, runtime_dir })
    }

    /// The major version that made the data; `None` when there are none yet.
    pub(super) fn data_version(&self) -> Result<Option<String>, EmbeddedError> {
        let file = self.data.join("PG_VERSION");
        match fs::read_to_string(&file) {
            Ok(version) => Ok(Some(version.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(EmbeddedError::file("read", &file)(error)),
        }
    }

    /// Makes the data: beside their place and then moved there, so that a torn beginning is never taken for data.
    pub(super) async fn create(
        &self,
        binaries: &Binaries,
        durability: Durability,
    ) -> Result<(), EmbeddedError> {
        let torn = self.home.join("data.new");
        if torn.exists() {
            fs::remove_dir_all(&torn).map_err(EmbeddedError::file("remove", &torn))?;
        }
        make_dir(&torn, 0o700)?;
        if let Some(account) = &self.account {
            account.own(&torn)?;
        }
        tracing::info!(dir = %self.data.display(), version = %binaries.version, "creating the private Postgres");
        let mut initdb = self.command(binaries, "initdb");
        initdb
            .arg("-D")
            .arg(&torn)
            .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale", LOCALE])
            .arg("--no-instructions");
        if durability == Durability::None {
            initdb.arg("--no-sync");
        }
        let failed =
            |output: String| EmbeddedError::Failed { program: "initdb", dir: torn.clone(), output };
        let mut initdb = tokio::process::Command::from(initdb);
        let run = initdb.kill_on_drop(true).output();
        let output = match tokio::time::timeout(INITDB_DEADLINE, run).await {
            Ok(result) => result.map_err(|error| failed(error.to_string()))?,
            Err(_) => {
                return Err(failed(format!("not done after {} s", INITDB_DEADLINE.as_secs())));
            }
        };
        if !output.status.success() {
            return Err(failed(last_lines(&output.stderr)));
        }
        fs::rename(&torn, &self.data)
            .map_err(EmbeddedError::file("move the new data to", &self.data))?;
        let home = File::open(&self.home).and_then(|folder| folder.sync_all());
        home.map_err(EmbeddedError::file("write", &self.home))
    }

    /// Starts Postgres; it does not answer yet. With the URL at which it will.
    pub(super) async fn spawn(
        &self,
        binaries: &Binaries,
        durability: Durability,
        owner: Alone,
    ) -> Result<(Postmaster, String), EmbeddedError> {
        let socket =
            socket::folder(&self.home, self.runtime_dir.as_deref(), self.account.as_ref())?;
        let mut postgres = self.command(binaries, "postgres");
        postgres.arg("-D").arg(&self.data).arg("-k").arg(&socket);
        let mut settings = vec![
            "listen_addresses=",
            "port=5432",
            "max_connections=100",
            "shared_buffers=64MB",
            "logging_collector=off",
            "log_destination=stderr",
            "timezone=UTC",
            "log_timezone=UTC",
            "cluster_name=antiphon",
            "jit=off",
        ];
        if durability == Durability::None {
            settings.extend(["fsync=off", "synchronous_commit=off", "full_page_writes=off"]);
        }
        for setting in settings {
            postgres.arg("-c").arg(setting);
        }
        postgres.stdout(Stdio::null()).stderr(self.log_file()?);
        let failed = |cause: io::Error| EmbeddedError::Failed {
            program: "postgres",
            dir: self.data.clone(),
            output: cause.to_string(),
        };
        let postmaster = Postmaster::spawn(postgres, owner).await.map_err(failed)?;
        Ok((postmaster, socket::url(&socket, socket::PORT)))
    }

    /// Waits until Postgres answers.
    pub(super) async fn ready(
        &self,
        url: &str,
        postmaster: &Postmaster,
    ) -> Result<(), EmbeddedError> {
        let mut waiting = Waiting::new("the private Postgres is starting");
        loop {
            if answers(url).await {
                return Ok(());
            }
            if postmaster.is_over() {
                let how = postmaster.ended().await;
                let log = fs::read(self.log()).unwrap_or_default();
                let output = format!("{how}\n{}", last_lines(&log));
                return Err(EmbeddedError::Failed {
                    program: "postgres",
                    dir: self.data.clone(),
                    output,
                });
            }
            self.go_on(&mut waiting).await?;
        }
    }

    /// A program of Postgres as the right account, with nothing of our environment: it holds secrets.
    fn command(&self, binaries: &Binaries, program: &str) -> Command {
        let mut command = Command::new(binaries.dir.join(program));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
        command.current_dir(&self.home).stdin(Stdio::null());
        if let Some(account) = &self.account {
            account.run(&mut command);
        }
        command
    }

    /// The file that is locked as long as a Postgres on these data is the child of a living process.
    pub(super) fn owner(&self) -> PathBuf {
        self.home.join("owner")
    }

    fn log(&self) -> PathBuf {
        self.home.join("log")
    }

    fn log_file(&self) -> Result<File, EmbeddedError> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let log = self.log();
        if fs::metadata(&log).is_ok_and(|about| about.len() > LOG_BYTES) {
            let old = self.home.join("log.old");
            fs::rename(&log, &old).map_err(EmbeddedError::file("rename", &log))?;
        }
        let file = File::options().append(true).create(true).mode(0o600).open(&log);
        file.map_err(EmbeddedError::file("open", &log))
    }

    pub(super) async fn go_on(&self, waiting: &mut Waiting) -> Result<(), EmbeddedError> {
        let waited = waiting.pause().await;
        if waited > PATIENCE {
            return Err(EmbeddedError::Silent { dir: self.data.clone(), waited, log: self.log() });
        }
        Ok(())
    }
}

/// Pauses between attempts, and a line in the log now and then.
pub(super) struct Waiting {
    start: Instant,
    told: Instant,
    what: &'static str,
}

impl Waiting {
    pub(super) fn new(what: &'static str) -> Self {
        let start = Instant::now();
        Self { start, told: start, what }
    }

    /// Returns how long it has been waited in all.
    async fn pause(&mut self) -> Duration {
        tokio::time::sleep(PAUSE).await;
        if self.told.elapsed() > TELL_EVERY {
            self.told = Instant::now();
            tracing::info!(seconds = self.start.elapsed().as_secs(), "{}", self.what);
        }
        self.start.elapsed()
    }
}

pub(super) async fn answers(url: &str) -> bool {
    match tokio::time::timeout(ATTEMPT, PgConnection::connect(url)).await {
        Ok(Ok(connection)) => {
            let _ = connection.close().await;
            true
        }
        Ok(Err(_)) | Err(_) => false,
    }
}

/// The end of what a program said: as much as one reads in an error.
fn last_lines(said: &[u8]) -> String {
    const LINES: usize = 12;
    const BYTES: usize = 4096;
    let text = String::from_utf8_lossy(&said[said.len().saturating_sub(BYTES)..]).into_owned();
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
