//! As whom Postgres runs, and whether that account can get to its files.

use std::{
    fs::{self, Metadata},
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
};

use super::EmbeddedError;

/// Another account that Postgres runs as, because it refuses to run as root.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Account {
    pub(super) name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    /// The account for Postgres: `None` when it can run as we do.
    pub(super) fn for_postgres() -> Result<Option<Self>, EmbeddedError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let passwd = Path::new("/etc/passwd");
        let text = fs::read_to_string(passwd).map_err(EmbeddedError::file("read", passwd))?;
        let found = ["postgres", "nobody"].iter().find_map(|name| Self::in_passwd(&text, name));
        found.map(Some).ok_or(EmbeddedError::NoAccount)
    }

    fn in_passwd(text: &str, name: &str) -> Option<Self> {
        text.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next()? == name).then_some(())?;
            let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
            (uid != 0).then(|| Self { name: name.to_owned(), uid, gid })
        })
    }

    /// Has the command run as this account.
    pub(super) fn run(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Gives a file or folder to this account.
    pub(super) fn own(&self, path: &Path) -> Result<(), EmbeddedError> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .map_err(EmbeddedError::file("give the database's user", path))
    }

    /// Fails when a folder on the way to `path`, or `path` itself, cannot be entered by this account. Access lists are not looked at.
    pub(super) fn reach(&self, path: &Path) -> Result<(), EmbeddedError> {
        let real = fs::canonicalize(path).map_err(EmbeddedError::file("find", path))?;
        let mut way: Vec<&Path> = real.ancestors().collect();
        way.reverse();
        for step in way {
            let about = fs::metadata(step).map_err(EmbeddedError::file("look at", step))?;
            if about.is_dir() && !self.may_enter(&about) {
                let closed = PathBuf::from(step);
                return Err(EmbeddedError::Closed {
                    closed,
                    wanted: real.clone(),
                    account: self.name.clone(),
                });
            }
        }
        Ok(())
    }

    fn may_enter(&self, folder: &Metadata) -> bool {
        let bit = match () {
            () if folder.uid() == self.uid => 0o100,
            () if folder.gid() == self.gid => 0o010,
            () => 0o001,
        };
        folder.mode() & bit != 0
    }

    pub(super) const fn uid(&self) -> u32 {
        self.uid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_folder_on_the_way_is_named() {
        let here = std::env::temp_dir().join(format!("antiphon-account-{}", std::process::id()));
        let wanted = here.join("closed/data");
        fs::create_dir_all(&wanted).unwrap();
        let set = |mode| {
            let rights = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(here.join("closed"), rights).unwrap();
        };
        let stranger = Account { name: "postgres".into(), uid: 54321, gid: 54321 };
        set(0o710);
        let error = stranger.reach(&wanted).unwrap_err().to_string();
        set(0o711);
        let open = stranger.reach(&wanted);
        fs::remove_dir_all(&here).unwrap();
        assert!(error.contains("/closed is closed to the user `postgres`"), "{error}");
        assert!(error.contains("chmod o+x"), "{error}");
        open.unwrap();
    }

    #[test]
    fn accounts_are_read_from_passwd() {
        let text = "root:x:0:0:root:/root:/bin/bash\npostgres2:x:7:8::/:/bin/sh\nbroken\n\
                    nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin\npostgres:x:0:0::/:/bin/sh\n";
        let nobody = Account { name: "nobody".into(), uid: 65534, gid: 65533 };
        assert_eq!(Account::in_passwd(text, "nobody"), Some(nobody));
        assert_eq!(Account::in_passwd(text, "postgres"), None, "another root does not help");
        assert_eq!(Account::in_passwd(text, "broken"), None);
    }
}
