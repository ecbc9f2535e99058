//! What is said: text, reasoning, refusals, ends. Each transcript begins after `created` and `in_progress`.

use insta::assert_snapshot;
use serde_json::json;

use super::{
    Delta, Finish, Next, Sealing,
    script::{ID, Stage, arguments, call, finish, reasoning, text, tokens, whole},
};
use crate::{
    protocol::{ApiError, ErrorKind, Event, Raw, content::Logprob},
    text::think::ThinkMode,
};

fn plain() -> Stage {
    Stage::new(&json!({}))
}

fn summaries() -> Stage {
    Stage::new(&json!({ "reasoning": { "effort": null, "summary": "auto" } }))
}

/// What is heard when the model says this in one Round and nothing is to be run.
fn heard(stage: Stage, deltas: impl IntoIterator<Item = Delta>) -> String {
    let mut script = stage.begin();
    assert_eq!(script.round(deltas), Next::Finish);
    script.transcript()
}

#[test]
fn begins_with_the_settings_and_no_usage() {
    let mut script = plain().begin();
    script.round([text("Hi")]);
    script.conclude();
    let Event::Created { response } = &script.events[0].event else { panic!() };
    assert_eq!((&*response.id, response.created_at, response.usage), (ID, 1000, None));
    assert_eq!(response.settings.model, "m");
}

#[test]
fn text_in_pieces() {
    let deltas = [text("Hel"), text("lo"), tokens(5), finish(Finish::Stop), text("not heard")];
    assert_snapshot!(heard(plain(), deltas), @r#"
    2 output_item.added 0 {"type":"message","id":"msg_00ab0000","status":"in_progress","role":"assistant","content":[]}
    3 content_part.added 0.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    4 output_text.delta 0.0 "Hel"
    5 output_text.delta 0.0 "lo"
    6 output_text.done 0.0 "Hello"
    7 content_part.done 0.0 {"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}
    8 output_item.done 0 {"type":"message","id":"msg_00ab0000","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[],"logprobs":[]}]}
    9 completed completed [msg_00ab0000]
    "#);
}

#[test]
fn usage_adds_up_over_rounds_and_a_later_one_replaces() {
    let mut script = plain().hosted(&["clock"]).begin();
    script.round_with_tools(
        whole(0, "c1", "clock", "{}").into_iter().chain([tokens(3), tokens(5)]),
        &[Ok("noon")],
    );
    script.round([text("Noon."), finish(Finish::Stop), tokens(7)]);
    let usage = script.conclude().usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (20, 12, 32));
}

#[test]
fn reasoning_then_text() {
    let deltas = [reasoning("\nhm"), reasoning(" so"), text("\n\n"), text("Yes")];
    assert_snapshot!(heard(plain(), deltas), @r#"
    2 output_item.added 0 {"type":"reasoning","id":"rs_00ab0000","status":"in_progress","summary":[]}
    3 content_part.added 0.0 {"type":"reasoning_text","text":""}
    4 reasoning_text.delta 0.0 "hm"
    5 reasoning_text.delta 0.0 " so"
    6 reasoning_text.done 0.0 "hm so"
    7 content_part.done 0.0 {"type":"reasoning_text","text":"hm so"}
    8 output_item.done 0 {"type":"reasoning","id":"rs_00ab0000","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"hm so"}]}
    9 output_item.added 1 {"type":"message","id":"msg_00ab0001","status":"in_progress","role":"assistant","content":[]}
    10 content_part.added 1.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    11 output_text.delta 1.0 "\n\nYes"
    12 output_text.done 1.0 "\n\nYes"
    13 content_part.done 1.0 {"type":"output_text","text":"\n\nYes","annotations":[],"logprobs":[]}
    14 output_item.done 1 {"type":"message","id":"msg_00ab0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"\n\nYes","annotations":[],"logprobs":[]}]}
    15 completed completed [rs_00ab0000 msg_00ab0001]
    "#);
}

#[test]
fn reasoning_as_a_summary_when_one_is_asked_for() {
    let deltas = [reasoning("hm"), reasoning(" so"), text("Yes")];
    assert_snapshot!(heard(summaries(), deltas), @r#"
    2 output_item.added 0 {"type":"reasoning","id":"rs_00ab0000","status":"in_progress","summary":[]}
    3 reasoning_summary_part.added 0.0 {"type":"summary_text","text":""}
    4 reasoning_summary_text.delta 0.0 "hm"
    5 reasoning_summary_text.delta 0.0 " so"
    6 reasoning_summary_text.done 0.0 "hm so"
    7 reasoning_summary_part.done 0.0 {"type":"summary_text","text":"hm so"}
    8 output_item.done 0 {"type":"reasoning","id":"rs_00ab0000","status":"completed","summary":[{"type":"summary_text","text":"hm so"}]}
    9 output_item.added 1 {"type":"message","id":"msg_00ab0001","status":"in_progress","role":"assistant","content":[]}
    10 content_part.added 1.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    11 output_text.delta 1.0 "Yes"
    12 output_text.done 1.0 "Yes"
    13 content_part.done 1.0 {"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}
    14 output_item.done 1 {"type":"message","id":"msg_00ab0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}]}
    15 completed completed [rs_00ab0000 msg_00ab0001]
    "#);
}

#[test]
fn summary_parts_of_the_backend() {
    let part = |part, text: &str| Delta::Summary { part, text: text.to_owned() };
    let deltas = [part(0, "**A**"), part(0, " a"), part(1, "**B**"), text("Yes")];
    assert_snapshot!(heard(plain(), deltas), @r#"
    2 output_item.added 0 {"type":"reasoning","id":"rs_00ab0000","status":"in_progress","summary":[]}
    3 reasoning_summary_part.added 0.0 {"type":"summary_text","text":""}
    4 reasoning_summary_text.delta 0.0 "**A**"
    5 reasoning_summary_text.delta 0.0 " a"
    6 reasoning_summary_text.done 0.0 "**A** a"
    7 reasoning_summary_part.done 0.0 {"type":"summary_text","text":"**A** a"}
    8 reasoning_summary_part.added 0.1 {"type":"summary_text","text":""}
    9 reasoning_summary_text.delta 0.1 "**B**"
    10 reasoning_summary_text.done 0.1 "**B**"
    11 reasoning_summary_part.done 0.1 {"type":"summary_text","text":"**B**"}
    12 output_item.done 0 {"type":"reasoning","id":"rs_00ab0000","status":"completed","summary":[{"type":"summary_text","text":"**A** a"},{"type":"summary_text","text":"**B**"}]}
    13 output_item.added 1 {"type":"message","id":"msg_00ab0001","status":"in_progress","role":"assistant","content":[]}
    14 content_part.added 1.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    15 output_text.delta 1.0 "Yes"
    16 output_text.done 1.0 "Yes"
    17 content_part.done 1.0 {"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}
    18 output_item.done 1 {"type":"message","id":"msg_00ab0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}]}
    19 completed completed [rs_00ab0000 msg_00ab0001]
    "#);
}

#[test]
fn open_responses_has_its_own_names_for_reasoning() {
    let stage = plain().with(|rules| rules.open_responses = true);
    assert_snapshot!(heard(stage, [reasoning("hm"), text("Yes")]), @r#"
    2 output_item.added 0 {"type":"reasoning","id":"rs_00ab0000","status":"in_progress","summary":[]}
    3 content_part.added 0.0 {"type":"reasoning_text","text":""}
    4 reasoning.delta 0.0 "hm"
    5 reasoning.done 0.0 "hm"
    6 content_part.done 0.0 {"type":"reasoning_text","text":"hm"}
    7 output_item.done 0 {"type":"reasoning","id":"rs_00ab0000","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}
    8 output_item.added 1 {"type":"message","id":"msg_00ab0001","status":"in_progress","role":"assistant","content":[]}
    9 content_part.added 1.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    10 output_text.delta 1.0 "Yes"
    11 output_text.done 1.0 "Yes"
    12 content_part.done 1.0 {"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}
    13 output_item.done 1 {"type":"message","id":"msg_00ab0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}]}
    14 completed completed [rs_00ab0000 msg_00ab0001]
    "#);
}

#[test]
fn sealed_reasoning_holds_text_and_what_the_backend_wants_back() {
    let seal: Sealing = std::sync::Arc::new(|text: &str| format!("sealed({text})"));
    let stage = plain().with(|rules| rules.seal = Some(seal));
    let data = Delta::ReasoningData(Raw::parse(r#"{"signature":"s"}"#).unwrap());
    assert_snapshot!(heard(stage, [reasoning("hm"), data, text("Yes")]), @r#"
    2 output_item.added 0 {"type":"reasoning","id":"rs_00ab0000","status":"in_progress","summary":[]}
    3 content_part.added 0.0 {"type":"reasoning_text","text":""}
    4 reasoning_text.delta 0.0 "hm"
    5 reasoning_text.done 0.0 "hm"
    6 content_part.done 0.0 {"type":"reasoning_text","text":"hm"}
    7 output_item.done 0 {"type":"reasoning","id":"rs_00ab0000","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":"sealed({\"text\":\"hm\",\"data\":{\"signature\":\"s\"}})"}
    8 output_item.added 1 {"type":"message","id":"msg_00ab0001","status":"in_progress","role":"assistant","content":[]}
    9 content_part.added 1.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    10 output_text.delta 1.0 "Yes"
    11 output_text.done 1.0 "Yes"
    12 content_part.done 1.0 {"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}
    13 output_item.done 1 {"type":"message","id":"msg_00ab0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}]}
    14 completed completed [rs_00ab0000 msg_00ab0001]
    "#);
}

#[test]
fn reasoning_that_is_not_shown_is_an_item_all_the_same() {
    let data = Delta::ReasoningData(Raw::parse(r#"{"signature":"s"}"#).unwrap());
    let mut script = plain().begin();
    script.round([data.clone(), text("Yes")]);
    let Delta::ReasoningData(data) = data else { panic!() };
    let kept = script.turn.items().find_map(|item| match &**item {
        crate::protocol::Item::Reasoning(reasoning) => reasoning.data.clone(),
        _ => None,
    });
    assert_eq!(kept, Some(data));
    assert_snapshot!(script.transcript(), @r#"
    2 output_item.added 0 {"type":"reasoning","id":"rs_00ab0000","status":"in_progress","summary":[]}
    3 output_item.done 0 {"type":"reasoning","id":"rs_00ab0000","status":"completed","summary":[]}
    4 output_item.added 1 {"type":"message","id":"msg_00ab0001","status":"in_progress","role":"assistant","content":[]}
    5 content_part.added 1.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    6 output_text.delta 1.0 "Yes"
    7 output_text.done 1.0 "Yes"
    8 content_part.done 1.0 {"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}
    9 output_item.done 1 {"type":"message","id":"msg_00ab0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}]}
    10 completed completed [rs_00ab0000 msg_00ab0001]
    "#);
}

#[test]
fn a_refusal_after_text_is_another_part() {
    let deltas = [text("Well, "), Delta::Refusal("I can".into()), Delta::Refusal("not.".into())];
    assert_snapshot!(heard(plain(), deltas), @r#"
    2 output_item.added 0 {"type":"message","id":"msg_00ab0000","status":"in_progress","role":"assistant","content":[]}
    3 content_part.added 0.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    4 output_text.delta 0.0 "Well, "
    5 output_text.done 0.0 "Well, "
    6 content_part.done 0.0 {"type":"output_text","text":"Well, ","annotations":[],"logprobs":[]}
    7 content_part.added 0.1 {"type":"refusal","refusal":""}
    8 refusal.delta 0.1 "I can"
    9 refusal.delta 0.1 "not."
    10 refusal.done 0.1 "I cannot."
    11 content_part.done 0.1 {"type":"refusal","refusal":"I cannot."}
    12 output_item.done 0 {"type":"message","id":"msg_00ab0000","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Well, ","annotations":[],"logprobs":[]},{"type":"refusal","refusal":"I cannot."}]}
    13 completed completed [msg_00ab0000]
    "#);
}

fn likely(text: &str, tokens: &[&str]) -> Delta {
    let logprob =
        |token: &&str| Logprob { token: (*token).to_owned(), logprob: -0.5, ..Logprob::default() };
    Delta::Text { text: text.to_owned(), logprobs: tokens.iter().map(logprob).collect() }
}

#[test]
fn logprobs_stay_with_their_text_where_the_client_asked() {
    let stage = plain().with(|rules| rules.logprobs = true);
    let deltas =
        [likely("\n", &["\n"]), likely("", &["<0xC3>"]), likely("\u{e9}!", &["<0xA9>", "!"])];
    assert_snapshot!(heard(stage, deltas), @r#"
    2 output_item.added 0 {"type":"message","id":"msg_00ab0000","status":"in_progress","role":"assistant","content":[]}
    3 content_part.added 0.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    4 output_text.delta 0.0 "\né!" [{"token":"\n","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"<0xC3>","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"<0xA9>","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"!","logprob":-0.5,"bytes":[],"top_logprobs":[]}]
    5 output_text.done 0.0 "\né!" [{"token":"\n","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"<0xC3>","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"<0xA9>","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"!","logprob":-0.5,"bytes":[],"top_logprobs":[]}]
    6 content_part.done 0.0 {"type":"output_text","text":"\né!","annotations":[],"logprobs":[{"token":"\n","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"<0xC3>","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"<0xA9>","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"!","logprob":-0.5,"bytes":[],"top_logprobs":[]}]}
    7 output_item.done 0 {"type":"message","id":"msg_00ab0000","status":"completed","role":"assistant","content":[{"type":"output_text","text":"\né!","annotations":[],"logprobs":[{"token":"\n","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"<0xC3>","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"<0xA9>","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":"!","logprob":-0.5,"bytes":[],"top_logprobs":[]}]}]}
    8 completed completed [msg_00ab0000]
    "#);
    let unasked = heard(plain(), [likely("a", &["a"])]);
    assert!(!unasked.contains("-0.5"), "{unasked}");
}

#[test]
fn logprobs_of_thinking_in_the_text_are_not_those_of_the_text() {
    let stage = plain().with(|rules| {
        rules.logprobs = true;
        rules.think = ThinkMode::On;
    });
    let deltas = [
        likely("<think>", &["<think>"]),
        likely("hm", &["hm"]),
        likely("</think>", &["</think>"]),
        likely("\n\n", &["\n\n"]),
        likely("Yes", &["Yes"]),
        likely(" <", &[" <"]),
    ];
    assert_snapshot!(heard(stage, deltas), @r#"
    2 output_item.added 0 {"type":"reasoning","id":"rs_00ab0000","status":"in_progress","summary":[]}
    3 content_part.added 0.0 {"type":"reasoning_text","text":""}
    4 reasoning_text.delta 0.0 "hm"
    5 reasoning_text.done 0.0 "hm"
    6 content_part.done 0.0 {"type":"reasoning_text","text":"hm"}
    7 output_item.done 0 {"type":"reasoning","id":"rs_00ab0000","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}
    8 output_item.added 1 {"type":"message","id":"msg_00ab0001","status":"in_progress","role":"assistant","content":[]}
    9 content_part.added 1.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    10 output_text.delta 1.0 "Yes" [{"token":"Yes","logprob":-0.5,"bytes":[],"top_logprobs":[]}]
    11 output_text.delta 1.0 " <" [{"token":" <","logprob":-0.5,"bytes":[],"top_logprobs":[]}]
    12 output_text.done 1.0 "Yes <" [{"token":"Yes","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":" <","logprob":-0.5,"bytes":[],"top_logprobs":[]}]
    13 content_part.done 1.0 {"type":"output_text","text":"Yes <","annotations":[],"logprobs":[{"token":"Yes","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":" <","logprob":-0.5,"bytes":[],"top_logprobs":[]}]}
    14 output_item.done 1 {"type":"message","id":"msg_00ab0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Yes <","annotations":[],"logprobs":[{"token":"Yes","logprob":-0.5,"bytes":[],"top_logprobs":[]},{"token":" <","logprob":-0.5,"bytes":[],"top_logprobs":[]}]}]}
    15 completed completed [rs_00ab0000 msg_00ab0001]
    "#);
}

#[test]
fn think_tags() {
    let said = || [text("<thi"), text("nk>\nhm"), text("\n</think>\n\n"), text("Yes <think>")];
    assert_snapshot!(heard(plain().with(|rules| rules.think = ThinkMode::On), said()), @r#"
    2 output_item.added 0 {"type":"reasoning","id":"rs_00ab0000","status":"in_progress","summary":[]}
    3 content_part.added 0.0 {"type":"reasoning_text","text":""}
    4 reasoning_text.delta 0.0 "hm"
    5 reasoning_text.done 0.0 "hm"
    6 content_part.done 0.0 {"type":"reasoning_text","text":"hm"}
    7 output_item.done 0 {"type":"reasoning","id":"rs_00ab0000","status":"completed","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}
    8 output_item.added 1 {"type":"message","id":"msg_00ab0001","status":"in_progress","role":"assistant","content":[]}
    9 content_part.added 1.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    10 output_text.delta 1.0 "Yes <think>"
    11 output_text.done 1.0 "Yes <think>"
    12 content_part.done 1.0 {"type":"output_text","text":"Yes <think>","annotations":[],"logprobs":[]}
    13 output_item.done 1 {"type":"message","id":"msg_00ab0001","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Yes <think>","annotations":[],"logprobs":[]}]}
    14 completed completed [rs_00ab0000 msg_00ab0001]
    "#);
    let open = [text("hm"), text("</think>Yes")];
    let open = heard(plain().with(|rules| rules.think = ThinkMode::OpenAtStart), open);
    assert!(open.contains("reasoning_text.done 0.0 \"hm\""), "{open}");
    assert!(open.contains("output_text.done 1.0 \"Yes\""), "{open}");
    let off = heard(plain(), said());
    assert!(
        off.contains(r#"output_text.done 0.0 "<think>\nhm\n</think>\n\nYes <think>""#),
        "{off}"
    );
}

#[test]
fn what_a_splitter_holds_back_is_heard_at_the_end() {
    let stage = plain().with(|rules| rules.think = ThinkMode::On);
    let heard = heard(stage, [text("<thi")]);
    assert!(heard.contains("output_text.done 0.0 \"<thi\""), "{heard}");
}

#[test]
fn nothing_said_is_an_empty_message() {
    assert_snapshot!(heard(plain(), []), @r#"
    2 output_item.added 0 {"type":"message","id":"msg_00ab0000","status":"in_progress","role":"assistant","content":[]}
    3 content_part.added 0.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    4 output_text.done 0.0 ""
    5 content_part.done 0.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    6 output_item.done 0 {"type":"message","id":"msg_00ab0000","status":"completed","role":"assistant","content":[{"type":"output_text","text":"","annotations":[],"logprobs":[]}]}
    7 completed completed [msg_00ab0000]
    "#);
}

#[test]
fn white_space_alone_is_said_only_where_nothing_else_is() {
    let blank = heard(plain(), [text("\n"), text("\n")]);
    assert!(blank.contains(r#"output_text.done 0.0 "\n\n""#), "{blank}");
    let before_a_call =
        [vec![text("\n\n")], whole(0, "c1", "f", "{}").to_vec(), vec![text("\n")]].concat();
    let before_a_call = heard(Stage::functions(&["f"]), before_a_call);
    assert!(!before_a_call.contains("message"), "{before_a_call}");
}

#[test]
fn a_limit_cuts_open_text() {
    assert_snapshot!(heard(plain(), [text("Hel"), finish(Finish::Length)]), @r#"
    2 output_item.added 0 {"type":"message","id":"msg_00ab0000","status":"in_progress","role":"assistant","content":[]}
    3 content_part.added 0.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    4 output_text.delta 0.0 "Hel"
    5 output_text.done 0.0 "Hel"
    6 content_part.done 0.0 {"type":"output_text","text":"Hel","annotations":[],"logprobs":[]}
    7 output_item.done 0 {"type":"message","id":"msg_00ab0000","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Hel","annotations":[],"logprobs":[]}]}
    8 incomplete incomplete [msg_00ab0000] {"reason":"max_output_tokens"}
    "#);
}

#[test]
fn a_filter_cuts_open_text() {
    let heard = heard(plain(), [text("Hel"), finish(Finish::ContentFilter)]);
    assert!(
        heard.ends_with("incomplete [msg_00ab0000] {\"reason\":\"content_filter\"}\n"),
        "{heard}"
    );
}

#[test]
fn a_limit_before_anything_is_said_leaves_nothing() {
    let heard = heard(plain(), [finish(Finish::Length)]);
    assert_eq!(heard, "2 incomplete incomplete [] {\"reason\":\"max_output_tokens\"}\n");
}

#[test]
fn the_token_limit_holds_over_rounds() {
    let stage = plain().hosted(&["clock"]).set("max_output_tokens", json!(100));
    let mut script = stage.begin();
    assert_eq!(script.turn.plan().max_output_tokens, Some(100));
    let asked = script.round_with_tools(
        whole(0, "c1", "clock", "{}").into_iter().chain([tokens(60)]),
        &[Ok("noon")],
    );
    assert_eq!((asked, script.turn.plan().max_output_tokens), (Next::Ask, Some(40)));
    let spent = script.round_with_tools(
        whole(0, "c2", "clock", "{}").into_iter().chain([tokens(40)]),
        &[Ok("one")],
    );
    assert_eq!(spent, Next::Finish);
    let heard = script.transcript();
    assert!(heard.ends_with("{\"reason\":\"max_output_tokens\"}\n"), "{heard}");
}

fn overloaded() -> ApiError {
    ApiError::new(ErrorKind::BadGateway, "The model did not answer.")
}

#[test]
fn fails_before_anything_is_said() {
    let mut script = plain().begin();
    script.fail(&overloaded());
    assert_snapshot!(script.transcript(), @r#"
    2 error  "server_error" "The model did not answer." null {"type":"server_error","code":"server_error","message":"The model did not answer.","param":null}
    3 failed failed [] {"code":"server_error","message":"The model did not answer."}
    "#);
}

#[test]
fn fails_in_the_middle_of_every_item() {
    let data = Raw::parse("{}").unwrap();
    for (open, items) in [
        (vec![text("Hel")], "msg_00ab0000"),
        (vec![Delta::Refusal("N".into())], "msg_00ab0000"),
        (vec![reasoning("h")], "rs_00ab0000"),
        (vec![Delta::ReasoningData(data)], "rs_00ab0000"),
        (vec![Delta::Summary { part: 0, text: "h".into() }], "rs_00ab0000"),
        (vec![call(0, "c", "f")], "fc_00ab0000"),
        (whole(0, "c", "f", "{\"a").to_vec(), "fc_00ab0000"),
        (whole(0, "c", "clock", "{\"a").to_vec(), "mcp_00ab0000"),
        (whole(0, "c", "shell", "{\"a").to_vec(), "sh_00ab0000"),
    ] {
        let stage = Stage::new(&json!({ "tools": [
            { "type": "function", "name": "f" }, { "type": "shell" },
        ] }));
        let mut script = stage.hosted(&["clock"]).begin();
        for delta in open.clone() {
            script.turn.feed(delta);
        }
        script.fail(&overloaded());
        script.turn.feed(text("not heard"));
        script.fail(&ApiError::server());
        let response = script.conclude();
        assert!(response.output.iter().all(|item| item.is_incomplete()), "{open:?}");
        assert_eq!(response.error.as_ref().unwrap().message, "The model did not answer.");
        let ids: Vec<&str> = response.output.iter().map(|item| item.id()).collect();
        assert_eq!(ids.join(" "), items, "{open:?}");
    }
}

#[test]
fn fails_while_tools_run() {
    let mut script = plain().hosted(&["clock"]).begin();
    script.round([vec![text("Wait.")], whole(0, "c", "clock", "{}").to_vec()].concat());
    script.fail(&overloaded());
    assert_snapshot!(script.transcript(), @r#"
    2 output_item.added 0 {"type":"message","id":"msg_00ab0000","status":"in_progress","role":"assistant","content":[]}
    3 content_part.added 0.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    4 output_text.delta 0.0 "Wait."
    5 output_text.done 0.0 "Wait."
    6 content_part.done 0.0 {"type":"output_text","text":"Wait.","annotations":[],"logprobs":[]}
    7 output_item.done 0 {"type":"message","id":"msg_00ab0000","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Wait.","annotations":[],"logprobs":[]}]}
    8 output_item.added 1 {"type":"mcp_call","id":"mcp_00ab0001","status":"in_progress","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"","output":null,"error":null}
    9 mcp_call.in_progress 1
    10 mcp_call_arguments.delta 1 "{}"
    11 mcp_call_arguments.done 1 "{}"
    12 output_item.done 1 {"type":"mcp_call","id":"mcp_00ab0001","status":"incomplete","approval_request_id":null,"server_label":"antiphon","name":"clock","arguments":"{}","output":null,"error":null}
    13 error  "server_error" "The model did not answer." null {"type":"server_error","code":"server_error","message":"The model did not answer.","param":null}
    14 failed failed [msg_00ab0000 mcp_00ab0001] {"code":"server_error","message":"The model did not answer."}
    "#);
}

#[test]
fn fails_after_all_is_said_because_it_cannot_be_kept() {
    let mut script = plain().begin();
    script.round([text("Yes"), finish(Finish::Length)]);
    script.turn.conclude(2000);
    script.fail(&ApiError::database_unavailable());
    assert_snapshot!(script.transcript(), @r#"
    2 output_item.added 0 {"type":"message","id":"msg_00ab0000","status":"in_progress","role":"assistant","content":[]}
    3 content_part.added 0.0 {"type":"output_text","text":"","annotations":[],"logprobs":[]}
    4 output_text.delta 0.0 "Yes"
    5 output_text.done 0.0 "Yes"
    6 content_part.done 0.0 {"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}
    7 output_item.done 0 {"type":"message","id":"msg_00ab0000","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Yes","annotations":[],"logprobs":[]}]}
    8 error  "server_error" "The database cannot be reached at the moment. Please try again shortly." null {"type":"server_error","code":"server_error","message":"The database cannot be reached at the moment. Please try again shortly.","param":null}
    9 failed failed [msg_00ab0000] {"code":"server_error","message":"The database cannot be reached at the moment. Please try again shortly."}
    "#);
}

#[test]
fn arguments_of_no_call_are_not_heard() {
    let heard = heard(plain(), [arguments(3, "{}"), text("Yes")]);
    assert!(heard.ends_with("completed [msg_00ab0000]\n"), "{heard}");
}
