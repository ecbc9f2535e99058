//! Calls of the client's tools that are no plain functions. Each transcript begins after `created` and `in_progress`.

use insta::assert_snapshot;
use serde_json::json;

use crate::turn::{
    Delta, Finish, Next,
    script::{Script, Stage, arguments, call, finish, whole},
};

fn offers(tools: &serde_json::Value) -> Stage {
    Stage::new(&json!({ "tools": tools }))
}

/// The model says this in one Round, and nothing is to be run.
fn played(stage: Stage, deltas: impl IntoIterator<Item = Delta>) -> Script {
    let mut script = stage.begin();
    assert_eq!(script.round(deltas), Next::Finish);
    script
}

fn heard(stage: Stage, deltas: impl IntoIterator<Item = Delta>) -> String {
    played(stage, deltas).transcript()
}

fn items(stage: Stage, deltas: impl IntoIterator<Item = Delta>) -> String {
    played(stage, deltas).items()
}

#[test]
fn a_custom_tool_gets_plain_text() {
    let custom = || offers(&json!([{ "type": "custom", "name": "patch" }]));
    let deltas = [
        call(0, "c1", "patch"),
        arguments(0, "{\"input\":\"*** A\\n+h\\u00"),
        arguments(0, "e9 \\\"q\\\"\"}"),
    ];
    assert_snapshot!(heard(custom(), deltas), @r#"
    2 output_item.added 0 {"type":"custom_tool_call","id":"ctc_00ab0000","status":"in_progress","call_id":"c1","name":"patch","input":""}
    3 custom_tool_call_input.delta 0 "*** A\n+h"
    4 custom_tool_call_input.delta 0 "é \"q\""
    5 custom_tool_call_input.done 0 "*** A\n+hé \"q\""
    6 output_item.done 0 {"type":"custom_tool_call","id":"ctc_00ab0000","status":"completed","call_id":"c1","name":"patch","input":"*** A\n+hé \"q\""}
    7 completed completed [ctc_00ab0000]
    "#);
    for (arguments, input) in [
        (r#"{"patch":"x"}"#, "x"),
        ("*** A\n+h\u{e9} \"q\"", "*** A\n+h\u{e9} \"q\""),
        (r#""x""#, "x"),
        ("n", "n"),
        ("null", ""),
        ("{}", ""),
        (r#"{"a":"x","b":"y"}"#, r#"{"a":"x","b":"y"}"#),
    ] {
        let items = items(custom(), whole(0, "c1", "patch", arguments));
        assert!(items.contains(&format!("\"input\":{}", json!(input))), "{arguments}: {items}");
    }
}

#[test]
fn a_custom_tool_call_that_was_cut_keeps_what_came() {
    for (arguments, input) in [
        ("", ""),
        ("{", ""),
        ("{\"in", ""),
        ("{\"input\":", ""),
        ("{\"input\":\"", ""),
        ("{\"input\":\"ab", "ab"),
        ("{\"input\":\"ab\\", "ab"),
        ("{\"input\":\"ab\\u00e", "ab"),
        ("{\"input\":\"ab\u{e9}", "ab\u{e9}"),
        ("{\"input\":\"ab\"", "ab"),
        ("*** A", "*** A"),
    ] {
        let stage = offers(&json!([{ "type": "custom", "name": "patch" }]));
        let cut = whole(0, "c1", "patch", arguments).into_iter().chain([finish(Finish::Length)]);
        let items = items(stage, cut);
        assert!(items.contains(&format!("\"input\":{}", json!(input))), "{arguments}: {items}");
        assert!(items.contains("\"status\":\"incomplete\""), "{items}");
    }
}

#[test]
fn a_tool_of_a_namespace_keeps_its_name() {
    let stage = offers(&json!([{ "type": "namespace", "name": "crm", "tools": [
        { "type": "function", "name": "find" }, { "type": "custom", "name": "write" },
    ] }]));
    let deltas = [
        whole(0, "c1", "crm__find", "{\"a\":1}"),
        whole(1, "c2", "crm__write", "{\"input\":\"x\"}"),
    ]
    .concat();
    assert_snapshot!(items(stage, deltas), @r#"
    {"type":"function_call","id":"fc_00ab0000","status":"completed","call_id":"c1","name":"find","arguments":"{\"a\":1}","namespace":"crm"}
    {"type":"custom_tool_call","id":"ctc_00ab0001","status":"completed","call_id":"c2","name":"write","input":"x","namespace":"crm"}
    completed [fc_00ab0000 ctc_00ab0001]
    "#);
}

fn client_tools() -> Stage {
    offers(&json!([
        { "type": "local_shell" }, { "type": "shell" }, { "type": "apply_patch" }, { "type": "computer" },
        { "type": "tool_search" },
    ]))
}

#[test]
fn tools_of_the_client_with_items_of_their_own() {
    let deltas = [
        whole(0, "c1", "local_shell", r#"{"command":["ls","-l"],"working_directory":"/"}"#),
        whole(1, "c2", "shell", r#"{"commands":["ls"],"timeout_ms":5}"#),
        whole(2, "c3", "apply_patch", r#"{"operation":{"type":"delete_file","path":"a"}}"#),
        whole(3, "c4", "computer", r#"{"action":{"type":"click","x":1,"y":2}}"#),
        whole(4, "c5", "tool_search", r#"{"query":"q"}"#),
    ]
    .concat();
    assert_snapshot!(items(client_tools(), deltas), @r#"
    {"type":"local_shell_call","id":"lsh_00ab0000","status":"completed","call_id":"c1","action":{"type":"exec","command":["ls","-l"],"env":{},"working_directory":"/"}}
    {"type":"shell_call","id":"sh_00ab0001","status":"completed","call_id":"c2","action":{"commands":["ls"],"timeout_ms":5,"max_output_length":null},"environment":{"type":"local"}}
    {"type":"apply_patch_call","id":"apc_00ab0002","status":"completed","call_id":"c3","operation":{"type":"delete_file","path":"a"}}
    {"type":"computer_call","id":"cu_00ab0003","status":"completed","call_id":"c4","action":{"type":"click","x":1,"y":2},"pending_safety_checks":[]}
    {"type":"tool_search_call","id":"tsc_00ab0004","status":"completed","call_id":"c5","execution":"client","arguments":{"query":"q"}}
    completed [lsh_00ab0000 sh_00ab0001 apc_00ab0002 cu_00ab0003 tsc_00ab0004]
    "#);
}

#[test]
fn arguments_that_do_not_fit_go_back_to_the_model() {
    let mut script = client_tools().begin();
    let next = script.round_with_tools(whole(0, "c1", "shell", r#"{"cmd":1}"#), &[]);
    assert_eq!(next, Next::Ask);
    script.round(whole(0, "c1", "shell", r#"{"commands":"ls"}"#));
    assert_snapshot!(script.transcript(), @r#"
    2 output_item.added 0 {"type":"mcp_call","id":"mcp_00ab0000","status":"in_progress","approval_request_id":null,"server_label":"antiphon","name":"shell","arguments":"","output":null,"error":null}
    3 mcp_call.in_progress 0
    4 mcp_call_arguments.delta 0 "{\"cmd\":1}"
    5 mcp_call_arguments.done 0 "{\"cmd\":1}"
    6 mcp_call.failed 0
    7 output_item.done 0 {"type":"mcp_call","id":"mcp_00ab0000","status":"failed","approval_request_id":null,"server_label":"antiphon","name":"shell","arguments":"{\"cmd\":1}","output":null,"error":{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"The arguments do not fit. A right example: {\"commands\":[\"ls -l\"]}"}]}}
    8 output_item.added 1 {"type":"shell_call","id":"sh_00ab0001","status":"in_progress","call_id":"call_00ab0001","action":{"commands":["ls"],"timeout_ms":null,"max_output_length":null},"environment":{"type":"local"}}
    9 output_item.done 1 {"type":"shell_call","id":"sh_00ab0001","status":"completed","call_id":"call_00ab0001","action":{"commands":["ls"],"timeout_ms":null,"max_output_length":null},"environment":{"type":"local"}}
    10 completed completed [mcp_00ab0000 sh_00ab0001]
    "#);
}

#[test]
fn arguments_that_fit_no_tool() {
    for (name, wrong) in [
        ("local_shell", "{}"),
        ("local_shell", r#"{"command":[1]}"#),
        ("shell", "ls"),
        ("apply_patch", r#"{"operation":{"type":"delete_file"}}"#),
        ("computer", r#"{"action":"wait"}"#),
        ("tool_search", "[]"),
    ] {
        let mut script = client_tools().begin();
        assert_eq!(script.round_with_tools(whole(0, "c", name, wrong), &[]), Next::Ask, "{name}");
        let items = script.items();
        assert!(items.contains("A right example: {"), "{items}");
    }
}
