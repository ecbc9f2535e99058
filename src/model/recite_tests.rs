use super::*;

#[test]
fn words_keep_the_blanks_after_them() {
    for (text, expected) in [
        ("", &[][..]),
        ("one", &["one"]),
        ("one two", &["one ", "two"]),
        ("  one  two\n\nthree ", &["  one  ", "two\n\n", "three "]),
        (" \n", &[" \n"]),
        ("日本語 と é", &["日本語 ", "と ", "é"]),
    ] {
        assert_eq!(words(text), expected, "{text:?}");
        assert_eq!(words(text).concat(), text);
    }
}

#[test]
fn a_text_is_cut_into_even_pieces() {
    for (text, count, expected) in [
        ("", 3, &[][..]),
        ("abcdef", 1, &["abcdef"]),
        ("abcdef", 3, &["ab", "cd", "ef"]),
        ("abcdefg", 3, &["ab", "cd", "efg"]),
        ("ab", 5, &["a", "b"]),
        ("é日🎵x", 2, &["é日", "🎵x"]),
    ] {
        assert_eq!(cut(text, NonZeroUsize::new(count).unwrap()), expected, "{text:?}");
    }
    let text = "Größe 日本語 🎵 and some more";
    for count in 1..=text.len() {
        let pieces = cut(text, NonZeroUsize::new(count).unwrap());
        assert_eq!(pieces.concat(), text);
        assert_eq!(pieces.len(), count.min(text.chars().count()));
        assert!(pieces.iter().all(|piece| !piece.is_empty()));
    }
}

#[test]
fn the_newest_messages_follow_the_last_answer() {
    let user = |text: &'static str| PromptMessage::User(vec![PromptPart::Text(text.into())]);
    let said = || PromptMessage::Assistant(crate::turn::prompt::AssistantMessage::default());
    let result = PromptMessage::Tool { call_id: "c", output: vec![] };
    for (messages, expected) in [
        (vec![], 0),
        (vec![user("a"), user("b")], 2),
        (vec![user("a"), said()], 0),
        (vec![user("a"), said(), user("b"), said(), result, user("c")], 2),
    ] {
        assert_eq!(newest(&messages), &messages[messages.len() - expected..]);
    }
}

#[test]
fn parts_that_are_no_text_are_left_out_of_the_text() {
    let parts = [
        PromptPart::Text("one".into()),
        PromptPart::Image { url: "http://images.example/a.png", detail: "auto" },
        PromptPart::Text("two".into()),
    ];
    assert_eq!(text_of(&parts), "one\ntwo");
    assert_eq!(text_of(&parts[1..2]), "");
}

#[tokio::test(start_paused = true)]
async fn each_piece_comes_after_its_pause() {
    let text = |text: &str| Delta::Text { text: text.to_owned(), logprobs: Vec::new() };
    let pieces = vec![Ok(vec![text("a")]), Ok(vec![text("b")])];
    let mut said = recite(pieces, Duration::from_millis(30));
    let begin = tokio::time::Instant::now();
    for (piece, at) in [("a", 30), ("b", 60)] {
        assert_eq!(said.next().await, Some(Ok(vec![text(piece)])));
        assert_eq!(begin.elapsed(), Duration::from_millis(at));
    }
    assert_eq!(said.next().await, None);
    assert_eq!(begin.elapsed(), Duration::from_millis(60));
}
