//! The grammar of a stream, checked on the JSON that leaves. Knows nothing of how a Turn works.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::protocol::{Numbered, Response};

/// What was heard of one item.
struct Heard {
    id: String,
    kind: String,
    parts: Vec<HeardPart>,
    summary: Vec<HeardPart>,
    /// Joined deltas of arguments or input.
    arguments: String,
    arguments_done: Option<String>,
    /// `completed` or `failed` of a hosted call.
    ended: Option<String>,
    done: Option<Value>,
}

struct HeardPart {
    kind: String,
    text: String,
    logprobs: Vec<Value>,
    text_done: bool,
    done: Option<Value>,
}

/// Panics where the events break the grammar, or where they do not add up to the Response.
pub(crate) fn check(events: &[Numbered], response: &Response) {
    let wire: Vec<Value> =
        events.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let names: Vec<&str> = wire.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(names[..2], ["response.created", "response.in_progress"]);
    for begun in &wire[..2] {
        let begun = &begun["response"];
        assert_eq!(begun["status"], "in_progress");
        assert_eq!(begun["output"], json!([]));
        assert!(begun["usage"].is_null() && begun["completed_at"].is_null(), "{begun}");
    }
    let mut items: Vec<Heard> = Vec::new();
    let last = wire.len() - 1;
    for (at, event) in wire.iter().enumerate() {
        assert_eq!(event["sequence_number"], at, "{event}");
        match names[at] {
            "response.created" => assert_eq!(at, 0),
            "response.in_progress" => assert_eq!(at, 1),
            "response.completed" | "response.incomplete" | "response.failed" => {
                assert_eq!(at, last, "an end that is not the last event");
            }
            "error" => {
                assert_eq!(at + 1, last, "an error is followed by the end");
                assert_eq!(names[last], "response.failed");
                assert_eq!(event["message"], event["error"]["message"]);
                assert_eq!(event["code"], event["error"]["code"]);
            }
            "response.output_item.added" => added(&mut items, event),
            _ => {
                let index = usize::try_from(event["output_index"].as_u64().unwrap()).unwrap();
                let item = items.get_mut(index).unwrap_or_else(|| panic!("not added: {event}"));
                assert!(item.done.is_none(), "after the item was done: {event}");
                hear(item, event);
            }
        }
    }
    let end = &wire[last]["response"];
    assert_eq!(*end, serde_json::to_value(response).unwrap());
    terminal(names[last], end, &items);
}

fn added(items: &mut Vec<Heard>, event: &Value) {
    assert_eq!(event["output_index"], items.len(), "{event}");
    for open in items.iter().filter(|item| item.done.is_none()) {
        assert!(
            matches!(&*open.kind, "mcp_list_tools" | "web_search_call" | "image_generation_call")
                || open.kind == "mcp_call" && open.arguments_done.is_some(),
            "{event} while {} is being written",
            open.id
        );
    }
    let item = &event["item"];
    let kind = item["type"].as_str().unwrap();
    let id = item["id"].as_str().unwrap();
    assert!(id.ends_with(&format!("_00ab{:04x}", items.len())), "{item}");
    if !matches!(kind, "mcp_list_tools" | "mcp_approval_request") {
        assert_eq!(item["status"], "in_progress", "{item}");
    }
    match kind {
        "message" => assert_eq!(item["content"], json!([])),
        "reasoning" => {
            assert_eq!(item["summary"], json!([]));
            assert!(item["content"].is_null() && item["encrypted_content"].is_null(), "{item}");
        }
        "function_call" => assert_eq!(item["arguments"], ""),
        "custom_tool_call" => assert_eq!(item["input"], ""),
        "mcp_call" => {
            assert_eq!(item["arguments"], "");
            assert!(item["output"].is_null() && item["error"].is_null(), "{item}");
        }
        "web_search_call" => assert!(item["action"].is_null(), "{item}"),
        "image_generation_call" => assert!(item["result"].is_null(), "{item}"),
        "mcp_list_tools" => assert_eq!(item["tools"], json!([])),
        _ => (),
    }
    items.push(Heard {
        id: id.to_owned(),
        kind: kind.to_owned(),
        parts: Vec::new(),
        summary: Vec::new(),
        arguments: String::new(),
        arguments_done: None,
        ended: None,
        done: None,
    });
}

fn hear(item: &mut Heard, event: &Value) {
    let name = event["type"].as_str().unwrap().strip_prefix("response.").unwrap();
    if name == "output_item.done" {
        return done(item, &event["item"]);
    }
    assert_eq!(event["item_id"], *item.id, "{event}");
    if let Some(delta) = event.get("delta") {
        assert_ne!(delta, "", "an empty delta: {event}");
    }
    match (&*item.kind, name) {
        ("message" | "reasoning", "content_part.added") => {
            open_part(&mut item.parts, event, "content_index");
        }
        ("reasoning", "reasoning_summary_part.added") => {
            open_part(&mut item.summary, event, "summary_index");
        }
        ("message", "output_text.delta" | "refusal.delta")
        | ("reasoning", "reasoning_text.delta" | "reasoning.delta") => {
            let part = current(&mut item.parts, event, "content_index");
            assert_eq!(part.kind, kind_of(name), "{event}");
            part.text.push_str(event["delta"].as_str().unwrap());
            part.logprobs.extend(event["logprobs"].as_array().into_iter().flatten().cloned());
        }
        ("reasoning", "reasoning_summary_text.delta") => {
            let part = current(&mut item.summary, event, "summary_index");
            part.text.push_str(event["delta"].as_str().unwrap());
        }
        ("message", "output_text.done" | "refusal.done")
        | ("reasoning", "reasoning_text.done" | "reasoning.done") => {
            let part = current(&mut item.parts, event, "content_index");
            assert_eq!(part.kind, kind_of(name), "{event}");
            let whole = event.get("text").or_else(|| event.get("refusal")).unwrap();
            assert_eq!(*whole, *part.text, "{event}");
            if name == "output_text.done" {
                assert_eq!(event["logprobs"], json!(part.logprobs), "{event}");
            }
            part.text_done = true;
        }
        ("reasoning", "reasoning_summary_text.done") => {
            let part = current(&mut item.summary, event, "summary_index");
            assert_eq!(event["text"], *part.text, "{event}");
            part.text_done = true;
        }
        ("message" | "reasoning", "content_part.done") => close_part(&mut item.parts, event),
        ("reasoning", "reasoning_summary_part.done") => close_part(&mut item.summary, event),
        ("function_call", "function_call_arguments.delta")
        | ("custom_tool_call", "custom_tool_call_input.delta")
        | ("mcp_call", "mcp_call_arguments.delta") => {
            assert!(item.arguments_done.is_none(), "{event}");
            item.arguments.push_str(event["delta"].as_str().unwrap());
        }
        ("function_call", "function_call_arguments.done")
        | ("custom_tool_call", "custom_tool_call_input.done")
        | ("mcp_call", "mcp_call_arguments.done") => {
            let whole = event.get("arguments").or_else(|| event.get("input")).unwrap();
            assert_eq!(*whole, *item.arguments, "{event}");
            assert!(item.arguments_done.replace(item.arguments.clone()).is_none(), "{event}");
        }
        ("mcp_call", "mcp_call.in_progress") => {
            assert!(item.arguments.is_empty() && item.arguments_done.is_none(), "{event}");
        }
        ("mcp_call", "mcp_call.completed" | "mcp_call.failed") => {
            assert!(item.arguments_done.is_some(), "{event}");
            let how = name.strip_prefix("mcp_call.").unwrap();
            assert!(item.ended.replace(how.to_owned()).is_none(), "{event}");
        }
        ("mcp_list_tools", "mcp_list_tools.in_progress")
        | ("web_search_call", "web_search_call.in_progress")
        | ("image_generation_call", "image_generation_call.in_progress") => {
            assert!(item.arguments_done.replace("waits".to_owned()).is_none(), "{event}");
        }
        ("web_search_call", "web_search_call.searching")
        | ("image_generation_call", "image_generation_call.generating") => {
            let before = item.arguments_done.replace("runs".to_owned());
            assert_eq!(before.as_deref(), Some("waits"), "{event}");
        }
        ("image_generation_call", "image_generation_call.partial_image") => {
            assert_eq!(item.arguments_done.as_deref(), Some("runs"), "{event}");
            assert!(item.ended.is_none(), "{event}");
        }
        ("web_search_call", "web_search_call.completed")
        | ("image_generation_call", "image_generation_call.completed") => {
            assert!(item.ended.replace("completed".to_owned()).is_none(), "{event}");
        }
        ("mcp_list_tools", "mcp_list_tools.completed" | "mcp_list_tools.failed") => {
            let how = name.strip_prefix("mcp_list_tools.").unwrap();
            assert!(item.ended.replace(how.to_owned()).is_none(), "{event}");
        }
        (kind, _) => panic!("{name} for {kind}"),
    }
}

fn kind_of(event: &str) -> &'static str {
    match event.split_once('.').unwrap().0 {
        "output_text" => "output_text",
        "refusal" => "refusal",
        _ => "reasoning_text",
    }
}

fn open_part(parts: &mut Vec<HeardPart>, event: &Value, index: &str) {
    assert_eq!(event[index], parts.len(), "{event}");
    assert!(parts.iter().all(|part| part.done.is_some()), "{event}");
    let part = &event["part"];
    assert_eq!(*part.get("text").or_else(|| part.get("refusal")).unwrap(), "", "{event}");
    parts.push(HeardPart {
        kind: part["type"].as_str().unwrap().to_owned(),
        text: String::new(),
        logprobs: Vec::new(),
        text_done: false,
        done: None,
    });
}

fn current<'a>(parts: &'a mut [HeardPart], event: &Value, index: &str) -> &'a mut HeardPart {
    assert_eq!(event[index], parts.len() - 1, "{event}");
    let part = parts.last_mut().unwrap();
    assert!(!part.text_done, "{event}");
    part
}

fn close_part(parts: &mut [HeardPart], event: &Value) {
    let part = parts.last_mut().unwrap();
    assert!(part.text_done && part.done.is_none(), "{event}");
    let whole = &event["part"];
    assert_eq!(whole["type"], *part.kind, "{event}");
    assert_eq!(*whole.get("text").or_else(|| whole.get("refusal")).unwrap(), *part.text, "{event}");
    if part.kind == "output_text" {
        assert_eq!(whole["logprobs"], json!(part.logprobs), "{event}");
    }
    part.done = Some(whole.clone());
}

fn done(item: &mut Heard, whole: &Value) {
    assert_eq!(whole["id"], *item.id, "{whole}");
    assert_eq!(whole["type"], *item.kind, "{whole}");
    let status = whole["status"].as_str().unwrap_or("completed");
    let parts = |parts: &[HeardPart]| -> Vec<Value> {
        parts.iter().map(|part| part.done.clone().unwrap()).collect()
    };
    let empty = |parts: &[HeardPart]| parts.iter().any(|part| part.text.is_empty());
    match &*item.kind {
        "message" => {
            assert_eq!(whole["content"], json!(parts(&item.parts)), "{whole}");
            assert!(!item.parts.is_empty(), "a message without a part: {whole}");
            assert!(item.parts.len() == 1 || !empty(&item.parts), "{whole}");
        }
        "reasoning" => {
            assert_eq!(whole["summary"], json!(parts(&item.summary)), "{whole}");
            let content = whole.get("content").cloned().unwrap_or(json!([]));
            assert_eq!(content, json!(parts(&item.parts)), "{whole}");
            assert!(!empty(&item.parts) && !empty(&item.summary), "{whole}");
        }
        "function_call" => {
            assert_eq!(item.arguments_done.as_deref(), whole["arguments"].as_str(), "{whole}");
            assert!(status == "incomplete" || !item.arguments.is_empty(), "{whole}");
        }
        "custom_tool_call" => {
            assert_eq!(item.arguments_done.as_deref(), whole["input"].as_str(), "{whole}");
        }
        "mcp_call" => {
            assert_eq!(item.arguments_done.as_deref(), whole["arguments"].as_str(), "{whole}");
            assert!(status == "incomplete" || !item.arguments.is_empty(), "{whole}");
            assert_eq!(item.ended.as_deref().unwrap_or("incomplete"), status, "{whole}");
            assert_eq!(status == "completed", whole["output"].is_string(), "{whole}");
            assert_eq!(status == "failed", whole["error"].is_object(), "{whole}");
        }
        "web_search_call" => {
            assert!(whole["action"]["type"].is_string(), "{whole}");
            assert_eq!(item.ended.is_some(), status == "completed", "{whole}");
        }
        "image_generation_call" => {
            assert_eq!(whole["result"].is_string(), status == "completed", "{whole}");
            assert_eq!(item.ended.is_some(), status == "completed", "{whole}");
        }
        "mcp_list_tools" => {
            let how = if whole["error"].is_null() { "completed" } else { "failed" };
            assert_eq!(item.ended.as_deref(), Some(how), "{whole}");
        }
        _ => (),
    }
    let hosted = ["mcp_call", "web_search_call", "image_generation_call"];
    let failed = status == "failed" && hosted.contains(&&*item.kind);
    assert!(failed || matches!(status, "completed" | "incomplete"), "{whole}");
    item.done = Some(whole.clone());
}

fn terminal(name: &str, end: &Value, items: &[Heard]) {
    let output: Vec<Value> = items
        .iter()
        .map(|item| item.done.clone().unwrap_or_else(|| panic!("{} is never done", item.id)))
        .collect();
    assert_eq!(end["output"], json!(output), "folding the events gives another output");
    let status = end["status"].as_str().unwrap();
    assert_eq!(name, format!("response.{status}"));
    assert_eq!(status == "completed", end["completed_at"].is_i64());
    assert_eq!(status == "incomplete", end["incomplete_details"].is_object());
    assert_eq!(status == "failed", end["error"].is_object());
    assert!(end["usage"].is_object());
    if status == "completed" {
        for item in &output {
            assert_ne!(item["status"], "incomplete", "{item}");
        }
        assert!(!output.is_empty(), "a completed Response without an item");
    }
    let ids: HashSet<&str> = items.iter().map(|item| &*item.id).collect();
    assert_eq!(ids.len(), items.len());
    let call_ids: Vec<&str> = output
        .iter()
        .filter_map(|item| item.get("call_id"))
        .map(|id| id.as_str().unwrap())
        .collect();
    assert!(call_ids.iter().all(|id| (1..=64).contains(&id.chars().count())), "{call_ids:?}");
    assert_eq!(call_ids.iter().collect::<HashSet<_>>().len(), call_ids.len(), "{call_ids:?}");
}
