//! What must hold of a history before a model is shown it.

use std::collections::{HashMap, HashSet};

use crate::protocol::{ApiError, Item, ItemStatus};

use super::catalog::ClientKind;

/// The id that pairs a call with its output, for calls that the client answers.
pub fn open_call_id(item: &Item) -> Option<&str> {
    if item.status() == Some(ItemStatus::Incomplete) {
        return None;
    }
    match item {
        Item::FunctionCall(call) => Some(&call.call_id),
        Item::CustomToolCall(call) => Some(&call.call_id),
        Item::LocalShellCall(call)
        | Item::ShellCall(call)
        | Item::ApplyPatchCall(call)
        | Item::ComputerCall(call)
        | Item::ToolSearchCall(call) => {
            Some(&call.call_id).filter(|id| !id.is_empty()).map(String::as_str)
        }
        _ => None,
    }
}

/// The id of the call that an output answers.
pub fn answered_call_id(item: &Item) -> Option<&str> {
    match item {
        Item::FunctionCallOutput(output) | Item::CustomToolCallOutput(output) => {
            Some(&output.call_id)
        }
        Item::LocalShellCallOutput(output)
        | Item::ShellCallOutput(output)
        | Item::ApplyPatchCallOutput(output)
        | Item::ComputerCallOutput(output)
        | Item::ToolSearchOutput(output) => {
            Some(if output.call_id.is_empty() { &output.id } else { &output.call_id })
        }
        _ => None,
    }
}

/// The client's kind of a call item.
pub(super) fn client_kind(item: &Item) -> Option<ClientKind> {
    match item {
        Item::LocalShellCall(_) => Some(ClientKind::LocalShell),
        Item::ShellCall(_) => Some(ClientKind::Shell),
        Item::ApplyPatchCall(_) => Some(ClientKind::ApplyPatch),
        Item::ComputerCall(_) => Some(ClientKind::Computer),
        Item::ToolSearchCall(_) => Some(ClientKind::ToolSearch),
        _ => None,
    }
}

/// Checks that calls and outputs pair up, and gives the call ids in use. With `repair`, a call without output is let through: the model is
/// then told that it was not executed.
pub fn check<'a>(
    items: impl Iterator<Item = &'a Item> + Clone,
    repair: bool,
) -> Result<HashSet<String>, ApiError> {
    let mut calls: HashMap<&str, &Item> = HashMap::new();
    for item in items.clone() {
        if let Some(call_id) = open_call_id(item) {
            calls.insert(call_id, item);
        }
    }
    let mut answered = HashSet::new();
    for item in items.clone() {
        let Some(call_id) = answered_call_id(item) else { continue };
        if !calls.contains_key(call_id) {
            return Err(ApiError::invalid(
                "input",
                format!("No tool call found for function call output with call_id {call_id}."),
            ));
        }
        answered.insert(call_id);
    }
    if !repair {
        let unanswered = items
            .filter_map(|item| match item {
                Item::FunctionCall(_) | Item::CustomToolCall(_) => open_call_id(item),
                _ => None,
            })
            .find(|call_id| !answered.contains(call_id));
        if let Some(call_id) = unanswered {
            return Err(ApiError::invalid(
                "input",
                format!("No tool output found for function call {call_id}."),
            ));
        }
    }
    Ok(calls.into_keys().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(json: &str) -> Vec<Item> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn only_functions_and_custom_tools_must_be_answered() {
        let shell = r#"{"type":"local_shell_call","id":"lsh","call_id":"a","action":{}}"#;
        let custom = r#"{"type":"custom_tool_call","call_id":"a","name":"p","input":"x"}"#;
        let shell_output = r#"{"type":"local_shell_call_output","id":"a","output":"x"}"#;
        let custom_output = r#"{"type":"custom_tool_call_output","call_id":"a","output":"x"}"#;
        let approval = r#"{"type":"mcp_approval_request","id":"r","server_label":"s","name":"t","arguments":"{}"}"#;
        for (history, passes) in [
            (vec![shell], true),
            (vec![shell, shell_output], true),
            (vec![shell_output], false),
            (vec![custom], false),
            (vec![custom, custom_output], true),
            (vec![approval], true),
        ] {
            let items = items(&format!("[{}]", history.join(",")));
            assert_eq!(check(items.iter(), false).is_ok(), passes, "{history:?}");
        }
    }

    #[test]
    fn calls_and_outputs_pair_up() {
        let call = |id: &str| {
            format!(r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{{}}"}}"#)
        };
        let cut = r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{","status":"incomplete"}"#;
        let output = |id: &str| {
            format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"x"}}"#)
        };
        for (history, repair, verdict) in [
            (vec![call("a"), output("a")], false, Ok(1)),
            (vec![output("a"), call("a")], false, Ok(1)),
            (vec![call("a")], false, Err("No tool output found for function call a.")),
            (vec![call("a")], true, Ok(1)),
            (vec![cut.to_owned()], false, Ok(0)),
            (
                vec![output("b")],
                true,
                Err("No tool call found for function call output with call_id b."),
            ),
        ] {
            let items = items(&format!("[{}]", history.join(",")));
            let found = check(items.iter(), repair).map(|ids| ids.len()).map_err(|e| e.message);
            assert_eq!(found, verdict.map_err(str::to_owned), "{history:?}");
        }
    }
}
