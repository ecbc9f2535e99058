use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::*;

/// Reads an item and writes it back.
fn again(item: &Value) -> Value {
    let item: Item = serde_json::from_str(&item.to_string()).unwrap();
    serde_json::to_value(item).unwrap()
}

#[test]
fn items_are_read_leniently_and_written_in_full() {
    for (read, written) in [
        (
            json!({"role":"user","content":"hi"}),
            json!({"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}),
        ),
        (
            json!({"role":"assistant","content":"hi","id":null,"status":null,"phase":null}),
            json!({"type":"message","role":"assistant",
                "content":[{"type":"output_text","text":"hi","annotations":[],"logprobs":[]}]}),
        ),
        (
            json!({"type":"reasoning","id":"rs_x","summary":[],"content":null,"encrypted_content":null,"status":null}),
            json!({"type":"reasoning","id":"rs_x","summary":[]}),
        ),
        (
            json!({"type":"function_call","call_id":"c","name":"f","arguments":"{}","async":true}),
            json!({"type":"function_call","call_id":"c","name":"f","arguments":"{}","async":true}),
        ),
        (
            json!({"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]}),
            json!({"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]}),
        ),
        (json!({"id":"msg_1"}), json!({"type":"item_reference","id":"msg_1"})),
        (
            json!({"type":"web_search_call","id":"ws_1","status":"odd","action":{"type":"dance"}}),
            json!({"type":"web_search_call","id":"ws_1","action":{"type":"dance"}}),
        ),
        (json!({"type":"acme:thing","z":1,"a":[2]}), json!({"type":"acme:thing","z":1,"a":[2]})),
    ] {
        assert_eq!(again(&read), written);
    }
}

#[test]
fn json_keeps_its_bytes() {
    let schema = r#"{"z": 1.0, "a": 1e3, "n": 12345678901234567890123}"#;
    let tool = format!(r#"{{"type":"function","name":"f","parameters":{schema}}}"#);
    let tool: Tool = serde_json::from_str(&tool).unwrap();
    assert!(serde_json::to_string(&tool).unwrap().contains(schema));
}

#[test]
fn a_function_tool_is_echoed_with_all_its_keys() {
    let tool: Tool = serde_json::from_str(r#"{"type":"function","name":"f"}"#).unwrap();
    let echo =
        r#"{"type":"function","name":"f","description":null,"parameters":null,"strict":false}"#;
    assert_eq!(serde_json::to_string(&tool).unwrap(), echo);
}

#[test]
fn tool_choices_keep_their_form() {
    for choice in [
        r#""required""#,
        r#"{"type":"function","name":"f"}"#,
        r#"{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}"#,
        r#"{"type":"file_search"}"#,
    ] {
        let read: ToolChoice = serde_json::from_str(choice).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), choice);
    }
    assert!(serde_json::from_str::<ToolChoice>(r#""sometimes""#).is_err());
}

#[test]
fn a_wrong_field_is_named_by_its_path() {
    for (body, param, code) in [
        (r#"{"model":"m"}"#, "input", "missing_required_parameter"),
        (r#"{"model":1,"input":"x"}"#, "model", "invalid_type"),
        (r#"{"model":"m","input":"x","temperature":3}"#, "temperature", "decimal_above_max_value"),
        (r#"{"model":"m","input":"x","temperature":"hot"}"#, "temperature", "invalid_type"),
        (
            r#"{"model":"m","input":"x","max_output_tokens":0}"#,
            "max_output_tokens",
            "integer_below_min_value",
        ),
        (r#"{"model":"m","input":7}"#, "input", "invalid_type"),
        (
            r#"{"model":"m","input":[{"role":"robot","content":"x"}]}"#,
            "input[0].role",
            "invalid_value",
        ),
        (r#"{"model":"m","input":["a"]}"#, "input[0]", "invalid_type"),
        (
            r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text"}]}]}"#,
            "input[0].content[0].text",
            "missing_required_parameter",
        ),
        (
            r#"{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":5}]}]}"#,
            "input[0].content[0].text",
            "invalid_type",
        ),
        (
            r#"{"model":"m","input":[{"type":"function_call","name":"f","arguments":"{}"}]}"#,
            "input[0].call_id",
            "missing_required_parameter",
        ),
        (
            r#"{"model":"m","input":[{"content":"x"}]}"#,
            "input[0].type",
            "missing_required_parameter",
        ),
        (
            r#"{"model":"m","input":"x","tools":[{"type":"function"}]}"#,
            "tools[0].name",
            "missing_required_parameter",
        ),
        (
            r#"{"model":"m","input":"x","tools":[{"type":"function","name":"a b"}]}"#,
            "tools[0].name",
            "invalid_value",
        ),
        (
            r#"{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"n"}}}"#,
            "text.format.schema",
            "missing_required_parameter",
        ),
        (r#"{"model":"m","input":"x","prompt":{"id":"p"}}"#, "prompt", "unsupported_parameter"),
        (r#"{"model":"m","input":"x","metadata":{"k":1}}"#, "metadata.k", "invalid_type"),
        (
            r#"{"model":"m","input":"x","previous_response_id":"resp_1","conversation":"conv_1"}"#,
            "previous_response_id",
            "invalid_value",
        ),
    ] {
        let error = CreateResponse::parse(body).unwrap_err();
        assert_eq!(
            (error.param.as_deref(), error.code),
            (Some(param), Some(code)),
            "{body}: {error}"
        );
        assert_eq!(error.kind, ErrorKind::InvalidRequest);
    }
}

#[test]
fn nulls_are_absence_and_unknown_fields_are_kept_aside() {
    let request = CreateResponse::parse(
        r#"{"model":"m","input":"x","store":null,"tools":null,"temperature":null,"stream_options":{},"surprise":1}"#,
    )
    .unwrap();
    assert!(request.store);
    assert_eq!(request.unknown, ["surprise"]);
}

#[test]
fn event_names_are_those_of_the_published_table() {
    let table = include_str!("../../tests/schemas/events.tsv");
    let known: Vec<&str> = table.lines().filter_map(|line| line.split('\t').next()).collect();
    for name in Event::NAMES {
        assert!(known.contains(name), "{name}");
    }
}

#[test]
fn an_event_is_one_flat_object() {
    let event = Numbered {
        sequence_number: 4,
        event: Event::McpCallCompleted { item_id: "mcp_1".into(), output_index: 2 },
    };
    let json = r#"{"type":"response.mcp_call.completed","sequence_number":4,"item_id":"mcp_1","output_index":2}"#;
    assert_eq!(serde_json::to_string(&event).unwrap(), json);
}

#[test]
fn an_item_of_unknown_type_has_an_id_like_any_other() {
    let named: Item = serde_json::from_str(r#"{"type":"nope","id":"nope_1"}"#).unwrap();
    assert_eq!(named.id(), "nope_1");
    for nameless in [
        r#"{"type":"nope","b":1e2,"a":[ ]}"#,
        r#"{"type":"nope","id":null,"b":1e2,"a":[ ]}"#,
        r#"{"type":"nope","id":7,"b":1e2,"a":[ ]}"#,
    ] {
        let mut item: Item = serde_json::from_str(nameless).unwrap();
        assert_eq!(item.id(), "");
        item.set_id("item_1".to_owned());
        assert_eq!(item.id(), "item_1");
        let json = r#"{"id":"item_1","type":"nope","b":1e2,"a":[ ]}"#;
        assert_eq!(serde_json::to_string(&item).unwrap(), json);
    }
}

#[test]
fn no_sentence_holds_a_name_of_this_house() {
    for body in [
        r#"{"model":"m","input":[[]]}"#,
        r#"{"model":"m","input":"x","conversation":{}}"#,
        r#"{"model":"m","input":"x","conversation":5}"#,
        r#"{"model":"m","input":"x","reasoning":"x"}"#,
        r#"{"model":"m","input":"x","temperature":"hot"}"#,
        r#"{"model":"m","input":"x","max_output_tokens":1.5}"#,
        r#"{"model":"m","input":"x","metadata":[]}"#,
        r#"{"model":"m","input":"x","tools":{}}"#,
    ] {
        let message = CreateResponse::parse(body).unwrap_err().message;
        for word in ["struct", "enum", "f64", "i64", "sequence", "a map"] {
            assert!(!message.contains(word), "{body}: {message}");
        }
    }
}
