//! Cuts a text that is too long for a model, and says in it what was left out.

/// Of what is kept, this share stands at the end: results often close with what matters.
const TAIL: usize = 5;

/// Cuts the middle out of a text of more than `most` tokens. Gives the tokens that are left, roughly: four plain characters are one, any other
/// character is one.
pub fn cap_tokens(text: &mut String, most: usize) -> usize {
    // Nothing shorter can be too long.
    let quarters = if text.len() <= most { text.len() } else { weight(text) };
    if quarters.div_ceil(4) <= most {
        return quarters.div_ceil(4);
    }
    let budget = most.saturating_mul(4);
    let head = prefix(text.chars(), budget - budget / TAIL);
    let tail = prefix(text.chars().rev(), budget / TAIL).min(text.len() - head);
    let end = text.len() - tail;
    let left_out = text[head..end].chars().count();
    let note = format!("\n[… {left_out} characters left out here: the result is too long …]\n");
    text.replace_range(head..end, &note);
    most
}

/// The quarters of tokens that a character stands for.
const fn quarters(c: char) -> usize {
    if c.is_ascii() { 1 } else { 4 }
}

fn weight(text: &str) -> usize {
    text.chars().map(quarters).sum()
}

/// How many bytes of these characters fit in a budget.
fn prefix(chars: impl Iterator<Item = char>, budget: usize) -> usize {
    let mut left = budget;
    let mut bytes = 0;
    for c in chars {
        let Some(rest) = left.checked_sub(quarters(c)) else { break };
        left = rest;
        bytes += c.len_utf8();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_both_ends_and_says_what_is_missing() {
        for (text, most, expected, tokens) in [
            ("short", 10, "short".to_owned(), 2),
            ("", 0, String::new(), 0),
            (&*"a".repeat(40), 10, "a".repeat(40), 10),
            (
                &*format!("HEAD{}TAIL", "a".repeat(100)),
                10,
                format!(
                    "HEAD{}\n[… 68 characters left out here: the result is too long …]\n{}TAIL",
                    "a".repeat(28),
                    "a".repeat(4)
                ),
                10,
            ),
            (
                "日本語日本語",
                3,
                "日本\n[… 4 characters left out here: the result is too long …]\n".to_owned(),
                3,
            ),
            ("ab", 0, "\n[… 2 characters left out here: the result is too long …]\n".to_owned(), 0),
        ] {
            let mut capped = text.to_owned();
            let used = cap_tokens(&mut capped, most);
            assert_eq!((capped, used), (expected, tokens), "{text}");
        }
    }
}
