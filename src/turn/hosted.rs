//! The calls that antiphon answers: their items while they wait, run and end.
//!
//! **Invariant:** every pending call ends in exactly one item, whatever becomes of its tool.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::protocol::{
    Event, Extra, Item, ItemStatus, Part, Raw,
    hosted::{McpApprovalRequest, McpCall, ModelView},
    item::ClientCall,
    response::IncompleteReason,
};

use super::{
    ApprovedCall, Next, ToolCall, ToolFailure, ToolOutcome, ToolOutput, Turn,
    call::SEALED_DATA,
    catalog::{HostedRef, HostedTarget, Shape},
    round::Round,
};

/// What is sealed for clients that keep their own history is at most this many bytes; larger results are theirs to ask for again.
const SEALED_MAX: usize = 64 * 1024;

/// A call that antiphon answers.
pub(super) struct Pending {
    output_index: usize,
    item_id: Arc<str>,
    target: HostedTarget,
    call: HostedCall,
    /// Set when nothing is to be run.
    refused: Option<String>,
    /// Whether its item is final.
    is_settled: bool,
}

/// What the model wrote, and what belongs to it.
#[derive(Default)]
pub(super) struct HostedCall {
    /// The name that the model called.
    pub(super) name: String,
    pub(super) arguments: String,
    /// What the backend wants back.
    pub(super) data: Option<Raw>,
    /// What it was approved by.
    pub(super) approved_by: Option<String>,
}

impl Turn {
    /// Runs calls that were approved, before the model is asked.
    pub fn resume(&mut self, calls: Vec<ApprovedCall>) -> Next {
        for ApprovedCall { request_id, target, arguments } in calls {
            let call = HostedCall {
                name: target.tool.name.clone(),
                arguments,
                data: None,
                approved_by: Some(request_id),
            };
            let place = self.add_hosted(&target, call.approved_by.clone());
            if target.shape == Shape::Mcp {
                let (output_index, item_id) = place.clone();
                let delta = call.arguments.clone();
                self.emit(Event::McpArgumentsDelta { item_id, output_index, delta });
            }
            self.wait_for_tool(place, target, call, None);
        }
        if self.round.pending.is_empty() { Next::Ask } else { Next::RunTools(self.calls_to_run()) }
    }

    /// Hears what became of one call; its item is final after that. Later outcomes of the same call are not heard.
    pub fn settle(&mut self, outcome: ToolOutcome) {
        let ToolOutcome { slot, output } = outcome;
        let Some(pending) = self.round.pending.get_mut(slot) else { return };
        if std::mem::replace(&mut pending.is_settled, true) {
            return;
        }
        let (output_index, item_id) = (pending.output_index, Arc::clone(&pending.item_id));
        let (target, call) = (pending.target.clone(), std::mem::take(&mut pending.call));
        // After a failure the model may try again.
        self.round.ends_loop |= target.ends_loop && output.is_ok();
        let ended = match output {
            Ok(output) => Ended::Well(output),
            Err(failure) => Ended::Badly(failure),
        };
        self.finish_hosted(output_index, &item_id, &target, call, ended);
    }

    /// Hears that all tools are done, and says what is next. A call that was not settled is settled as failed.
    pub fn answered(&mut self) -> Next {
        for slot in 0..self.round.pending.len() {
            let failure = ToolFailure::new("The tool gave no answer.");
            self.settle(ToolOutcome { slot, output: Err(failure) });
        }
        self.round.pending.clear();
        if self.round.client_calls > 0 || self.round.approvals > 0 {
            return Next::Finish;
        }
        let out_of_tokens =
            self.settings.max_output_tokens.is_some_and(|most| self.usage.output_tokens >= most);
        if out_of_tokens || self.rounds >= self.rules.max_rounds {
            self.incomplete = Some(IncompleteReason::MaxOutputTokens);
            return Next::Finish;
        }
        self.last_words |= self.round.ends_loop;
        self.round = Round::new(self.rules.think);
        Next::Ask
    }

    /// Hears the tools, all at once.
    pub fn answer(&mut self, outcomes: Vec<ToolOutcome>) -> Next {
        for outcome in outcomes {
            self.settle(outcome);
        }
        self.answered()
    }

    /// A picture of a call that is this far: base64.
    pub fn partial_image(&mut self, slot: usize, partial_image_index: u32, picture: String) {
        let Some(pending) = self.round.pending.get(slot).filter(|pending| !pending.is_settled)
        else {
            return;
        };
        self.emit(Event::ImagePartial {
            item_id: Arc::clone(&pending.item_id),
            output_index: pending.output_index,
            partial_image_index,
            partial_image_b64: picture,
        });
    }

    /// Announces the item of a call that antiphon answers.
    pub(super) fn add_hosted(
        &mut self,
        target: &HostedTarget,
        approval_request_id: Option<String>,
    ) -> (usize, Arc<str>) {
        let (prefix, zero) = (
            target.shape.id_prefix(),
            HostedCall { approved_by: approval_request_id, ..HostedCall::default() },
        );
        let place = self
            .add(prefix, |id| item(id, target, zero, ItemStatus::InProgress, Extra::new(), None));
        let (output_index, item_id) = place.clone();
        self.emit(match target.shape {
            Shape::Mcp => Event::McpCallInProgress { item_id, output_index },
            Shape::Web => Event::WebSearchInProgress { item_id, output_index },
            Shape::Image => Event::ImageInProgress { item_id, output_index },
        });
        place
    }

    /// The call's arguments are whole; its item is finished when the tool has answered.
    pub(super) fn wait_for_tool(
        &mut self,
        (output_index, item_id): (usize, Arc<str>),
        target: HostedTarget,
        call: HostedCall,
        refused: Option<String>,
    ) {
        self.tell_whole_arguments(output_index, &item_id, &target, &call.arguments);
        self.round.pending.push(Pending {
            output_index,
            item_id,
            target,
            call,
            refused,
            is_settled: false,
        });
    }

    /// A call that was cut off in the middle.
    pub(super) fn cut_off(
        &mut self,
        (output_index, item_id): (usize, Arc<str>),
        target: &HostedTarget,
        call: HostedCall,
    ) {
        self.tell_whole_arguments(output_index, &item_id, target, &call.arguments);
        self.finish_hosted(output_index, &item_id, target, call, Ended::CutOff);
    }

    /// Asks the client for consent to a call.
    pub(super) fn ask_for_approval(&mut self, target: HostedTarget, arguments: String) {
        let HostedRef { label: server_label, name } = target.tool;
        let request = McpApprovalRequest { id: String::new(), server_label, name, arguments };
        let (output_index, item_id) = self.add("mcpr", |id| {
            Item::McpApprovalRequest(McpApprovalRequest { id, ..request.clone() })
        });
        self.round.approvals += 1;
        let id = item_id.to_string();
        self.done(output_index, Item::McpApprovalRequest(McpApprovalRequest { id, ..request }));
    }

    /// Closes calls that will not be run.
    pub(super) fn drop_pending(&mut self) {
        for pending in std::mem::take(&mut self.round.pending) {
            let Pending { output_index, item_id, target, call, is_settled, .. } = pending;
            if !is_settled {
                self.finish_hosted(output_index, &item_id, &target, call, Ended::CutOff);
            }
        }
    }

    /// The calls to run; those that are refused or over a limit are answered here.
    pub(super) fn calls_to_run(&mut self) -> Vec<ToolCall> {
        let last_round = self.rounds >= self.rules.max_rounds;
        let mut calls = Vec::new();
        for slot in 0..self.round.pending.len() {
            let spent = self.settings.max_tool_calls.is_some_and(|most| self.hosted_calls >= most);
            let pending = &mut self.round.pending[slot];
            let refused = pending.refused.take().or_else(|| {
                if last_round {
                    Some("The limit of steps for this answer is reached, so this was not run.".to_owned())
                } else if spent {
                    Some("The limit of tool calls for this answer (`max_tool_calls`) is reached, so this was not run. Answer with what you have.".to_owned())
                } else {
                    None
                }
            });
            if let Some(why) = refused {
                self.settle(ToolOutcome { slot, output: Err(ToolFailure::new(why)) });
                continue;
            }
            self.hosted_calls += 1;
            let (item_id, output_index) = (Arc::clone(&pending.item_id), pending.output_index);
            calls.push(ToolCall {
                slot,
                tool: pending.target.tool.clone(),
                arguments: pending.call.arguments.clone(),
                item_id: Arc::clone(&item_id),
            });
            match pending.target.shape {
                Shape::Mcp => (),
                Shape::Web => self.emit(Event::WebSearchSearching { item_id, output_index }),
                Shape::Image => self.emit(Event::ImageGenerating { item_id, output_index }),
            }
        }
        calls
    }

    fn tell_whole_arguments(
        &mut self,
        output_index: usize,
        item_id: &Arc<str>,
        target: &HostedTarget,
        arguments: &str,
    ) {
        if target.shape == Shape::Mcp {
            let (item_id, arguments) = (Arc::clone(item_id), arguments.to_owned());
            self.emit(Event::McpArgumentsDone { item_id, output_index, arguments });
        }
    }

    fn finish_hosted(
        &mut self,
        output_index: usize,
        item_id: &Arc<str>,
        target: &HostedTarget,
        call: HostedCall,
        ended: Ended,
    ) {
        let id = item_id.to_string();
        let (status, told, fields) = match ended {
            Ended::Well(ToolOutput { told, mut fields }) => {
                if target.shape == Shape::Mcp && fields.get("output").is_none() {
                    fields.insert("output", text_of(&told).into());
                }
                (ItemStatus::Completed, told, fields)
            }
            Ended::Badly(ToolFailure { told, error, mut fields }) => {
                if target.shape == Shape::Mcp {
                    let error = error
                        .and_then(|error| error.to().ok())
                        .unwrap_or_else(|| execution_error(&told));
                    fields.insert("error", error);
                }
                (ItemStatus::Failed, vec![Part::input_text(told)], fields)
            }
            Ended::CutOff => (ItemStatus::Incomplete, Vec::new(), Extra::new()),
        };
        if let Some(event) = target.shape.ended(status, item_id, output_index) {
            self.emit(event);
        }
        let view = self.view(target.shape, &call, told, status);
        let mut fields = fields;
        if let (Some(view), Some(seal)) = (&view, &self.rules.seal_data)
            && !view.is_plain()
            && let Ok(json) = serde_json::to_string(view)
            && json.len() <= SEALED_MAX
        {
            fields.insert(SEALED_DATA, seal(&json).into());
        }
        let item = item(id, target, call, status, fields, view);
        self.done(output_index, item);
    }

    /// What the model sees of a call, as far as the item does not say it.
    fn view(
        &self,
        shape: Shape,
        call: &HostedCall,
        told: Vec<Part>,
        status: ItemStatus,
    ) -> Option<Box<ModelView>> {
        if status == ItemStatus::Incomplete {
            return None;
        }
        let mut view =
            ModelView { data: call.data.clone(), round: self.rounds, ..ModelView::default() };
        if shape == Shape::Mcp {
            if !told.iter().all(|part| matches!(part, Part::InputText(_))) {
                view.told = told;
            }
        } else {
            view.name.clone_from(&call.name);
            view.arguments.clone_from(&call.arguments);
            view.told = told;
        }
        Some(Box::new(view))
    }
}

/// How a call ended.
enum Ended {
    Well(ToolOutput),
    Badly(ToolFailure),
    CutOff,
}

impl ModelView {
    /// Whether the model sees nothing that the item does not say.
    fn is_plain(&self) -> bool {
        self.name.is_empty() && self.told.is_empty() && self.data.is_none()
    }
}

impl Shape {
    /// What the ids of such items begin with.
    const fn id_prefix(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Web => "ws",
            Self::Image => "ig",
        }
    }

    /// The event that says how such a call ended, where there is one.
    fn ended(self, status: ItemStatus, item_id: &Arc<str>, output_index: usize) -> Option<Event> {
        let item_id = Arc::clone(item_id);
        match (self, status) {
            (Self::Mcp, ItemStatus::Completed) => {
                Some(Event::McpCallCompleted { item_id, output_index })
            }
            (Self::Mcp, ItemStatus::Failed) => Some(Event::McpCallFailed { item_id, output_index }),
            (Self::Web, ItemStatus::Completed) => {
                Some(Event::WebSearchCompleted { item_id, output_index })
            }
            (Self::Image, ItemStatus::Completed) => {
                Some(Event::ImageCompleted { item_id, output_index })
            }
            _ => None,
        }
    }
}

/// The item of a call.
fn item(
    id: String,
    target: &HostedTarget,
    call: HostedCall,
    status: ItemStatus,
    fields: Extra,
    view: Option<Box<ModelView>>,
) -> Item {
    let mut fields = fields;
    match target.shape {
        Shape::Mcp => {
            let output = fields.remove("output").and_then(|output| match output {
                Value::String(text) => Some(text),
                _ => None,
            });
            Item::McpCall(McpCall {
                id,
                status: Some(status),
                approval_request_id: call.approved_by,
                server_label: target.tool.label.clone(),
                name: target.tool.name.clone(),
                arguments: call.arguments,
                output,
                error: fields.remove("error").map(|error| Raw::of(&error)),
                view,
                extra: fields,
            })
        }
        Shape::Web => {
            if status != ItemStatus::InProgress && fields.get("action").is_none() {
                fields.insert("action", json!({ "type": "search", "query": "", "queries": [] }));
            }
            let status = Some(failed_when_cut(status));
            Item::WebSearchCall(ClientCall {
                id,
                status,
                view,
                body: fields,
                ..ClientCall::default()
            })
        }
        Shape::Image => {
            if fields.get("result").is_none() {
                fields.insert("result", Value::Null);
            }
            let status = Some(failed_when_cut(status));
            Item::ImageGenerationCall(ClientCall {
                id,
                status,
                view,
                body: fields,
                ..ClientCall::default()
            })
        }
    }
}

/// The error of a tool as the items carry it.
fn execution_error(why: &str) -> Value {
    json!({ "type": "mcp_tool_execution_error", "content": [{ "type": "text", "text": why }] })
}

/// These types of items know no `incomplete`.
fn failed_when_cut(status: ItemStatus) -> ItemStatus {
    if status == ItemStatus::Incomplete { ItemStatus::Failed } else { status }
}

/// The texts of what the model was told.
fn text_of(told: &[Part]) -> String {
    let texts: Vec<&str> = told.iter().filter_map(Part::text).collect();
    texts.join("\n")
}
