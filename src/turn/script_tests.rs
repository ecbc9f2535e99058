//! Plays scripts against a Turn, and reads what a client would hear as strictly as the wire's grammar is written.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    Catalog, Delta, Finish, HostedRef, HostedTarget, HostedTool, Next, Rules, ToolCall,
    ToolFailure, ToolOutcome, ToolOutput, Turn, grammar,
};
use crate::{
    protocol::{ApiError, Numbered, Raw, Response, Settings, Usage},
    text::{rescue::Reading, think::ThinkMode},
};

/// The id of every scripted Response.
pub(crate) const ID: &str = "resp_00ab";

/// A Response under test, and all that was heard of it.
pub(crate) struct Script {
    pub(crate) turn: Turn,
    pub(crate) events: Vec<Numbered>,
}

/// What a script is played under.
pub(crate) struct Stage {
    pub(crate) settings: Value,
    pub(crate) rules: Rules,
    pub(crate) hosted: Vec<HostedTool>,
}

impl Stage {
    /// A request with these fields besides the defaults.
    pub(crate) fn new(fields: &Value) -> Self {
        let mut settings = json!({
            "model": "m", "previous_response_id": null, "conversation": null, "instructions": null, "tools": [],
            "tool_choice": "auto", "parallel_tool_calls": true, "max_tool_calls": null, "max_output_tokens": null,
            "text": {}, "reasoning": null, "truncation": "disabled", "temperature": 1.0, "top_p": 1.0,
            "presence_penalty": 0.0, "frequency_penalty": 0.0, "top_logprobs": 0, "store": true, "background": false,
            "service_tier": "default", "metadata": {}, "safety_identifier": null, "prompt_cache_key": null,
        });
        for (name, value) in fields.as_object().unwrap() {
            settings[name] = value.clone();
        }
        let rules = Rules {
            open_responses: false,
            think: ThinkMode::Off,
            reading: Reading::default(),
            logprobs: false,
            seal: None,
            seal_data: None,
            max_rounds: 8,
            used_call_ids: HashSet::new(),
        };
        Self { settings, rules, hosted: Vec::new() }
    }

    /// A request that offers these functions.
    pub(crate) fn functions(names: &[&str]) -> Self {
        let tools: Vec<Value> =
            names.iter().map(|name| json!({ "type": "function", "name": name })).collect();
        Self::new(&json!({ "tools": tools }))
    }

    /// Antiphon offers these too.
    pub(crate) fn hosted(mut self, names: &[&str]) -> Self {
        self.hosted = names.iter().map(|name| hosted_tool("antiphon", name)).collect();
        self
    }

    /// Antiphon offers this one too, with calls of this shape.
    pub(crate) fn shaped(mut self, name: &str, change: impl FnOnce(&mut HostedTarget)) -> Self {
        let mut tool = hosted_tool("antiphon", name);
        change(&mut tool.target);
        self.hosted.push(tool);
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        change(&mut self.rules);
        self
    }

    pub(crate) fn set(mut self, name: &str, value: Value) -> Self {
        self.settings[name] = value;
        self
    }

    pub(crate) fn begin(self) -> Script {
        let settings: Settings = serde_json::from_str(&self.settings.to_string()).unwrap();
        let catalog =
            Catalog::new(&settings.tools, &settings.tool_choice, self.hosted, &[]).unwrap();
        let turn = Turn::begin(ID, 1000, Arc::new(settings), Arc::new(catalog), self.rules);
        Script { turn, events: Vec::new() }
    }
}

pub(crate) fn hosted_tool(label: &str, name: &str) -> HostedTool {
    HostedTool {
        target: HostedTarget {
            tool: HostedRef { label: label.to_owned(), name: name.to_owned() },
            ..HostedTarget::own(name)
        },
        description: format!("The tool {name}."),
        parameters: Raw::parse(r#"{"type":"object","properties":{}}"#).unwrap(),
    }
}

impl Script {
    /// The model says this and stops, as it says why or not.
    pub(crate) fn round(&mut self, deltas: impl IntoIterator<Item = Delta>) -> Next {
        for delta in deltas {
            self.turn.feed(delta);
            self.listen();
        }
        let next = self.turn.end_round();
        self.listen();
        next
    }

    /// The model says this, calls tools, and they answer: every call of the Round must have got an answer.
    pub(crate) fn round_with_tools(
        &mut self,
        deltas: impl IntoIterator<Item = Delta>,
        answers: &[Result<&str, &str>],
    ) -> Next {
        let Next::RunTools(calls) = self.round(deltas) else { panic!("no tools to run") };
        assert_eq!(calls.len(), answers.len(), "{calls:?}");
        let outcomes = calls
            .iter()
            .zip(answers)
            .map(|(ToolCall { slot, .. }, answer)| ToolOutcome {
                slot: *slot,
                output: answer.map(ToolOutput::text).map_err(ToolFailure::new),
            })
            .collect();
        self.answer(outcomes)
    }

    pub(crate) fn answer(&mut self, outcomes: Vec<ToolOutcome>) -> Next {
        let next = self.turn.answer(outcomes);
        self.listen();
        next
    }

    pub(crate) fn fail(&mut self, error: &ApiError) {
        self.turn.fail(error);
        self.listen();
    }

    /// Ends the Response, holds what was heard against the grammar, and gives it.
    pub(crate) fn conclude(&mut self) -> Arc<Response> {
        let response = self.turn.conclude(2000);
        self.turn.terminal(Arc::clone(&response));
        self.listen();
        grammar::check(&self.events, &response);
        response
    }

    /// Ends the Response, and writes down what was heard after its beginning, one event a line.
    pub(crate) fn transcript(mut self) -> String {
        self.conclude();
        let mut lines = String::new();
        for event in &self.events[2..] {
            writeln!(lines, "{}", line(event)).unwrap();
        }
        lines
    }

    /// Ends the Response, and gives its items, one a line.
    pub(crate) fn items(mut self) -> String {
        items(&self.conclude())
    }

    fn listen(&mut self) {
        self.events.extend(self.turn.take_events());
    }
}

/// The items of a Response, one a line, and how it stands.
pub(crate) fn items(response: &Response) -> String {
    let mut lines = String::new();
    for item in &response.output {
        writeln!(lines, "{}", serde_json::to_string(item).unwrap()).unwrap();
    }
    write!(lines, "{}", summary(response)).unwrap();
    lines
}

/// One event on one line: number, name without `response.`, and what it says but for the ids that its place gives.
fn line(event: &Numbered) -> String {
    let Numbered { sequence_number, event: heard } = event;
    let name = heard.name().strip_prefix("response.").unwrap_or_else(|| heard.name());
    if let Some(response) = heard.terminal() {
        return format!("{sequence_number} {name} {}", summary(response));
    }
    let mut fields = serde_json::to_value(event).unwrap();
    let fields = fields.as_object_mut().unwrap();
    for known in ["type", "sequence_number", "item_id"] {
        fields.shift_remove(known);
    }
    if fields.get("logprobs").is_some_and(|logprobs| logprobs == &json!([])) {
        fields.shift_remove("logprobs");
    }
    let place: Vec<String> = ["output_index", "content_index", "summary_index"]
        .iter()
        .filter_map(|index| fields.shift_remove(*index))
        .map(|index| index.to_string())
        .collect();
    let said: Vec<String> = fields.values().map(Value::to_string).collect();
    format!("{sequence_number} {name} {} {}", place.join("."), said.join(" ")).trim_end().to_owned()
}

fn summary(response: &Response) -> String {
    let ids: Vec<&str> = response.output.iter().map(|item| item.id()).collect();
    let mut summary = format!("{} [{}]", response.status.word(), ids.join(" "));
    if let Some(details) = &response.incomplete_details {
        write!(summary, " {}", serde_json::to_string(details).unwrap()).unwrap();
    }
    if let Some(error) = &response.error {
        write!(summary, " {}", serde_json::to_string(error).unwrap()).unwrap();
    }
    summary
}

pub(crate) fn text(text: &str) -> Delta {
    Delta::Text { text: text.to_owned(), logprobs: Vec::new() }
}

pub(crate) fn reasoning(text: &str) -> Delta {
    Delta::Reasoning(text.to_owned())
}

pub(crate) fn call(position: u32, id: &str, name: &str) -> Delta {
    Delta::Call {
        position,
        id: Some(id.to_owned()).filter(|id| !id.is_empty()),
        name: name.to_owned(),
    }
}

pub(crate) fn arguments(position: u32, piece: &str) -> Delta {
    Delta::Arguments { position, piece: piece.to_owned() }
}

/// A whole call.
pub(crate) fn whole(position: u32, id: &str, name: &str, json: &str) -> [Delta; 2] {
    [call(position, id, name), arguments(position, json)]
}

pub(crate) fn finish(why: Finish) -> Delta {
    Delta::Finish(why)
}

pub(crate) fn tokens(output_tokens: u64) -> Delta {
    Delta::Usage(Usage {
        input_tokens: 10,
        output_tokens,
        total_tokens: 10 + output_tokens,
        ..Usage::default()
    })
}

/// How often each type of item stands in the output.
pub(crate) fn kinds(response: &Response) -> HashMap<String, usize> {
    let mut kinds = HashMap::new();
    for item in &response.output {
        *kinds.entry(item.kind().into_owned()).or_default() += 1;
    }
    kinds
}
