use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use crate::text::vectors::{report, vectors};

use super::*;

fn list_of(tool: &str) -> Option<&'static str> {
    match tool {
        "internal_search" | "web_search" => Some("queries"),
        "open_url" => Some("urls"),
        _ => None,
    }
}

fn batched(calls: &[(&str, Value)]) -> Vec<Batch> {
    let calls: Vec<Asked<'_>> = calls
        .iter()
        .map(|(tool, arguments)| Asked {
            tool,
            list: list_of(tool),
            arguments: arguments.as_object().unwrap(),
        })
        .collect();
    batches(&calls)
}

/// Per batch: the arguments of its run, and for each call what it asked for.
fn shown(calls: &[(&str, Value)]) -> Value {
    let batches = batched(calls);
    let members = |batch: &Batch| -> Value {
        let members = batch.members.iter();
        members
            .map(|member| json!([member.call, batch.values_of(member).collect::<Vec<_>>()]))
            .collect()
    };
    batches.iter().map(|batch| json!([batch.arguments, members(batch)])).collect()
}

#[test]
fn each_call_knows_what_it_asked_for() {
    assert_eq!(
        shown(&[
            ("web_search", json!({"queries": ["a", "b"]})),
            ("clock", json!({"zone": "UTC"})),
            ("web_search", json!({"queries": ["b", "c", "a"]})),
            ("clock", json!({"zone": "UTC"})),
            ("web_search", json!({"queries": "d"})),
        ]),
        json!([
            [{"queries": ["a", "b", "c", "d"]}, [[0, ["a", "b"]], [2, ["b", "c", "a"]], [4, ["d"]]]],
            [{"zone": "UTC"}, [[1, []]]],
            [{"zone": "UTC"}, [[3, []]]],
        ])
    );
}

#[test]
fn only_calls_with_the_same_options_go_together() {
    assert_eq!(
        shown(&[
            ("web_search", json!({"queries": ["a"], "days": 7, "site": "x"})),
            ("web_search", json!({"queries": ["b"]})),
            ("web_search", json!({"site": "x", "days": 7, "queries": ["c"]})),
            ("open_url", json!({"urls": ["b"]})),
        ]),
        json!([
            [{"queries": ["a", "c"], "days": 7, "site": "x"}, [[0, ["a"]], [2, ["c"]]]],
            [{"queries": ["b"]}, [[1, ["b"]]]],
            [{"urls": ["b"]}, [[3, ["b"]]]],
        ])
    );
}

#[test]
fn what_is_no_text_goes_alone_and_whole() {
    assert_eq!(
        shown(&[
            ("web_search", json!({"queries": [{"q": "x"}, "y"]})),
            ("web_search", json!({"queries": ["w"]})),
            ("web_search", json!({"queries": 5})),
        ]),
        json!([
            [{"queries": [{"q": "x"}, "y"]}, [[0, []]]],
            [{"queries": ["w"]}, [[1, ["w"]]]],
            [{"queries": 5}, [[2, []]]],
        ])
    );
}

#[test]
fn vectors_are_met() {
    const FILE: &str = "merge_calls.json";
    let (mut asserted, mut informative) = (0, 0);
    for case in vectors(FILE, "cases") {
        let right = match (case.get("recommended"), case.get("onyx_quirk")) {
            (Some(recommended), _) if recommended.is_array() => recommended,
            (_, None) => &case["expected"],
            (_, Some(_)) => {
                informative += 1;
                continue;
            }
        };
        let called = case["calls"].as_array().unwrap();
        let calls: Vec<(&str, Value)> = called
            .iter()
            .map(|call| (call["name"].as_str().unwrap(), call["arguments"].clone()))
            .collect();
        let batches = batched(&calls);
        let found: Vec<Value> = batches
            .iter()
            .map(|batch| json!([calls[batch.members[0].call].0, batch.arguments]))
            .collect();
        let expected: Vec<Value> = right
            .as_array()
            .unwrap()
            .iter()
            .map(|call| json!([call["name"], call["arguments"]]))
            .collect();
        assert_eq!(found, expected, "{case}");
        // Every call is answered, once.
        let mut answered: Vec<usize> =
            batches.iter().flat_map(|b| &b.members).map(|member| member.call).collect();
        answered.sort_unstable();
        assert_eq!(answered, (0..calls.len()).collect::<Vec<_>>(), "{case}");
        asserted += 1;
    }
    assert!(asserted > 8, "{asserted} asserted");
    report(FILE, "cases", asserted, informative);
}

proptest! {
    /// Nothing is lost, whatever is asked: each call is in one batch and finds there what it asked for.
    #[test]
    fn every_call_is_in_one_batch(calls in prop::collection::vec((
        prop::sample::select(vec!["web_search", "open_url", "clock"]),
        prop::sample::select(vec![
            json!({}), json!({"queries": ["a"]}), json!({"queries": ["b", "a", "a"]}), json!({"queries": "c"}), json!({"queries": null}),
            json!({"queries": [1]}), json!({"queries": ["a"], "n": 1}), json!({"urls": ["a", ""]}),
        ]),
    ), 0..8)) {
        let batches = batched(&calls);
        let mut answered: Vec<usize> = batches.iter().flat_map(|b| &b.members).map(|m| m.call).collect();
        let firsts: Vec<usize> = batches.iter().map(|batch| batch.members[0].call).collect();
        prop_assert!(firsts.is_sorted());
        answered.sort_unstable();
        prop_assert_eq!(answered, (0..calls.len()).collect::<Vec<_>>());
        for batch in &batches {
            for member in &batch.members {
                let (tool, arguments) = &calls[member.call];
                prop_assert_eq!(*tool, calls[batch.members[0].call].0);
                let asked = list_of(tool).and_then(|list| texts(arguments.get(list)));
                prop_assert_eq!(batch.values_of(member).collect::<Vec<_>>(), asked.unwrap_or_default());
            }
        }
    }
}
