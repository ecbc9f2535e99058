//! One stream of messages for many questions, as the older HTTP transport and programs have it.
//!
//! No task reads the stream: whoever waits for an answer reads, and hands to the others what is theirs. So nothing runs while nobody waits,
//! and nothing is left behind when the last one goes.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{Mutex, PoisonError},
};

use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};
use tokio::sync::oneshot;

use crate::protocol::Raw;

use super::{
    McpError,
    rpc::{self, Incoming},
};

/// How many messages that lie there are read at once to see whether the stream has ended: a server that writes without end must not hold up others.
const MOST_AT_ONCE: usize = 100;

type Outcome = Result<Raw, McpError>;

/// The messages of a server, each as its JSON text. Dropping the future of its next item loses nothing.
pub(super) type Messages = BoxStream<'static, Result<String, McpError>>;

pub(super) struct Mux {
    /// `None` once it is closed.
    messages: tokio::sync::Mutex<Option<Messages>>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    askers: HashMap<u64, oneshot::Sender<Outcome>>,
    over: bool,
}

/// A place in the queue of those who wait; leaving it forgets the question.
struct Place<'a> {
    mux: &'a Mux,
    id: u64,
    outcome: oneshot::Receiver<Outcome>,
}

impl Mux {
    pub(super) fn new(messages: Messages) -> Self {
        Self { messages: tokio::sync::Mutex::new(Some(messages)), waiting: Mutex::default() }
    }

    /// Sends a question with `send`, waits for its answer; answers what the server asks meanwhile.
    pub(super) async fn ask<S, F>(
        &self,
        id: u64,
        message: Vec<u8>,
        send: S,
    ) -> Result<Raw, McpError>
    where
        S: Fn(Vec<u8>) -> F + Send + Sync,
        F: Future<Output = Result<(), McpError>> + Send,
    {
        let place = self.place(id)?;
        // Both at once: a server may answer on the stream before it says that it took the question.
        let mut answer = pin!(self.answer(place, &send));
        let mut sending = pin!(send(message));
        tokio::select! {
            biased;
            outcome = &mut answer => return outcome,
            done = &mut sending => done?,
        }
        answer.await
    }

    /// Whether the stream has ended, seen without waiting. Notifications that lie there are read on the way.
    pub(super) fn is_over(&self) -> bool {
        let Ok(mut messages) = self.messages.try_lock() else {
            // Somebody reads, and will find out.
            return self.waiting().over;
        };
        for _ in 0..MOST_AT_ONCE {
            let Some(stream) = messages.as_mut() else { return true };
            let Some(next) = stream.next().now_or_never() else { break };
            if self.take(next).is_err() {
                *messages = None;
            }
        }
        messages.is_none()
    }

    /// Drops the stream; who still waits is told.
    pub(super) async fn close(&self) {
        *self.messages.lock().await = None;
        self.end(&McpError::Closed);
    }

    async fn answer<S, F>(&self, mut place: Place<'_>, send: &S) -> Result<Raw, McpError>
    where
        S: Fn(Vec<u8>) -> F + Send + Sync,
        F: Future<Output = Result<(), McpError>> + Send,
    {
        loop {
            let mut messages = tokio::select! {
                biased;
                outcome = &mut place.outcome => return outcome.unwrap_or(Err(McpError::Ended)),
                messages = self.messages.lock() => messages,
            };
            let Some(stream) = messages.as_mut() else { return Err(McpError::Ended) };
            let next = tokio::select! {
                biased;
                outcome = &mut place.outcome => return outcome.unwrap_or(Err(McpError::Ended)),
                next = stream.next() => next,
            };
            match self.take(next) {
                Ok(replies) => {
                    drop(messages);
                    for reply in replies {
                        // Should the link be broken, the stream says so.
                        let _ = send(reply).await;
                    }
                }
                Err(_told_to_all) => *messages = None,
            }
        }
    }

    /// Hands a message to whom it is for. What is to be answered comes back; an error is the end of the stream.
    fn take(&self, next: Option<Result<String, McpError>>) -> Result<Vec<Vec<u8>>, McpError> {
        let read = next.unwrap_or(Err(McpError::Ended)).and_then(|text| rpc::read(&text));
        let messages = read.inspect_err(|error| self.end(error))?;
        let mut replies = Vec::new();
        for message in messages {
            match message {
                Incoming::Answer { id: Some(id), outcome } => {
                    if let Some(asker) = self.waiting().askers.remove(&id) {
                        // Who has gone does not want it.
                        let _ = asker.send(outcome);
                    }
                }
                Incoming::Asked { reply } => replies.push(reply),
                Incoming::Answer { id: None, .. } | Incoming::Told => (),
            }
        }
        Ok(replies)
    }

    fn end(&self, error: &McpError) {
        let mut waiting = self.waiting();
        waiting.over = true;
        for (_, asker) in waiting.askers.drain() {
            let _ = asker.send(Err(error.clone()));
        }
    }

    fn place(&self, id: u64) -> Result<Place<'_>, McpError> {
        let (asker, outcome) = oneshot::channel();
        let mut waiting = self.waiting();
        if waiting.over {
            return Err(McpError::Ended);
        }
        waiting.askers.insert(id, asker);
        Ok(Place { mux: self, id, outcome })
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.mux.waiting().askers.remove(&self.id);
    }
}

#[cfg(test)]
#[path = "mux_tests.rs"]
mod tests;
