//! Finding a Postgres that runs on the data already.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::Pid;

use super::{
    EmbeddedError,
    cluster::{Cluster, Waiting, answers},
    lock::{self, Alone},
    socket,
};

/// Whether a Postgres runs on these data.
#[derive(Debug)]
pub(super) enum Live {
    /// No, and with this lock nobody else starts one.
    No {
        owner: Alone,
    },
    At {
        url: String,
        pid: Pid,
    },
}

impl Cluster {
    /// Looks for a Postgres that runs on these data, and waits until it answers or is gone.
    ///
    /// The lock of its owner counts before its process id: in another container the same data show the same file, but the number means
    /// another process or none, and a second Postgres would destroy the data.
    pub(super) async fn live(&self) -> Result<Live, EmbeddedError> {
        let file = self.data.join("postmaster.pid");
        let mut waiting =
            Waiting::new("another Postgres runs on these data but does not answer yet");
        loop {
            let claim = lock::claim(&self.owner())?;
            let text = match fs::read_to_string(&file) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                Err(error) => return Err(EmbeddedError::file("read", &file)(error)),
            };
            // Lines: process id, data, start time, port, socket folder; the last ones are written a little later.
            let lines: Vec<&str> = text.lines().collect();
            let pid = lines.first().and_then(|pid| Pid::from_raw(pid.trim().parse().ok()?));
            if let Some(owner) = claim {
                match pid.map_or(Who::Nobody, |pid| self.who(pid)) {
                    Who::Nobody => return Ok(Live::No { owner }),
                    Who::Other => {
                        // After a restart of a container, say. Postgres itself would refuse to start.
                        tracing::warn!(
                            ?pid,
                            "the process in postmaster.pid is not this Postgres, removing the file"
                        );
                        fs::remove_file(&file).map_err(EmbeddedError::file("remove", &file))?;
                        return Ok(Live::No { owner });
                    }
                    Who::Postgres => (),
                }
            }
            if let (Some(pid), Some(Ok(port)), Some(folder)) =
                (pid, lines.get(3).map(|port| port.parse()), lines.get(4))
                && !folder.is_empty()
            {
                let url = socket::url(Path::new(folder), port);
                if answers(&url).await {
                    return Ok(Live::At { url, pid });
                }
            }
            self.go_on(&mut waiting).await?;
        }
    }

    /// Who has the process id that `postmaster.pid` names.
    fn who(&self, pid: Pid) -> Who {
        if rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
            return Who::Nobody;
        }
        let about = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
        if !about.exists() {
            // A system without /proc: the process id has to do.
            return Who::Postgres;
        }
        let command = fs::read(about.join("cmdline")).unwrap_or_default();
        let program =
            String::from_utf8_lossy(command.split(|byte| *byte == 0).next().unwrap_or_default())
                .into_owned();
        let name = program.rsplit('/').next().unwrap_or_default();
        // Postgres works in its data; the link can be read by its own user and by root.
        let elsewhere = fs::read_link(about.join("cwd"))
            .is_ok_and(|cwd| fs::canonicalize(&self.data).is_ok_and(|data| data != cwd));
        match (name.starts_with("postgres") || name.starts_with("postmaster"), elsewhere) {
            (true, false) => Who::Postgres,
            (true, true) | (false, _) => Who::Other,
        }
    }
}

/// Who has a process id.
enum Who {
    Nobody,
    Other,
    Postgres,
}
