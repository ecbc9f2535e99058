//! Finding a text in a page.

use memchr::memmem::Finder;

use super::{byte_of, fold::Folded};

/// Characters shown before and after a match.
const CONTEXT: usize = 200;
/// Matches shown at most; all are counted.
const MOST: usize = 20;
/// The longest pattern, in characters.
const LONGEST: usize = 500;

/// Where a page has a text.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Matches {
    /// The first ones, in their order. One that stands in the excerpt of the one before it has none of its own.
    pub shown: Vec<Match>,
    /// How many there are in all.
    pub total: usize,
}

/// One place where a page has a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Match {
    /// How many characters stand before it on the page.
    pub at: usize,
    /// It with what stands around it.
    pub excerpt: String,
}

/// Finds `pattern`, whatever its case, white space and Markdown. Patterns are not expressions: every character stands for itself.
pub fn find(text: &str, pattern: &str) -> Matches {
    let folded = Folded::new(text);
    let pattern = Folded::new(&pattern[..byte_of(pattern, LONGEST)]);
    let pattern = pattern.text.trim();
    let mut matches = Matches::default();
    if pattern.is_empty() {
        return matches;
    }
    // The end of the last excerpt, and the last place whose number is known.
    let (mut shown_to, mut counted) = (0, (0, 0));
    for at in Finder::new(pattern).find_iter(folded.text.as_bytes()) {
        matches.total += 1;
        let range = folded.origin(text, at..at + pattern.len());
        if matches.shown.len() == MOST || range.end <= shown_to {
            continue;
        }
        counted = (range.start, counted.1 + text[counted.0..range.start].chars().count());
        let start = text[..range.start]
            .char_indices()
            .rev()
            .nth(CONTEXT - 1)
            .map_or(0, |(at, _)| at)
            .max(shown_to);
        let end = range.end + byte_of(&text[range.end..], CONTEXT);
        shown_to = end;
        matches.shown.push(Match { at: counted.1, excerpt: text[start..end].to_owned() });
    }
    matches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpts(text: &str, pattern: &str) -> Vec<(usize, String)> {
        find(text, pattern).shown.into_iter().map(|found| (found.at, found.excerpt)).collect()
    }

    #[test]
    fn matches_come_with_what_is_around_them() {
        let filler = "äb ".repeat(200);
        let text = format!("{filler}**The  Needle**{filler}the\nneedle.");
        let found = find(&text, " the needle ");
        assert_eq!(found.total, 2);
        assert_eq!(found.shown[0].at, 602);
        assert_eq!(found.shown[1].at, 602 + 13 + 600);
        let excerpt = &found.shown[0].excerpt;
        assert!(excerpt.contains("**The  Needle**"), "{excerpt}");
        assert_eq!(excerpt.chars().count(), CONTEXT + "The  Needle".len() + CONTEXT);
        assert!(found.shown[1].excerpt.ends_with("the\nneedle."));
    }

    #[test]
    fn near_matches_share_an_excerpt() {
        assert_eq!(excerpts("x y x y x", "x"), [(0, "x y x y x".to_owned())]);
        assert_eq!(find("x y x y x", "x").total, 3);
        assert_eq!(find("aaaa", "aa").total, 2, "they do not overlap");
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        for (text, pattern) in [
            ("text", ""),
            ("text", " \n"),
            ("text", "**"),
            ("", "x"),
            ("text", "exx"),
            ("a.c", "a?c"),
        ] {
            assert_eq!(find(text, pattern), Matches::default(), "{text} {pattern}");
        }
    }

    #[test]
    fn no_more_is_shown_than_can_be_used() {
        let text = format!("needle{}", " hay".repeat(200)).repeat(1000);
        let found = find(&text, "needle");
        assert_eq!((found.shown.len(), found.total), (MOST, 1000));
        let found = find(&"a".repeat(2_000_000), &"a".repeat(1000));
        assert_eq!((found.shown.len(), found.total), (MOST, 4000));
    }

    #[test]
    fn any_cut_of_a_page_is_fine() {
        let text = "Grüße, **Köln** & 東京\n[x](y)";
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            for pattern in ["köln", "東京", "grüße", "x"] {
                assert_eq!(
                    find(&text[..cut], pattern).total > 0,
                    excerpts(&text[..cut], pattern).len() == 1
                );
            }
        }
    }
}
