//! One Round as it is heard: which item is open, what waits, and what each delta does to them.

use std::collections::VecDeque;

use crate::{
    protocol::{ItemStatus, Status, Usage, content::Logprob},
    text::think::{Segment, ThinkMode, ThinkSplitter},
};

use super::{
    Delta, Finish, Turn,
    call::{OpenCall, SeenCall},
    hosted::Pending,
    message::OpenMessage,
    reasoning::OpenReasoning,
    written::Stages,
};

/// What is known of the Round being heard.
pub(super) struct Round {
    /// Takes thinking out of the text, where it may stand there.
    think: Option<ThinkSplitter>,
    /// Of text that the splitter has not handed on yet.
    logprobs: Vec<Logprob>,
    /// Take the markup of calls out of the text.
    pub(super) stages: Stages,
    pub(super) open: Open,
    /// White space that becomes a message only if something else follows it.
    blank: String,
    blank_logprobs: Vec<Logprob>,
    /// What came while a call was not whole yet: items stand one after the other. Nothing of the open call is in it.
    held: VecDeque<Delta>,
    /// Whether something waits for the open call to be whole.
    pub(super) others_wait: bool,
    /// The calls that began, to tell doubles.
    pub(super) seen: Vec<SeenCall>,
    /// Calls that antiphon answers.
    pub(super) pending: Vec<Pending>,
    /// How many calls go to the client.
    pub(super) client_calls: usize,
    /// How many calls wait for the client's consent.
    pub(super) approvals: usize,
    /// Whether a tool ran after which the model calls no more.
    pub(super) ends_loop: bool,
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
            think: (think != ThinkMode::Off).then(|| ThinkSplitter::new(think)),
            logprobs: Vec::new(),
            stages: Stages::default(),
            open: Open::Nothing,
            blank: String::new(),
            blank_logprobs: Vec::new(),
            held: VecDeque::new(),
            others_wait: false,
            seen: Vec::new(),
            pending: Vec::new(),
            client_calls: 0,
            approvals: 0,
            ends_loop: false,
            finish: None,
            usage: None,
        }
    }

    /// Whether this very call was made by a proper one.
    pub(super) fn has_call(&self, name: &str, arguments: &str) -> bool {
        let open = match &self.open {
            Open::Call(call) => call.is(name, arguments),
            Open::Nothing | Open::Message(_) | Open::Reasoning(_) => false,
        };
        open || self.seen.iter().any(|seen| seen.is(name, arguments))
    }
}

impl Turn {
    /// Hears the model. After the Round, or the Response, has ended it hears nothing but the usage.
    pub fn feed(&mut self, delta: Delta) {
        let deaf = self.round.finish.is_some() || self.status != Status::InProgress;
        match delta {
            Delta::Usage(usage) => self.round.usage = Some(usage),
            _ if deaf => (),
            Delta::Finish(finish) => self.round.finish = Some(finish),
            Delta::Text { text, logprobs } => self.split(text, logprobs),
            Delta::Refusal(piece)
            | Delta::Reasoning(piece)
            | Delta::Summary { text: piece, .. }
            | Delta::Arguments { piece, .. }
                if piece.is_empty() => {}
            delta => self.show(delta),
        }
    }

    /// Takes thinking out of the text, then hears both.
    fn split(&mut self, piece: String, mut logprobs: Vec<Logprob>) {
        if !self.rules.logprobs {
            logprobs.clear();
        }
        let held_back = !self.round.logprobs.is_empty();
        self.round.logprobs.append(&mut logprobs);
        if piece.is_empty() {
            // A token that is no text yet: its probability belongs to the text that follows.
            return;
        }
        let Some(think) = &mut self.round.think else {
            let logprobs = std::mem::take(&mut self.round.logprobs);
            return self.show(Delta::Text { text: piece, logprobs });
        };
        let mut segments = Vec::new();
        think.push(&piece, |segment| collect(&mut segments, segment));
        if let ([Delta::Text { text, logprobs }], false) = (segments.as_mut_slice(), held_back)
            && *text == piece
        {
            *logprobs = std::mem::take(&mut self.round.logprobs);
        }
        self.hear_segments(segments);
    }

    fn hear_segments(&mut self, segments: Vec<Delta>) {
        for mut segment in segments {
            match &mut segment {
                Delta::Text { text, logprobs } if logprobs.is_empty() => {
                    *logprobs = last_of(std::mem::take(&mut self.round.logprobs), text);
                }
                _ => (),
            }
            self.show(segment);
        }
    }

    /// Hears a delta now, or later if a call before it is not whole.
    pub(super) fn hear(&mut self, delta: Delta) {
        if self.waits(&delta) {
            self.round.held.push_back(delta);
            return;
        }
        self.round.others_wait = !self.round.held.is_empty();
        self.now(delta);
        if !self.round.held.is_empty() && !self.call_goes_on() {
            self.release();
        }
    }

    /// Whether a call is open that is not whole.
    fn call_goes_on(&self) -> bool {
        matches!(&self.round.open, Open::Call(call) if !call.scan.is_closed())
    }

    fn waits(&self, delta: &Delta) -> bool {
        let own = matches!(
            (&self.round.open, delta),
            (Open::Call(call), Delta::Arguments { position, .. } | Delta::CallData { position, .. })
                if *position == call.position
        );
        !own && self.call_goes_on()
    }

    /// Hears what was held, as far as it can be heard now: a call that begins takes what is held of it from behind what is not its own.
    fn release(&mut self) {
        let mut passed = VecDeque::new();
        while let Some(delta) = self.round.held.pop_front() {
            if self.waits(&delta) {
                passed.push_back(delta);
                continue;
            }
            self.round.others_wait = !passed.is_empty();
            self.now(delta);
            if !passed.is_empty() && !self.call_goes_on() {
                passed.append(&mut self.round.held);
                self.round.held = std::mem::take(&mut passed);
            }
        }
        self.round.held = passed;
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
                self.round.blank_logprobs.extend(logprobs);
                return;
            }
            let mut blank = std::mem::take(&mut self.round.blank);
            let mut all_logprobs = std::mem::take(&mut self.round.blank_logprobs);
            self.open_message();
            if blank.is_empty() {
                return self.write(text, logprobs);
            }
            blank.push_str(&text);
            all_logprobs.extend(logprobs);
            return self.write(blank, all_logprobs);
        }
        self.write(text, logprobs);
    }

    /// Closes the open item, and forgets white space that nothing followed.
    pub(super) fn close_open(&mut self, status: ItemStatus) {
        self.round.blank.clear();
        self.round.blank_logprobs.clear();
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
            think.finish(|segment| collect(&mut segments, segment));
            self.hear_segments(segments);
        }
        self.end_writing();
        while !self.round.held.is_empty() {
            // A call that never became whole: what waited for it is heard after it.
            self.close_open(status);
            self.release();
        }
        let blank = std::mem::take(&mut self.round.blank);
        if !blank.is_empty() && self.slots.is_empty() && matches!(self.round.open, Open::Nothing) {
            let logprobs = std::mem::take(&mut self.round.blank_logprobs);
            self.open_message();
            self.write(blank, logprobs);
        }
        self.close_open(status);
        if let Some(usage) = self.round.usage.take() {
            self.usage.add(&usage);
        }
    }
}

/// Adds a segment. Texts that follow each other are one, so that one piece of the model is one event.
fn collect(segments: &mut Vec<Delta>, segment: Segment<'_>) {
    match segment {
        Segment::Text(more) => match segments.last_mut() {
            Some(Delta::Text { text, .. }) => text.push_str(more),
            _ => segments.push(Delta::Text { text: more.to_owned(), logprobs: Vec::new() }),
        },
        Segment::Reasoning(text) => segments.push(Delta::Reasoning(text.to_owned())),
    }
}

/// The last of these that make up the text: those before are of thinking and its tags.
fn last_of(mut logprobs: Vec<Logprob>, text: &str) -> Vec<Logprob> {
    let mut missing = text.len();
    let mut from = logprobs.len();
    while missing > 0 && from > 0 {
        from -= 1;
        missing = missing.saturating_sub(logprobs[from].token.len());
    }
    logprobs.split_off(from)
}
