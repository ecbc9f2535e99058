//! Locked files: the kernel lets go of them when a process dies, whatever killed it.

use std::{
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::Instant;

use super::EmbeddedError;

/// How long another process may hold up a start.
const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(20);

/// A lock that many hold; let go when dropped.
#[derive(Debug)]
pub(super) struct Shared {
    file: File,
    path: PathBuf,
}

/// A lock that one holds; let go when dropped.
#[derive(Debug)]
pub(super) struct Alone(#[expect(dead_code, reason = "held, not read")] File);

/// Joins those who hold `path`, once nobody holds it alone.
pub(super) async fn share(path: &Path) -> Result<Shared, EmbeddedError> {
    let file = open(path)?;
    patiently(path, || file.try_lock_shared()).await?;
    Ok(Shared { file, path: path.to_owned() })
}

/// Takes `path` alone, once nobody else holds it.
pub(super) async fn alone(path: &Path) -> Result<Alone, EmbeddedError> {
    let file = open(path)?;
    patiently(path, || file.try_lock()).await?;
    Ok(Alone(file))
}

/// Takes `path` alone if nobody else holds it.
pub(super) fn claim(path: &Path) -> Result<Option<Alone>, EmbeddedError> {
    let file = open(path)?;
    Ok(attempt(path, file.try_lock())?.then_some(Alone(file)))
}

impl Shared {
    /// Leaves, waits for all others to leave, however long they stay, and takes the lock alone.
    pub(super) async fn become_alone(&self) -> Result<Alone, EmbeddedError> {
        let file = self.leave()?;
        let mut told = false;
        while !attempt(&self.path, file.try_lock())? {
            if !told {
                tracing::info!(
                    "other processes still use the private Postgres, waiting for them to leave"
                );
                told = true;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(Alone(file))
    }

    /// Leaves, and says whether nobody else was there.
    pub(super) fn is_last(&self) -> bool {
        self.leave().is_ok_and(|file| file.try_lock().is_ok())
    }

    fn leave(&self) -> Result<File, EmbeddedError> {
        self.file.unlock().map_err(EmbeddedError::file("unlock", &self.path))?;
        open(&self.path)
    }
}

async fn patiently(
    path: &Path,
    mut lock: impl FnMut() -> Result<(), TryLockError>,
) -> Result<(), EmbeddedError> {
    let start = Instant::now();
    while !attempt(path, lock())? {
        let waited = start.elapsed();
        if waited > PATIENCE {
            let dir = path.parent().unwrap_or(path).to_owned();
            return Err(EmbeddedError::Busy { dir, waited });
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

fn attempt(path: &Path, result: Result<(), TryLockError>) -> Result<bool, EmbeddedError> {
    match result {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(cause)) => Err(EmbeddedError::file("lock", path)(cause)),
    }
}

fn open(path: &Path) -> Result<File, EmbeddedError> {
    let open: io::Result<File> =
        File::options().read(true).write(true).create(true).truncate(false).open(path);
    open.map_err(EmbeddedError::file("open", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_to_leave_gets_it_alone() {
        let path = std::env::temp_dir().join(format!("antiphon-lock-{}", std::process::id()));
        let starter = share(&path).await.unwrap();
        let attached = share(&path).await.unwrap();
        let mut stopping = Box::pin(starter.become_alone());
        assert!(futures::poll!(&mut stopping).is_pending(), "another one is there");
        drop(attached);
        let held = stopping.await.unwrap();
        let mut late = Box::pin(share(&path));
        assert!(futures::poll!(&mut late).is_pending(), "it is being stopped");
        drop(held);
        assert!(late.await.unwrap().is_last());
        std::fs::remove_file(path).unwrap();
    }
}
