//! Calls that the model writes as text: hidden while it writes, made calls like all others when it has stopped.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
};

use crate::{
    protocol::content::Logprob,
    text::{
        markup::{Channel, Markup, Segment},
        rescue::{KnownTool, Rescue, Said, Tools, WrittenCall, clean_name, parse},
    },
};

use super::{Catalog, Delta, Finish, Turn, catalog::FirstChoice, round::Open};

/// What a Turn knows of written calls over all its Rounds.
#[derive(Default)]
pub(super) struct Written {
    tools: OnceLock<Arc<Tools>>,
    /// Whether it has been guessed: once is all.
    guessed: bool,
    rescue: Option<Rescued>,
}

/// What came of reading the text of a Round for calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rescued {
    /// Why it was read.
    pub ground: Ground,
    /// How many calls stood there.
    pub calls: usize,
}

/// Why a text is read for calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ground {
    /// The dialect says how calls are written.
    Declared,
    /// It looked like a call, or one was due.
    Guessed,
}

/// The stages of one Round.
#[derive(Default)]
pub(super) struct Stages {
    text: Stage,
    reasoning: Stage,
    /// Of tokens that are in no segment yet.
    logprobs: VecDeque<Logprob>,
    /// How many bytes of the next segment a token before it has covered.
    covered: usize,
    /// Whether any text was for the user.
    answered: bool,
    /// Whether a proper call came.
    called: bool,
}

/// How a stage hands on what it has held back.
type LettingGo = fn(&mut Markup, &mut dyn FnMut(Segment<'_>));

#[derive(Default)]
enum Stage {
    #[default]
    Unknown,
    /// Nothing is hidden here.
    Open,
    Hides(Box<Markup>),
}

/// The name of the tool that is meant, where markers of a template stick to it.
pub(super) fn meant(catalog: &Catalog, name: String) -> String {
    match clean_name(&name, |name| catalog.targets.contains_key(name)) {
        clean if clean.len() < name.len() => clean.to_owned(),
        _ => name,
    }
}

impl Turn {
    /// What came of reading the last Round for calls, if it was read.
    pub fn take_rescue(&mut self) -> Option<Rescued> {
        self.written.rescue.take()
    }

    /// Hears a delta without the markup of calls.
    pub(super) fn show(&mut self, delta: Delta) {
        match delta {
            Delta::Text { text, logprobs } => {
                self.let_go(Which::Reasoning, Markup::flush);
                self.show_text(text, logprobs);
            }
            Delta::Reasoning(piece) => {
                self.let_go(Which::Text, Markup::flush);
                self.show_reasoning(piece);
            }
            Delta::Call { .. } => {
                self.round.stages.called = true;
                self.show_before(delta);
            }
            Delta::Refusal(_) | Delta::Summary { .. } | Delta::ReasoningData(_) => {
                self.show_before(delta);
            }
            Delta::Arguments { .. }
            | Delta::CallData { .. }
            | Delta::Usage(_)
            | Delta::Finish(_) => self.hear(delta),
        }
    }

    /// The model has stopped: makes calls of what it wrote, or shows what of it was none.
    pub(super) fn end_writing(&mut self) {
        self.let_go(Which::Reasoning, Markup::finish);
        self.let_go(Which::Text, Markup::finish);
        let text = std::mem::take(&mut self.round.stages.text).markup();
        let reasoning = std::mem::take(&mut self.round.stages.reasoning).markup();
        if text.is_none() && reasoning.is_none() {
            return;
        }
        // A Round that broke off is not read: whoever asks again gets its calls.
        let calls = match self.round.finish {
            Some(finish) => self.written_calls(text.as_deref(), reasoning.as_deref(), finish),
            None => Vec::new(),
        };
        if calls.is_empty() {
            return self.show_withheld(text.as_deref(), reasoning.as_deref());
        }
        for (position, call) in (0..=u32::MAX).rev().zip(calls) {
            let WrittenCall { name, arguments, .. } = call;
            self.hear(Delta::Call { position, id: None, name });
            self.hear(Delta::Arguments { position, piece: arguments });
        }
    }

    fn written_calls(
        &mut self,
        text: Option<&Markup>,
        reasoning: Option<&Markup>,
        finish: Finish,
    ) -> Vec<WrittenCall> {
        let said = text.map_or("", Markup::raw);
        let thought = reasoning.map_or("", Markup::raw);
        let grammar = self.rules.reading.grammar;
        let tools = Arc::clone(self.known_tools());
        if tools.is_empty() {
            return Vec::new();
        }
        let mut calls = parse(grammar, said, &tools);
        if calls.is_empty() && !self.round.stages.called {
            calls = parse(grammar, thought, &tools);
        }
        // Some backends take a call out of the text and leave it there.
        calls.retain(|WrittenCall { name, arguments, .. }| !self.round.has_call(name, arguments));
        let plan = self.plan();
        let may_guess = calls.is_empty()
            && finish == Finish::Stop
            && self.rules.reading.rescue == Rescue::Auto
            && !self.written.guessed
            && !self.round.stages.called
            && plan.tools
            && plan.choice != FirstChoice::None;
        let said = Said {
            text: said,
            reasoning: thought,
            answered: self.round.stages.answered,
            call_was_required: is_required(&plan.choice),
        };
        let ground = if may_guess && said.is_worth_guessing(&tools) {
            self.written.guessed = true;
            calls = said.guess(&tools);
            Ground::Guessed
        } else {
            Ground::Declared
        };
        if ground == Ground::Guessed || !calls.is_empty() {
            self.written.rescue = Some(Rescued { ground, calls: calls.len() });
        }
        calls
    }

    /// Nothing was a call: whoever was shown nothing is shown what there is.
    fn show_withheld(&mut self, text: Option<&Markup>, reasoning: Option<&Markup>) {
        if let Some(reasoning) = reasoning
            && self.slots.is_empty()
            && matches!(self.round.open, Open::Nothing)
        {
            self.hear_unless_empty(Delta::Reasoning(reasoning.withheld()));
        }
        let Some(text) = text else { return };
        let withheld = if self.round.stages.answered {
            text.stray_end().unwrap_or_default().to_owned()
        } else {
            text.withheld()
        };
        let logprobs = self.round.stages.logprobs.drain(..).collect();
        self.hear_unless_empty(Delta::Text { text: withheld, logprobs });
    }

    fn hear_unless_empty(&mut self, delta: Delta) {
        if let Delta::Text { text: piece, .. } | Delta::Reasoning(piece) = &delta
            && !piece.is_empty()
        {
            self.hear(delta);
        }
    }

    /// Hears something that is neither text nor raw reasoning, after what was held back of those.
    fn show_before(&mut self, delta: Delta) {
        self.let_go(Which::Reasoning, Markup::flush);
        self.let_go(Which::Text, Markup::release);
        self.hear(delta);
    }

    fn show_text(&mut self, text: String, logprobs: Vec<Logprob>) {
        let Some(mut markup) = self.take_stage(Which::Text) else {
            return self.answer_with(text, logprobs);
        };
        let passes = markup.passes(&text);
        if passes && self.round.stages.logprobs.is_empty() {
            self.round.stages.text = Stage::Hides(markup);
            return self.answer_with(text, logprobs);
        }
        self.round.stages.logprobs.extend(logprobs);
        let mut parts = Vec::new();
        if passes {
            parts.push((Kind::Text, text));
        } else {
            markup.push(&text, &mut |segment| collect(&mut parts, segment));
        }
        self.round.stages.text = Stage::Hides(markup);
        self.hear_parts(Which::Text, parts);
    }

    fn show_reasoning(&mut self, piece: String) {
        let Some(mut markup) = self.take_stage(Which::Reasoning) else {
            return self.hear(Delta::Reasoning(piece));
        };
        let mut parts = Vec::new();
        if markup.passes(&piece) {
            parts.push((Kind::Text, piece));
        } else {
            markup.push(&piece, &mut |segment| collect(&mut parts, segment));
        }
        self.round.stages.reasoning = Stage::Hides(markup);
        self.hear_parts(Which::Reasoning, parts);
    }

    /// Hears what a stage has held back until now.
    fn let_go(&mut self, which: Which, how: LettingGo) {
        let stage = match which {
            Which::Text => &mut self.round.stages.text,
            Which::Reasoning => &mut self.round.stages.reasoning,
        };
        let Stage::Hides(markup) = stage else { return };
        let mut parts = Vec::new();
        how(markup, &mut |segment| collect(&mut parts, segment));
        self.hear_parts(which, parts);
    }

    fn hear_parts(&mut self, which: Which, parts: Vec<(Kind, String)>) {
        for (kind, text) in parts {
            match (which, kind) {
                (Which::Text, kind) => {
                    let logprobs = self.round.stages.logprobs_of(&text);
                    match kind {
                        Kind::Text => self.answer_with(text, logprobs),
                        Kind::Reasoning => self.hear(Delta::Reasoning(text)),
                        Kind::Hidden => (),
                    }
                }
                (Which::Reasoning, Kind::Text | Kind::Reasoning) => {
                    self.hear(Delta::Reasoning(text));
                }
                (Which::Reasoning, Kind::Hidden) => (),
            }
        }
    }

    /// Text that is for the user.
    fn answer_with(&mut self, text: String, logprobs: Vec<Logprob>) {
        self.round.stages.answered |= !text.trim_start().is_empty();
        self.hear(Delta::Text { text, logprobs });
    }

    /// The stage of a channel, to be put back; none where nothing is hidden.
    fn take_stage(&mut self, which: Which) -> Option<Box<Markup>> {
        let stage = match which {
            Which::Text => &mut self.round.stages.text,
            Which::Reasoning => &mut self.round.stages.reasoning,
        };
        match std::mem::replace(stage, Stage::Open) {
            Stage::Hides(markup) => return Some(markup),
            Stage::Open => return None,
            Stage::Unknown => (),
        }
        if self.rules.reading.hides_nothing() {
            return None;
        }
        let channel = match which {
            Which::Text => Channel::Text { call_is_required: is_required(&self.plan().choice) },
            Which::Reasoning => Channel::Reasoning,
        };
        let tools = Arc::clone(self.known_tools());
        Markup::new(&self.rules.reading, &tools, channel).map(Box::new)
    }

    fn known_tools(&self) -> &Arc<Tools> {
        self.written.tools.get_or_init(|| {
            let offered = self.catalog.offered().iter().map(|tool| KnownTool {
                name: tool.name.clone(),
                parameters: tool.parameters.clone(),
            });
            Arc::new(Tools::new(offered))
        })
    }
}

impl Stages {
    /// The probabilities of the tokens that make up the text. A token over the end of one belongs to it.
    fn logprobs_of(&mut self, text: &str) -> Vec<Logprob> {
        let mut own = Vec::new();
        while self.covered < text.len()
            && let Some(logprob) = self.logprobs.pop_front()
        {
            self.covered += logprob.token.len();
            own.push(logprob);
        }
        self.covered = self.covered.saturating_sub(text.len());
        own
    }
}

impl Stage {
    fn markup(self) -> Option<Box<Markup>> {
        match self {
            Self::Hides(markup) => Some(markup),
            Self::Unknown | Self::Open => None,
        }
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Which {
    Text,
    Reasoning,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Kind {
    Text,
    Reasoning,
    Hidden,
}

/// Adds a segment. Those of one kind that follow each other are one, so that one piece of the model is one event.
fn collect(parts: &mut Vec<(Kind, String)>, segment: Segment<'_>) {
    let (kind, text) = match segment {
        Segment::Text(text) => (Kind::Text, text),
        Segment::Reasoning(text) => (Kind::Reasoning, text),
        Segment::Hidden(text) => (Kind::Hidden, text),
    };
    match parts.last_mut() {
        Some((last, all)) if *last == kind => all.push_str(text),
        _ => parts.push((kind, text.to_owned())),
    }
}

fn is_required(choice: &FirstChoice) -> bool {
    matches!(choice, FirstChoice::Required | FirstChoice::Named(_))
}

#[cfg(test)]
#[path = "written_tests.rs"]
mod tests;
