//! The parent's side of `antiphon parse`.

use std::{path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
    sync::Semaphore,
};

use super::{LONGEST_TEXT, ParseError, Parsed, Task};

/// What a child says is not longer than its text with every byte escaped, and a little.
const LONGEST_ANSWER: u64 = 6 * LONGEST_TEXT as u64 + 100_000;

/// How much may be spent on documents.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Children at the same time; more wait. Each may take 2 GiB.
    pub parallel: usize,
    /// How long one document may take.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { parallel: 4, time: Duration::from_secs(30) }
    }
}

/// Parses documents in child processes. Cheap to clone; clones share the limit.
#[derive(Clone, Debug)]
pub struct Parser {
    program: PathBuf,
    slots: Arc<Semaphore>,
    time: Duration,
}

impl Parser {
    /// A parser that starts `program`, our own binary.
    pub fn new(program: PathBuf, limits: Limits) -> Self {
        Self { program, slots: Arc::new(Semaphore::new(limits.parallel)), time: limits.time }
    }

    /// The text of a document. Dropping the future kills the child.
    pub async fn parse(&self, task: &Task, bytes: &[u8]) -> Result<Parsed, ParseError> {
        let Ok(_slot) = self.slots.acquire().await else { return Err(ParseError::Unavailable) };
        let asked = async {
            let child = self.start().map_err(|error| {
                tracing::error!(%error, program = %self.program.display(), "`antiphon parse` cannot be started");
                ParseError::Unavailable
            })?;
            converse(child, task, bytes).await
        };
        tokio::time::timeout(self.time, asked).await.unwrap_or(Err(ParseError::Slow))
    }

    fn start(&self) -> std::io::Result<Child> {
        Command::new(&self.program)
            .arg("parse")
            .env_clear()
            // One thread is enough, and each has its share of the address space.
            .env("TOKIO_WORKER_THREADS", "1")
            .env("MALLOC_ARENA_MAX", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
    }
}

async fn converse(mut child: Child, task: &Task, bytes: &[u8]) -> Result<Parsed, ParseError> {
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(ParseError::Unavailable);
    };
    let mut line = serde_json::to_vec(task).map_err(|_| ParseError::Unavailable)?;
    line.push(b'\n');
    let tell = async {
        // A child that has died says so below.
        let _ = stdin.write_all(&line).await;
        let _ = stdin.write_all(bytes).await;
        drop(stdin);
    };
    let mut answer = Vec::new();
    let mut limited = stdout.take(LONGEST_ANSWER);
    let hear = limited.read_to_end(&mut answer);
    let ((), heard) = tokio::join!(tell, hear);
    heard.map_err(|_| ParseError::Broke)?;
    serde_json::from_slice::<Result<Parsed, ParseError>>(&answer).unwrap_or(Err(ParseError::Broke))
}
