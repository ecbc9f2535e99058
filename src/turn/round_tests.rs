//! What is called, and who answers it. Each transcript begins after `created` and `in_progress`.

use insta::assert_snapshot;
use serde_json::json;

use super::{
    Delta, Finish, Next, ToolCall, ToolFailure, ToolOutcome, ToolOutput,
    choice::FirstChoice,
    script::{Stage, arguments, call, finish, kinds, reasoning, text, whole},
};

fn functions() -> Stage {
    Stage::functions(&["f", "g"])
}

/// What is heard when the model says this in one Round and nothing is to be run.
fn heard(stage: Stage, deltas: impl IntoIterator<Item = Delta>) -> String {
    let mut script = stage.begin();
    assert_eq!(script.round(deltas), Next::Finish);
    script.transcript()
}

/// The items of that.
fn items(stage: Stage, deltas: impl IntoIterator<Item = Delta>) -> String {
    let mut script = stage.begin();
    assert_eq!(script.round(deltas), Next::Finish);
    script.items()
}

#[test]
fn a_function_call_in_pieces() {
    let deltas = [
        call(0, "c1", "f"),
        arguments(0, ""),
        arguments(0, "{\"a\""),
        arguments(0, ":1}"),
        finish(Finish::Stop),
    ];
    assert_snapshot!(heard(functions(), deltas), @r#"
    2 output_item.added 0 {"type":"function_call","id":"fc_00ab0000","status":"in_progress","call_id":"c1","name":"f","arguments":""}
    3 function_call_arguments.delta 0 "{\"a\""
    4 function_call_arguments.delta 0 ":1}"
    5 function_call_arguments.done 0 "f" "{\"a\":1}"
    6 output_item.done 0 {"type":"function_call","id":"fc_00ab0000","status":"completed","call_id":"c1","name":"f","arguments":"{\"a\":1}"}
    7 completed completed [fc_00ab0000]
    "#);
}

#[test]
fn arguments_that_are_nothing() {
    for nothing in [vec![], vec![arguments(0, " \n")], vec![arguments(0, "nu"), arguments(0, "ll")]]
    {
        let heard = heard(functions(), [vec![call(0, "c1", "f")], nothing].concat());
        assert!(heard.contains("3 function_call_arguments.delta 0 \"{}\"\n"), "{heard}");
        assert!(heard.contains("4 function_call_arguments.done 0 \"f\" \"{}\"\n"), "{heard}");
    }
    let odd = heard(functions(), whole(0, "c1", "f", "nul"));
    assert!(odd.contains("4 function_call_arguments.done 0 \"f\" \"nul\"\n"), "{odd}");
}

#[test]
fn two_calls_that_interleave_by_position() {
    let deltas = [
        call(0, "c1", "f"),
        arguments(0, "{\"a\""),
        call(1, "c2", "g"),
        arguments(1, "{\"b\""),
        arguments(0, ":1}"),
        arguments(1, ":2}"),
    ];
    assert_snapshot!(heard(functions(), deltas), @r#"
    2 output_item.added 0 {"type":"function_call","id":"fc_00ab0000","status":"in_progress","call_id":"c1","name":"f","arguments":""}
    3 function_call_arguments.delta 0 "{\"a\""
    4 function_call_arguments.delta 0 ":1}"
    5 function_call_arguments.done 0 "f" "{\"a\":1}"
    6 output_item.done 0 {"type":"function_call","id":"fc_00ab0000","status":"completed","call_id":"c1","name":"f","arguments":"{\"a\":1}"}
    7 output_item.added 1 {"type":"function_call","id":"fc_00ab0001","status":"in_progress","call_id":"c2","name":"g","arguments":""}
    8 function_call_arguments.delta 1 "{\"b\""
    9 function_call_arguments.delta 1 ":2}"
    10 function_call_arguments.done 1 "g" "{\"b\":2}"
    11 output_item.done 1 {"type":"function_call","id":"fc_00ab0001","status":"completed","call_id":"c2","name":"g","arguments":"{\"b\":2}"}
    12 completed completed [fc_00ab0000 fc_00ab0001]
    "#);
}

#[test]
fn the_rest_of_held_arguments_comes_after_other_held_things() {
    let deltas = [
        call(0, "c1", "f"),
        arguments(0, "{"),
        call(1, "c2", "g"),
        text("Hm."),
        arguments(1, "{\"b\""),
        arguments(0, "}"),
        arguments(1, ":2}"),
        text(" Done."),
    ];
    assert_snapshot!(items(functions(), deltas), @r#"
    {"type":"function_call","id":"fc_00ab0000","status":"completed","call_id":"c1","name":"f","arguments":"{}"}
    {"type":"function_call","id":"fc_00ab0001","status":"completed","call_id":"c2","name":"g","arguments":"{\"b\":2}"}
    {"type":"message","id":"msg_00ab0002","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hm. Done.","annotations":[],"logprobs":[]}]}
    completed [fc_00ab0000 fc_00ab0001 msg_00ab0002]
    "#);
}

#[test]
fn reasoning_in_the_middle_of_a_call() {
    let deltas = [
        call(0, "c1", "f"),
        arguments(0, "{\"a\":"),
        reasoning("hm"),
        arguments(0, "1}"),
        text("Done."),
    ];
    assert_snapshot!(heard(functions(), deltas), @r#"
    2 output_item.added 0 {"type":"function_call","id":"fc_00ab0000","status":"in_progress","call_id":"c1","name":"f","arguments":""}
    3 function_call_arguments.delta 0 "{\"a\":"
    4 function_call_arguments.delta 0 "1}"
    5 function_call_arguments.done 0 "f" "{\"a\":1}"
    6 output_item.done 0 {"type":"function_call","id":"fc_00ab0000","status":"completed","call_id":"c1","name":"f","arguments":"{\"a\":1}"}
    7 output_item.added 1 {"type":"reasoning","id":"rs_00ab0001","status":"in_progress","summary":[]}
    8 content_part.added 1.0 {"type":"reasoning_text","text":""}
    9 reasoning_text.delta 1.0 "hm"
    10 reasoning_text.done 1.0 "hm"
    11 content_part.done 1.0 {"type":"reasoning_text","text":"hm"}
    12 output_item.done 1 {"type":"reasoning","id":"rs_00ab0001","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}
    13 output_item.added 2 {"type":"message","id":"msg_00ab0002","status":"in_progress","role":"assistant","content":[]}
    14 content_part.added 2.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    15 output_text.delta 2.0 "Done."
    16 output_text.done 2.0 "Done."
    17 content_part.done 2.0 {"type":"output_text","text":"Done.","annotations":[],"logprobs":[]}
    18 output_item.done 2 {"type":"message","id":"msg_00ab0002","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Done.","annotations":[],"logprobs":[]}]}
    19 completed completed [fc_00ab0000 rs_00ab0001 msg_00ab0002]
    "#);
}

#[test]
fn text_call_text() {
    let deltas =
        [vec![text("Let me see. ")], whole(0, "c1", "f", "{}").to_vec(), vec![text("Done.")]]
            .concat();
    assert_snapshot!(items(functions(), deltas), @r#"
    {"type":"message","id":"msg_00ab0000","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Let me see. ","annotations":[],"logprobs":[]}]}
    {"type":"function_call","id":"fc_00ab0001","status":"completed","call_id":"c1","name":"f","arguments":"{}"}
    {"type":"message","id":"msg_00ab0002","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Done.","annotations":[],"logprobs":[]}]}
    completed [msg_00ab0000 fc_00ab0001 msg_00ab0002]
    "#);
}

#[test]
fn calls_that_share_an_id_are_told_apart_and_doubles_dropped() {
    let deltas = [
        whole(0, "c", "f", "{\"a\":1}"),
        whole(1, "c", "f", "{\"a\":2}"),
        whole(2, "c", "f", "{\"a\":1} "),
        whole(3, "", "f", "{\"a\":1}"),
        whole(4, "", "f", "{\"a\":1}"),
    ]
    .concat();
    assert_snapshot!(items(functions(), deltas), @r#"
    {"type":"function_call","id":"fc_00ab0000","status":"completed","call_id":"c","name":"f","arguments":"{\"a\":1}"}
    {"type":"function_call","id":"fc_00ab0001","status":"completed","call_id":"call_00ab0001","name":"f","arguments":"{\"a\":2}"}
    {"type":"function_call","id":"fc_00ab0002","status":"completed","call_id":"call_00ab0002","name":"f","arguments":"{\"a\":1}"}
    {"type":"function_call","id":"fc_00ab0003","status":"completed","call_id":"call_00ab0003","name":"f","arguments":"{\"a\":1}"}
    completed [fc_00ab0000 fc_00ab0001 fc_00ab0002 fc_00ab0003]
    "#);
}

#[test]
fn ids_that_cannot_be_used_are_replaced() {
    let stage = functions().with(|rules| {
        rules.used_call_ids.insert("old".to_owned());
    });
    let long = "x".repeat(65);
    let deltas = [whole(0, "old", "f", "{}"), whole(1, &long, "g", "{}")].concat();
    assert_snapshot!(items(stage, deltas), @r#"
    {"type":"function_call","id":"fc_00ab0000","status":"completed","call_id":"call_00ab0000","name":"f","arguments":"{}"}
    {"type":"function_call","id":"fc_00ab0001","status":"completed","call_id":"call_00ab0001","name":"g","arguments":"{}"}
    completed [fc_00ab0000 fc_00ab0001]
    "#);
}

#[test]
fn one_call_only_where_parallel_calls_are_not_wanted() {
    let deltas = [
        whole(0, "c1", "f", "{}").to_vec(),
        whole(1, "c2", "g", "{}").to_vec(),
        vec![text("Done.")],
    ]
    .concat();
    let items = items(functions().set("parallel_tool_calls", json!(false)), deltas);
    assert!(items.ends_with("completed [fc_00ab0000 msg_00ab0001]"), "{items}");
}

#[test]
fn an_unknown_name_goes_to_a_client_that_has_functions() {
    let items = items(functions(), whole(0, "c1", "nobody", "{}"));
    assert!(
        items.contains(r#""type":"function_call","#) && items.contains(r#""name":"nobody""#),
        "{items}"
    );
}

#[test]
fn an_unknown_name_is_told_to_the_model_where_the_client_has_none() {
    let mut script = Stage::new(&json!({})).hosted(&["clock"]).begin();
    assert_eq!(script.round_with_tools(whole(0, "c1", "nobody", "{\"a\":1}"), &[]), Next::Ask);
    script.round([text("Then not.")]);
    assert_snapshot!(script.items(), @r#"
    {"type":"mcp_call","id":"mcp_00ab0000","status":"failed","approval_request_id":null,"server_label":"antiphon","name":"nobody","arguments":"{\"a\":1}","output":null,"error":{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"There is no tool named `nobody`. You may call `clock`."}]}}
    {"type":"message","id":"msg_00ab0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Then not.","annotations":[],"logprobs":[]}]}
    completed [mcp_00ab0000 msg_00ab0001]
    "#);
}

#[test]
fn only_allowed_tools_are_called() {
    let allowed = json!({ "type": "allowed_tools", "mode": "auto", "tools": [{ "type": "function", "name": "f" }] });
    let mut script = functions().set("tool_choice", allowed).begin();
    let deltas = [whole(0, "c1", "g", "{}"), whole(1, "c2", "nobody", "{}")].concat();
    assert_eq!(script.round_with_tools(deltas, &[]), Next::Ask);
    script.round(whole(0, "c1", "f", "{}"));
    assert_snapshot!(script.items(), @r#"
    {"type":"mcp_call","id":"mcp_00ab0000","status":"failed","approval_request_id":null,"server_label":"antiphon","name":"g","arguments":"{}","output":null,"error":{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"The tool `g` may not be called now. You may call `f`."}]}}
    {"type":"mcp_call","id":"mcp_00ab0001","status":"failed","approval_request_id":null,"server_label":"antiphon","name":"nobody","arguments":"{}","output":null,"error":{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"There is no tool named `nobody`. You may call `f`."}]}}
    {"type":"function_call","id":"fc_00ab0002","status":"completed","call_id":"call_00ab0002","name":"f","arguments":"{}"}
    completed [mcp_00ab0000 mcp_00ab0001 fc_00ab0002]
    "#);
}

#[test]
fn a_hosted_call_and_the_answer_from_it() {
    let mut script = Stage::new(&json!({})).hosted(&["clock"]).begin();
    let deltas = [call(0, "c1", "clock"), arguments(0, "{\"zone\""), arguments(0, ":\"UTC\"}")];
    assert_eq!(script.round_with_tools(deltas, &[Ok("noon")]), Next::Ask);
    assert_eq!(script.round([text("Noon.")]), Next::Finish);
    assert_snapshot!(script.transcript(), @r#"
    2 output_item.added 0 {"type":"mcp_call","id":"mcp_00ab0000","status":"in_progress","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"","output":null,"error":null}
    3 mcp_call.in_progress 0
    4 mcp_call_arguments.delta 0 "{\"zone\""
    5 mcp_call_arguments.delta 0 ":\"UTC\"}"
    6 mcp_call_arguments.done 0 "{\"zone\":\"UTC\"}"
    7 mcp_call.completed 0
    8 output_item.done 0 {"type":"mcp_call","id":"mcp_00ab0000","status":"completed","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"{\"zone\":\"UTC\"}","output":"noon","error":null}
    9 output_item.added 1 {"type":"message","id":"msg_00ab0001","status":"in_progress","role":"assistant","content":[]}
    10 content_part.added 1.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    11 output_text.delta 1.0 "Noon."
    12 output_text.done 1.0 "Noon."
    13 content_part.done 1.0 {"type":"output_text","text":"Noon.","annotations":[],"logprobs":[]}
    14 output_item.done 1 {"type":"message","id":"msg_00ab0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Noon.","annotations":[],"logprobs":[]}]}
    15 completed completed [mcp_00ab0000 msg_00ab0001]
    "#);
}

#[test]
fn hosted_calls_in_parallel_one_of_which_fails() {
    let mut script = Stage::new(&json!({})).hosted(&["clock", "dice"]).begin();
    let deltas = [whole(0, "c1", "clock", "{}"), whole(1, "c2", "dice", "{}")].concat();
    let Next::RunTools(calls) = script.round(deltas) else { panic!() };
    let names: Vec<(usize, &str)> =
        calls.iter().map(|ToolCall { slot, tool, .. }| (*slot, &*tool.name)).collect();
    assert_eq!(names, [(0, "clock"), (1, "dice")]);
    // Outcomes in any order, one for a call that is not, one twice.
    let outcome = |slot, output: Result<&str, &str>| ToolOutcome {
        slot,
        output: output.map(ToolOutput::text).map_err(ToolFailure::new),
    };
    let next = script.answer(vec![
        outcome(1, Err("no dice")),
        outcome(9, Ok("?")),
        outcome(0, Ok("noon")),
        outcome(0, Ok("one")),
    ]);
    assert_eq!(next, Next::Ask);
    script.round([text("Noon.")]);
    assert_snapshot!(script.items(), @r#"
    {"type":"mcp_call","id":"mcp_00ab0000","status":"completed","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"{}","output":"noon","error":null}
    {"type":"mcp_call","id":"mcp_00ab0001","status":"failed","approval_request_id":null,"server_label":"antiphon","name":"dice","arguments":"{}","output":null,"error":{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"no dice"}]}}
    {"type":"message","id":"msg_00ab0002","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Noon.","annotations":[],"logprobs":[]}]}
    completed [mcp_00ab0000 mcp_00ab0001 msg_00ab0002]
    "#);
}

#[test]
fn a_call_without_an_outcome_has_failed() {
    let mut script = Stage::new(&json!({})).hosted(&["clock"]).begin();
    script.round(whole(0, "c1", "clock", "{}"));
    script.answer(Vec::new());
    script.round([text("Hm.")]);
    let items = script.items();
    assert!(items.contains("The tool gave no answer."), "{items}");
}

#[test]
fn hosted_calls_run_before_the_clients_are_handed_over() {
    let mut script = functions().hosted(&["clock"]).begin();
    let deltas = [whole(0, "c1", "clock", "{}"), whole(1, "c2", "f", "{}")].concat();
    assert_eq!(script.round_with_tools(deltas, &[Ok("noon")]), Next::Finish);
    assert_snapshot!(script.transcript(), @r#"
    2 output_item.added 0 {"type":"mcp_call","id":"mcp_00ab0000","status":"in_progress","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"","output":null,"error":null}
    3 mcp_call.in_progress 0
    4 mcp_call_arguments.delta 0 "{}"
    5 mcp_call_arguments.done 0 "{}"
    6 output_item.added 1 {"type":"function_call","id":"fc_00ab0001","status":"in_progress","call_id":"c2","name":"f","arguments":""}
    7 function_call_arguments.delta 1 "{}"
    8 function_call_arguments.done 1 "f" "{}"
    9 output_item.done 1 {"type":"function_call","id":"fc_00ab0001","status":"completed","call_id":"c2","name":"f","arguments":"{}"}
    10 mcp_call.completed 0
    11 output_item.done 0 {"type":"mcp_call","id":"mcp_00ab0000","status":"completed","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"{}","output":"noon","error":null}
    12 completed completed [mcp_00ab0000 fc_00ab0001]
    "#);
}

#[test]
fn max_tool_calls_counts_over_rounds() {
    let stage = Stage::new(&json!({ "max_tool_calls": 2 })).hosted(&["clock"]);
    let mut script = stage.begin();
    let two = |a| [whole(0, a, "clock", "{}"), whole(1, "", "clock", "{}")].concat();
    assert_eq!(script.round_with_tools(whole(0, "c0", "clock", "{}"), &[Ok("1")]), Next::Ask);
    assert_eq!(script.turn.plan().choice, FirstChoice::Auto);
    assert_eq!(script.round_with_tools(two("c1"), &[Ok("2")]), Next::Ask);
    assert_eq!(script.turn.plan().choice, FirstChoice::None);
    assert_eq!(script.round_with_tools(two("c2"), &[]), Next::Ask);
    script.round([text("Two.")]);
    let response = script.conclude();
    assert_eq!(kinds(&response)["mcp_call"], 5);
    let refused = serde_json::to_string(&*response).unwrap().matches("(`max_tool_calls`)").count();
    assert_eq!(refused, 3);
}

#[test]
fn the_last_round_offers_no_tools_and_runs_none() {
    let stage = Stage::new(&json!({})).hosted(&["clock"]).with(|rules| rules.max_rounds = 2);
    let mut script = stage.begin();
    assert!(script.turn.plan().tools);
    assert_eq!(script.round_with_tools(whole(0, "c1", "clock", "{}"), &[Ok("noon")]), Next::Ask);
    assert!(!script.turn.plan().tools);
    assert_eq!(script.round_with_tools(whole(0, "c1", "clock", "{}"), &[]), Next::Finish);
    assert_snapshot!(script.items(), @r#"
    {"type":"mcp_call","id":"mcp_00ab0000","status":"completed","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"{}","output":"noon","error":null}
    {"type":"mcp_call","id":"mcp_00ab0001","status":"failed","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"{}","output":null,"error":{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"The limit of steps for this answer is reached, so this was not run."}]}}
    incomplete [mcp_00ab0000 mcp_00ab0001] {"reason":"max_output_tokens"}
    "#);
}

#[test]
fn a_forced_choice_holds_for_the_first_round() {
    let stage = Stage::new(&json!({ "tool_choice": "required" })).hosted(&["clock"]);
    let mut script = stage.begin();
    assert_eq!(script.turn.plan().choice, FirstChoice::Required);
    script.round_with_tools(whole(0, "c1", "clock", "{}"), &[Ok("noon")]);
    assert_eq!(script.turn.plan().choice, FirstChoice::Auto);
}

#[test]
fn a_limit_cuts_half_a_call_and_spares_whole_ones() {
    let cut = |deltas: Vec<Delta>, why| {
        items(functions().hosted(&["clock"]), deltas.into_iter().chain([finish(why)]))
    };
    let half = [whole(0, "c1", "f", "{\"a\":1}"), whole(1, "c2", "g", "{\"b\"")].concat();
    assert_snapshot!(cut(half, Finish::Length), @r#"
    {"type":"function_call","id":"fc_00ab0000","status":"completed","call_id":"c1","name":"f","arguments":"{\"a\":1}"}
    {"type":"function_call","id":"fc_00ab0001","status":"incomplete","call_id":"c2","name":"g","arguments":"{\"b\""}
    incomplete [fc_00ab0000 fc_00ab0001] {"reason":"max_output_tokens"}
    "#);
    let hosted = [whole(0, "c1", "clock", "{}"), whole(1, "c2", "clock", "{\"a")].concat();
    assert_snapshot!(cut(hosted, Finish::ContentFilter), @r#"
    {"type":"mcp_call","id":"mcp_00ab0000","status":"incomplete","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"{}","output":null,"error":null}
    {"type":"mcp_call","id":"mcp_00ab0001","status":"incomplete","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"{\"a","output":null,"error":null}
    incomplete [mcp_00ab0000 mcp_00ab0001] {"reason":"content_filter"}
    "#);
}
