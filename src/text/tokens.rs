//! How many tokens a text has for a model, or nearly so.
//!
//! OpenAI's own vocabularies count exactly. For other families the nearest of them counts, which is a few percent off; for a family that
//! nobody knows, characters do. A vocabulary costs 25 to 50 MB and some time, so it is loaded when it is first needed.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

use super::picture;

/// So many bytes of a prompt are counted exactly; of what comes after them the characters are.
const EXACT: usize = 4 << 20;
/// Long texts are read in pieces of so many bytes, which may cost a token for each.
const PIECE: usize = 64 << 10;

/// A vocabulary.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Vocabulary {
    /// Of GPT-4o and later; near to what reads many languages well.
    O200k,
    /// Of GPT-4; near to what grew from it.
    Cl100k,
    /// None: characters are counted.
    Characters,
}

/// The families, by a word in the name of a model; the first that fits counts.
const FAMILIES: &[(&str, Vocabulary)] = &[
    ("gpt-oss", Vocabulary::O200k),
    ("gpt-4o", Vocabulary::O200k),
    ("gpt-4.", Vocabulary::O200k),
    ("gpt-5", Vocabulary::O200k),
    ("gpt-4", Vocabulary::Cl100k),
    ("gpt-3.5", Vocabulary::Cl100k),
    ("gpt-35", Vocabulary::Cl100k),
    ("text-embedding", Vocabulary::Cl100k),
    ("codex", Vocabulary::O200k),
    ("llama-4", Vocabulary::O200k),
    ("llama4", Vocabulary::O200k),
    // Distilled into other models, whose vocabulary they keep.
    ("distill-llama", Vocabulary::Cl100k),
    ("deepseek", Vocabulary::O200k),
    ("qwen", Vocabulary::O200k),
    ("qwq", Vocabulary::O200k),
    ("gemma", Vocabulary::O200k),
    ("gemini", Vocabulary::O200k),
    ("glm", Vocabulary::O200k),
    ("kimi", Vocabulary::O200k),
    ("minimax", Vocabulary::O200k),
    ("nemo", Vocabulary::O200k),
    ("llama", Vocabulary::Cl100k),
    ("mixtral", Vocabulary::Cl100k),
    ("mistral", Vocabulary::Cl100k),
    ("ministral", Vocabulary::Cl100k),
    ("magistral", Vocabulary::Cl100k),
    ("devstral", Vocabulary::Cl100k),
    ("codestral", Vocabulary::Cl100k),
    ("phi", Vocabulary::Cl100k),
    ("granite", Vocabulary::Cl100k),
    ("smollm", Vocabulary::Cl100k),
    ("command", Vocabulary::O200k),
    ("claude", Vocabulary::O200k),
];

impl Vocabulary {
    /// The vocabulary nearest to a model's own.
    pub fn for_model(model: &str) -> Self {
        let name = model.to_ascii_lowercase();
        let last = name.rsplit('/').next().unwrap_or_default();
        let is_o_series = ["o1", "o3", "o4"]
            .iter()
            .filter_map(|series| last.strip_prefix(series))
            .any(|rest| rest.is_empty() || rest.starts_with('-'));
        if is_o_series || last.starts_with("chatgpt") {
            return Self::O200k;
        }
        FAMILIES
            .iter()
            .find(|(word, _)| name.contains(word))
            .map_or(Self::Characters, |(_, vocabulary)| *vocabulary)
    }
}

/// Counts the tokens of one prompt.
pub struct TokenCounter {
    vocabulary: Option<&'static CoreBPE>,
    /// So many bytes may still be counted exactly.
    exact: usize,
}

impl TokenCounter {
    /// A counter with the vocabulary nearest to the model's. Loads it, when this is the first use of it.
    pub fn for_model(model: &str) -> Self {
        let vocabulary = match Vocabulary::for_model(model) {
            Vocabulary::O200k => Some(o200k_base_singleton()),
            Vocabulary::Cl100k => Some(cl100k_base_singleton()),
            Vocabulary::Characters => None,
        };
        Self { vocabulary, exact: EXACT }
    }

    /// The tokens of a text.
    pub fn text(&mut self, text: &str) -> u64 {
        let Some(vocabulary) = self.vocabulary else { return by_characters(text) };
        let mut rest = text;
        let mut tokens = 0;
        while !rest.is_empty() && self.exact > 0 {
            let (piece, after) = rest.split_at(piece_end(rest));
            tokens += count(vocabulary.count_ordinary(piece));
            self.exact = self.exact.saturating_sub(piece.len());
            rest = after;
        }
        tokens + by_characters(rest)
    }

    /// The tokens of a picture. `low` is 85. Else it is fitted into 2048 × 2048, its shorter side brought down to 768, and each tile of
    /// 512 × 512 that it then touches is 170, and 85 once. A picture whose size cannot be seen counts as 1024 × 1024.
    pub fn image(&self, url: &str, detail: &str) -> u64 {
        if detail == "low" {
            return 85;
        }
        let (width, height) = picture::size_of_url(url).unwrap_or((1024, 1024));
        85 + 170 * tiles(f64::from(width), f64::from(height))
    }

    /// The tokens of a file, given in base64 or as a `data:` URL. Text counts as text; of anything else 64 bytes are one.
    pub fn file(&mut self, data: &str) -> u64 {
        let (kind, encoded) =
            data.strip_prefix("data:").and_then(|rest| rest.split_once(',')).unwrap_or(("", data));
        let is_text = kind.starts_with("text/") || kind.starts_with("application/json");
        if is_text && let Ok(bytes) = STANDARD.decode(encoded) {
            return self.text(&String::from_utf8_lossy(&bytes));
        }
        count(encoded.len() * 3 / 4 / 64)
    }

    /// The tokens of sound, from its JSON: ten a second, a second being 16 kB.
    pub fn audio(&self, json: &str) -> u64 {
        count(json.len() * 3 / 4 / 1600)
    }
}

/// Where to cut a text that is too long to be read at once: after a space where there is one.
fn piece_end(text: &str) -> usize {
    if text.len() <= PIECE {
        return text.len();
    }
    let end = text.floor_char_boundary(PIECE);
    let head = &text[..end];
    // A word and the blank before it are one token, so the blank begins the next piece.
    match head.rfind(' ') {
        Some(at) if at > PIECE / 2 => at,
        _ => end,
    }
}

fn tiles(width: f64, height: f64) -> u64 {
    let fit = (2048.0 / width.max(height)).min(1.0);
    let (width, height) = (width * fit, height * fit);
    let shrink = (768.0 / width.min(height)).min(1.0);
    let across = (width * shrink / 512.0).ceil().max(1.0);
    let down = (height * shrink / 512.0).ceil().max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 4 × 4, and positive"
    )]
    {
        (across.min(16.0) * down.min(16.0)) as u64
    }
}

/// An estimate from the characters: in twelfths of a token, as the vocabularies of today come out on average.
fn by_characters(text: &str) -> u64 {
    let mut twelfths = 0;
    let mut after_blank = false;
    for c in text.chars() {
        twelfths += match c {
            'a'..='z' | 'A'..='Z' => 3,
            '0'..='9' | '\n' | '\r' => 4,
            // A blank belongs to the word after it; a run of them is one token or two.
            ' ' | '\t' if after_blank => 1,
            ' ' | '\t' => 0,
            // Code: brackets and operators often stand alone.
            c if c.is_ascii() => 8,
            c if is_cjk(c) => 9,
            c if c.is_alphabetic() => 5,
            _ => 16,
        };
        after_blank = matches!(c, ' ' | '\t' | '\n');
    }
    u64::div_ceil(twelfths, 12)
}

fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{3000}'..='\u{30ff}'     // punctuation, kana
        | '\u{3400}'..='\u{9fff}'   // ideographs
        | '\u{ac00}'..='\u{d7af}'   // hangul
        | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ffef}'   // full width
        | '\u{20000}'..='\u{3ffff}')
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "tokens_tests.rs"]
mod tests;
