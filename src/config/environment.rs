use std::{collections::BTreeMap, fmt, path::PathBuf};

/// The environment as a map. Debug output shows the names only: the values may be secrets.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The environment of this process. Variables that are not UTF-8 are left out: no setting can hold them.
    pub fn of_process() -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the reader of the environment")]
        let all = std::env::vars_os();
        Self(
            all.filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.into_string().ok()?))
            })
            .collect(),
        )
    }

    /// A variable's value; one that is set to nothing counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The variables whose names begin with `prefix`, as (rest of the name, value), in the order of their names.
    pub(super) fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .iter()
            .filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Directories that the environment names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// `PG_BIN`: where the programs of Postgres are.
    pub pg_bin: Option<PathBuf>,
    /// `PATH`, in order.
    pub path: Vec<PathBuf>,
    /// `XDG_DATA_HOME`, else `~/.local/share`. `None` without a home.
    pub data_home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`, else `~/.cache`. `None` without a home.
    pub cache_home: Option<PathBuf>,
}

impl Places {
    pub(super) fn of(env: &Environment) -> Self {
        // The XDG specification: a path that is not absolute is to be ignored.
        let absolute = |name| env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let under_home = |rest| absolute("HOME").map(|home| home.join(rest));
        Self {
            pg_bin: env.get("PG_BIN").map(PathBuf::from),
            path: env
                .get("PATH")
                .map(|path| std::env::split_paths(path).collect())
                .unwrap_or_default(),
            data_home: absolute("XDG_DATA_HOME").or_else(|| under_home(".local/share")),
            cache_home: absolute("XDG_CACHE_HOME").or_else(|| under_home(".cache")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_environment() {
        let env = Environment::from_iter([
            ("HOME", "/home/ada"),
            ("XDG_CACHE_HOME", "/var/cache/ada"),
            ("XDG_DATA_HOME", "not/absolute"),
            ("PATH", "/usr/bin:/bin"),
            ("PG_BIN", ""),
        ]);
        let expected = Places {
            pg_bin: None,
            path: vec!["/usr/bin".into(), "/bin".into()],
            data_home: Some("/home/ada/.local/share".into()),
            cache_home: Some("/var/cache/ada".into()),
        };
        assert_eq!(Places::of(&env), expected);
        assert_eq!(Places::of(&Environment::default()), Places::default());
    }

    #[test]
    fn debug_output_shows_no_values() {
        let env = Environment::from_iter([("OPENAI_API_KEY", "sk-123")]);
        assert_eq!(format!("{env:?}"), r#"{"OPENAI_API_KEY"}"#);
    }
}
