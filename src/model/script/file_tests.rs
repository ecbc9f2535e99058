use pretty_assertions::assert_eq;

use super::*;

fn refused(toml: &str) -> String {
    File::parse(toml).unwrap_err().to_string()
}

#[test]
fn every_key_is_read() {
    let file = File::parse(
        r#"
        model = ["one", "two*"]
        [[rounds]]
        when = "weather"
        reasoning = "Hm."
        text = "Sunny"
        refusal = "No."
        chunks = 3
        usage = { input_tokens = 5, output_tokens = 2, reasoning_tokens = 1 }
        finish = "content_filter"
        delay_ms = 10
        [[rounds.calls]]
        name = "ns__get_weather"
        arguments = '{"city": "Oslo"}'
        chunks = 2
        [[rounds.calls]]
        name = "now"
        [rounds.error]
        status = 503
        message = "busy"
        retry_after_seconds = 7
        after_chars = 5
        "#,
    )
    .unwrap();
    let patterns: Vec<&str> = file.model.as_ref().unwrap().iter().map(Glob::pattern).collect();
    assert_eq!(patterns, ["one", "two*"]);
    let [round] = &*file.rounds else { panic!("{file:?}") };
    assert_eq!(round.when.as_deref(), Some("weather"));
    assert_eq!([&*round.reasoning, &*round.text, &*round.refusal], ["Hm.", "Sunny", "No."]);
    assert_eq!(round.chunks, NonZeroUsize::new(3));
    assert_eq!((round.finish, round.delay), (Finish::ContentFilter, Duration::from_millis(10)));
    let Words { input_tokens, output_tokens, reasoning_tokens } = round.usage;
    assert_eq!([input_tokens, output_tokens, reasoning_tokens], [Some(5), Some(2), Some(1)]);
    let calls: Vec<_> =
        round.calls.iter().map(|call| (&*call.name, &*call.arguments, call.chunks)).collect();
    assert_eq!(
        calls,
        [("ns__get_weather", r#"{"city": "Oslo"}"#, NonZeroUsize::new(2)), ("now", "{}", None)]
    );
    let failure = round.error.as_ref().unwrap();
    assert_eq!((failure.status, failure.after_chars), (503, 5));
    assert_eq!((failure.message.as_deref(), failure.retry_after_seconds), (Some("busy"), Some(7)));
}

#[test]
fn what_is_absent_has_its_default() {
    let file = File::parse("[[rounds]]").unwrap();
    assert!(file.model.is_none());
    let round = &file.rounds[0];
    assert_eq!(round.finish, Finish::Stop);
    assert_eq!(round.delay, Duration::ZERO);
    assert!(round.when.is_none() && round.error.is_none() && round.chunks.is_none());
    assert!(round.text.is_empty() && round.calls.is_empty());
    assert_eq!(File::parse("model = 'm'\n[[rounds]]").unwrap().model.unwrap().len(), 1);
}

#[test]
fn arguments_in_a_table_become_json_by_name() {
    for (arguments, json) in [
        ("{}", "{}"),
        ("{ unit = 'c', city = 'Oslo' }", r#"{"city":"Oslo","unit":"c"}"#),
        (
            "{ z = [1, 2.5, true], a = { y = 1, b = 'x' } }",
            r#"{"a":{"b":"x","y":1},"z":[1,2.5,true]}"#,
        ),
        (
            "{ on = 2024-05-01, at = [2024-05-01T10:00:00Z] }",
            r#"{"at":["2024-05-01T10:00:00Z"],"on":"2024-05-01"}"#,
        ),
        ("'not json'", "not json"),
        ("''", ""),
    ] {
        let toml = format!("[[rounds]]\n[[rounds.calls]]\nname = 'x'\narguments = {arguments}");
        let file = File::parse(&toml).unwrap_or_else(|error| panic!("{error}: {arguments}"));
        assert_eq!(file.rounds[0].calls[0].arguments, json);
    }
}

#[test]
fn a_mistake_is_named_with_its_line_and_key() {
    for (toml, expected) in [
        ("", "`rounds`: a script needs at least one [[rounds]]"),
        ("model = []\n[[rounds]]", "line 1: `model`: a list of names needs at least one"),
        (
            "model = 3\n[[rounds]]",
            "line 1: `model`: invalid type: integer `3`, expected a name or a list of names",
        ),
        ("[[rounds]]\n\nmodel = 'a['", "line 3: `rounds[0].model`: unknown field `model`"),
        ("model = 'a['\n[[rounds]]", "line 1: `model`: not a pattern: "),
        (
            "# a\nmodels = 'x'\n[[rounds]]",
            "line 2: `models`: unknown field `models`, expected `model` or `rounds`",
        ),
        (
            "[[rounds]]\ntext = 'a'\n[[rounds]]\nchunk = 3",
            "line 4: `rounds[1].chunk`: unknown field `chunk`",
        ),
        ("[[rounds]]\nchunks = 0", "line 2: `rounds[0].chunks`: invalid value: integer `0`"),
        (
            "[[rounds]]\ntext = 3",
            "line 2: `rounds[0].text`: invalid type: integer `3`, expected a string",
        ),
        ("[[rounds]]\ntext = ", "line 2: "),
        ("[[rounds]]\ntext = 'a'\ntext = 'b'", "line 3: duplicate key"),
        (
            "[[rounds]]\nfinish = 'tired'",
            "line 2: `rounds[0].finish`: unknown variant `tired`, expected one of `stop`, `length`, `content_filter`",
        ),
        (
            "[[rounds]]\ndelay_ms = -1",
            "line 2: `rounds[0].delay_ms`: a pause has 0 to 3600000 milliseconds",
        ),
        (
            "[[rounds]]\nwhen = ''",
            "line 2: `rounds[0].when`: the empty text is found in every input",
        ),
        (
            "[[rounds]]\nusage = { tokens = 3 }",
            "line 2: `rounds[0].usage.tokens`: unknown field `tokens`",
        ),
        (
            "[[rounds]]\n\nusage = { output_tokens = 3, reasoning_tokens = 4 }",
            "line 3: `rounds[0].usage.reasoning_tokens`: 4 is more than the `output_tokens`, 3",
        ),
        (
            "[[rounds]]\n[[rounds.calls]]\narguments = '{}'",
            "line 2: `rounds[0].calls[0]`: missing field `name`",
        ),
        (
            "[[rounds]]\n[[rounds.calls]]\nname = 'x'\n[[rounds.calls]]\nname = 'y'\narguments = 3",
            "line 6: `rounds[0].calls[1].arguments`: invalid type: integer `3`, expected JSON in a string, or a table",
        ),
        (
            "[[rounds]]\n[[rounds.calls]]\nname = 'x'\narguments = 2024-05-01",
            "line 4: `rounds[0].calls[0].arguments`: invalid type: a date, expected JSON",
        ),
        (
            "[[rounds]]\n[rounds.error]\nmessage = 'x'",
            "line 2: `rounds[0].error`: missing field `status`",
        ),
        (
            "[[rounds]]\nerror = { status = 200 }",
            "line 2: `rounds[0].error.status`: 200 is no status of an error",
        ),
        (
            "[[rounds]]\ntext = 'abc'\n[rounds.error]\nstatus = 500\nafter_chars = 4",
            "line 5: `rounds[0].error.after_chars`: the round has only 3 characters of `text`",
        ),
        (
            "[[rounds]]\nerror = { status = 500, retry_after_seconds = 4 }",
            "line 2: `rounds[0].error.retry_after_seconds`: goes with the status 429, 503 or 529, not 500",
        ),
        (
            "[[rounds]]\nwhen = 'rain'\n[[rounds]]\n[[rounds]]\nwhen = 'rain in Oslo'",
            "line 5: `rounds[2].when`: never played: the `when` of rounds[0] is found wherever this one is",
        ),
    ] {
        let said = refused(toml);
        let expected = format!("the script cannot be played: {expected}");
        assert!(said.starts_with(&expected), "\n{toml}\nsaid:     {said}\nexpected: {expected}");
    }
}

#[test]
fn a_shorter_cue_may_follow_a_longer_one() {
    File::parse("[[rounds]]\nwhen = 'rain in Oslo'\n[[rounds]]\nwhen = 'rain'").unwrap();
}
