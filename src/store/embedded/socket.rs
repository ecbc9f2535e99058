//! Where the socket is.

use std::{
    fmt::Write as _,
    fs, io,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use aws_lc_rs::digest::{SHA256, digest};

use super::{EmbeddedError, account::Account, make_dir};

/// Part of the socket's name; nothing listens on it.
pub(super) const PORT: u16 = 5432;

/// What the kernel has room for, without the closing zero byte.
const MAX_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// The folder for the socket, open to the account of Postgres only: in `home`, or somewhere shorter when the path would be too long.
pub(super) fn folder(
    home: &Path,
    runtime_dir: Option<&Path>,
    account: Option<&Account>,
) -> Result<PathBuf, EmbeddedError> {
    let inside = home.join("run");
    let folder = if fits(&inside) { inside } else { elsewhere(home, runtime_dir, account) };
    make_dir(&folder, 0o700)?;
    let look = || fs::symlink_metadata(&folder).map_err(EmbeddedError::file("look at", &folder));
    let us = rustix::process::geteuid().as_raw();
    if let Some(account) = account {
        let about = look()?;
        if about.is_dir() && about.uid() == us {
            account.own(&folder)?;
        }
        account.reach(&folder)?;
    }
    // In /tmp anybody may have been here before us.
    let about = look()?;
    if !about.is_dir()
        || about.uid() != account.map_or(us, Account::uid)
        || about.mode() & 0o077 != 0
    {
        let cause = io::Error::other("it is not a folder that is open to the database's user only");
        return Err(EmbeddedError::file("use", &folder)(cause));
    }
    Ok(folder)
}

/// A URL that sqlx and libpq both read.
pub(super) fn url(folder: &Path, port: u16) -> String {
    let mut url = format!("postgres://postgres@localhost:{port}/postgres?host=");
    for byte in folder.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(*byte)),
            byte => {
                let _ = write!(url, "%{byte:02X}");
            }
        }
    }
    url
}

fn fits(folder: &Path) -> bool {
    folder.join(format!(".s.PGSQL.{PORT}")).as_os_str().len() <= MAX_PATH
}

/// A short place that is the same at each start.
fn elsewhere(home: &Path, runtime_dir: Option<&Path>, account: Option<&Account>) -> PathBuf {
    let mut name = "antiphon-".to_owned();
    for byte in &digest(&SHA256, home.as_os_str().as_bytes()).as_ref()[..8] {
        let _ = write!(name, "{byte:02x}");
    }
    let good = |dir: &&Path| {
        dir.is_dir()
            && fits(&dir.join(&name))
            && account.is_none_or(|account| account.reach(dir).is_ok())
    };
    runtime_dir.filter(good).unwrap_or(Path::new("/tmp")).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_at_the_limit_fits_and_one_byte_more_does_not() {
        let name = ".s.PGSQL.5432".len() + 1;
        let limit = PathBuf::from(format!("/{}", "x".repeat(MAX_PATH - name - 1)));
        assert!(fits(&limit));
        assert!(!fits(&PathBuf::from(format!("{}x", limit.display()))));
    }

    #[test]
    fn odd_folders_are_escaped_for_both_readers() {
        assert_eq!(
            url(Path::new("/a b/ä+%&"), 5432),
            "postgres://postgres@localhost:5432/postgres?host=/a%20b/%C3%A4%2B%25%26"
        );
    }

    #[test]
    fn long_paths_get_a_short_folder_of_their_own() {
        let long = |c: &str| PathBuf::from(format!("/{}", c.repeat(200)));
        let (a, b) = (elsewhere(&long("a"), None, None), elsewhere(&long("b"), None, None));
        assert_ne!(a, b);
        assert_eq!(
            a,
            elsewhere(&long("a"), Some(&long("c")), None),
            "a runtime folder that is not there"
        );
        assert!(fits(&a), "{}", a.display());
    }
}
