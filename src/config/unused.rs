//! Keys that are read and checked, but that nothing in this version acts on. Whoever sets one is told so at start.

use super::Config;

/// What is set and changes nothing yet: the key, and what it is waiting for.
pub fn unused(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    let mut note = |is_set: bool, key: &str, why: &str| {
        if is_set {
            found.push(format!("`{key}` is set and changes nothing in this version: {why}."));
        }
    };
    note(config.models.embedding.is_some(), "models.embedding", "there is no retrieval");
    let windows = config.models.overrides.iter().any(|model| model.window.is_some());
    note(windows, "models.overrides.window", "histories are not shortened");
    found
}

#[cfg(test)]
mod tests {
    use crate::config::{Environment, Sources};

    use super::*;

    #[test]
    fn only_what_is_set_and_has_no_effect_is_told() {
        let env = Environment::from_iter([("ANTIPHON_MODELS__EMBEDDING", "e")]);
        let loaded =
            Sources::new(&env).load_text("t.toml".as_ref(), "[engine]\nretries = 1").unwrap();
        assert_eq!(
            unused(&loaded.config),
            [
                "`models.embedding` is set and changes nothing in this version: there is no retrieval."
            ]
        );
    }
}
