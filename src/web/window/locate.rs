//! Where in a page a search result's snippet stands.

use std::{collections::HashMap, ops::Range};

use super::fold::Folded;

/// Of so many words of a snippet, in percent, a passage must have to be it.
const ENOUGH: usize = 80;
/// With fewer words anything is like anything.
const LEAST_WORDS: usize = 4;
/// Words of a snippet that are compared at most.
const MOST_WORDS: usize = 200;

/// Where the text has the snippet: word for word, else but for case, white space and Markdown, else the passage that has most of its words,
/// if these are enough. A snippet of several pieces is looked for by its longest.
pub(super) fn locate(text: &str, snippet: &str) -> Option<Range<usize>> {
    let piece = snippet
        .split(['…'])
        .flat_map(|part| part.split("..."))
        .map(str::trim)
        .max_by_key(|part| part.len())?;
    if piece.is_empty() {
        return None;
    }
    if let Some(at) = text.find(piece) {
        return Some(at..at + piece.len());
    }
    let (folded, wanted) = (Folded::new(text), Folded::new(piece));
    let wanted = wanted.text.trim();
    if wanted.is_empty() {
        return None;
    }
    let found = match folded.text.find(wanted) {
        Some(at) => at..at + wanted.len(),
        None => alike(&folded.text, wanted)?,
    };
    Some(folded.origin(text, found))
}

/// The passage of as many words as `wanted` that shares most of them.
fn alike(text: &str, wanted: &str) -> Option<Range<usize>> {
    let mut lacking: HashMap<&str, i64> = HashMap::new();
    let wanted: Vec<&str> = words(wanted).map(|(_, word)| word).take(MOST_WORDS).collect();
    if wanted.len() < LEAST_WORDS {
        return None;
    }
    for word in &wanted {
        *lacking.entry(*word).or_default() += 1;
    }
    let passage: Vec<(usize, &str)> = words(text).collect();
    let (mut shared, mut best): (usize, Option<(usize, usize)>) = (0, None);
    for (end, (_, word)) in passage.iter().enumerate() {
        // The word that enters the passage, and the one that leaves it.
        if let Some(count) = lacking.get_mut(word) {
            shared += usize::from(*count > 0);
            *count -= 1;
        }
        if let Some(left) = end.checked_sub(wanted.len())
            && let Some(count) = lacking.get_mut(passage[left].1)
        {
            *count += 1;
            shared -= usize::from(*count > 0);
        }
        if best.is_none_or(|(most, _)| shared > most) {
            best = Some((shared, end));
        }
    }
    let (shared, end) = best?;
    if shared * 100 < wanted.len() * ENOUGH {
        return None;
    }
    let start = (end + 1).saturating_sub(wanted.len());
    let (first, (last, word)) = (passage[start].0, passage[end]);
    Some(first..last + word.len())
}

/// The words of a text with where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let begin = rest + text[rest..].find(char::is_alphanumeric)?;
        let after = &text[begin..];
        let end = begin + after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len());
        rest = end;
        Some((begin, &text[begin..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "Intro words come first.\n\nThe **quick** brown fox\njumps over the [lazy](x) dog. Then it rests.\n\nGrüße aus Köln.";

    fn found(snippet: &str) -> Option<&'static str> {
        locate(PAGE, snippet).map(|range| &PAGE[range])
    }

    #[test]
    fn snippets_are_found_as_well_as_they_fit() {
        for (snippet, expected) in [
            ("Then it rests.", Some("Then it rests.")),
            ("the quick BROWN fox jumps", Some("The **quick** brown fox\njumps")),
            ("… the quick brown fox jumps ... it rests", Some("The **quick** brown fox\njumps")),
            ("grüße AUS köln", Some("Grüße aus Köln")),
            ("The quick red fox jumps over", Some("The **quick** brown fox\njumps over")),
            ("The slow red fox sleeps under", None),
            ("no such", None),
            ("* * *", None),
            ("...", None),
            ("", None),
        ] {
            assert_eq!(found(snippet), expected, "{snippet}");
        }
        assert_eq!(locate("", "x"), None);
    }

    #[test]
    fn the_best_passage_wins_and_repeated_words_count_once_each() {
        let page = "one two three nine nine, one one one one one, one two three four nine";
        let range = locate(page, "one two three four five").unwrap();
        assert_eq!(&page[range], "one, one two three four", "of equals the first");
        assert_eq!(locate("one one one one one", "one two three four five"), None);
    }

    #[test]
    fn hostile_text_takes_linear_time() {
        let page = "a b ".repeat(500_000);
        let snippet = format!("{}z", "a b ".repeat(100));
        assert!(locate(&page, &snippet).is_some());
        let run = "a".repeat(1_000_000);
        assert_eq!(locate(&run, &format!("{}b", "a".repeat(1000))), None);
    }
}
