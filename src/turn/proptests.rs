//! Whatever a model says and whenever it fails, the events are well formed; and where the pieces are cut does not matter.

use proptest::{prelude::*, sample::select};
use serde_json::json;

use super::{
    Delta, Finish, Next, ToolFailure, ToolOutcome, ToolOutput,
    script::{self, Stage, arguments, call, hosted_tool, reasoning, text, whole},
};
use crate::{
    protocol::{ApiError, Item, Raw, Usage, content::Logprob},
    text::{
        rescue::{CallGrammar, Reading, Rescue},
        think::ThinkMode,
    },
};

const NAMES: &[&str] = &[
    "f",
    "g",
    "free",
    "crm__find",
    "crm__write",
    "local_shell",
    "shell",
    "apply_patch",
    "computer",
    "tool_search",
    "clock",
    "search",
    "nobody",
];

const PIECES: &[&str] = &[
    "",
    " ",
    "\n",
    "{",
    "}",
    "{}",
    "null",
    "nul",
    "\"a\"",
    ":",
    "1",
    "{\"command\":[\"ls\"]}",
    "{\"commands\":\"ls\"}",
    "{\"input\":\"h\u{e9}\"}",
    "{\"input\":\"",
    "<think>",
    "</think>",
    "<",
    "hello",
    "\u{1f600}",
    "{\"action\":{\"type\":\"wait\"}}",
    "{\"operation\":{\"type\":\"delete_file\",\"path\":\"a\"}}",
    "\\",
    "\u{3000}",
    "<tool_call>",
    "</tool_call>",
    "{\"name\":\"f\",\"arguments\":{}}",
    "<function_calls><invoke name=\"clock\">",
    "</invoke></function_calls>",
    "<|channel|>",
    "commentary to=functions.g<|message|>",
    "analysis<|message|>",
    "<|call|>",
    "</s>",
    "```\n",
];

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![4 => select(PIECES).prop_map(str::to_owned), 1 => any::<String>()]
}

fn position() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0..3_u32, 1 => any::<u32>()]
}

fn id() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        1 => Just(None),
        4 => select(&["c1", "c2", "used", ""][..]).prop_map(|id| Some(id.to_owned())),
        1 => any::<String>().prop_map(Some),
        1 => Just(Some("x".repeat(65))),
    ]
}

fn logprobs() -> impl Strategy<Value = Vec<Logprob>> {
    prop::collection::vec(
        piece().prop_map(|token| Logprob { token, logprob: -0.5, ..Logprob::default() }),
        0..3,
    )
}

fn delta() -> impl Strategy<Value = Delta> {
    let data = || Just(Raw::parse(r#"{"signature":"s"}"#).unwrap());
    prop_oneof![
        4 => (piece(), logprobs()).prop_map(|(text, logprobs)| Delta::Text { text, logprobs }),
        1 => piece().prop_map(Delta::Refusal),
        2 => piece().prop_map(Delta::Reasoning),
        1 => (0..3_usize, piece()).prop_map(|(part, text)| Delta::Summary { part, text }),
        1 => data().prop_map(Delta::ReasoningData),
        4 => (position(), id(), prop_oneof![9 => select(NAMES).prop_map(str::to_owned), 1 => any::<String>()])
            .prop_map(|(position, id, name)| Delta::Call { position, id, name }),
        8 => (position(), piece()).prop_map(|(position, piece)| Delta::Arguments { position, piece }),
        1 => (position(), data()).prop_map(|(position, data)| Delta::CallData { position, data }),
        1 => (0..100_u64).prop_map(|output_tokens| Delta::Usage(Usage { output_tokens, ..Usage::default() })),
    ]
}

fn finish() -> impl Strategy<Value = Option<Finish>> {
    prop_oneof![
        3 => Just(None),
        3 => Just(Some(Finish::Stop)),
        1 => Just(Some(Finish::Length)),
        1 => Just(Some(Finish::ContentFilter)),
    ]
}

#[derive(Clone, Debug)]
struct Said {
    deltas: Vec<Delta>,
    finish: Option<Finish>,
    outcomes: Vec<ToolOutcome>,
}

fn said() -> impl Strategy<Value = Said> {
    let output = prop_oneof![
        piece().prop_map(|told| Ok(ToolOutput::text(told))),
        piece().prop_map(|told| Err(ToolFailure::new(told))),
    ];
    let outcome = (0..4_usize, output).prop_map(|(slot, output)| ToolOutcome { slot, output });
    (prop::collection::vec(delta(), 0..14), finish(), prop::collection::vec(outcome, 0..4))
        .prop_map(|(deltas, finish, outcomes)| Said { deltas, finish, outcomes })
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is a setting of its own")]
struct Conditions {
    parallel: bool,
    summary: bool,
    open_responses: bool,
    logprobs: bool,
    seal: bool,
    think: ThinkMode,
    reading: Reading,
    client_tools: bool,
    allowed: bool,
    max_tool_calls: Option<u64>,
    max_output_tokens: Option<u64>,
    max_rounds: u32,
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let tools = (any::<bool>(), prop::bool::weighted(0.2));
    let think = select(vec![ThinkMode::Off, ThinkMode::On, ThinkMode::OpenAtStart]);
    let grammars = select(vec![
        CallGrammar::None,
        CallGrammar::Hermes,
        CallGrammar::Harmony,
        CallGrammar::Llama,
        CallGrammar::BareJson,
    ]);
    let reading = (grammars, any::<bool>(), any::<bool>()).prop_map(|(grammar, auto, strip)| {
        let strip_tokens = if strip { vec!["</s>".to_owned()] } else { Vec::new() };
        let rescue = if auto { Rescue::Auto } else { Rescue::Off };
        Reading { grammar, rescue, strip_tokens: strip_tokens.into() }
    });
    let limits = (prop::option::of(1..4_u64), prop::option::of(1..200_u64), 1..5_u32);
    (flags, tools, (think, reading), limits).prop_map(
        |(
            (parallel, summary, open_responses, logprobs, seal),
            (client_tools, allowed),
            (think, reading),
            (max_tool_calls, max_output_tokens, max_rounds),
        )| Conditions {
            parallel,
            summary,
            open_responses,
            logprobs,
            seal,
            think,
            reading,
            client_tools,
            allowed,
            max_tool_calls,
            max_output_tokens,
            max_rounds,
        },
    )
}

fn stage(conditions: &Conditions) -> Stage {
    let c = conditions;
    let tools = json!([
        { "type": "function", "name": "f" }, { "type": "function", "name": "g" },
        { "type": "custom", "name": "free" },
        { "type": "namespace", "name": "crm", "tools": [
            { "type": "function", "name": "find" }, { "type": "custom", "name": "write" },
        ] },
        { "type": "local_shell" }, { "type": "shell" }, { "type": "apply_patch" }, { "type": "computer" },
        { "type": "tool_search" },
    ]);
    let choice = json!({ "type": "allowed_tools", "mode": "auto", "tools": [{ "type": "function", "name": "f" }] });
    let mut stage = Stage::new(&json!({
        "tools": if c.client_tools { tools } else { json!([]) },
        "tool_choice": if c.client_tools && c.allowed { choice } else { json!("auto") },
        "parallel_tool_calls": c.parallel,
        "reasoning": { "effort": null, "summary": c.summary.then_some("auto") },
        "max_tool_calls": c.max_tool_calls,
        "max_output_tokens": c.max_output_tokens,
    }))
    .with(|rules| {
        rules.open_responses = c.open_responses;
        rules.logprobs = c.logprobs;
        rules.think = c.think;
        rules.reading = c.reading.clone();
        rules.max_rounds = c.max_rounds;
        rules.used_call_ids.insert("used".to_owned());
        rules.seal = c.seal.then(|| {
            let seal: super::Sealing = std::sync::Arc::new(|text: &str| format!("sealed({text})"));
            seal
        });
    });
    stage.hosted = vec![hosted_tool("antiphon", "clock"), hosted_tool("docs", "search")];
    stage
}

/// Plays the Rounds as the engine would; fails at the given step, or when the script has no Round left.
fn play(conditions: &Conditions, rounds: &[Said], fail_at: Option<usize>) -> script::Script {
    let mut script = stage(conditions).begin();
    let mut steps = 0..;
    let mut due = move || fail_at.is_some_and(|at| steps.next() == Some(at));
    let error = ApiError::server();
    for (asked, said) in (0..).zip(rounds) {
        assert!(asked < conditions.max_rounds, "asked more often than allowed");
        let plan = script.turn.plan();
        assert!(plan.max_output_tokens.is_none_or(|most| most > 0));
        for delta in said.deltas.iter().cloned().chain(said.finish.map(Delta::Finish)) {
            if due() {
                script.fail(&error);
                return script;
            }
            script.turn.feed(delta);
        }
        let mut next = script.round([]);
        while let Next::RunTools(calls) = next {
            assert!(calls.is_sorted_by_key(|call| call.slot));
            if due() {
                script.fail(&error);
                return script;
            }
            next = script.answer(said.outcomes.clone());
            assert!(!matches!(next, Next::RunTools(_)));
        }
        if due() {
            script.fail(&error);
            return script;
        }
        if next == Next::Finish {
            return script;
        }
    }
    script.fail(&error);
    script
}

/// Cuts each text in two at a place that follows from `seed`.
fn cut(deltas: &[Delta], seed: usize) -> Vec<Delta> {
    let mut pieces = Vec::new();
    for (n, delta) in deltas.iter().enumerate() {
        let (head, tail) = match said_text(delta) {
            None => ("", ""),
            Some(text) => {
                let places = text.char_indices().count() + 1;
                let place = seed.wrapping_mul(31).wrapping_add(n * 7) % places;
                text.split_at(text.char_indices().nth(place).map_or(text.len(), |(at, _)| at))
            }
        };
        if head.is_empty() || tail.is_empty() {
            pieces.push(delta.clone());
        } else {
            pieces.extend([with_text(delta, head), with_text(delta, tail)]);
        }
    }
    pieces
}

fn said_text(delta: &Delta) -> Option<&str> {
    match delta {
        Delta::Text { text, .. }
        | Delta::Refusal(text)
        | Delta::Reasoning(text)
        | Delta::Summary { text, .. }
        | Delta::Arguments { piece: text, .. } => Some(text),
        Delta::ReasoningData(_)
        | Delta::Call { .. }
        | Delta::CallData { .. }
        | Delta::Usage(_)
        | Delta::Finish(_) => None,
    }
}

fn with_text(delta: &Delta, with: &str) -> Delta {
    let mut delta = delta.clone();
    match &mut delta {
        Delta::Text { text, .. }
        | Delta::Refusal(text)
        | Delta::Reasoning(text)
        | Delta::Summary { text, .. }
        | Delta::Arguments { piece: text, .. } => with.clone_into(text),
        _ => panic!("{delta:?} has no text"),
    }
    delta
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_model_gives_a_well_formed_stream(
        conditions in conditions(),
        rounds in prop::collection::vec(said(), 1..5),
        fail_at in prop::option::weighted(0.3, 0..40_usize),
    ) {
        // The grammar is checked as the script concludes.
        play(&conditions, &rounds, fail_at).conclude();
    }

    #[test]
    fn cuts_do_not_matter(
        conditions in conditions(),
        rounds in prop::collection::vec(said(), 1..4),
        seed in any::<usize>(),
    ) {
        // A cut cannot share out log probabilities.
        let conditions = Conditions { logprobs: false, ..conditions };
        let mut cut_rounds = rounds.clone();
        for said in &mut cut_rounds {
            said.deltas = cut(&said.deltas, seed);
        }
        let at_once = play(&conditions, &rounds, None).conclude();
        let in_pieces = play(&conditions, &cut_rounds, None).conclude();
        prop_assert!(in_pieces == at_once, "{}\n{}", script::items(&in_pieces), script::items(&at_once));
    }
}

/// A Round with something of everything, each piece of it cut at every place and at every pair of places.
#[test]
fn every_cut_gives_the_same_response() {
    let deltas: Vec<Delta> = [
        vec![
            text("\n<think>\nhm \u{e9}\n</think>\n\nSo: \u{1f600} x"),
            reasoning("\n ah\n"),
            text("\n\n"),
        ],
        whole(0, "c1", "f", "{\"a\":\"\\u00e9 }\"}").to_vec(),
        whole(1, "c1", "free", "{\"input\":\"l\\n\"}").to_vec(),
        vec![call(2, "", "f"), call(3, "c4", "shell"), arguments(3, "{\"commands\":\"l\"}")],
        vec![arguments(2, " null"), text("End."), Delta::Refusal("No.".to_owned())],
    ]
    .concat();
    let conditions = Conditions {
        parallel: true,
        summary: false,
        open_responses: false,
        logprobs: false,
        seal: false,
        think: ThinkMode::On,
        reading: Reading { rescue: Rescue::Auto, ..Reading::default() },
        client_tools: true,
        allowed: false,
        max_tool_calls: None,
        max_output_tokens: None,
        max_rounds: 4,
    };
    let respond = |deltas: &[Delta]| {
        let mut script = stage(&conditions).begin();
        script.round(deltas.iter().cloned());
        script.turn.conclude(2000)
    };
    let at_once = respond(&deltas);
    assert_eq!(script::kinds(&at_once).values().sum::<usize>(), 8);
    let cuts: Vec<(usize, usize)> = deltas
        .iter()
        .enumerate()
        .flat_map(|(n, delta)| {
            let text = said_text(delta).unwrap_or_default();
            text.char_indices().skip(1).map(move |(at, _)| (n, at))
        })
        .collect();
    for (k, first) in cuts.iter().enumerate() {
        for second in &cuts[k..] {
            let mut pieces = deltas.clone();
            for (n, at) in [second, first] {
                let (head, tail) = said_text(&pieces[*n]).unwrap().split_at(*at);
                if tail.is_empty() {
                    continue;
                }
                let (head, tail) = (with_text(&pieces[*n], head), with_text(&pieces[*n], tail));
                pieces.splice(n..=n, [head, tail]);
            }
            let in_pieces = respond(&pieces);
            assert!(
                in_pieces == at_once,
                "cut at {first:?} and {second:?}:\n{}",
                script::items(&in_pieces)
            );
        }
    }
}

/// Calls with these arguments, each in the order of its pieces, mixed with text in any way; `order` says who speaks next.
fn mixed(calls: &[Vec<String>], said: &[String], order: &[usize]) -> Vec<Delta> {
    let mut speakers: Vec<std::collections::VecDeque<Delta>> = calls
        .iter()
        .zip(0..)
        .map(|(pieces, position)| {
            let pieces = pieces.iter().map(|piece| arguments(position, piece));
            std::iter::once(call(position, &format!("c{position}"), "f")).chain(pieces).collect()
        })
        .collect();
    speakers.push(said.iter().map(|piece| text(piece)).collect());
    let mut turns = order.iter().copied().cycle();
    let mut deltas = Vec::new();
    while speakers.iter().any(|speaker| !speaker.is_empty()) {
        let speaker = turns.next().unwrap_or(0) % speakers.len();
        let left = speakers.iter().position(|speaker| !speaker.is_empty()).unwrap();
        let delta = speakers[speaker].pop_front().or_else(|| speakers[left].pop_front());
        deltas.extend(delta);
    }
    deltas
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whole calls and text lose nothing, however a backend mixes their pieces.
    #[test]
    fn nothing_is_lost_between_calls(
        calls in prop::collection::vec(prop::collection::vec("[a-z{}\\[\\]:, ]{1,3}", 0..4), 1..4),
        said in prop::collection::vec("[a-z]{1,3}", 0..5),
        order in prop::collection::vec(0..4_usize, 1..16),
    ) {
        let calls: Vec<Vec<String>> = calls
            .into_iter()
            .map(|pieces| [vec!["{\"a\":\"".to_owned()], pieces, vec!["\"}".to_owned()]].concat())
            .collect();
        let mut script = Stage::functions(&["f"]).begin();
        script.round(mixed(&calls, &said, &order));
        let response = script.conclude();
        let mut heard_calls = std::collections::BTreeMap::new();
        let mut heard_text = String::new();
        for item in &response.output {
            match &**item {
                Item::FunctionCall(call) => {
                    heard_calls.insert(call.call_id.clone(), call.arguments.clone());
                }
                Item::Message(message) => {
                    heard_text.extend(message.content.iter().filter_map(|part| part.text()));
                }
                other => panic!("{other:?}"),
            }
        }
        let said_calls: std::collections::BTreeMap<String, String> = calls
            .iter()
            .enumerate()
            .map(|(position, pieces)| (format!("c{position}"), pieces.concat()))
            .collect();
        prop_assert_eq!(heard_calls, said_calls);
        prop_assert_eq!(heard_text, said.concat());
    }
}
