//! A program of the operator's as an MCP server: one message per line on its standard input and output.
//!
//! It has only the environment that is given to it, a process group of its own, and ends with its session. What it writes to its standard
//! error goes to ours.

use std::{process::Stdio, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout},
    sync::Mutex,
};

use crate::{protocol::Raw, tasks::Tasks};

use super::{
    Command, McpError,
    mux::{Messages, Mux},
};

/// How long a program may take to end after its input has ended, and again after it was asked to.
const LEAVING: Duration = Duration::from_secs(2);

/// A program that is running.
pub(super) struct Program {
    input: Arc<Mutex<Option<ChildStdin>>>,
    child: Mutex<Child>,
    group: Option<Pid>,
    mux: Mux,
    tasks: Tasks,
}

impl Program {
    /// Starts it. `limit` is the longest line, in bytes.
    pub(super) fn start(command: &Command, limit: usize, tasks: &Tasks) -> Result<Self, McpError> {
        let mut process = tokio::process::Command::new(&command.program);
        process
            .args(&command.args)
            .env_clear()
            .envs(command.env.iter().map(|(name, value)| (name, value.expose())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(dir) = &command.dir {
            process.current_dir(dir);
        }
        let mut child = process.spawn().map_err(|error| {
            tracing::warn!(program = %command.program, %error, "MCP program not started");
            McpError::NotStarted
        })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(McpError::NotStarted);
        };
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self {
            input: Arc::new(Mutex::new(Some(input))),
            child: Mutex::new(child),
            group,
            mux: Mux::new(lines(output, limit)),
            tasks: tasks.clone(),
        })
    }

    pub(super) async fn ask(&self, id: u64, message: Vec<u8>) -> Result<Raw, McpError> {
        self.mux.ask(id, message, |message| self.tell(message)).await
    }

    /// Writes a message. In a task, so that a caller that goes away leaves no half line behind.
    pub(super) async fn tell(&self, mut message: Vec<u8>) -> Result<(), McpError> {
        message.push(b'\n');
        let input = self.input.clone();
        let written = self.tasks.spawn(async move {
            let mut input = input.lock().await;
            let input = input.as_mut().ok_or(McpError::Ended)?;
            input.write_all(&message).await.map_err(|_| McpError::Ended)?;
            input.flush().await.map_err(|_| McpError::Ended)
        });
        written.await.unwrap_or(Err(McpError::Ended))
    }

    pub(super) fn is_over(&self) -> bool {
        self.mux.is_over()
    }

    /// Ends the program: first its input, then a request to end, then by force.
    pub(super) async fn close(&self) {
        self.mux.close().await;
        // A writer that hangs holds the lock; then there is only force.
        if let Ok(mut input) = tokio::time::timeout(LEAVING, self.input.lock()).await {
            *input = None;
        }
        let mut child = self.child.lock().await;
        for signal in [None, Some(Signal::TERM)] {
            if let Some(signal) = signal {
                self.signal(signal);
            }
            if tokio::time::timeout(LEAVING, child.wait()).await.is_ok() {
                break;
            }
        }
        // Also what the program started and left behind.
        self.signal(Signal::KILL);
        let _ = child.wait().await;
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Once it is reaped its number may be another's.
        if self.child.get_mut().id().is_some() {
            self.signal(Signal::KILL);
        }
    }
}

/// The lines of a program that look like messages. Some programs write other things there too.
fn lines(output: ChildStdout, limit: usize) -> Messages {
    let reader = BufReader::new(output);
    let lines = stream::unfold(Some(reader), move |reader| async move {
        let mut reader = reader?;
        match line(&mut reader, limit).await {
            Ok(Some(line)) => Some((Ok(line), Some(reader))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    });
    lines
        .filter_map(async |line| match line {
            Ok(line) if !line.trim_start().starts_with(['{', '[']) => None,
            line => Some(line),
        })
        .boxed()
}

async fn line(
    reader: &mut BufReader<ChildStdout>,
    limit: usize,
) -> Result<Option<String>, McpError> {
    let mut line = Vec::new();
    loop {
        let piece = reader.fill_buf().await.map_err(|_| McpError::Ended)?;
        if piece.is_empty() {
            return Ok(None);
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(piece.len(), |end| end + 1);
        line.extend_from_slice(&piece[..used]);
        reader.consume(used);
        if line.len() > limit {
            return Err(McpError::TooLarge(limit));
        }
        if end.is_some() {
            let line = String::from_utf8(line).map_err(|_| McpError::invalid("it is no UTF-8"))?;
            return Ok(Some(line));
        }
    }
}
