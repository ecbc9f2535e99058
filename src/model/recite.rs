//! Speaking words that are known beforehand: what the scripted models, [`super::script`] and [`super::demo`], share.
//!
//! **Invariant:** the pieces of a text, put together, are the text: cuts stand between characters and lose nothing.

use std::{borrow::Cow, num::NonZeroUsize, time::Duration};

use futures::{StreamExt as _, stream};

use super::{Ask, Deltas, ModelError};
use crate::{
    protocol::Usage,
    turn::{
        Delta,
        prompt::{PromptMessage, PromptPart},
    },
};

/// One piece as it comes from the wire, or the error that ends the stream.
pub(super) type Piece = Result<Vec<Delta>, ModelError>;

/// Says the pieces, each after a pause.
pub(super) fn recite(pieces: Vec<Piece>, pause: Duration) -> Deltas {
    stream::iter(pieces)
        .then(move |piece| async move {
            rest(pause).await;
            piece
        })
        .boxed()
}

/// Waits, without giving way to others when there is nothing to wait for.
pub(super) async fn rest(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

/// What the model has not answered yet: the messages after its last one.
pub(super) fn newest<'m, 'a>(messages: &'m [PromptMessage<'a>]) -> &'m [PromptMessage<'a>] {
    let said = messages.iter().rposition(|m| matches!(m, PromptMessage::Assistant(_)));
    &messages[said.map_or(0, |at| at + 1)..]
}

/// The text among the parts of a message, a line for each.
pub(super) fn text_of<'m>(parts: &'m [PromptPart<'_>]) -> Cow<'m, str> {
    let mut texts = parts.iter().filter_map(|part| match part {
        PromptPart::Text(text) => Some(&**text),
        PromptPart::Image { .. }
        | PromptPart::File { .. }
        | PromptPart::Audio(_)
        | PromptPart::Video(_) => None,
    });
    let first = Cow::Borrowed(texts.next().unwrap_or_default());
    texts.fold(first, |all, text| Cow::Owned(format!("{all}\n{text}")))
}

/// Cuts a text into `count` pieces of about as many characters; into fewer when it has not so many.
pub(super) fn cut(text: &str, count: NonZeroUsize) -> Vec<&str> {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let count = count.get().min(starts.len());
    let at = |n: usize| starts.get(starts.len() * n / count).copied().unwrap_or(text.len());
    (0..count).map(|n| &text[at(n)..at(n + 1)]).collect()
}

/// Cuts a text before each word but the first, so that a word keeps the blanks after it.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut seen_word = false;
    let mut after_blank = false;
    for (at, c) in text.char_indices() {
        let blank = c.is_whitespace();
        if after_blank && !blank && seen_word {
            words.push(&text[start..at]);
            start = at;
        }
        seen_word |= !blank;
        after_blank = blank;
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

/// How many words a text has. They stand in for tokens.
pub(super) fn count(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

/// How many words a question has: its messages and their calls, without the offer of tools.
pub(super) fn count_asked(ask: &Ask<'_>) -> u64 {
    let of_message = |message: &PromptMessage<'_>| match message {
        PromptMessage::System(text) => count(text),
        PromptMessage::User(parts) | PromptMessage::Tool { output: parts, .. } => {
            count(&text_of(parts))
        }
        PromptMessage::Assistant(said) => {
            let calls = said.calls.iter().map(|call| count(&call.name) + count(&call.arguments));
            count(said.reasoning.as_deref().unwrap_or_default())
                + count(&said.text)
                + calls.sum::<u64>()
        }
    };
    ask.messages.iter().map(of_message).sum()
}

/// The usage of a Round; `reasoning` is a part of `output`.
pub(super) fn usage(input: u64, output: u64, reasoning: u64) -> Usage {
    let mut usage = Usage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: input.saturating_add(output),
        ..Usage::default()
    };
    usage.output_tokens_details.reasoning_tokens = reasoning;
    usage
}

/// Adds the end of a Round to its last piece, or makes one.
pub(super) fn conclude(pieces: &mut Vec<Piece>, end: [Delta; 2]) {
    match pieces.last_mut() {
        Some(Ok(last)) => last.extend(end),
        Some(Err(_)) | None => pieces.push(Ok(end.into())),
    }
}

#[cfg(test)]
#[path = "recite_tests.rs"]
mod tests;
