use std::{fmt, path::PathBuf};

/// Where a setting came from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// It was not set.
    Default,
    /// The configuration file.
    File(PathBuf),
    /// An environment variable, by its name.
    Variable(String),
    /// An option of the command line, such as `--listen`.
    CommandLine(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("not set"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::CommandLine(flag) => write!(f, "option {flag}"),
        }
    }
}

/// One thing that is wrong with the configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// The key, such as `upstreams[0].base_url`; empty when it is about the file as a whole.
    pub key: String,
    /// Where it was set.
    pub origin: Origin,
    /// What is wrong, and what would be right.
    pub message: String,
    /// The keys that may stand there, when this one may not.
    pub known: Vec<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "{}: {}", self.origin, self.message),
            key => write!(f, "`{key}` ({}): {}", self.origin, self.message),
        }
    }
}

/// The configuration cannot be used. Prints one problem per line; holds no secret.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the configuration cannot be used:{}", lines(.problems))]
pub struct ConfigError {
    /// What is wrong: all that is, once every key could be read; before that the first.
    pub problems: Vec<Problem>,
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |lines, problem| lines + "\n  " + &problem.to_string())
}

impl From<Problem> for ConfigError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

/// "Did you mean", when one of `known` is close enough to `wrong`; else all of them.
pub(super) fn hint(wrong: &str, known: &[String]) -> String {
    let close = known.iter().map(|name| (distance(wrong, name), name)).min();
    match close {
        Some((distance, name)) if distance <= 1 + wrong.len() / 4 => {
            format!("did you mean `{name}`?")
        }
        _ if known.is_empty() => "nothing can be set there".to_owned(),
        _ => {
            let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("there may be {}", names.join(", "))
        }
    }
}

/// Single-character edits from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cb, above) in b.chars().zip(row.iter_mut().skip(1)) {
            let cell = (diagonal + usize::from(ca != cb)).min(left + 1).min(*above + 1);
            diagonal = *above;
            left = cell;
            *above = cell;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("base_ulr", "base_url", 2),
            ("ä", "a", 1),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_hint_is_the_nearest_or_everything() {
        let known = ["base_url".to_owned(), "weight".to_owned()];
        assert_eq!(hint("base_ulr", &known), "did you mean `base_url`?");
        assert_eq!(hint("colour", &known), "there may be `base_url`, `weight`");
        assert_eq!(hint("colour", &[]), "nothing can be set there");
    }
}
