//! Saving a whole database into a file and loading it into an empty one, with PostgreSQL's own tools: for backups, and to move between
//! major versions or from the private Postgres to one of your own.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Stdio,
};

use sqlx::{Connection as _, PgConnection};
use tokio::process::Command;
use url::Url;

/// Why there is no dump, or why it was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The URL cannot be read.
    #[error("database_url is not a Postgres URL: {0}")]
    Url(#[from] url::ParseError),
    /// The tool could not be run, or the file not be moved into place.
    #[error("cannot {action} {}: {cause}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// The tool ended with an error.
    #[error("{program} failed, and nothing was changed: {output}")]
    Failed {
        /// Which one.
        program: &'static str,
        /// What it said.
        output: String,
    },
    /// The target holds tables.
    #[error(
        "the database already holds {tables} tables, and a dump is loaded only into an empty one. Name an empty database, or for the private \
         Postgres a new data_dir (or move the old `postgres` folder in it out of the way)."
    )]
    NotEmpty {
        /// How many.
        tables: i64,
    },
    /// The target could not be looked at.
    #[error("cannot look into the database: {0}")]
    Database(#[from] sqlx::Error),
}

/// Writes the whole database at `url` into `file`, with `pg_dump` from the folder `bin`. A file of that name is replaced once the dump
/// is whole.
pub async fn dump(url: &str, bin: &Path, file: &Path) -> Result<(), DumpError> {
    let mut partial = OsString::from(file);
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let mut command = tool(url, bin, "pg_dump")?;
    command.args(["--format=custom", "--no-owner", "--no-privileges"]).arg("--file").arg(&partial);
    let done = run("pg_dump", bin, command).await.and_then(|()| {
        let moved = std::fs::rename(&partial, file);
        moved.map_err(|cause| DumpError::File { action: "write", path: file.to_owned(), cause })
    });
    if done.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    done
}

/// Loads `file` into the empty database at `url`, with `pg_restore` from the folder `bin`: all of it or nothing.
pub async fn restore(url: &str, bin: &Path, file: &Path) -> Result<(), DumpError> {
    if let Err(cause) = std::fs::File::open(file) {
        return Err(DumpError::File { action: "read", path: file.to_owned(), cause });
    }
    let mut connection = PgConnection::connect(url).await?;
    let tables: i64 = sqlx::query_scalar(
        "select count(*) from pg_catalog.pg_tables where schemaname not in ('pg_catalog', 'information_schema')",
    )
    .fetch_one(&mut connection)
    .await?;
    connection.close().await?;
    if tables > 0 {
        return Err(DumpError::NotEmpty { tables });
    }
    let mut command = tool(url, bin, "pg_restore")?;
    command
        .args(["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"])
        .arg(file);
    run("pg_restore", bin, command).await
}

/// The tool with the database's address as an argument and its password in the environment, where other users do not see it.
fn tool(url: &str, bin: &Path, program: &str) -> Result<Command, DumpError> {
    let (url, password) = for_libpq(Url::parse(url)?);
    let mut command = Command::new(bin.join(program));
    command.arg("--dbname").arg(url.as_str()).arg("--no-password");
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    Ok(command)
}

/// The URL without its password and in libpq's words: it refuses parameters that it does not know, and sqlx has some of its own.
fn for_libpq(mut url: Url) -> (Url, Option<String>) {
    let mut password = url.password().map(|escaped| {
        // Decoded by the same rules as a query, except that `+` is itself.
        let query = format!("p={}", escaped.replace('+', "%2B"));
        url::form_urlencoded::parse(query.as_bytes()).map(|(_, value)| value.into_owned()).collect()
    });
    let _ = url.set_password(None);
    let mut kept = Vec::new();
    for (key, value) in url.query_pairs() {
        let key = match &*key {
            "password" => {
                password = Some(value.into_owned());
                continue;
            }
            "statement-cache-capacity" => continue,
            "ssl-mode" => "sslmode",
            "ssl-root-cert" | "ssl-ca" => "sslrootcert",
            "ssl-cert" => "sslcert",
            "ssl-key" => "sslkey",
            other if other.starts_with("options[") => continue,
            other => other,
        };
        kept.push(format!("{key}={}", escape(&value)));
    }
    let query = kept.join("&");
    url.set_query((!query.is_empty()).then_some(&*query));
    (url, password)
}

/// Percent-encodes for libpq, which takes `+` for itself and not for a space.
fn escape(value: &str) -> String {
    url::form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>().replace('+', "%20")
}

async fn run(program: &'static str, bin: &Path, mut command: Command) -> Result<(), DumpError> {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.map_err(|cause| DumpError::File {
        action: "run",
        path: bin.join(program),
        cause,
    })?;
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(DumpError::Failed { program, output })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libpq_gets_its_own_words_and_no_password() {
        let table = [
            ("postgres://u:p%40+%C3%A4@h:5/db", "postgres://u@h:5/db", Some("p@+ä")),
            (
                "postgres://u@localhost/db?host=/a%20b&statement-cache-capacity=3&ssl-mode=require&password=x",
                "postgres://u@localhost/db?host=%2Fa%20b&sslmode=require",
                Some("x"),
            ),
            ("postgres://h/db?statement-cache-capacity=3", "postgres://h/db", None),
        ];
        for (given, url, password) in table {
            let (got, secret) = for_libpq(Url::parse(given).unwrap());
            assert_eq!((got.as_str(), secret.as_deref()), (url, password), "{given}");
        }
    }
}
