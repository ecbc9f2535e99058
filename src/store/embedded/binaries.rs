//! Finding PostgreSQL's own binaries.

use std::{
    fmt::{self, Write as _},
    fs,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use super::{EmbeddedError, EmbeddedSettings, Fetch, archive, cluster::Cluster};
use crate::tasks::Tasks;

/// The oldest major version that the queries are written for.
const OLDEST: u32 = 14;

/// A folder of binaries and their version.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Binaries {
    pub(super) dir: PathBuf,
    pub(super) version: Version,
}

/// A PostgreSQL version; ordered by age.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Version {
    pub(super) major: u32,
    minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The server's binaries for this cluster: those of the version that made it, or for a new one the first installed ones, or fetched ones.
pub(super) async fn find(
    settings: &EmbeddedSettings,
    data_version: Option<&str>,
    cluster: &Cluster,
    tasks: &Tasks,
) -> Result<Binaries, EmbeddedError> {
    let mut refused = Vec::new();
    let mut found = Vec::new();
    for dir in folders(settings, &["postgres", "initdb"]) {
        if let Some(account) = &cluster.account
            && let Err(closed) = account.reach(&dir)
        {
            refused.push(closed.to_string());
            continue;
        }
        match version(&dir.join("postgres")).await {
            Ok(version) if version.major >= OLDEST => found.push(Binaries { dir, version }),
            Ok(version) => refused.push(format!("{} is version {version}, too old", dir.display())),
            Err(reason) => refused.push(reason),
        }
    }
    if let Some(fit) = choose(&found, data_version) {
        return Ok(fit.clone());
    }
    if settings.pg_bin.is_none()
        && let Fetch::From(archive) = &settings.fetch
        && let Some(pinned) = archive::pinned(data_version)
    {
        let dir = archive::fetch(archive, pinned, &settings.data_dir.join("cache"), tasks).await?;
        if let Some(account) = &cluster.account {
            account.reach(&dir)?;
        }
        let version =
            version(&dir.join("postgres")).await.map_err(|reason| EmbeddedError::Fetch {
                version: pinned.to_owned(),
                url: archive.base_url.clone(),
                reason,
            })?;
        return Ok(Binaries { dir, version });
    }
    match (found.into_iter().next(), data_version) {
        (Some(other), Some(data)) => Err(EmbeddedError::OtherMajor {
            dir: cluster.data.clone(),
            data: data.to_owned(),
            bin: other.dir,
            found: other.version.major,
        }),
        _ => Err(EmbeddedError::NoBinaries { searched: searched(settings, &refused) }),
    }
}

/// The newest `pg_dump` and `pg_restore`: they work with every server that is not newer.
pub(super) async fn find_tools(settings: &EmbeddedSettings) -> Result<Binaries, EmbeddedError> {
    let mut refused = Vec::new();
    let mut newest: Option<Binaries> = None;
    for dir in folders(settings, &["pg_dump", "pg_restore"]) {
        match version(&dir.join("pg_dump")).await {
            Ok(version) if newest.as_ref().is_none_or(|best| best.version < version) => {
                newest = Some(Binaries { dir, version });
            }
            Ok(_) => (),
            Err(reason) => refused.push(reason),
        }
    }
    newest.ok_or_else(|| EmbeddedError::NoBinaries { searched: searched(settings, &refused) })
}

/// Of what is installed, best places first: what fits the data.
fn choose<'a>(found: &'a [Binaries], data_version: Option<&str>) -> Option<&'a Binaries> {
    found.iter().find(|one| data_version.is_none_or(|data| data == one.version.major.to_string()))
}

/// Folders that hold these programs, best ones first.
fn folders(settings: &EmbeddedSettings, programs: &[&str]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(dir) = &settings.pg_bin {
        folders.push(dir.clone());
    } else {
        for place in settings.installed.iter().chain([&settings.data_dir.join("cache")]) {
            folders.extend(versions_in(place));
        }
        folders.extend(settings.path.iter().flat_map(std::env::split_paths));
    }
    folders.retain(|dir| programs.iter().all(|program| dir.join(program).is_file()));
    folders
}

/// `place/*/bin`, highest version in the folder's name first.
fn versions_in(place: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_by_key(|name| (numbers(name), name.clone()));
    names.iter().rev().map(|name| place.join(name).join("bin")).collect()
}

/// The numbers in a name such as `postgresql@17` or `16.4`.
fn numbers(name: &str) -> Vec<u32> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// Asks a program for its version: `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`.
async fn version(program: &Path) -> Result<Version, String> {
    let asked = Command::new(program).arg("--version").env_clear().kill_on_drop(true).output();
    let output = match tokio::time::timeout(std::time::Duration::from_secs(20), asked).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(format!("{} does not run: {error}", program.display())),
        Err(_) => return Err(format!("{} --version does not end", program.display())),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    parse_version(&text).ok_or_else(|| {
        let error = String::from_utf8_lossy(&output.stderr);
        format!("{} --version said `{}`", program.display(), [text.trim(), error.trim()].concat())
    })
}

fn parse_version(text: &str) -> Option<Version> {
    let numbers = numbers(text.split_once("(PostgreSQL) ")?.1);
    Some(Version { major: *numbers.first()?, minor: numbers.get(1).copied().unwrap_or(0) })
}

fn searched(settings: &EmbeddedSettings, refused: &[String]) -> String {
    let mut text = match &settings.pg_bin {
        Some(dir) => format!("PG_BIN is {}", dir.display()),
        None => "looked in PATH".to_owned(),
    };
    if settings.pg_bin.is_none() {
        for place in &settings.installed {
            let _ = write!(text, ", {}/*/bin", place.display());
        }
    }
    for reason in refused {
        let _ = write!(text, "; {reason}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binaries(dir: &str, major: u32) -> Binaries {
        Binaries { dir: dir.into(), version: Version { major, minor: 1 } }
    }

    #[test]
    fn versions_are_read_as_packagers_write_them() {
        let table = [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", Some((15, 18))),
            ("pg_dump (PostgreSQL) 17.5\n", Some((17, 5))),
            ("postgres (PostgreSQL) 18beta1\n", Some((18, 1))),
            ("postgres (PostgreSQL) devel", None),
            ("bash: no", None),
        ];
        for (text, expected) in table {
            let expected = expected.map(|(major, minor)| Version { major, minor });
            assert_eq!(parse_version(text), expected, "{text}");
        }
    }

    #[test]
    fn the_data_decide_else_the_first_place() {
        let found = [binaries("/a", 17), binaries("/b", 15), binaries("/c", 15)];
        assert_eq!(choose(&found, None), Some(&found[0]));
        assert_eq!(choose(&found, Some("15")), Some(&found[1]));
        assert_eq!(choose(&found, Some("16")), None);
    }

    #[test]
    fn folders_are_ordered_as_versions_not_as_text() {
        let mut names = ["9.6", "15", "postgresql@17", "bin", "16.4"];
        names.sort_by_key(|name| (numbers(name), (*name).to_owned()));
        assert_eq!(names, ["bin", "9.6", "15", "16.4", "postgresql@17"]);
    }
}
