//! One Round as it is heard: which item is open, what waits, and what each delta does to them.

use std::collections::VecDeque;

use crate::{
    protocol::{ItemStatus, Usage, content::Logprob},
    text::{
        json_scan::JsonState,
        think::{Segment, ThinkMode, ThinkSplitter},
    },
};

use super::{
    Delta, Finish, Turn,
    call::{OpenCall, Pending, SeenCall},
    message::OpenMessage,
    reasoning::OpenReasoning,
};

/// What is known of the Round being heard.
pub(super) struct Round {
    think: Option<ThinkSplitter>,
    pub(super) open: Open,
    /// White space that becomes a message only if something else follows it.
    blank: String,
    /// What came while a call was not whole yet: items stand one after the other.
    held: VecDeque<Delta>,
    /// The calls that began, to tell doubles.
    pub(super) seen: Vec<SeenCall>,
    /// Calls that antiphon answers.
    pub(super) pending: Vec<Pending>,
    /// How many calls go to the client.
    pub(super) client_calls: usize,
    pub(super) finish: Option<Finish>,
    usage: Option<Usage>,
}

/// The item being written. A model writes one at a time.
pub(super) enum Open {
    Nothing,
    Message(OpenMessage),
    Reasoning(OpenReasoning),
    Call(Box<OpenCall>),
}

impl Round {
    pub(super) fn new(think: ThinkMode) -> Self {
        Self {
            think: Some(ThinkSplitter::new(think)),
            open: Open::Nothing,
            blank: String::new(),
            held: VecDeque::new(),
            seen: Vec::new(),
            pending: Vec::new(),
            client_calls: 0,
            finish: None,
            usage: None,
        }
    }
}

impl Turn {
    /// Hears the model.
    pub fn feed(&mut self, delta: Delta) {
        if self.round.finish.is_some() && !matches!(delta, Delta::Usage(_)) {
            return;
        }
        match delta {
            Delta::Usage(usage) => self.round.usage = Some(usage),
            Delta::Finish(finish) => self.round.finish = Some(finish),
            Delta::Text { text, logprobs } => self.split(&text, logprobs),
            delta => self.hear(delta),
        }
    }

    /// Takes thinking out of the text, then hears both.
    fn split(&mut self, text: &str, logprobs: Vec<Logprob>) {
        let Some(mut think) = self.round.think.take() else { return };
        let mut segments = Vec::new();
        think.push(text, |segment| segments.push(own(segment)));
        self.round.think = Some(think);
        self.hear_segments(segments, logprobs);
    }

    fn hear_segments(&mut self, segments: Vec<Delta>, logprobs: Vec<Logprob>) {
        let mut logprobs = Some(logprobs);
        for mut segment in segments {
            if let Delta::Text { logprobs: of_segment, .. } = &mut segment {
                *of_segment = logprobs.take().unwrap_or_default();
            }
            self.hear(segment);
        }
    }

    /// Hears a delta now, or later if a call before it is not whole.
    fn hear(&mut self, delta: Delta) {
        let waits = match (&self.round.open, &delta) {
            (
                Open::Call(call),
                Delta::Arguments { position, .. } | Delta::CallData { position, .. },
            ) if *position == call.position => false,
            (Open::Call(call), _) => call.scan.state() != JsonState::Complete,
            _ => false,
        };
        if waits || !self.round.held.is_empty() && !matches!(self.round.open, Open::Call(_)) {
            self.round.held.push_back(delta);
            return;
        }
        self.now(delta);
        self.release();
    }

    /// Hears what was held, as far as it can be heard now.
    fn release(&mut self) {
        while let Some(delta) = self.round.held.pop_front() {
            if let Open::Call(call) = &self.round.open {
                let own = matches!(&delta, Delta::Arguments { position, .. } | Delta::CallData { position, .. } if *position == call.position);
                if !own && call.scan.state() != JsonState::Complete {
                    self.round.held.push_front(delta);
                    return;
                }
            }
            self.now(delta);
        }
    }

    fn now(&mut self, delta: Delta) {
        match delta {
            Delta::Text { text, logprobs } => self.say(text, logprobs),
            Delta::Refusal(piece) => self.refuse(piece),
            Delta::Reasoning(piece) => self.think(piece),
            Delta::Summary { part, text } => self.summarise(part, text),
            Delta::ReasoningData(data) => self.keep_reasoning_data(data),
            Delta::Call { position, id, name } => self.call(position, id, name),
            Delta::Arguments { position, piece } => self.arguments(position, &piece),
            Delta::CallData { position, data } => self.keep_call_data(position, data),
            Delta::Usage(_) | Delta::Finish(_) => (),
        }
    }

    fn say(&mut self, text: String, logprobs: Vec<Logprob>) {
        if !matches!(self.round.open, Open::Message(_)) {
            if text.trim().is_empty() {
                // Models put blank lines around their calls: no message for those.
                self.round.blank.push_str(&text);
                return;
            }
            let blank = std::mem::take(&mut self.round.blank);
            self.open_message();
            return self.write(if blank.is_empty() { text } else { blank + &text }, logprobs);
        }
        self.write(text, logprobs);
    }

    /// Closes the open item, and forgets white space that nothing followed.
    pub(super) fn close_open(&mut self, status: ItemStatus) {
        self.round.blank.clear();
        match std::mem::replace(&mut self.round.open, Open::Nothing) {
            Open::Nothing => (),
            Open::Message(message) => self.close_message(message, status),
            Open::Reasoning(reasoning) => self.close_reasoning(reasoning, status),
            Open::Call(call) => self.close_call(*call, status),
        }
    }

    /// Closes everything that the Round left open. Only the last item takes the status: what was followed by another was whole.
    pub(super) fn close_round(&mut self, status: ItemStatus) {
        if let Some(mut think) = self.round.think.take() {
            let mut segments = Vec::new();
            think.finish(|segment| segments.push(own(segment)));
            self.hear_segments(segments, Vec::new());
        }
        while !self.round.held.is_empty() {
            // A call that never became whole: what waited for it is heard after it.
            self.close_open(match status {
                ItemStatus::Completed => ItemStatus::Completed,
                _ => ItemStatus::Incomplete,
            });
            self.release();
        }
        let blank = std::mem::take(&mut self.round.blank);
        if !blank.is_empty() && self.slots.is_empty() && matches!(self.round.open, Open::Nothing) {
            self.open_message();
            self.write(blank, Vec::new());
        }
        self.close_open(status);
        if let Some(usage) = self.round.usage.take() {
            self.usage.add(&usage);
        }
    }
}

fn own(segment: Segment<'_>) -> Delta {
    match segment {
        Segment::Text(text) => Delta::Text { text: text.to_owned(), logprobs: Vec::new() },
        Segment::Reasoning(text) => Delta::Reasoning(text.to_owned()),
    }
}
