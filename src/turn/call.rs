//! The call being written: its three identities (public, the backend's, its position), its arguments, and who answers it.

use std::sync::Arc;

use crate::{
    protocol::{
        Event, Extra, Item, ItemStatus, Raw,
        item::{CustomToolCall, FunctionCall},
    },
    text::{
        arg_stream::ArgStream,
        json_scan::{JsonScan, JsonState},
    },
};

use super::{
    HostedTarget, Shape, Turn, catalog::Target, client_call, hosted::HostedCall, round::Open,
    written,
};

/// The call being written.
pub(super) struct OpenCall {
    pub(super) position: u32,
    pub(super) scan: JsonScan,
    /// The backend's id, empty when it gave none.
    backend_id: String,
    /// The name that the model called.
    name: String,
    target: Target,
    arguments: String,
    /// How much of the arguments the client has heard.
    heard: usize,
    /// Takes the free text of a custom tool out of its arguments, and what of it the client has heard.
    free_text: ArgStream,
    free_text_heard: String,
    /// Its place and id, once it is announced.
    place: Option<(usize, Arc<str>)>,
    call_id: String,
    data: Option<Raw>,
}

/// A call that began in this Round.
pub(super) struct SeenCall {
    backend_id: String,
    name: String,
    arguments: String,
}

impl OpenCall {
    /// Whether it is this call.
    pub(super) fn is(&self, name: &str, arguments: &str) -> bool {
        self.name == name && is_same_json(&self.arguments, arguments)
    }
}

impl SeenCall {
    /// Whether it is this call.
    pub(super) fn is(&self, name: &str, arguments: &str) -> bool {
        self.name == name && is_same_json(&self.arguments, arguments)
    }
}

fn is_same_json(one: &str, other: &str) -> bool {
    let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).ok();
    one == other || value(one).is_some_and(|one| value(other) == Some(one))
}

/// The field of a call item that carries, sealed, what a backend wants back with the call; an extension.
pub const SEALED_DATA: &str = "encrypted_content";

/// The label under which antiphon's own tools appear in items.
pub const OWN_LABEL: &str = "antiphon";

impl Turn {
    /// A call begins.
    pub(super) fn call(&mut self, position: u32, id: Option<String>, name: String) {
        self.close_open(ItemStatus::Completed);
        if !self.settings.parallel_tool_calls && !self.round.seen.is_empty() {
            // The backend did not listen: the first call counts, the rest was never asked for.
            return;
        }
        let backend_id = id.unwrap_or_default();
        let double = !backend_id.is_empty()
            && self.round.seen.iter().any(|seen| seen.backend_id == backend_id);
        let name = written::meant(&self.catalog, name);
        let target = self.catalog.target(&name);
        let mut call = OpenCall {
            position,
            scan: JsonScan::default(),
            backend_id,
            name,
            target,
            arguments: String::new(),
            heard: 0,
            free_text: ArgStream::default(),
            free_text_heard: String::new(),
            place: None,
            call_id: String::new(),
            data: None,
        };
        let waits = double
            || match &call.target {
                Target::Client(_) | Target::Refused(_) => true,
                Target::Hosted(target) => target.needs_approval,
                Target::Function { .. } | Target::Custom { .. } => false,
            };
        if !waits {
            self.announce(&mut call);
        }
        self.round.open = Open::Call(Box::new(call));
    }

    /// More arguments of the open call; those of one that is closed already come too late to matter.
    pub(super) fn arguments(&mut self, position: u32, piece: &str) {
        let Open::Call(call) = &mut self.round.open else { return };
        if call.position != position {
            return;
        }
        // What waits is heard as soon as the call is whole, and ends it: what its backend appends after that never belonged to it, whether
        // it comes in the same piece or in the next.
        let piece = if self.round.others_wait {
            let read = call.scan.read_value(piece);
            if call.scan.is_closed() { &piece[..read] } else { piece }
        } else {
            call.scan.push(piece);
            piece
        };
        call.arguments.push_str(piece);
        // `null` stands for no arguments, which are written `{}`: it must not be heard before it is known to be something else.
        // White space tells nothing, and some models write a lot of it: it is not worth another look at the whole.
        // A call of ours in quotes is written twice over; it is heard as what it means.
        let begun = call.arguments.trim();
        let quoted = matches!(call.target, Target::Hosted(_)) && begun.starts_with('"');
        let certain =
            call.heard > 0 || !piece.trim().is_empty() && !quoted && !"null".starts_with(begun);
        if call.place.is_some() && certain {
            let Open::Call(mut call) = std::mem::replace(&mut self.round.open, Open::Nothing)
            else {
                return;
            };
            self.tell_arguments(&mut call);
            self.round.open = Open::Call(call);
        }
    }

    /// Keeps what the backend wants back with the call.
    pub(super) fn keep_call_data(&mut self, position: u32, data: Raw) {
        if let Open::Call(call) = &mut self.round.open
            && call.position == position
        {
            call.data = Some(data);
        }
    }

    /// Gives the call its place and its public id, which never change after that.
    fn announce(&mut self, call: &mut OpenCall) {
        let fits = (1..=64).contains(&call.backend_id.chars().count());
        call.call_id = if fits && !self.rules.used_call_ids.contains(&call.backend_id) {
            call.backend_id.clone()
        } else {
            self.minted_call_id()
        };
        self.rules.used_call_ids.insert(call.call_id.clone());
        let call_id = call.call_id.clone();
        let status = Some(ItemStatus::InProgress);
        let place = match call.target.clone() {
            Target::Function { name, namespace } => self.add("fc", |id| {
                let call = FunctionCall {
                    id,
                    status,
                    call_id,
                    name,
                    namespace,
                    ..FunctionCall::default()
                };
                Item::FunctionCall(call)
            }),
            Target::Custom { name, namespace } => self.add("ctc", |id| {
                let call = CustomToolCall {
                    id,
                    status,
                    call_id,
                    name,
                    namespace,
                    ..CustomToolCall::default()
                };
                Item::CustomToolCall(call)
            }),
            Target::Client(kind) => {
                let item = client_call::item(kind, &call_id, &call.arguments, &self.settings.tools);
                self.add(item.id_prefix(), |id| {
                    let mut item = item.clone();
                    item.set_id(id);
                    if let Some(at) = item.status_mut() {
                        *at = status;
                    }
                    item
                })
            }
            Target::Hosted(target) => self.add_hosted(&target, None),
            Target::Refused(_) => self.add_hosted(&HostedTarget::own(&call.name), None),
        };
        call.place = Some(place);
    }

    fn minted_call_id(&self) -> String {
        let digits = self.id.split_once('_').map_or(&*self.id, |(_, digits)| digits);
        format!("call_{digits}{:04x}", self.slots.len())
    }

    /// Lets the client hear the arguments that it has not heard yet.
    fn tell_arguments(&mut self, call: &mut OpenCall) {
        let Some((output_index, item_id)) = call.place.clone() else { return };
        let delta = call.arguments[call.heard..].to_owned();
        if delta.is_empty() {
            return;
        }
        call.heard = call.arguments.len();
        match call.target {
            Target::Function { .. } => {
                self.emit(Event::ArgumentsDelta { item_id, output_index, delta });
            }
            Target::Hosted(HostedTarget { shape: Shape::Mcp, .. }) | Target::Refused(_) => {
                self.emit(Event::McpArgumentsDelta { item_id, output_index, delta });
            }
            Target::Custom { .. } => {
                let pieces = call.free_text.push(&delta);
                let texts = pieces.into_iter().filter(|piece| &*piece.name == "input");
                let delta: String = texts.map(|piece| piece.text).collect();
                if !delta.is_empty() {
                    call.free_text_heard.push_str(&delta);
                    self.emit(Event::InputDelta { item_id, output_index, delta });
                }
            }
            // Their arguments are no text of the client's.
            Target::Client(_) | Target::Hosted(_) => (),
        }
    }

    pub(super) fn close_call(&mut self, mut call: OpenCall, status: ItemStatus) {
        let whole = call.scan.state() == JsonState::Complete;
        let blank = matches!(call.arguments.trim(), "" | "null");
        let status = match status {
            // The limit came after the last byte of the call.
            ItemStatus::Incomplete if whole && self.round.finish.is_some() => ItemStatus::Completed,
            status => status,
        };
        if blank && status == ItemStatus::Completed {
            "{}".clone_into(&mut call.arguments);
        }
        if call.heard == 0
            && matches!(call.target, Target::Hosted(_))
            && let Some(object) = unquoted(&call.arguments)
        {
            call.arguments = object;
        }
        if call.place.is_none() {
            if self.is_double(&call) {
                return;
            }
            settle_target(&mut call, status);
            if let Target::Hosted(target) = &call.target
                && target.needs_approval
            {
                let (target, arguments) = (target.clone(), call.arguments.clone());
                self.see(&call);
                if status == ItemStatus::Completed {
                    self.ask_for_approval(target, arguments);
                }
                return;
            }
            self.announce(&mut call);
        }
        self.see(&call);
        self.tell_arguments(&mut call);
        self.finish_call(call, status);
    }

    /// Remembers the call, to tell doubles.
    fn see(&mut self, call: &OpenCall) {
        self.round.seen.push(SeenCall {
            backend_id: call.backend_id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        });
    }

    /// Whether the very same call was made in this Round already: some backends send a call twice.
    fn is_double(&self, call: &OpenCall) -> bool {
        !call.backend_id.is_empty()
            && self.round.seen.iter().any(|seen| {
                seen.backend_id == call.backend_id
                    && seen.name == call.name
                    && seen.arguments.trim() == call.arguments.trim()
            })
    }

    fn finish_call(&mut self, call: OpenCall, status: ItemStatus) {
        let Some((output_index, item_id)) = call.place else { return };
        let OpenCall { target, arguments, call_id, data, free_text_heard, .. } = call;
        let id = item_id.to_string();
        let handed_over = status == ItemStatus::Completed;
        let status_of_item = Some(status);
        let item = match target {
            Target::Function { name, namespace } => {
                let event = Event::ArgumentsDone {
                    item_id,
                    output_index,
                    name: name.clone(),
                    arguments: arguments.clone(),
                };
                self.emit(event);
                Item::FunctionCall(FunctionCall {
                    id,
                    status: status_of_item,
                    call_id,
                    name,
                    arguments,
                    namespace,
                    extra: self.sealed_data(data.as_ref()),
                    data,
                })
            }
            Target::Custom { name, namespace } => {
                let whole = if handed_over {
                    client_call::free_text(&arguments)
                } else {
                    client_call::free_text_so_far(&arguments)
                };
                // What was heard cannot be taken back, however broken the rest is.
                let (input, rest) = match whole.strip_prefix(&*free_text_heard) {
                    Some(rest) => (whole.clone(), rest.to_owned()),
                    None => (free_text_heard, String::new()),
                };
                if !rest.is_empty() {
                    let item_id = Arc::clone(&item_id);
                    self.emit(Event::InputDelta { item_id, output_index, delta: rest });
                }
                self.emit(Event::InputDone { item_id, output_index, input: input.clone() });
                Item::CustomToolCall(CustomToolCall {
                    id,
                    status: status_of_item,
                    call_id,
                    name,
                    input,
                    namespace,
                    extra: self.sealed_data(data.as_ref()),
                    data,
                })
            }
            Target::Client(kind) => {
                let mut item = client_call::item(kind, &call_id, &arguments, &self.settings.tools);
                item.set_id(id);
                if let Some(at) = item.status_mut() {
                    *at = status_of_item;
                }
                item
            }
            Target::Hosted(target) => {
                let call = HostedCall { name: call.name, arguments, data, ..HostedCall::default() };
                let place = (output_index, item_id);
                return if handed_over {
                    self.wait_for_tool(place, target, call, None);
                } else {
                    self.cut_off(place, &target, call);
                };
            }
            Target::Refused(why) => {
                let target = HostedTarget::own(&call.name);
                let call = HostedCall { name: call.name, arguments, data, ..HostedCall::default() };
                let place = (output_index, item_id);
                return if handed_over {
                    self.wait_for_tool(place, target, call, Some(why));
                } else {
                    self.cut_off(place, &target, call);
                };
            }
        };
        self.round.client_calls += usize::from(handed_over);
        self.done(output_index, item);
    }

    /// What a backend wants back with its call, sealed into a field that clients send back with the item.
    fn sealed_data(&self, data: Option<&Raw>) -> Extra {
        let mut extra = Extra::new();
        if let (Some(data), Some(seal)) = (data, &self.rules.seal_data) {
            extra.insert(SEALED_DATA, seal(data.json()).into());
        }
        extra
    }
}

/// The object that was written as a string of JSON.
fn unquoted(arguments: &str) -> Option<String> {
    let inner: String = serde_json::from_str(arguments.trim()).ok()?;
    let is_object = serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(&inner).is_ok();
    is_object.then_some(inner)
}

/// A client's call whose arguments make no sense for its item type goes back to the model.
fn settle_target(call: &mut OpenCall, status: ItemStatus) {
    if let Target::Client(kind) = call.target
        && status == ItemStatus::Completed
        && let Err(why) = client_call::check(kind, &call.arguments)
    {
        call.target = Target::Refused(why);
    }
}
