//! What can be wrong with the private Postgres.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// Why there is no private Postgres. Each is a sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// A file or folder of the data directory cannot be used.
    #[error("cannot {action} {}: {cause}. Check data_dir, or set DATABASE_URL to use a database of your own.", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// As root: the account that Postgres runs as cannot get there.
    #[error(
        "{} is closed to the user `{account}`, as which PostgreSQL must run because antiphon runs as root, so {} is out of its reach. \
         Choose another data_dir (for example /var/lib/antiphon), or open the folder with `chmod o+x {}`.",
        closed.display(), wanted.display(), closed.display()
    )]
    Closed {
        /// The folder that is closed.
        closed: PathBuf,
        /// What lies behind it.
        wanted: PathBuf,
        /// Who stands before it.
        account: String,
    },
    /// As root: nobody else to run Postgres as.
    #[error(
        "antiphon runs as root, and PostgreSQL refuses to: it needs a user `postgres` or `nobody`, and /etc/passwd has neither. \
         Add one, start antiphon as an ordinary user, or set DATABASE_URL."
    )]
    NoAccount,
    /// No PostgreSQL anywhere.
    #[error(
        "no PostgreSQL found ({searched}). Install one (Debian: `apt install postgresql`; macOS: `brew install postgresql@17`), \
         set PG_BIN to the folder that holds `postgres` and `initdb`, or set DATABASE_URL to use a database of your own."
    )]
    NoBinaries {
        /// Where it was looked for, and why what was there does not do.
        searched: String,
    },
    /// Fetching it failed.
    #[error(
        "PostgreSQL {version} is not installed and could not be fetched from {url}: {reason}. Install PostgreSQL, set PG_BIN to the folder \
         that holds `postgres` and `initdb`, or set DATABASE_URL to use a database of your own."
    )]
    Fetch {
        /// What was to be fetched.
        version: String,
        /// From where.
        url: String,
        /// What went wrong.
        reason: String,
    },
    /// The data are those of another major version.
    #[error(
        "the database in {} was made by PostgreSQL {data}, but the PostgreSQL found in {} is version {found}. Either install PostgreSQL {data} \
         or set PG_BIN to its folder; or move the data to version {found}: with PostgreSQL {data} run `antiphon db dump FILE`, move {} out of \
         the way, then with PostgreSQL {found} run `antiphon db restore FILE`.",
        dir.display(), bin.display(), dir.display()
    )]
    OtherMajor {
        /// The cluster.
        dir: PathBuf,
        /// The major version in its `PG_VERSION`.
        data: String,
        /// The binaries' folder.
        bin: PathBuf,
        /// Their major version.
        found: u32,
    },
    /// `initdb` or `postgres` ended with an error.
    #[error("{program} failed in {}: {output}", dir.display())]
    Failed {
        /// Which one.
        program: &'static str,
        /// Where.
        dir: PathBuf,
        /// Its last words.
        output: String,
    },
    /// Postgres runs but does not answer.
    #[error("PostgreSQL in {} did not answer within {} s; {} says why.", dir.display(), waited.as_secs(), log.display())]
    Silent {
        /// The cluster.
        dir: PathBuf,
        /// How long it was waited for.
        waited: Duration,
        /// Its log.
        log: PathBuf,
    },
    /// Another process is starting or stopping it, and does not end.
    #[error(
        "another antiphon has been starting or stopping the database in {} for {} s. Look for it (`ps`), or choose another data_dir.",
        dir.display(), waited.as_secs()
    )]
    Busy {
        /// The cluster.
        dir: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },
    /// It did not end when told to.
    #[error("PostgreSQL (process {pid}) did not stop; it recovers at the next start.")]
    DidNotStop {
        /// Its process id.
        pid: i32,
    },
}

impl EmbeddedError {
    /// Says which file it was: for `map_err`.
    pub(super) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::File { action, path, cause }
    }
}
