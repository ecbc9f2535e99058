use super::*;

#[test]
fn a_short_text_is_whole() {
    assert_eq!(around("short text", Some("text"), 10), "short text");
    assert_eq!(around("", None, 10), "");
}

#[test]
fn a_window_is_around_its_snippet_and_marked_where_it_is_cut() {
    let text = format!("{}the NEEDLE here{}", "ä ".repeat(500), " ö".repeat(500));
    let count = |text: &str| text.chars().count();
    let middle = around(&text, Some("the needle  here"), 200);
    assert!(
        middle.starts_with("[...truncated] ") && middle.ends_with(" [...truncated]"),
        "{middle}"
    );
    assert_eq!(count(&middle), 200);
    let (before, after) = middle.split_once("the NEEDLE here").unwrap();
    assert!(count(before).abs_diff(count(after)) <= 1, "{before}|{after}");

    let start = around(&text, None, 200);
    assert!(start.starts_with("ä ") && start.ends_with(" [...truncated]"));
    assert_eq!(start, around(&text, Some("not there at all, nowhere"), 200));

    let text = format!("{} the end", "x ".repeat(500));
    let end = around(&text, Some("the end"), 200);
    assert!(end.starts_with("[...truncated] x") && end.ends_with(" the end"), "{end}");
    assert_eq!(count(&end), 200 - count(" [...truncated]"), "room at an end is not used twice");
}

#[test]
fn a_window_of_any_size_is_no_trouble() {
    let text = "Grüße aus Köln, 東京 und überall. ".repeat(20);
    for most in 0..100 {
        for snippet in [None, Some("東京"), Some("Grüße")] {
            assert!(
                around(&text, snippet, most).chars().count() <= most.max(2 * (MARK.len() + 1)),
                "{most}"
            );
        }
    }
}

#[test]
fn a_budget_is_shared_fairly() {
    for (lengths, total, expected) in [
        (&[10, 20, 30][..], 100, &[10, 20, 30][..]),
        (&[100, 100], 100, &[50, 50]),
        (&[10, 100, 100], 100, &[10, 45, 45]),
        (&[100, 10, 40], 100, &[50, 10, 40]),
        (&[100, 100, 100], 100, &[33, 33, 34]),
        (&[], 100, &[]),
        (&[5, 5], 0, &[0, 0]),
    ] {
        assert_eq!(shares(lengths, total), expected, "{lengths:?} {total}");
        assert!(shares(lengths, total).iter().sum::<usize>() <= total);
    }
}
