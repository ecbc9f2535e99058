use insta::assert_snapshot;
use pretty_assertions::assert_eq;
use serde_json::json;

use crate::{
    protocol::{Extra, Item, Raw},
    turn::{
        ApprovedCall, HostedRef, HostedTarget, Next, Shape, ToolFailure, ToolOutcome, ToolOutput,
        script::{Stage, text, whole},
    },
};

fn stage() -> Stage {
    Stage::new(&json!({}))
        .shaped("web_search", |target| target.shape = Shape::Web)
        .shaped("generate_image", |target| {
            target.shape = Shape::Image;
            target.ends_loop = true;
        })
        .shaped("drop_table", |target| {
            target.tool.label = "db".to_owned();
            target.needs_approval = true;
        })
        .shaped("clock", |_| ())
}

fn with_fields(told: &str, fields: &[(&str, serde_json::Value)]) -> ToolOutput {
    let mut all = Extra::new();
    for (name, value) in fields {
        all.insert(name, value.clone());
    }
    ToolOutput { fields: all, ..ToolOutput::text(told) }
}

#[test]
fn a_search_shows_its_action_and_not_its_results() {
    let mut script = stage().begin();
    let Next::RunTools(calls) =
        script.round(whole(0, "c1", "web_search", r#"{"queries":["oslo"]}"#))
    else {
        panic!()
    };
    let action = json!({ "type": "search", "query": "oslo", "queries": ["oslo"] });
    let output = Ok(with_fields("[1] Oslo", &[("action", action)]));
    script.answer(vec![ToolOutcome { slot: calls[0].slot, output }]);
    let view = script.turn.items().find_map(|item| match &**item {
        Item::WebSearchCall(call) => call.view.clone(),
        _ => None,
    });
    let view = view.unwrap();
    assert_eq!((&*view.name, &*view.arguments), ("web_search", r#"{"queries":["oslo"]}"#));
    assert_eq!(view.told[0].text(), Some("[1] Oslo"));
    assert_snapshot!(script.transcript(), @r#"
    2 output_item.added 0 {"type":"web_search_call","id":"ws_00ab0000","status":"in_progress"}
    3 web_search_call.in_progress 0
    4 web_search_call.searching 0
    5 web_search_call.completed 0
    6 output_item.done 0 {"type":"web_search_call","id":"ws_00ab0000","status":"completed","action":{"type":"search","query":"oslo","queries":["oslo"]}}
    7 completed completed [ws_00ab0000]
    "#);
}

#[test]
fn a_picture_comes_in_pieces_and_ends_the_loop() {
    let mut script = stage().begin();
    let Next::RunTools(calls) = script.round(whole(0, "c1", "generate_image", "{}")) else {
        panic!()
    };
    script.turn.partial_image(calls[0].slot, 0, "aGFsZg==".to_owned());
    let output = Ok(with_fields("Shown.", &[("result", json!("d2hvbGU="))]));
    assert_eq!(script.answer(vec![ToolOutcome { slot: 0, output }]), Next::Ask);
    script.turn.partial_image(calls[0].slot, 1, "bGF0ZQ==".to_owned());
    assert!(!script.turn.plan().tools);
    assert_snapshot!(script.transcript(), @r#"
    2 output_item.added 0 {"type":"image_generation_call","id":"ig_00ab0000","status":"in_progress","result":null}
    3 image_generation_call.in_progress 0
    4 image_generation_call.generating 0
    5 image_generation_call.partial_image 0 0 "aGFsZg=="
    6 image_generation_call.completed 0
    7 output_item.done 0 {"type":"image_generation_call","id":"ig_00ab0000","status":"completed","result":"d2hvbGU="}
    8 completed completed [ig_00ab0000]
    "#);
}

#[test]
fn a_call_that_needs_consent_is_asked_for_and_the_others_run() {
    let mut script = stage().begin();
    let deltas =
        [whole(0, "c1", "clock", "{}"), whole(1, "c2", "drop_table", r#"{"name":"users"}"#)]
            .concat();
    assert_eq!(script.round_with_tools(deltas, &[Ok("noon")]), Next::Finish);
    assert_snapshot!(script.items(), @r#"
    {"type":"mcp_call","id":"mcp_00ab0000","status":"completed","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"{}","output":"noon","error":null}
    {"type":"mcp_approval_request","id":"mcpr_00ab0001","server_label":"db","name":"drop_table","arguments":"{\"name\":\"users\"}"}
    completed [mcp_00ab0000 mcpr_00ab0001]
    "#);
}

#[test]
fn an_approved_call_runs_before_the_model_is_asked() {
    let mut script = stage().begin();
    let target = HostedTarget {
        tool: HostedRef { label: "db".to_owned(), name: "drop_table".to_owned() },
        ..HostedTarget::own("")
    };
    let calls = vec![ApprovedCall {
        request_id: "mcpr_1".to_owned(),
        target,
        arguments: r#"{"name":"users"}"#.to_owned(),
    }];
    let Next::RunTools(calls) = script.turn.resume(calls) else { panic!() };
    assert_eq!(calls[0].arguments, r#"{"name":"users"}"#);
    assert_eq!(
        script.answer(vec![ToolOutcome { slot: 0, output: Ok(ToolOutput::text("gone")) }]),
        Next::Ask
    );
    script.round([text("Done.")]);
    assert_snapshot!(script.items(), @r#"
    {"type":"mcp_call","id":"mcp_00ab0000","status":"completed","approval_request_id":"mcpr_1","server_label":"db","name":"drop_table","arguments":"{\"name\":\"users\"}","output":"gone","error":null}
    {"type":"message","id":"msg_00ab0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Done.","annotations":[],"logprobs":[]}]}
    completed [mcp_00ab0000 msg_00ab0001]
    "#);
}

#[test]
fn an_outcome_is_heard_at_once_and_once() {
    let mut script = stage().begin();
    let deltas = [whole(0, "c1", "clock", "{}"), whole(1, "c2", "clock", "{}")].concat();
    script.round(deltas);
    let before = script.turn.items().count();
    script.turn.settle(ToolOutcome { slot: 1, output: Ok(ToolOutput::text("second")) });
    script.turn.settle(ToolOutcome { slot: 1, output: Ok(ToolOutput::text("again")) });
    assert_eq!(script.turn.items().count(), before + 1);
    script.turn.settle(ToolOutcome { slot: 0, output: Err(ToolFailure::new("no")) });
    assert_eq!(script.turn.answered(), Next::Ask);
    let outputs: Vec<Option<String>> = script
        .turn
        .items()
        .map(|item| match &**item {
            Item::McpCall(call) => call.output.clone(),
            _ => None,
        })
        .collect();
    assert_eq!(outputs, [None, Some("second".to_owned())]);
}

#[test]
fn what_only_the_model_sees_is_sealed_for_clients_that_keep_their_history() {
    let sealed = |output: ToolOutput| {
        let mut script = stage()
            .with(|rules| rules.seal_data = Some(std::sync::Arc::new(str::to_owned)))
            .begin();
        script.round(whole(0, "c1", "web_search", "{}"));
        script.answer(vec![ToolOutcome { slot: 0, output: Ok(output) }]);
        script.items()
    };
    let items = sealed(ToolOutput::text("found"));
    assert!(items.contains("found") && items.contains("encrypted_content"), "{items}");
    let large = sealed(ToolOutput::text("x".repeat(70_000)));
    assert!(!large.contains("encrypted_content"), "too large to carry");
}

#[test]
fn lists_of_tools_come_first_or_say_why_not() {
    let mut script = stage().begin();
    let (docs, shop) = (script.turn.list_tools("docs"), script.turn.list_tools("shop"));
    let tool = Raw::parse(r#"{"name":"search","input_schema":{}}"#).unwrap();
    script.turn.listed(shop, Err("refused".to_owned()), "terms".to_owned());
    script.turn.listed(docs, Ok(vec![tool]), "terms".to_owned());
    script.turn.listed(docs, Ok(Vec::new()), "twice".to_owned());
    script.round([text("Hi.")]);
    assert_snapshot!(script.transcript(), @r#"
    2 output_item.added 0 {"type":"mcp_list_tools","id":"mcpl_00ab0000","server_label":"docs","tools":[]}
    3 mcp_list_tools.in_progress 0
    4 output_item.added 1 {"type":"mcp_list_tools","id":"mcpl_00ab0001","server_label":"shop","tools":[]}
    5 mcp_list_tools.in_progress 1
    6 mcp_list_tools.failed 1
    7 output_item.done 1 {"type":"mcp_list_tools","id":"mcpl_00ab0001","server_label":"shop","tools":[],"error":"refused"}
    8 mcp_list_tools.completed 0
    9 output_item.done 0 {"type":"mcp_list_tools","id":"mcpl_00ab0000","server_label":"docs","tools":[{"name":"search","input_schema":{}}]}
    10 output_item.added 2 {"type":"message","id":"msg_00ab0002","status":"in_progress","role":"assistant","content":[]}
    11 content_part.added 2.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    12 output_text.delta 2.0 "Hi."
    13 output_text.done 2.0 "Hi."
    14 content_part.done 2.0 {"type":"output_text","text":"Hi.","annotations":[],"logprobs":[]}
    15 output_item.done 2 {"type":"message","id":"msg_00ab0002","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi.","annotations":[],"logprobs":[]}]}
    16 completed completed [mcpl_00ab0000 mcpl_00ab0001 msg_00ab0002]
    "#);
}

#[test]
fn a_failure_closes_lists_and_calls() {
    let mut script = stage().begin();
    script.turn.list_tools("docs");
    script.round(
        [
            whole(0, "c1", "web_search", "{}"),
            whole(1, "c2", "generate_image", "{}"),
            whole(2, "c3", "clock", "{}"),
        ]
        .concat(),
    );
    script.fail(&crate::protocol::ApiError::server());
    assert_snapshot!(script.items(), @r#"
    {"type":"mcp_list_tools","id":"mcpl_00ab0000","server_label":"docs","tools":[],"error":"The list was not waited for."}
    {"type":"web_search_call","id":"ws_00ab0001","status":"failed","action":{"type":"search","query":"","queries":[]}}
    {"type":"image_generation_call","id":"ig_00ab0002","status":"failed","result":null}
    {"type":"mcp_call","id":"mcp_00ab0003","status":"incomplete","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"{}","output":null,"error":null}
    failed [mcpl_00ab0000 ws_00ab0001 ig_00ab0002 mcp_00ab0003] {"code":"server_error","message":"The server had an error while processing your request. The log has the details under this request's id."}
    "#);
}
