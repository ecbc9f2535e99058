use pretty_assertions::assert_eq;

use super::*;

/// What came out, neighbours of one kind joined: `R:` thought, `T:` text.
fn split(mode: ThinkMode, pieces: &[&str]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut keep = |segment: Segment<'_>| {
        let (kind, text) = match segment {
            Segment::Text(text) => ("T:", text),
            Segment::Reasoning(text) => ("R:", text),
        };
        assert!(!text.is_empty(), "an empty segment in {pieces:?}");
        match out.last_mut() {
            Some(last) if last.starts_with(kind) => last.push_str(text),
            _ => out.push(format!("{kind}{text}")),
        }
    };
    let mut splitter = ThinkSplitter::new(mode);
    for piece in pieces {
        splitter.push(piece, &mut keep);
    }
    splitter.finish(&mut keep);
    splitter.finish(|segment| panic!("{segment:?} after the end"));
    out
}

const CASES: &[(ThinkMode, &str, &[&str])] = &[
    (ThinkMode::Off, "<think>a</think>b", &["T:<think>a</think>b"]),
    (ThinkMode::Off, " \n", &["T: \n"]),
    (ThinkMode::On, "", &[]),
    (ThinkMode::On, "<think>plan</think>answer", &["R:plan", "T:answer"]),
    (ThinkMode::On, "<think>\nplan a\n\nb\n</think>\n\nanswer\n", &["R:plan a\n\nb", "T:answer\n"]),
    (ThinkMode::On, "\n <think>plan</think> answer", &["R:plan", "T:answer"]),
    (ThinkMode::On, "<thinking>plan</thinking>answer", &["R:plan", "T:answer"]),
    (ThinkMode::On, "<thought>plan</thought>answer", &["R:plan", "T:answer"]),
    (ThinkMode::On, "[THINK]plan[/THINK]answer", &["R:plan", "T:answer"]),
    (
        ThinkMode::On,
        "<|begin_of_thought|>\nplan\n<|end_of_thought|>\nanswer",
        &["R:plan", "T:answer"],
    ),
    // A block that is empty, as models leave it when told not to think.
    (ThinkMode::On, "<think>\n\n</think>\n\nanswer", &["T:answer"]),
    (ThinkMode::On, "<think></think>", &[]),
    // Only a block at the beginning counts.
    (ThinkMode::On, "say <think>a</think>b", &["T:say <think>a</think>b"]),
    (ThinkMode::On, "plan</think>answer", &["T:plan</think>answer"]),
    (ThinkMode::On, "<think>a</think>b<think>c</think>", &["R:a", "T:b<think>c</think>"]),
    (ThinkMode::On, "<think>a</think>\n<think>c</think>", &["R:a", "T:<think>c</think>"]),
    // Only its own tag closes a block.
    (ThinkMode::On, "<think>a</thinking>[/THINK]b</think>c", &["R:a</thinking>[/THINK]b", "T:c"]),
    (ThinkMode::On, "<think>a<think>b</think>c</think>d", &["R:a<think>b", "T:c</think>d"]),
    (ThinkMode::On, "<think>if a <b && c[0] </thin</think>d", &["R:if a <b && c[0] </thin", "T:d"]),
    (ThinkMode::On, "<think><</think>d", &["R:<", "T:d"]),
    // What looks like a tag.
    (ThinkMode::On, " \n<thin air>", &["T: \n<thin air>"]),
    (ThinkMode::On, "<thinks>a</thinks>", &["T:<thinks>a</thinks>"]),
    (ThinkMode::On, "<THINK>a</THINK>", &["T:<THINK>a</THINK>"]),
    (ThinkMode::On, "[1, 2]", &["T:[1, 2]"]),
    (ThinkMode::On, "\u{3000}<think>", &["T:\u{3000}<think>"]),
    // The answer ends too early.
    (ThinkMode::On, " <thin", &["T: <thin"]),
    (ThinkMode::On, "<think>", &[]),
    (ThinkMode::On, "<think>plan \n", &["R:plan"]),
    (ThinkMode::On, "<think>plan </thi", &["R:plan </thi"]),
    (ThinkMode::On, "<think>plan</think> \n", &["R:plan"]),
    // The template has opened the block.
    (ThinkMode::OpenAtStart, "plan</think>answer", &["R:plan", "T:answer"]),
    (ThinkMode::OpenAtStart, "\n plan \n</think>\n\nanswer", &["R:plan", "T:answer"]),
    (ThinkMode::OpenAtStart, "plan[/THINK]answer</think>", &["R:plan", "T:answer</think>"]),
    (ThinkMode::OpenAtStart, "\n<think>\nplan</think>answer", &["R:plan", "T:answer"]),
    (ThinkMode::OpenAtStart, "<thin air></think>answer", &["R:<thin air>", "T:answer"]),
    (ThinkMode::OpenAtStart, "</think>answer", &["T:answer"]),
    (
        ThinkMode::OpenAtStart,
        "plan <think> more</think>answer",
        &["R:plan <think> more", "T:answer"],
    ),
    (ThinkMode::OpenAtStart, " plan", &["R:plan"]),
    (ThinkMode::OpenAtStart, "\n<thin", &["R:<thin"]),
    (ThinkMode::OpenAtStart, "</thin", &["R:</thin"]),
    (ThinkMode::On, "<think>é 思</think>\u{3000}ü", &["R:é 思", "T:\u{3000}ü"]),
];

#[test]
fn thinking_is_split_from_the_text() {
    for (mode, answer, expected) in CASES {
        assert_eq!(split(*mode, &[answer]), *expected, "{mode:?} {answer}");
    }
}

#[test]
fn where_the_pieces_are_cut_does_not_matter() {
    for (mode, answer, expected) in CASES {
        let cuts: Vec<usize> =
            (0..=answer.len()).filter(|at| answer.is_char_boundary(*at)).collect();
        for &first in &cuts {
            for &second in cuts.iter().filter(|second| **second >= first) {
                let pieces = [&answer[..first], &answer[first..second], &answer[second..]];
                assert_eq!(split(*mode, &pieces), *expected, "{mode:?} {pieces:?}");
            }
        }
        let letters: Vec<&str> = cuts.windows(2).map(|cut| &answer[cut[0]..cut[1]]).collect();
        assert_eq!(split(*mode, &letters), *expected, "{mode:?} {answer} letter by letter");
    }
}

#[test]
fn no_more_is_held_back_than_may_be_a_tag() {
    let mut splitter = ThinkSplitter::new(ThinkMode::On);
    let mut seen = String::new();
    // Each piece, and what has come out after it.
    for (piece, expected) in [
        ("<thi", ""),
        ("nk>", ""),
        ("\n", ""),
        ("a", "a"),
        ("b <", "ab"),
        ("c", "ab <c"),
        ("</think", "ab <c"),
        ("ing", "ab <c</thinking"),
        ("</think>", "ab <c</thinking"),
        ("\n", "ab <c</thinking"),
        ("d<think", "ab <c</thinkingd<think"),
        (" ", "ab <c</thinkingd<think "),
    ] {
        splitter.push(piece, |segment| match segment {
            Segment::Text(text) | Segment::Reasoning(text) => seen.push_str(text),
        });
        assert_eq!(seen, expected, "after {piece:?}");
    }
}
