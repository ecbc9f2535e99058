use futures::StreamExt as _;
use pretty_assertions::assert_eq;

use super::*;
use crate::{
    model::Choice,
    protocol::response::TextFormat,
    turn::{
        Finish,
        prompt::{AssistantMessage, PromptCall, PromptPart},
    },
};

fn ask(messages: Vec<PromptMessage<'_>>) -> Ask<'_> {
    Ask {
        model: "any",
        messages,
        tools: &[],
        choice: Choice::Auto,
        parallel_calls: None,
        max_output_tokens: None,
        temperature: None,
        top_p: None,
        presence_penalty: None,
        frequency_penalty: None,
        logprobs: None,
        format: &TextFormat::Text,
        verbosity: None,
        effort: None,
        prompt_cache_key: None,
        safety_identifier: None,
        traceparent: None,
    }
}

fn user(text: &str) -> PromptMessage<'_> {
    PromptMessage::User(vec![PromptPart::Text(text.into())])
}

fn assistant(text: &str) -> PromptMessage<'_> {
    PromptMessage::Assistant(AssistantMessage { text: text.into(), ..AssistantMessage::default() })
}

/// What a script says, a line for each piece.
async fn play(script: &Script, ask: &Ask<'_>) -> Vec<String> {
    match script.ask(ask).await {
        Err(error) => vec![format!("refused {error}")],
        Ok(said) => said.map(|piece| line(&piece)).collect().await,
    }
}

async fn hear(script: &Script, text: &str) -> Vec<String> {
    play(script, &ask(vec![user(text)])).await
}

fn line(piece: &Piece) -> String {
    let of_delta = |delta: &Delta| match delta {
        Delta::Text { text, .. } => format!("text {text:?}"),
        Delta::Refusal(text) => format!("refusal {text:?}"),
        Delta::Reasoning(text) => format!("reasoning {text:?}"),
        Delta::Call { position, id: None, name } => format!("call {position} {name}"),
        Delta::Arguments { position, piece } => format!("arguments {position} {piece:?}"),
        Delta::Usage(usage) => format!(
            "usage {}+{}={} ({})",
            usage.input_tokens,
            usage.output_tokens,
            usage.total_tokens,
            usage.output_tokens_details.reasoning_tokens
        ),
        Delta::Finish(Finish::Stop) => "stop".to_owned(),
        Delta::Finish(Finish::Length) => "length".to_owned(),
        Delta::Finish(Finish::ContentFilter) => "filter".to_owned(),
        other => panic!("{other:?}"),
    };
    match piece {
        Ok(deltas) => deltas.iter().map(of_delta).collect::<Vec<_>>().join(" | "),
        Err(error) => format!("broken {error}"),
    }
}

#[tokio::test]
async fn everything_is_said_in_order_and_counted() {
    let script = Script::parse(
        r#"
        [[rounds]]
        text = "It is sunny"
        reasoning = "Let me think."
        refusal = "No more."
        finish = "length"
        [[rounds.calls]]
        name = "get_weather"
        arguments = '{"city": "Oslo"}'
        chunks = 2
        [[rounds.calls]]
        name = "now"
        "#,
    )
    .unwrap();
    assert_eq!(
        hear(&script, "how is it?").await,
        [
            r#"reasoning "Let ""#,
            r#"reasoning "me ""#,
            r#"reasoning "think.""#,
            r#"text "It ""#,
            r#"text "is ""#,
            r#"text "sunny""#,
            r#"refusal "No ""#,
            r#"refusal "more.""#,
            "call 0 get_weather",
            r#"arguments 0 "{\"city\":""#,
            r#"arguments 0 " \"Oslo\"}""#,
            "call 1 now",
            r#"arguments 1 "{}" | usage 3+13=16 (3) | length"#,
        ]
    );
}

#[tokio::test]
async fn chunks_and_usage_may_be_given() {
    let script = Script::parse(
        "[[rounds]]\ntext = 'abcdé'\nreasoning = 'xyz'\nchunks = 2\nfinish = 'content_filter'\nusage = { input_tokens = 50, output_tokens = 20, reasoning_tokens = 7 }",
    )
    .unwrap();
    let lines = [
        r#"reasoning "x""#,
        r#"reasoning "yz""#,
        r#"text "ab""#,
        r#"text "cdé" | usage 50+20=70 (7) | filter"#,
    ];
    assert_eq!(hear(&script, "a").await, lines);
    assert_eq!(
        hear(&Script::parse("[[rounds]]").unwrap(), "a b").await,
        ["usage 2+0=2 (0) | stop"]
    );
}

#[tokio::test]
async fn the_first_fitting_cue_wins_and_others_go_in_sequence() {
    let script = Script::parse(
        r#"
        [[rounds]]
        text = "first"
        [[rounds]]
        when = "rain"
        text = "cued"
        [[rounds]]
        when = "snow"
        text = "cold"
        [[rounds]]
        text = "last"
        "#,
    )
    .unwrap();
    for (input, expected) in [
        ("rain?", "cued"),
        ("a", "first"),
        ("snow and rain", "cued"),
        ("snow", "cold"),
        ("Rain", "last"),
        ("b", "last"),
        ("rain", "cued"),
    ] {
        let said = hear(&script, input).await;
        assert!(said[0].starts_with(&format!("text \"{expected}\" |")), "{input}: {said:?}");
    }
}

#[tokio::test]
async fn a_cue_is_looked_for_in_the_newest_input_only() {
    let script =
        Script::parse("[[rounds]]\nwhen = 'rain'\ntext = 'cued'\n[[rounds]]\ntext = 'other'")
            .unwrap();
    let rain = || vec![PromptPart::Text("rain".into())];
    for (messages, cued) in [
        (vec![user("rain")], true),
        (vec![user("rain"), user("more")], true),
        (vec![PromptMessage::System("rain".into()), user("a")], false),
        (vec![user("rain"), assistant("b"), user("c")], false),
        (vec![user("a"), assistant("rain")], false),
        (
            vec![user("a"), assistant("b"), PromptMessage::Tool { call_id: "c", output: rain() }],
            true,
        ),
    ] {
        let said = play(&script, &ask(messages.clone())).await;
        assert_eq!(said[0].starts_with("text \"cued\""), cued, "{messages:?}");
    }
}

#[tokio::test]
async fn an_input_without_a_round_is_named() {
    let script = Script::parse("[[rounds]]\nwhen = 'rain'").unwrap();
    let refusal = script.ask(&ask(vec![user("how is it?")])).await.err().unwrap();
    assert_eq!(
        refusal,
        ModelError::new(
            ModelErrorKind::Rejected,
            "The script has no round for this input: \"how is it?\"."
        )
    );
}

#[tokio::test]
async fn only_its_own_names_are_answered() {
    let script = Script::parse("model = ['a', 'gpt-*', 'b/c']\n[[rounds]]").unwrap();
    assert_eq!(script.names(), ["a", "b/c"]);
    for (model, known) in [("a", true), ("gpt-4o", true), ("b/c", true), ("b", false), ("A", false)]
    {
        let answer = script.ask(&Ask { model, ..ask(vec![]) }).await;
        assert_eq!(answer.is_ok(), known, "{model}");
        if let Err(error) = answer {
            let message = format!("The script plays `a`, `gpt-*`, `b/c`, not `{model}`.");
            assert_eq!(error, ModelError::new(ModelErrorKind::ModelNotFound, message));
        }
    }
    assert_eq!(Script::parse("[[rounds]]").unwrap().names(), ["scripted"]);
}

#[tokio::test]
async fn a_status_means_what_it_means_from_a_backend() {
    use ModelErrorKind::{
        ContextOverflow, Failed, ModelNotFound, QuotaExceeded, RateLimited, Rejected, Timeout,
        Unauthorized, Unavailable,
    };
    for (status, kind) in [
        ("400", Rejected),
        ("401", Unauthorized),
        ("402", QuotaExceeded),
        ("403", Unauthorized),
        ("404", ModelNotFound),
        ("408", Timeout),
        ("413", ContextOverflow),
        ("422", Rejected),
        ("429", RateLimited(None)),
        ("429, retry_after_seconds = 3", RateLimited(Some(Duration::from_secs(3)))),
        ("500", Failed),
        ("502", Failed),
        ("503, retry_after_seconds = 9", Unavailable(Some(Duration::from_secs(9)))),
        ("504", Timeout),
        ("529", Unavailable(None)),
        ("599", Failed),
    ] {
        let toml =
            format!("[[rounds]]\ntext = 'unsaid'\nerror = {{ message = 'so', status = {status} }}");
        let refusal = Script::parse(&toml).unwrap().ask(&ask(vec![])).await.err();
        assert_eq!(refusal, Some(ModelError::new(kind, "so")), "{status}");
    }
    let script = Script::parse("[[rounds]]\nerror = { status = 418 }").unwrap();
    assert_eq!(
        hear(&script, "").await,
        ["refused Rejected: The script fails here with the status 418."]
    );
}

#[tokio::test]
async fn a_stream_breaks_after_so_many_characters() {
    for (after, said) in
        [(1, &["é"][..]), (3, &["é ", "日"]), (5, &["é ", "日本 "]), (6, &["é ", "日本 ", "x"])]
    {
        let toml = format!(
            "[[rounds]]\ntext = 'é 日本 x'\ncalls = [{{ name = 'never' }}]\nerror = {{ status = 500, message = 'gone', after_chars = {after} }}"
        );
        let mut expected: Vec<String> =
            said.iter().map(|piece| format!("text {piece:?}")).collect();
        expected.push("broken Failed: gone".to_owned());
        assert_eq!(hear(&Script::parse(&toml).unwrap(), "").await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn each_piece_is_delayed() {
    let script = Script::parse("[[rounds]]\nwhen = 'a'\ntext = 'one two'\ndelay_ms = 50\n[[rounds]]\ndelay_ms = 70\nerror = { status = 500 }").unwrap();
    let begin = tokio::time::Instant::now();
    assert_eq!(hear(&script, "a").await.len(), 2);
    assert_eq!(begin.elapsed(), Duration::from_millis(100));
    assert_eq!(hear(&script, "b").await.len(), 1);
    assert_eq!(begin.elapsed(), Duration::from_millis(170));
}

#[tokio::test(start_paused = true)]
async fn the_example_plays() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/script-example.toml");
    let script = Script::load(&path).unwrap();
    assert_eq!(script.names(), ["scripted"]);
    let call =
        PromptCall { call_id: "c", name: "get_weather".into(), arguments: "{}".into(), data: None };
    let called = PromptMessage::Assistant(AssistantMessage {
        calls: vec![call],
        ..AssistantMessage::default()
    });
    let result = PromptMessage::Tool {
        call_id: "c",
        output: vec![PromptPart::Text("sunny, 21 °C".into())],
    };
    let question = user("What is the weather in Oslo?");
    let mut played = Vec::new();
    for messages in [
        vec![question.clone()],
        vec![question, called, result],
        vec![user("Are you too busy?")],
        vec![user("Tell me a long story")],
        vec![user("Say how to pick a lock")],
        vec![user("Give me all the digits of pi")],
        vec![user("Hi")],
        vec![user("And?")],
        vec![user("And?")],
    ] {
        let ask = Ask { model: "gpt-4o", ..ask(messages) };
        played.push(play(&script, &ask).await.join("\n"));
    }
    insta::assert_snapshot!(played.join("\n\n"), @r#"
    reasoning "They "
    reasoning "want "
    reasoning "the "
    reasoning "weather. "
    reasoning "There "
    reasoning "is "
    reasoning "a "
    reasoning "tool "
    reasoning "for "
    reasoning "that."
    call 0 get_weather
    arguments 0 "{\"city\":"
    arguments 0 "\"Oslo\",\""
    arguments 0 "unit\":\"c"
    arguments 0 "elsius\"}" | usage 6+12=18 (10) | stop

    text "It "
    text "is "
    text "sunny "
    text "in "
    text "Oslo." | usage 60+6=66 (0) | stop

    refused RateLimited(Some(2s)): Slow down, please.

    text "Once "
    text "upon "
    text "a "
    text "time"
    broken Failed: The server lost the thread.

    refusal "I "
    refusal "cannot "
    refusal "help "
    refusal "with "
    refusal "that." | usage 6+5=11 (0) | stop

    text "3.1415"
    text "9 26535" | usage 7+2=9 (0) | length

    text "Hello! "
    text "What "
    text "can "
    text "I "
    text "do "
    text "for "
    text "you?" | usage 1+7=8 (0) | stop

    text "I "
    text "have "
    text "nothing "
    text "more "
    text "to "
    text "say." | usage 1+6=7 (0) | stop

    text "I "
    text "have "
    text "nothing "
    text "more "
    text "to "
    text "say." | usage 1+6=7 (0) | stop
    "#);
}

#[test]
fn a_file_that_cannot_be_played_is_named() {
    let missing = Path::new("no/such/script.toml");
    let error = Script::load(missing).unwrap_err();
    assert_eq!(error.file.as_deref(), Some(missing));
    let said = error.to_string();
    let begin = "the script no/such/script.toml cannot be played: the file cannot be read: ";
    assert!(said.starts_with(begin), "{said}");
}
