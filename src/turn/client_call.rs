//! The client's tools that are no functions, as functions for the model and back.

use serde_json::{Map, Value, json};

use crate::protocol::{
    Extra, Item, ItemStatus, Tool,
    item::{ClientCall, ClientOutput},
};

use super::catalog::ClientKind;

/// The free text of a custom tool: `input`, or the only text there is, or all of it when the model wrote no JSON.
pub(super) fn free_text(arguments: &str) -> String {
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::String(text)) => text,
        Ok(Value::Object(fields)) => {
            let named = fields.get("input").and_then(Value::as_str);
            let mut texts = fields.values().filter_map(Value::as_str);
            match (named, texts.next(), texts.next()) {
                (Some(input), _, _) | (None, Some(input), None) => input.to_owned(),
                (None, None, _) if fields.is_empty() => String::new(),
                (None, _, _) => arguments.to_owned(),
            }
        }
        _ => arguments.to_owned(),
    }
}

/// As much of the free text as stands in arguments that were cut off.
pub(super) fn free_text_so_far(arguments: &str) -> String {
    if !arguments.trim_start().starts_with('{') {
        return free_text(arguments);
    }
    // The cut may have gone through an escape, `\uXXXX` at the longest, or through a key.
    (0..=6)
        .filter_map(|cut| arguments.get(..arguments.len().checked_sub(cut)?))
        .flat_map(|whole| [format!("{whole}\"}}"), format!("{whole}}}"), whole.to_owned()])
        .find_map(|json| serde_json::from_str::<Map<String, Value>>(&json).ok())
        .and_then(|fields| {
            let text = fields.get("input").or_else(|| fields.values().next())?;
            text.as_str().map(str::to_owned)
        })
        .unwrap_or_default()
}

/// The arguments that a custom tool's text was.
pub(super) fn free_text_arguments(input: &str) -> String {
    json!({ "input": input }).to_string()
}

/// Whether the arguments fit the tool; if not, a sentence for the model.
pub(super) fn check(kind: ClientKind, arguments: &str) -> Result<(), String> {
    let fields: Map<String, Value> = serde_json::from_str(arguments).map_err(|error| {
        format!("The arguments are not a JSON object: {error}. {}", example(kind))
    })?;
    let fits = match kind {
        ClientKind::LocalShell => words(&fields, &["command", "cmd"]).is_some(),
        ClientKind::Shell => words(&fields, &["commands", "command"]).is_some(),
        ClientKind::ApplyPatch => object(&fields, "operation").is_some_and(|operation| {
            operation.contains_key("type") && operation.contains_key("path")
        }),
        ClientKind::Computer => {
            object(&fields, "action").is_some_and(|action| action.contains_key("type"))
        }
        ClientKind::ToolSearch => true,
    };
    if fits { Ok(()) } else { Err(format!("The arguments do not fit. {}", example(kind))) }
}

/// The item of a call. `arguments` may be anything while it is being written.
pub(super) fn item(kind: ClientKind, call_id: &str, arguments: &str, tools: &[Tool]) -> Item {
    let fields: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
    let mut body = Extra::new();
    match kind {
        ClientKind::LocalShell => {
            let mut action = json!({
                "type": "exec",
                "command": words(&fields, &["command", "cmd"]).unwrap_or_default(),
                "env": object(&fields, "env").cloned().unwrap_or_default(),
            });
            copy(&fields, &mut action, &["working_directory", "timeout_ms", "user"]);
            body.insert("action", action);
        }
        ClientKind::Shell => {
            let commands = words(&fields, &["commands", "command"]).unwrap_or_default();
            let mut action =
                json!({ "commands": commands, "timeout_ms": null, "max_output_length": null });
            copy(&fields, &mut action, &["timeout_ms", "max_output_length"]);
            body.insert("action", action);
            body.insert("environment", environment(tools));
        }
        ClientKind::ApplyPatch => {
            let operation = object(&fields, "operation").cloned().unwrap_or_default();
            body.insert("operation", Value::Object(operation));
        }
        ClientKind::Computer => {
            let action = object(&fields, "action").cloned().unwrap_or_default();
            body.insert("action", Value::Object(action));
            body.insert("pending_safety_checks", json!([]));
        }
        ClientKind::ToolSearch => {
            body.insert("execution", "client".into());
            body.insert("arguments", Value::Object(fields));
        }
    }
    let call = ClientCall {
        status: Some(ItemStatus::Completed),
        call_id: call_id.to_owned(),
        body,
        ..ClientCall::default()
    };
    match kind {
        ClientKind::LocalShell => Item::LocalShellCall(call),
        ClientKind::Shell => Item::ShellCall(call),
        ClientKind::ApplyPatch => Item::ApplyPatchCall(call),
        ClientKind::Computer => Item::ComputerCall(call),
        ClientKind::ToolSearch => Item::ToolSearchCall(call),
    }
}

/// The arguments that a call of the history had.
pub(super) fn arguments(kind: ClientKind, call: &ClientCall) -> String {
    let field = |name: &str| call.body.get(name).cloned();
    match kind {
        ClientKind::LocalShell | ClientKind::Shell => {
            let mut action = field("action").unwrap_or_else(|| json!({}));
            if let Some(fields) = action.as_object_mut() {
                // What `item` added to the model's words.
                fields.shift_remove("type");
                fields.retain(|_, value| !value.is_null() && *value != json!({}));
            }
            action.to_string()
        }
        ClientKind::ApplyPatch => json!({ "operation": field("operation") }).to_string(),
        ClientKind::Computer => {
            let actions = field("action").or_else(|| field("actions"));
            json!({ "action": actions }).to_string()
        }
        ClientKind::ToolSearch => field("arguments").unwrap_or_else(|| json!({})).to_string(),
    }
}

/// What such a call returned, as text for the model.
pub(super) fn output_text(output: &ClientOutput) -> String {
    let field = ["output", "tools", "result"].iter().find_map(|name| output.body.get(name));
    match field {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) if parts.iter().all(|part| part.get("stdout").is_some()) => {
            parts.iter().map(shell_part).collect::<Vec<_>>().join("\n")
        }
        Some(value) => value.to_string(),
        None => match output.status {
            Some(ItemStatus::Failed) => "failed".to_owned(),
            _ => "done".to_owned(),
        },
    }
}

/// The picture that a computer call returned.
pub(super) fn output_image(output: &ClientOutput) -> Option<&str> {
    output.body.get("output")?.get("image_url")?.as_str()
}

fn shell_part(part: &Value) -> String {
    let text = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
    let outcome = part.get("outcome").map(Value::to_string).unwrap_or_default();
    let (stdout, stderr) = (text("stdout"), text("stderr"));
    match stderr {
        "" => format!("{stdout}\n{outcome}"),
        stderr => format!("{stdout}\n{stderr}\n{outcome}"),
    }
}

fn environment(tools: &[Tool]) -> Value {
    let given = tools.iter().find_map(|tool| match tool {
        Tool::Shell(tool) => tool.extra.get("environment"),
        _ => None,
    });
    match given.and_then(|environment| environment.get("container_id")) {
        Some(id) => json!({ "type": "container_reference", "container_id": id }),
        None => json!({ "type": "local" }),
    }
}

fn object<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    fields.get(name)?.as_object()
}

/// A list of texts under one of these names; a lone text counts as a list of one.
fn words(fields: &Map<String, Value>, names: &[&str]) -> Option<Vec<String>> {
    match names.iter().find_map(|name| fields.get(*name))? {
        Value::String(word) => Some(vec![word.clone()]),
        Value::Array(words) => words.iter().map(|word| word.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

fn copy(from: &Map<String, Value>, to: &mut Value, names: &[&str]) {
    for name in names {
        if let Some(value) = from.get(*name).filter(|value| !value.is_null()) {
            to[*name] = value.clone();
        }
    }
}

fn example(kind: ClientKind) -> &'static str {
    match kind {
        ClientKind::LocalShell => r#"A right example: {"command":["ls","-l"]}"#,
        ClientKind::Shell => r#"A right example: {"commands":["ls -l"]}"#,
        ClientKind::ApplyPatch => {
            r#"A right example: {"operation":{"type":"create_file","path":"a.txt","diff":"+hello"}}"#
        }
        ClientKind::Computer => r#"A right example: {"action":{"type":"screenshot"}}"#,
        ClientKind::ToolSearch => r#"A right example: {"query":"read a file"}"#,
    }
}

#[cfg(test)]
#[path = "client_call_tests.rs"]
mod tests;
