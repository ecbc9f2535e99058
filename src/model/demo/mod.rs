//! The model `demo`: what answers where no upstream is configured, so that everything around a model can be tried at once.
//!
//! **Invariant:** the same question gets the same answer, and every answer in plain text says that no AI is behind it.

mod answer;
mod wish;

use std::time::Duration;

use futures::{FutureExt as _, future::BoxFuture};

use self::answer::{Answer, answer};
use super::{
    Ask, Deltas, Facts, Model, ModelError,
    recite::{self, Piece},
};
use crate::{
    text::{rescue::Reading, think::ThinkMode},
    turn::{Delta, Finish},
};

/// Says of itself that it is a script, repeats what it was asked, and calls the tools that it is told to call.
#[derive(Clone, Copy, Debug)]
pub struct Demo {
    pause: Duration,
}

impl Demo {
    /// A pause between two words at which one can read along.
    pub const READABLE: Duration = Duration::from_millis(20);

    /// A model that waits this long before each word.
    pub const fn new(pause: Duration) -> Self {
        Self { pause }
    }

    /// The models that it is listed as.
    pub fn names(&self) -> Vec<String> {
        vec!["demo".to_owned()]
    }
}

impl Model for Demo {
    fn ask<'a>(&'a self, ask: &'a Ask<'a>) -> BoxFuture<'a, Result<Deltas, ModelError>> {
        let pieces = pieces(&answer(ask), ask.max_output_tokens, recite::count_asked(ask));
        async move { Ok(recite::recite(pieces, self.pause)) }.boxed()
    }

    fn facts<'a>(&'a self, _model: &'a str) -> BoxFuture<'a, Facts> {
        Box::pin(std::future::ready(Facts { think: ThinkMode::Off, reading: Reading::default() }))
    }
}

/// The answer word by word, where a word is a token: as many as there may be.
fn pieces(answer: &Answer, limit: Option<u64>, asked: u64) -> Vec<Piece> {
    let Answer { reasoning, text, calls } = answer;
    let mut said: Vec<Delta> = Vec::new();
    said.extend(recite::words(reasoning).into_iter().map(|word| Delta::Reasoning(word.to_owned())));
    let text = recite::words(text).into_iter();
    said.extend(text.map(|word| Delta::Text { text: word.to_owned(), logprobs: Vec::new() }));
    for (position, call) in (0..).zip(calls) {
        said.push(Delta::Call { position, id: None, name: call.name.clone() });
        let words = recite::words(&call.arguments).into_iter();
        said.extend(words.map(|word| Delta::Arguments { position, piece: word.to_owned() }));
    }

    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let finish = if said.len() > limit { Finish::Length } else { Finish::Stop };
    said.truncate(limit);
    let reasoning = said.iter().filter(|delta| matches!(delta, Delta::Reasoning(_))).count();
    let usage = recite::usage(asked, said.len() as u64, reasoning as u64);
    let mut pieces: Vec<Piece> = said.into_iter().map(|delta| Ok(vec![delta])).collect();
    recite::conclude(&mut pieces, [Delta::Usage(usage), Delta::Finish(finish)]);
    pieces
}

#[cfg(test)]
#[path = "demo_tests.rs"]
mod tests;
