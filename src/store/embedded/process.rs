//! Postgres as a child that cannot outlive us.
//!
//! Linux can send a child a signal when its parent dies, but "parent" there means the *thread* that started it. So each Postgres has a thread
//! of its own that starts it, waits for it and does nothing else: it ends only with Postgres or with the whole process.

use std::{
    io,
    os::unix::process::{CommandExt as _, ExitStatusExt as _},
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::sync::{oneshot, watch};

use super::lock::Alone;

/// A running Postgres that is our child.
#[derive(Debug)]
pub(super) struct Postmaster {
    pid: Pid,
    /// Whether its process id may still be signalled: false from before the kernel may give the id to somebody else.
    alive: Arc<Mutex<bool>>,
    ended: watch::Receiver<Option<String>>,
}

impl Postmaster {
    /// Starts the command on a thread of its own, out of reach of the terminal's Ctrl-C (we are to stop first). `owner` is held until it
    /// has ended.
    pub(super) async fn spawn(mut command: Command, owner: Alone) -> io::Result<Self> {
        command.process_group(0);
        die_with_parent(&mut command);
        let (say, started) = oneshot::channel();
        let (announce, ended) = watch::channel(None);
        let alive = Arc::new(Mutex::new(true));
        let here = Arc::clone(&alive);
        thread::Builder::new().name("postgres-parent".into()).spawn(move || {
            match command.spawn() {
                Err(error) => {
                    let _ = say.send(Err(error));
                }
                Ok(mut child) => {
                    let pid = Pid::from_child(&child);
                    if say.send(Ok(pid)).is_err() {
                        // Whoever asked has gone meanwhile.
                        let _ = rustix::process::kill_process(pid, Signal::INT);
                    }
                    let how = wait(&mut child, &here);
                    drop(owner);
                    tracing::debug!(%how, "private Postgres ended");
                    let _ = announce.send(Some(how));
                }
            }
        })?;
        let pid = started.await.map_err(io::Error::other)??;
        Ok(Self { pid, alive, ended })
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends a signal, unless it has ended already.
    pub(super) fn signal(&self, signal: Signal) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        if *alive && let Err(error) = rustix::process::kill_process(self.pid, signal) {
            tracing::warn!(%error, pid = self.pid(), "cannot signal the private Postgres");
        }
    }

    /// Resolves when it has ended, with how it ended.
    pub(super) async fn ended(&self) -> String {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(how) => how.clone().unwrap_or_default(),
            Err(_) => "its thread ended".to_owned(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.borrow().is_some()
    }
}

/// Waits for the end in two steps, so that nobody signals a process id that is free again.
fn wait(child: &mut Child, alive: &Mutex<bool>) -> String {
    let seen = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) =
        rustix::process::waitid(WaitId::Pid(Pid::from_child(child)), seen)
    {}
    *alive.lock().unwrap_or_else(PoisonError::into_inner) = false;
    child.wait().map_or_else(|error| error.to_string(), describe)
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "it was stopped".to_owned(),
        (Some(code), _) => format!("it ended with code {code}"),
        (None, Some(signal)) => format!("signal {signal} killed it"),
        (None, None) => status.to_string(),
    }
}

/// Has the kernel stop the child, in order, when the thread that starts it dies.
#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    let in_child = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::INT))?;
        // The parent may have died before the line above.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        Ok(())
    };
    #[expect(
        unsafe_code,
        reason = "between fork and exec: two system calls, no allocation, no lock"
    )]
    // SAFETY: the closure makes only async-signal-safe system calls.
    unsafe {
        command.pre_exec(in_child);
    }
}

/// Elsewhere the kernel has no such signal: after a crash of ours Postgres runs on, and the next start attaches to it.
#[cfg(not(target_os = "linux"))]
fn die_with_parent(_: &mut Command) {}
