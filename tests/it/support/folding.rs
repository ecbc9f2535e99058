//! Folds the events of a stream into the Response that they tell of, as a client does, and insists that they agree with one another.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

/// The Response so far.
#[derive(Default)]
pub(crate) struct Folded {
    next_number: u64,
    response: Value,
    items: Vec<Value>,
    done: Vec<bool>,
    ended: bool,
    /// Whether an `error` was told.
    error: Option<Value>,
}

impl Folded {
    /// The next event.
    pub(crate) fn push(&mut self, event: &Value) {
        assert!(!self.ended, "after the end: {event}");
        assert_eq!(event["sequence_number"], self.next_number, "{event}");
        self.next_number += 1;
        let kind = event["type"].as_str().unwrap();
        match kind.strip_prefix("response.").unwrap_or(kind) {
            "created" => {
                assert_eq!(self.next_number, 1);
                self.response = event["response"].clone();
                assert_eq!(self.response["status"], "in_progress");
                assert_eq!(self.response["output"], json!([]));
            }
            "in_progress" => assert_eq!(event["response"], self.response),
            "output_item.added" => {
                assert_eq!(event["output_index"], self.items.len(), "{event}");
                self.items.push(event["item"].clone());
                self.done.push(false);
            }
            "output_item.done" => self.item_done(event),
            "content_part.added" => self.part_added(event, "content", "content_index"),
            "reasoning_summary_part.added" => self.part_added(event, "summary", "summary_index"),
            "content_part.done" => {
                let mut part = self.part(event, "content", "content_index").clone();
                if let Some(logprobs) = event["part"].get("logprobs") {
                    part["logprobs"] = logprobs.clone();
                }
                assert_eq!(part, event["part"]);
                *self.part(event, "content", "content_index") = part;
            }
            "reasoning_summary_part.done" => {
                assert_eq!(*self.part(event, "summary", "summary_index"), event["part"]);
            }
            "output_text.delta" | "reasoning_text.delta" => {
                append(&mut self.part(event, "content", "content_index")["text"], event);
            }
            "output_text.done" | "reasoning_text.done" => {
                let text = &self.part(event, "content", "content_index")["text"];
                assert_eq!(*text, event["text"]);
            }
            "refusal.delta" => {
                append(&mut self.part(event, "content", "content_index")["refusal"], event);
            }
            "refusal.done" => {
                let text = &self.part(event, "content", "content_index")["refusal"];
                assert_eq!(*text, event["refusal"]);
            }
            "reasoning_summary_text.delta" => {
                append(&mut self.part(event, "summary", "summary_index")["text"], event);
            }
            "reasoning_summary_text.done" => {
                assert_eq!(self.part(event, "summary", "summary_index")["text"], event["text"]);
            }
            "function_call_arguments.delta" | "mcp_call_arguments.delta" => {
                append(&mut self.item(event)["arguments"], event);
            }
            "function_call_arguments.done" | "mcp_call_arguments.done" => {
                assert_eq!(self.item(event)["arguments"], event["arguments"]);
            }
            "custom_tool_call_input.delta" => append(&mut self.item(event)["input"], event),
            "custom_tool_call_input.done" => {
                assert_eq!(self.item(event)["input"], event["input"]);
            }
            "mcp_call.in_progress"
            | "mcp_call.completed"
            | "mcp_call.failed"
            | "mcp_list_tools.in_progress"
            | "mcp_list_tools.completed"
            | "mcp_list_tools.failed"
            | "web_search_call.in_progress"
            | "web_search_call.searching"
            | "web_search_call.completed"
            | "image_generation_call.in_progress"
            | "image_generation_call.generating"
            | "image_generation_call.partial_image"
            | "image_generation_call.completed" => {
                self.item(event);
            }
            "error" => {
                assert_eq!(event["error"]["message"], event["message"]);
                self.error = Some(event["message"].clone());
            }
            "completed" | "incomplete" | "failed" => self.end(event),
            other => panic!("no client knows `{other}`"),
        }
    }

    /// The Response, which has ended.
    pub(crate) fn response(self) -> Value {
        assert!(self.ended, "the stream has no end");
        self.response
    }

    fn end(&mut self, event: &Value) {
        let last = &event["response"];
        assert_eq!(event["type"], format!("response.{}", last["status"].as_str().unwrap()));
        assert!(self.done.iter().all(|done| *done), "an item is not done: {:#?}", self.items);
        assert_eq!(last["output"], json!(self.items));
        assert_eq!(last["error"]["message"], self.error.take().unwrap_or_default());
        assert_eq!(last["id"], self.response["id"]);
        let mut rest = last.clone();
        for told in ["status", "output", "error", "usage", "incomplete_details", "completed_at"] {
            rest[told] = self.response[told].clone();
        }
        assert_eq!(rest, self.response, "the end changes what was told at the beginning");
        self.response = last.clone();
        self.ended = true;
    }

    fn item_done(&mut self, event: &Value) {
        let mut told = self.item(event).clone();
        let item = &event["item"];
        // What only the end can tell.
        let of_pictures = [
            "result",
            "action",
            "revised_prompt",
            "size",
            "quality",
            "background",
            "output_format",
        ];
        let of_all =
            ["status", "output", "error", "encrypted_content", "antiphon", "tools", "results"];
        for late in of_all.into_iter().chain(of_pictures) {
            if let Some(value) = item.get(late) {
                told[late] = value.clone();
            }
        }
        assert_eq!(told, *item);
        assert_ne!(item["status"], "in_progress");
        let at = index(event, "output_index");
        assert!(!self.done[at], "done twice: {event}");
        self.items[at] = item.clone();
        self.done[at] = true;
    }

    fn part_added(&mut self, event: &Value, list: &str, at: &str) {
        let item = self.item(event).as_object_mut().unwrap();
        let parts = item.entry(list).or_insert_with(|| json!([])).as_array_mut().unwrap();
        assert_eq!(event[at], parts.len());
        parts.push(event["part"].clone());
    }

    fn part(&mut self, event: &Value, list: &str, at: &str) -> &mut Value {
        let at = index(event, at);
        &mut self.item(event)[list][at]
    }

    fn item(&mut self, event: &Value) -> &mut Value {
        let at = index(event, "output_index");
        let item = &mut self.items[at];
        if let Some(id) = event.get("item_id") {
            assert_eq!(item["id"], *id);
        }
        item
    }
}

fn append(text: &mut Value, event: &Value) {
    let before = text.as_str().unwrap();
    let delta = event["delta"].as_str().unwrap();
    *text = format!("{before}{delta}").into();
}

fn index(event: &Value, name: &str) -> usize {
    usize::try_from(event[name].as_u64().unwrap()).unwrap()
}
