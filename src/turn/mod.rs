//! PURE: one Response in the making. Deltas go in, numbered events and what to do next come out.
//!
//! [`Turn::begin`] → events. Then for each Round: [`Turn::plan`] says how to ask, [`Turn::feed`] hears the model,
//! [`Turn::end_round`] says what is next, [`Turn::answer`] hears the tools. [`Turn::conclude`] gives the Response to commit,
//! [`Turn::terminal`] the event that may leave after that. [`Turn::fail`] ends it early from wherever it stands.
//!
//! **Invariant:** no I/O, no clock, no randomness: ids and time come in as arguments.
//! **Invariant:** sequence numbers, output and content indexes, item ids and statuses are made here and nowhere else.
//! **Invariant:** whatever comes in, the events are well formed: each item that is added is done before the end, and there is one end.

pub mod call;
pub mod catalog;
pub mod choice;
pub mod client_call;
pub mod delta;
pub mod history;
pub mod hosted;
pub mod message;
pub mod outcome;
pub mod prompt;
pub mod reasoning;
pub mod render;
pub mod round;
pub mod servers;
pub mod size;
pub mod written;

use std::{collections::HashSet, sync::Arc};

pub use catalog::{Catalog, HostedRef, HostedTarget, HostedTool, OfferedTool, Shape};
pub use delta::{Delta, Finish};
pub use outcome::{ApprovedCall, ToolCall, ToolFailure, ToolOutcome, ToolOutput};

use crate::{
    protocol::{
        ApiError, Event, Item, ItemStatus, Numbered, Response, Settings, SharedItem, Status, Usage,
        event::ErrorDetail,
        ids::output_item_id,
        item::Message,
        response::{IncompleteDetails, IncompleteReason, ResponseError, ResponseObject},
    },
    text::{rescue::Reading, think::ThinkMode},
};
use choice::FirstChoice;
use round::Round;
use servers::OpenList;
use written::Written;

/// Seals a text that the client carries for us. Given by the shell, because sealing needs randomness.
pub type Sealing = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// What a Turn is told about its Response before it begins.
#[derive(Clone)]
pub struct Rules {
    /// Whether reasoning events have the names of Open Responses.
    pub open_responses: bool,
    /// Whether thinking stands in the text, in tags.
    pub think: ThinkMode,
    /// Whether calls and markers stand in the text.
    pub reading: Reading,
    /// Whether the client asked for log probabilities.
    pub logprobs: bool,
    /// Seals reasoning, when the client asked for it sealed.
    pub seal: Option<Sealing>,
    /// Seals what a backend wants back with its calls, for clients that keep their own history.
    pub seal_data: Option<Sealing>,
    /// How often the model may be asked.
    pub max_rounds: u32,
    /// Call ids that the history uses already.
    pub used_call_ids: HashSet<String>,
}

/// How to ask the model for its next Round.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What it must call.
    pub choice: FirstChoice,
    /// Whether it is offered tools at all.
    pub tools: bool,
    /// The most tokens that it may write.
    pub max_output_tokens: Option<u64>,
}

/// What is to be done when the model has stopped talking.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// Ask it again.
    Ask,
    /// Run these, tell the Turn with [`Turn::settle`], and do what [`Turn::answered`] says.
    RunTools(Vec<ToolCall>),
    /// Nothing: commit what [`Turn::conclude`] gives.
    Finish,
}

/// One Response in the making.
pub struct Turn {
    id: Arc<str>,
    created_at: i64,
    completed_at: Option<i64>,
    settings: Arc<Settings>,
    rules: Rules,
    catalog: Arc<Catalog>,
    status: Status,
    error: Option<ResponseError>,
    incomplete: Option<IncompleteReason>,
    /// The items by output index; one that is still being written has its place but no value.
    slots: Vec<Option<SharedItem>>,
    usage: Usage,
    rounds: u32,
    hosted_calls: u64,
    /// Whether a tool ended the loop: the model may only say what it has to say.
    last_words: bool,
    lists: Vec<Option<OpenList>>,
    round: Round,
    written: Written,
    next_number: u64,
    events: Vec<Numbered>,
}

impl Turn {
    /// Begins a Response.
    pub fn begin(
        id: &str,
        created_at: i64,
        settings: Arc<Settings>,
        catalog: Arc<Catalog>,
        rules: Rules,
    ) -> Self {
        let round = Round::new(rules.think);
        let mut turn = Self {
            id: id.into(),
            created_at,
            completed_at: None,
            settings,
            rules,
            catalog,
            status: Status::InProgress,
            error: None,
            incomplete: None,
            slots: Vec::new(),
            usage: Usage::default(),
            rounds: 0,
            hosted_calls: 0,
            last_words: false,
            lists: Vec::new(),
            round,
            written: Written::default(),
            next_number: 0,
            events: Vec::new(),
        };
        let response = turn.response();
        turn.emit(Event::Created { response: Arc::clone(&response) });
        turn.emit(Event::InProgress { response });
        turn
    }

    /// The events since the last time.
    pub fn take_events(&mut self) -> Vec<Numbered> {
        std::mem::take(&mut self.events)
    }

    /// How to ask for the next Round.
    pub fn plan(&self) -> Plan {
        let last = self.rounds + 1 >= self.rules.max_rounds && self.rounds > 0;
        let spent = self.settings.max_tool_calls.is_some_and(|most| self.hosted_calls >= most);
        let choice = match self.catalog.choice() {
            FirstChoice::None => FirstChoice::None,
            _ if self.rounds > 0 && spent => FirstChoice::None,
            _ if self.rounds > 0 => FirstChoice::Auto,
            first => first.clone(),
        };
        Plan {
            tools: !last && !self.last_words && !self.catalog.offered().is_empty(),
            choice,
            max_output_tokens: self
                .settings
                .max_output_tokens
                .map(|most| most.saturating_sub(self.usage.output_tokens).max(1)),
        }
    }

    /// The tools of this Response.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The items so far that are whole, as the model is shown them when it is asked again.
    pub fn items(&self) -> impl Iterator<Item = &SharedItem> {
        self.slots.iter().flatten()
    }

    /// Hears the model stop, and says what is next.
    pub fn end_round(&mut self) -> Next {
        let finish = *self.round.finish.get_or_insert(Finish::Stop);
        self.close_round(match finish {
            Finish::Stop => ItemStatus::Completed,
            Finish::Length | Finish::ContentFilter => ItemStatus::Incomplete,
        });
        self.rounds += 1;
        match finish {
            Finish::Stop => self.after_stop(),
            Finish::Length => self.cut_short(IncompleteReason::MaxOutputTokens),
            Finish::ContentFilter => self.cut_short(IncompleteReason::ContentFilter),
        }
    }

    /// Ends the Response early, from wherever it stands. Only the first failure counts.
    pub fn fail(&mut self, error: &ApiError) {
        if self.status == Status::Failed {
            return;
        }
        self.drop_lists();
        self.close_round(ItemStatus::Incomplete);
        self.drop_pending();
        let code = error.response_code().to_owned();
        self.emit(Event::Error {
            code: code.clone(),
            message: error.message.clone(),
            param: error.param.clone(),
            error: ErrorDetail {
                kind: error.kind.wire().to_owned(),
                code: code.clone(),
                message: error.message.clone(),
                param: error.param.clone(),
            },
        });
        self.incomplete = None;
        self.error = Some(ResponseError { code, message: error.message.clone() });
        self.status = Status::Failed;
    }

    /// The Response as it is to be committed. `now` is in seconds since 1970.
    pub fn conclude(&mut self, now: i64) -> Arc<Response> {
        if self.status == Status::InProgress {
            self.status = match self.incomplete {
                Some(_) => Status::Incomplete,
                None => Status::Completed,
            };
        }
        self.completed_at = (self.status == Status::Completed).then_some(now);
        self.response()
    }

    /// The event that ends the Response, which [`Turn::conclude`] gave.
    pub fn terminal(&mut self, response: Arc<Response>) {
        self.emit(match response.status {
            Status::Failed | Status::Cancelled => Event::Failed { response },
            Status::Incomplete => Event::Incomplete { response },
            Status::Completed | Status::InProgress | Status::Queued => {
                Event::Completed { response }
            }
        });
    }

    fn after_stop(&mut self) -> Next {
        if !self.round.pending.is_empty() {
            return Next::RunTools(self.calls_to_run());
        }
        if self.slots.is_empty() {
            self.add_empty_message();
        }
        Next::Finish
    }

    fn cut_short(&mut self, reason: IncompleteReason) -> Next {
        self.drop_pending();
        self.incomplete = Some(reason);
        Next::Finish
    }

    /// A model that says nothing has said an empty message.
    fn add_empty_message(&mut self) {
        self.open_message();
        self.close_open(ItemStatus::Completed);
    }

    fn response(&self) -> Arc<Response> {
        let ended = !matches!(self.status, Status::InProgress | Status::Queued);
        Arc::new(Response {
            id: self.id.to_string(),
            object: ResponseObject::Response,
            created_at: self.created_at,
            completed_at: self.completed_at,
            status: self.status,
            error: self.error.clone(),
            incomplete_details: self
                .incomplete
                .filter(|_| self.status == Status::Incomplete)
                .map(|reason| IncompleteDetails { reason }),
            output: self.slots.iter().flatten().cloned().collect(),
            usage: ended.then_some(self.usage),
            settings: Arc::clone(&self.settings),
        })
    }

    /// Gives a new item its place and announces it.
    fn add(&mut self, prefix: &str, item: impl FnOnce(String) -> Item) -> (usize, Arc<str>) {
        let output_index = self.slots.len();
        let id = output_item_id(prefix, &self.id, output_index);
        let shared: Arc<str> = id.as_str().into();
        self.slots.push(None);
        self.emit(Event::ItemAdded { output_index, item: Arc::new(item(id)) });
        (output_index, shared)
    }

    /// Makes an item final.
    fn done(&mut self, output_index: usize, item: Item) {
        let item = Arc::new(item);
        if let Some(slot) = self.slots.get_mut(output_index) {
            *slot = Some(Arc::clone(&item));
        }
        self.emit(Event::ItemDone { output_index, item });
    }

    fn emit(&mut self, event: Event) {
        let sequence_number = self.next_number;
        self.next_number += 1;
        self.events.push(Numbered { sequence_number, event });
    }
}

/// A message in its zero state.
fn empty_message(id: String) -> Item {
    Item::Message(Message {
        id,
        status: Some(ItemStatus::InProgress),
        role: crate::protocol::item::Role::Assistant,
        ..Message::default()
    })
}

#[cfg(test)]
#[path = "grammar_tests.rs"]
mod grammar;
#[cfg(test)]
#[path = "hosted_tests.rs"]
mod hosted_tests;
#[cfg(test)]
mod proptests;
#[cfg(test)]
#[path = "round_tests.rs"]
mod round_tests;
#[cfg(test)]
#[path = "script_tests.rs"]
mod script;
#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
