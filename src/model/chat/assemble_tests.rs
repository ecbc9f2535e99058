use pretty_assertions::assert_eq;

use super::*;

/// `index id name arguments`, `-` for absent.
fn fragment(line: &str) -> Fragment<'_> {
    let parts: Vec<&str> = line.splitn(4, ' ').collect();
    let given = |at: usize| parts.get(at).copied().filter(|part| *part != "-");
    Fragment {
        index: given(0).map(|index| index.parse().unwrap()),
        id: given(1),
        name: given(2),
        arguments: given(3).map(WireText::from),
        data: None,
    }
}

/// The calls that chunks of fragments (joined by ` ; `) give: `id name arguments`.
fn calls(chunks: &[&str]) -> Vec<String> {
    let names = ["get_weather", "get_time", "get", "get_all"].map(str::to_owned).to_vec();
    let mut assembly = Assembly::new(names);
    let mut out = Vec::new();
    for chunk in chunks {
        assembly.push(chunk.split(" ; ").map(fragment).collect(), &mut out);
    }
    assert!(assembly.finish(&mut out), "{chunks:?}");
    let mut calls: Vec<String> = Vec::new();
    for delta in out {
        match delta {
            Delta::Call { position, id, name } => {
                assert_eq!(position as usize, calls.len(), "positions go up by first byte");
                calls.push(format!("{} {name} ", id.as_deref().unwrap_or("-")));
            }
            Delta::Arguments { position, piece } => {
                assert!(!piece.is_empty());
                calls[position as usize].push_str(&piece);
            }
            other => panic!("{other:?}"),
        }
    }
    calls
}

#[test]
fn every_way_of_numbering_and_naming() {
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "as documented",
            &["0 c1 get_weather -", "0 - - {\"a\"", "0 - - :1}", "1 c2 get_time {}"],
            &["c1 get_weather {\"a\":1}", "c2 get_time {}"],
        ),
        (
            "interleaved by index",
            &["0 a get_weather {", "1 b get_time {", "0 - - }", "1 - - }"],
            &["a get_weather {}", "b get_time {}"],
        ),
        (
            "all 0, whole",
            &["0 c1 get_weather {\"c\":1}", "0 c2 get_time {}", "0 c3 get_weather {}"],
            &["c1 get_weather {\"c\":1}", "c2 get_time {}", "c3 get_weather {}"],
        ),
        (
            "all 0, fragments, ids repeated",
            &["0 c1 get_weather {", "0 c1 - }", "0 c2 get_time {", "0 c2 - }"],
            &["c1 get_weather {}", "c2 get_time {}"],
        ),
        (
            "all 0, fragments, ids once",
            &["0 c1 get_weather {", "0 - - }", "0 c2 get_time {", "0 - - }"],
            &["c1 get_weather {}", "c2 get_time {}"],
        ),
        (
            "all 0, no ids",
            &["0 - get_weather {}", "0 - get_time {}", "0 - get_weather {}"],
            &["- get_weather {}", "- get_time {}", "- get_weather {}"],
        ),
        (
            "all 0, no ids, the same tool twice",
            &["0 - get_time {\"a\":1}", "0 - get_time {\"a\":2}"],
            &["- get_time {\"a\":1}", "- get_time {\"a\":2}"],
        ),
        (
            "all 0, no ids, fragments",
            &["0 - get_weather {", "0 - - }", "0 - get_time {", "0 - - }"],
            &["- get_weather {}", "- get_time {}"],
        ),
        (
            "all 0, no ids, no arguments",
            &["0 - get_weather -", "0 - get_time -"],
            &["- get_weather ", "- get_time "],
        ),
        (
            "no index, ids",
            &["- c1 get_weather {", "- c1 - }", "- c2 get_time {}"],
            &["c1 get_weather {}", "c2 get_time {}"],
        ),
        (
            "no index, ids once",
            &["- c1 get_weather {", "- - - }", "- c2 get_time {}"],
            &["c1 get_weather {}", "c2 get_time {}"],
        ),
        (
            "no index, no ids",
            &["- - get_weather {", "- - - }", "- - get_time {}"],
            &["- get_weather {}", "- get_time {}"],
        ),
        (
            "no index, one chunk",
            &["- - get_time {} ; - - get_time {}"],
            &["- get_time {}", "- get_time {}"],
        ),
        (
            "index 0, one chunk",
            &["0 a get_time {} ; 0 b get_time {}"],
            &["a get_time {}", "b get_time {}"],
        ),
        (
            "index from 1",
            &["1 a get_time {", "1 - - }", "2 b get_weather {}"],
            &["a get_time {}", "b get_weather {}"],
        ),
        (
            "name repeated",
            &["0 c1 get_weather {\"ci", "0 c1 get_weather ty\":1}"],
            &["c1 get_weather {\"city\":1}"],
        ),
        (
            "name repeated, no id",
            &["0 - get_weather {\"ci", "0 - get_weather ty\":1}"],
            &["- get_weather {\"city\":1}"],
        ),
        ("name in pieces", &["0 c1 get_ -", "0 - weather -", "0 - - {}"], &["c1 get_weather {}"]),
        (
            "name in pieces, id repeated",
            &["0 c1 get_ -", "0 c1 weather -", "0 c1 - {}"],
            &["c1 get_weather {}"],
        ),
        (
            "name in pieces, the first is a tool too",
            &["0 c1 get -", "0 - _weather -", "0 - - {}"],
            &["c1 get_weather {}"],
        ),
        ("name grows", &["0 c1 get_ -", "0 c1 get_weather -", "0 c1 - {}"], &["c1 get_weather {}"]),
        ("name is the beginning of another", &["0 c1 get -", "0 - - {}"], &["c1 get {}"]),
        ("name is the beginning of another, no arguments", &["0 c1 get -"], &["c1 get "]),
        ("unknown name in pieces", &["0 c1 look -", "0 - up -", "0 - - {}"], &["c1 lookup {}"]),
        (
            "shared id, other index",
            &["0 c get_time {}", "1 c get_time {\"a\":1}"],
            &["c get_time {}", "c get_time {\"a\":1}"],
        ),
        (
            "shared id, no index",
            &["- c get_time {\"a\":1}", "- c get_time {\"a\":2}"],
            &["c get_time {\"a\":1}", "c get_time {\"a\":2}"],
        ),
        ("an id per piece", &["0 x1 get_time {", "0 x2 - }"], &["x1 get_time {}"]),
        ("an index per piece", &["0 c get_time {", "1 c - }"], &["c get_time {}"]),
        ("id comes late", &["0 - get_time -", "0 c1 - {}"], &["- get_time {}"]),
        (
            "whole arguments repeated at the end",
            &["0 c1 get_time {\"a\"", "0 - - :1}", "0 - - {\"a\":1}"],
            &["c1 get_time {\"a\":1}"],
        ),
        ("garbage stays as it was written", &["0 c1 get_time {}", "0 - - }"], &["c1 get_time {}}"]),
    ];
    for (what, chunks, expected) in table {
        assert_eq!(calls(chunks), *expected, "{what}");
    }
}

#[test]
fn a_call_without_a_name_is_told() {
    let mut assembly = Assembly::new(Vec::new());
    let mut out = Vec::new();
    assembly.push(vec![fragment("0 c1 - {}")], &mut out);
    assert!(!assembly.finish(&mut out));
    assert_eq!(out, []);
}

#[test]
fn data_follows_the_call() {
    let mut assembly = Assembly::new(vec!["f".to_owned()]);
    let mut out = Vec::new();
    let data = Raw::parse(r#"{"google":{"thought_signature":"s"}}"#).unwrap();
    assembly.push(vec![Fragment { data: Some(data.clone()), ..fragment("0 c1 f {}") }], &mut out);
    let call = Delta::Call { position: 0, id: Some("c1".into()), name: "f".into() };
    let arguments = Delta::Arguments { position: 0, piece: "{}".into() };
    assert_eq!(out, [call, arguments, Delta::CallData { position: 0, data }]);
}

#[test]
fn shared_vectors_are_met() {
    use serde_json::{Value, json};

    use crate::text::{
        arguments::read,
        vectors::{report, vectors},
    };

    const FILE: &str = "json-args-normalise.json";
    let (mut asserted, mut informative) = (0, 0);
    for case in vectors(FILE, "accumulate") {
        if case.get("onyx_quirk").is_some() {
            informative += 1;
            continue;
        }
        let expected = case["expected"].as_array().unwrap();
        let names = expected.iter().map(|call| call["name"].as_str().unwrap().to_owned());
        let (mut assembly, mut out) = (Assembly::new(names.collect()), Vec::new());
        for delta in case["deltas"].as_array().unwrap() {
            let word = |value: &'_ Value| {
                value.as_str().filter(|word| !word.is_empty()).map(str::to_owned)
            };
            let (id, name) = (word(&delta["id"]), word(&delta["function"]["name"]));
            let arguments = word(&delta["function"]["arguments"]);
            let fragment = Fragment {
                index: delta["index"].as_u64(),
                id: id.as_deref(),
                name: name.as_deref(),
                arguments: arguments.as_deref().map(WireText::from),
                data: None,
            };
            assembly.push(vec![fragment], &mut out);
        }
        assembly.finish(&mut out);
        let mut found: Vec<(Value, Value, String)> = Vec::new();
        for delta in out {
            match delta {
                Delta::Call { id, name, .. } => {
                    let id = id.unwrap_or_else(|| "<generated>".to_owned());
                    found.push((json!(id), json!(name), String::new()));
                }
                Delta::Arguments { piece, .. } => found.last_mut().unwrap().2.push_str(&piece),
                other => panic!("{other:?}"),
            }
        }
        let found: Vec<Value> = found
            .into_iter()
            .map(|(id, name, written)| {
                // What cannot be read is told, where the original takes `{}`.
                let arguments = read(&written).map_or_else(|_| json!({}), Value::Object);
                json!([id, name, arguments])
            })
            .collect();
        let expected: Vec<Value> = expected
            .iter()
            .map(|call| json!([call["id"], call["name"], call["arguments"]]))
            .collect();
        assert_eq!(found, expected, "{case}");
        asserted += 1;
    }
    report(FILE, "accumulate", asserted, informative);
}
