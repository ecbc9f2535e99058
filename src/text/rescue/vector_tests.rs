//! The readers and the stage against the shared vectors, as their README says which values are right.

use std::{fs, path::PathBuf, sync::Arc};

use serde_json::{Value, json};

use super::{KnownTool, Reading, Rescue, Said, Tools, WrittenCall, guess, json, objects};
use crate::{
    protocol::Raw,
    text::markup::{Channel, Markup, Segment},
};

#[expect(clippy::disallowed_methods, reason = "a test may be pointed at another folder of vectors")]
fn file(name: &str) -> Value {
    let folder = std::env::var_os("ANTIPHON_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"),
        PathBuf::from,
    );
    serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
}

/// The cases of a section with what is right for each; nothing where a case only informs.
fn cases(file: &Value, section: &str) -> Vec<(Value, Option<Value>)> {
    let mut cases = file[section].as_array().unwrap().clone();
    cases.retain(|case| case.get("not_asked").is_none());
    let right = |case: &Value| match case.get("recommended") {
        Some(value) if section == "cases" && value.is_string() && case.get("chunks").is_none() => {
            case.get("expected").cloned()
        }
        Some(value) => Some(value.clone()),
        None if case.get("onyx_quirk").is_some() => None,
        None => case.get("expected").cloned(),
    };
    cases.into_iter().map(|case| (case.clone(), right(&case))).collect()
}

/// Tells apart what is asserted and what informs, and fails with all that is wrong at once.
#[expect(clippy::print_stderr, reason = "seen with --nocapture")]
fn compare(name: &str, cases: Vec<(Value, Option<Value>)>, run: impl Fn(&Value) -> Value) {
    let (mut asserted, mut informative, mut wrong) = (0, 0, Vec::new());
    for (case, right) in cases {
        let got = run(&case);
        match right {
            Some(right) if got == right => asserted += 1,
            Some(right) => wrong.push(format!("{}: {got}\n   instead of {right}", case["id"])),
            None => {
                informative += 1;
                eprintln!("{} (informative): {got}", case["id"]);
            }
        }
    }
    eprintln!("{name}: {asserted} asserted, {informative} informative");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(asserted > 0);
}

fn tools(file: &Value, case: &Value) -> Tools {
    let tools = file["tool_sets"][case["tools"].as_str().unwrap()].as_array().unwrap();
    Tools::new(tools.iter().filter_map(|tool| {
        let function = tool.get("function")?;
        Some(KnownTool {
            name: function["name"].as_str().unwrap().to_owned(),
            parameters: Raw::of(&function["parameters"]),
        })
    }))
}

fn arguments(call: &WrittenCall) -> Value {
    serde_json::from_str(&call.arguments).unwrap()
}

#[test]
fn calls_in_text() {
    let file = file("toolcall_salvage.json");
    compare("toolcall_salvage.json cases", cases(&file, "cases"), |case| {
        let calls = guess(case["text"].as_str().unwrap(), &tools(&file, case));
        let calls = calls.iter().enumerate().map(|(index, call)| {
            json!({ "name": call.name, "arguments": arguments(call), "index": index })
        });
        calls.collect()
    });
}

#[test]
fn when_to_look_for_them() {
    let file = file("toolcall_salvage.json");
    let mut decisions = cases(&file, "decision");
    for (_, right) in &mut decisions {
        *right = right.take().map(|right| right["calls"].clone());
    }
    compare("toolcall_salvage.json decision", decisions, |case| {
        let step = &case["step"];
        let existing = step["existing_calls"].as_array().unwrap();
        if case["already_attempted"] == true || !existing.is_empty() {
            return step["existing_calls"].clone();
        }
        let said = Said {
            answered: step["answer"].is_string(),
            text: step["raw_answer"].as_str().or(step["answer"].as_str()).unwrap_or_default(),
            reasoning: step["reasoning"].as_str().unwrap_or_default(),
            call_was_required: case["tool_choice"] == "required",
        };
        let tools = tools(&file, case);
        let calls = if said.is_worth_guessing(&tools) { said.guess(&tools) } else { Vec::new() };
        let calls =
            calls.iter().map(|call| json!({ "name": call.name, "arguments": arguments(call) }));
        calls.collect()
    });
}

#[test]
fn json_in_text() {
    let file = file("toolcall_salvage.json");
    compare("toolcall_salvage.json find_json", cases(&file, "find_json"), |case| {
        let text = case["text"].as_str().unwrap();
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(skipped) = text[at..].find('{') {
            at += skipped;
            match objects::json_at(text, at) {
                objects::Found::Whole(end) => {
                    found.push(at..end);
                    at = end;
                }
                objects::Found::Broken { parts, resume } => {
                    found.extend(parts);
                    at = resume;
                }
            }
        }
        let objects = found.into_iter().filter(|span| json::fields(&text[span.clone()]).is_some());
        objects.map(|span| serde_json::from_str::<Value>(&text[span]).unwrap()).collect()
    });
}

#[test]
fn markup_hidden_while_it_streams() {
    let file = file("xml_filter.json");
    let reading = Reading { rescue: Rescue::Auto, ..Reading::default() };
    let tool = KnownTool { name: "internal_search".to_owned(), parameters: Raw::null() };
    let tools = Arc::new(Tools::new([tool]));
    let shown = |pieces: &[&str]| {
        let mut shown = String::new();
        let mut keep = |segment: Segment<'_>| match segment {
            Segment::Text(text) => shown.push_str(text),
            Segment::Reasoning(_) | Segment::Hidden(_) => (),
        };
        let mut markup =
            Markup::new(&reading, &tools, Channel::Text { call_is_required: false }).unwrap();
        for piece in pieces {
            markup.push(piece, &mut keep);
        }
        markup.finish(&mut keep);
        shown
    };
    compare("xml_filter.json cases", cases(&file, "cases"), |case| {
        let chunks: Vec<&str> = case["chunks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|chunk| chunk.as_str().unwrap())
            .collect();
        let text = chunks.concat();
        let together = shown(&chunks);
        let mut bytes = [0; 4];
        let chars: Vec<String> =
            text.chars().map(|c| c.encode_utf8(&mut bytes).to_owned()).collect();
        let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
        assert_eq!(shown(&chars), together, "{} char by char", case["id"]);
        assert_eq!(shown(&[&text]), together, "{} in one piece", case["id"]);
        together.into()
    });
}
