//! What of a page a model is shown. Pure, and linear in the page.
//!
//! [`around`] is a window of it, around the passage that a search found if there is one; [`shares`] divides a budget over several pages;
//! [`find()`] finds a text in it. Sizes are in characters, not bytes.

mod find;
mod fold;
mod locate;

pub use self::find::{Match, Matches, find};

use self::locate::locate;

/// The usual size of a window.
pub const PAGE: usize = 15_000;
/// The usual size of all windows of one answer.
pub const TOTAL: usize = 150_000;

/// Stands where something was left out.
const MARK: &str = "[...truncated]";

/// A window of at most `most` characters into the text, its marks included: around the passage that fits `snippet` best, else from the
/// start. What is left out is marked.
pub fn around(text: &str, snippet: Option<&str>, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    // A mark with its space at both ends, wherever they are needed.
    let room = most.saturating_sub(2 * (MARK.len() + 1));
    let centre = snippet.and_then(|snippet| locate(text, snippet)).map_or(0, |range| {
        let before = text[..range.start].chars().count();
        before + text[range].chars().count() / 2
    });
    let start = centre.saturating_sub(room / 2).min(length - room);
    let (from, to) = (byte_of(text, start), byte_of(text, start + room));
    let mut window = String::with_capacity(to - from + 2 * MARK.len() + 2);
    if from > 0 {
        window.push_str(MARK);
        window.push(' ');
    }
    window.push_str(&text[from..to]);
    if to < text.len() {
        window.push(' ');
        window.push_str(MARK);
    }
    window
}

/// How many characters each of several texts of these lengths may have, so that all have `total` at most: the short ones are whole, and what
/// they do not need goes to the long ones, alike.
pub fn shares(lengths: &[usize], total: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|place| lengths[*place]);
    let mut shares = vec![0; lengths.len()];
    let mut left = total;
    for (done, place) in order.iter().enumerate() {
        let share = lengths[*place].min(left / (lengths.len() - done));
        shares[*place] = share;
        left -= share;
    }
    shares
}

/// Where the character with this number begins; the end when there are fewer.
fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
