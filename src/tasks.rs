//! The only owner of spawn. What runs beside a request is known here, is told to stop, and is waited for.

use std::{future::Future, time::Duration};

use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Starts tasks and stops them.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Starts a task that the stop waits for. A long one must end by itself once [`Tasks::stopping`] is cancelled.
    #[expect(clippy::disallowed_methods, reason = "this is the owner of spawn")]
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        tokio::spawn(self.tracker.track_future(task))
    }

    /// Runs blocking work (disk, a child process) off the async threads.
    pub fn spawn_blocking<F, T>(&self, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.tracker.spawn_blocking(work)
    }

    /// Cancelled when the process is to stop.
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Asks every task to stop and waits for them, `grace` at the longest. False when some were still running then.
    pub async fn stop(&self, grace: Duration) -> bool {
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout(grace, self.tracker.wait()).await.is_ok()
    }
}
