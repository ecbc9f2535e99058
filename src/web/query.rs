//! What is searched for.

use super::domains::Domain;

/// The longest query, in characters; providers may take less.
const LONGEST: usize = 1000;

/// One query, and what results it should have.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// What is searched for; see [`Query::new`].
    pub text: String,
    /// Results at most; a provider may have fewer.
    pub count: usize,
    /// Only results of these domains and what is below them. Empty: of all.
    pub allowed_domains: Vec<Domain>,
    /// No results of these domains and what is below them.
    pub blocked_domains: Vec<Domain>,
    /// Where the user is.
    pub location: Option<UserLocation>,
    /// How much of the results the model can take.
    pub context_size: ContextSize,
    /// Only results that are so new.
    pub recency: Option<Recency>,
}

impl Query {
    /// A query of this text, cleaned: control characters and runs of white space are one space, and what is too long is cut at a word.
    /// `None` when nothing is left.
    pub fn new(text: &str, count: usize) -> Option<Self> {
        let text = fit(text, LONGEST, usize::MAX);
        (!text.is_empty()).then(|| Self { text, count, ..Self::default() })
    }
}

/// Where the user is, as far as is known.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UserLocation {
    /// Two letters of ISO 3166, such as `NO`.
    pub country: Option<String>,
    /// A state or region, such as `California`.
    pub region: Option<String>,
    /// A city, such as `Oslo`.
    pub city: Option<String>,
    /// An IANA time zone, such as `Europe/Oslo`. No provider asks for it.
    pub timezone: Option<String>,
}

impl UserLocation {
    /// The country as two lower-case letters, if it is that.
    pub(super) fn country_code(&self) -> Option<String> {
        let code = self.country.as_deref()?.trim();
        (code.len() == 2 && code.bytes().all(|c| c.is_ascii_alphabetic()))
            .then(|| code.to_ascii_lowercase())
    }
}

/// How much of the results the model can take.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ContextSize {
    /// Little.
    Low,
    /// The usual amount.
    #[default]
    Medium,
    /// Much.
    High,
}

impl ContextSize {
    /// How many results a search has at most, whatever the number of its queries.
    pub fn most_hits(self) -> usize {
        match self {
            Self::Low => 8,
            Self::Medium => 20,
            Self::High => 40,
        }
    }

    /// The longest snippet, in characters.
    pub(super) fn longest_snippet(self) -> usize {
        match self {
            Self::Low => 300,
            Self::Medium => 1000,
            Self::High => 2000,
        }
    }
}

/// How new results must be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Recency {
    /// Of the last day.
    Day,
    /// Of the last week.
    Week,
    /// Of the last month.
    Month,
    /// Of the last year.
    Year,
}

impl Recency {
    /// `day`, `week`, `month` or `year`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    /// `d`, `w`, `m` or `y`.
    pub(super) fn letter(self) -> &'static str {
        &self.word()[..1]
    }

    /// In days.
    pub(super) fn days(self) -> i64 {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Month => 31,
            Self::Year => 366,
        }
    }
}

/// The text with control characters and runs of white space as one space, cut after a word so that it has at most so many characters
/// and words. A single word that is too long is cut itself.
pub(super) fn fit(text: &str, characters: usize, words: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for word in text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .take(words)
    {
        let longer = word.chars().count() + usize::from(length > 0);
        if length + longer > characters {
            if length == 0 {
                out.extend(word.chars().take(characters));
            }
            break;
        }
        if length > 0 {
            out.push(' ');
        }
        out.push_str(word);
        length += longer;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_cleaned_without_glueing_words() {
        for (text, expected) in [
            ("oslo weather", Some("oslo weather")),
            ("oslo\nweather\u{0}now\u{7f}x", Some("oslo weather now x")),
            ("  a \t\r\n b\u{a0}c ", Some("a b c")),
            ("\u{85}x\u{9b}y", Some("x y")),
            (" \u{1} ", None),
            ("", None),
        ] {
            let query = Query::new(text, 5);
            assert_eq!(query.as_ref().map(|query| query.text.as_str()), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_too_long_is_cut_at_a_word() {
        for (text, characters, words, expected) in [
            ("aa bb cc", 8, 9, "aa bb cc"),
            ("aa bb cc", 7, 9, "aa bb"),
            ("aa bb cc", 99, 2, "aa bb"),
            ("äöüß", 2, 9, "äö"),
            ("a äöüß", 4, 9, "a"),
            ("", 4, 9, ""),
        ] {
            assert_eq!(fit(text, characters, words), expected, "{text} {characters} {words}");
        }
    }

    #[test]
    fn a_country_is_two_letters_or_nothing() {
        for (country, expected) in
            [("NO", Some("no")), (" us ", Some("us")), ("Norway", None), ("1x", None), ("é", None)]
        {
            let location =
                UserLocation { country: Some(country.to_owned()), ..UserLocation::default() };
            assert_eq!(location.country_code().as_deref(), expected, "{country}");
        }
    }
}
