//! A model that plays a script: what an app is tested with where there is no model.
//!
//! **Invariant:** what is said depends on the script, the questions and their order, and on nothing else.

mod file;

use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};

pub use self::file::ScriptError;
use self::file::{Call, Failure, File, Round};
use super::{
    Ask, Deltas, Facts, Model, ModelError, ModelErrorKind,
    recite::{self, Piece},
};
use crate::{
    config::Glob,
    protocol::Usage,
    text::{excerpt::shortened, rescue::Reading, think::ThinkMode},
    turn::{Delta, prompt::PromptMessage},
};

/// The name under which a script is listed that has none of its own.
const NAME: &str = "scripted";

/// Plays the rounds of a script. How it is written is in `docs/scripts.md`.
#[derive(Debug)]
pub struct Script {
    /// The names it answers to; every one where there is none.
    models: Option<Vec<Glob>>,
    /// Played for an input that holds their `when`.
    cued: Vec<(String, Round)>,
    /// Played one after the other for every other input; the last one again and again.
    sequence: Vec<Round>,
    /// How many of the sequence have been played.
    played: AtomicUsize,
}

impl Script {
    /// Reads a script from its file.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        std::fs::read_to_string(path)
            .map_err(|error| {
                ScriptError::new(None, "", format!("the file cannot be read: {error}"))
            })
            .and_then(|toml| Self::parse(&toml))
            .map_err(|error| ScriptError { file: Some(path.to_owned()), ..error })
    }

    /// Reads a script.
    pub fn parse(toml: &str) -> Result<Self, ScriptError> {
        let File { model: models, rounds } = File::parse(toml)?;
        let (mut cued, mut sequence) = (Vec::new(), Vec::new());
        for round in rounds {
            match round.when.clone() {
                Some(when) => cued.push((when, round)),
                None => sequence.push(round),
            }
        }
        Ok(Self { models, cued, sequence, played: AtomicUsize::new(0) })
    }

    /// The models that it can be listed as: its names that are no patterns; `scripted` where it has no names at all.
    pub fn names(&self) -> Vec<String> {
        let Some(models) = &self.models else { return vec![NAME.to_owned()] };
        let names = models.iter().map(Glob::pattern);
        names.filter(|name| !name.contains(['*', '?', '[', '{', '\\'])).map(str::to_owned).collect()
    }

    /// Finds the round for a question, and goes on in the sequence if it is of that.
    fn choose(&self, ask: &Ask<'_>) -> Result<&Round, ModelError> {
        if let Some(models) = &self.models
            && !models.iter().any(|model| model.is_match(ask.model))
        {
            let names: Vec<String> =
                models.iter().map(|model| format!("`{}`", model.pattern())).collect();
            let message = format!("The script plays {}, not `{}`.", names.join(", "), ask.model);
            return Err(ModelError::new(ModelErrorKind::ModelNotFound, message));
        }
        let input = newest_text(ask);
        if let Some((_, round)) = self.cued.iter().find(|(when, _)| input.contains(when)) {
            return Ok(round);
        }
        let Some(last) = self.sequence.len().checked_sub(1) else {
            let input = shortened(&input, 300);
            let message = format!("The script has no round for this input: \"{input}\".");
            return Err(ModelError::new(ModelErrorKind::Rejected, message));
        };
        let turn = self.played.fetch_add(1, Ordering::Relaxed);
        Ok(&self.sequence[turn.min(last)])
    }
}

impl Model for Script {
    fn ask<'a>(&'a self, ask: &'a Ask<'a>) -> BoxFuture<'a, Result<Deltas, ModelError>> {
        async move {
            let round = self.choose(ask)?;
            match &round.error {
                Some(failure) if failure.after_chars == 0 => {
                    recite::rest(round.delay).await;
                    Err(failure.error())
                }
                _ => Ok(recite::recite(round.pieces(recite::count_asked(ask)), round.delay)),
            }
        }
        .boxed()
    }

    fn facts<'a>(&'a self, _model: &'a str) -> BoxFuture<'a, Facts> {
        Box::pin(std::future::ready(Facts { think: ThinkMode::Off, reading: Reading::default() }))
    }
}

/// The text that waits for an answer: what the user said and what tools returned, in lines.
fn newest_text(ask: &Ask<'_>) -> String {
    let texts = recite::newest(&ask.messages).iter().filter_map(|message| match message {
        PromptMessage::User(parts) | PromptMessage::Tool { output: parts, .. } => {
            Some(recite::text_of(parts))
        }
        PromptMessage::System(_) | PromptMessage::Assistant(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

impl Round {
    /// Everything it says, in the order in which it is said: thoughts, text, refusal, calls, the end.
    fn pieces(&self, asked: u64) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let cut = |text| match self.chunks {
            Some(chunks) => recite::cut(text, chunks),
            None => recite::words(text),
        };
        let mut say = |delta| pieces.push(Ok(vec![delta]));
        for piece in cut(&self.reasoning) {
            say(Delta::Reasoning(piece.to_owned()));
        }
        let end = self
            .error
            .as_ref()
            .and_then(|failure| self.text.char_indices().nth(failure.after_chars));
        for piece in cut(&self.text[..end.map_or(self.text.len(), |(end, _)| end)]) {
            say(Delta::Text { text: piece.to_owned(), logprobs: Vec::new() });
        }
        if let Some(failure) = &self.error {
            pieces.push(Err(failure.error()));
            return pieces;
        }
        for piece in cut(&self.refusal) {
            say(Delta::Refusal(piece.to_owned()));
        }
        for (position, call) in (0..).zip(&self.calls) {
            let Call { name, arguments, chunks } = call;
            say(Delta::Call { position, id: None, name: name.clone() });
            for piece in
                chunks.map_or_else(|| vec![&**arguments], |chunks| recite::cut(arguments, chunks))
            {
                say(Delta::Arguments { position, piece: piece.to_owned() });
            }
        }
        recite::conclude(
            &mut pieces,
            [Delta::Usage(self.usage(asked)), Delta::Finish(self.finish)],
        );
        pieces
    }

    fn usage(&self, asked: u64) -> Usage {
        let given = self.usage;
        let reasoning = given.reasoning_tokens.unwrap_or_else(|| recite::count(&self.reasoning));
        let calls = self
            .calls
            .iter()
            .map(|call| recite::count(&call.name) + recite::count(&call.arguments));
        let said = recite::count(&self.text) + recite::count(&self.refusal) + calls.sum::<u64>();
        let output = given.output_tokens.unwrap_or(said.saturating_add(reasoning));
        recite::usage(given.input_tokens.unwrap_or(asked), output, reasoning.min(output))
    }
}

impl Failure {
    /// The error that a backend's answer of this status would be.
    fn error(&self) -> ModelError {
        let Self { status, message, retry_after_seconds, .. } = self;
        let after = retry_after_seconds.map(Duration::from_secs);
        let kind = match status {
            401 | 403 => ModelErrorKind::Unauthorized,
            402 => ModelErrorKind::QuotaExceeded,
            404 => ModelErrorKind::ModelNotFound,
            408 | 504 => ModelErrorKind::Timeout,
            413 => ModelErrorKind::ContextOverflow,
            429 => ModelErrorKind::RateLimited(after),
            503 | 529 => ModelErrorKind::Unavailable(after),
            ..500 => ModelErrorKind::Rejected,
            500.. => ModelErrorKind::Failed,
        };
        let message = message.clone();
        ModelError::new(
            kind,
            message.unwrap_or_else(|| format!("The script fails here with the status {status}.")),
        )
    }
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
