//! Which tools requests may name, and what is missing for the others. Told at start and by `antiphon config check`.

use super::{Config, SearchApi};

/// The tools of a configuration.
#[derive(Debug, Default, PartialEq)]
pub struct Offered {
    /// Types that requests may name, with what stands behind them in brackets.
    pub there: Vec<String>,
    /// Types that are refused: the type, and what to set in brackets.
    pub missing: Vec<String>,
}

/// What requests may name in `tools` of what this server runs.
pub fn offered(config: &Config) -> Offered {
    let tools = &config.tools;
    let mut offered = Offered::default();
    let mut note = |kind: &str, is_there: bool, behind: Option<&str>, key: &str| match behind {
        _ if !is_there => offered.missing.push(format!("{kind} (set {key})")),
        Some(behind) => offered.there.push(format!("{kind} ({behind})")),
        None => offered.there.push(kind.to_owned()),
    };
    let search = tools.web_search.provider.map(SearchApi::word);
    note("web_search", search.is_some(), search, "tools.web_search.provider");
    let pictures = tools.image_generation.base_url.as_ref();
    let host = pictures.and_then(|url| url.host_str());
    note("image_generation", pictures.is_some(), host, "tools.image_generation.base_url");
    let labels: Vec<&str> = config.mcp.connectors.keys().map(String::as_str).collect();
    let connectors = format!("connectors: {}", labels.join(", "));
    note("mcp", true, (!labels.is_empty()).then_some(&*connectors), "mcp");
    note("antiphon:openapi", true, None, "tools.openapi");
    for (kind, enabled, key) in [
        ("antiphon:open_url", tools.open_url.enabled, "tools.open_url.enabled"),
        ("antiphon:memory", tools.memory.enabled, "tools.memory.enabled"),
        ("antiphon:read_file", tools.read_file.enabled, "tools.read_file.enabled"),
        ("antiphon:clock", tools.get_current_time.enabled, "tools.get_current_time.enabled"),
    ] {
        note(kind, enabled, None, key);
    }
    offered
}

impl SearchApi {
    /// How it is called in the configuration.
    const fn word(self) -> &'static str {
        match self {
            Self::Searxng => "searxng",
            Self::Exa => "exa",
            Self::Brave => "brave",
            Self::Serper => "serper",
            Self::Tavily => "tavily",
            Self::GooglePse => "google_pse",
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use crate::config::{Environment, Sources};

    use super::*;

    fn of(file: &str) -> Offered {
        let env = Environment::from_iter([("KEY", "secret")]);
        offered(&Sources::new(&env).load_text("t.toml".as_ref(), file).unwrap().config)
    }

    #[test]
    fn without_settings_only_providers_are_missing() {
        assert_eq!(
            of(""),
            Offered {
                there: [
                    "mcp",
                    "antiphon:openapi",
                    "antiphon:open_url",
                    "antiphon:memory",
                    "antiphon:read_file",
                    "antiphon:clock"
                ]
                .map(str::to_owned)
                .to_vec(),
                missing: vec![
                    "web_search (set tools.web_search.provider)".to_owned(),
                    "image_generation (set tools.image_generation.base_url)".to_owned(),
                ],
            }
        );
    }

    #[test]
    fn what_is_set_up_is_named_and_what_is_switched_off_is_missing() {
        let Offered { there, missing } = of(r#"
            [tools.web_search]
            provider = "google_pse"
            engine_id = "e"
            api_key_env = "KEY"
            [tools.image_generation]
            base_url = "https://images.example/v1"
            [tools.memory]
            enabled = false
            [mcp.connectors.files]
            command = "mcp-server-filesystem"
            [mcp.connectors.github]
            url = "https://mcp.example/mcp"
            "#);
        assert_eq!(
            there[..3],
            [
                "web_search (google_pse)",
                "image_generation (images.example)",
                "mcp (connectors: files, github)"
            ]
        );
        assert_eq!(missing, ["antiphon:memory (set tools.memory.enabled)"]);
    }

    #[test]
    fn a_provider_is_named_as_the_file_names_it() {
        for word in ["searxng", "exa", "brave", "serper", "tavily", "google_pse"] {
            let api: SearchApi = serde_json::from_value(word.into()).unwrap();
            assert_eq!(api.word(), word);
        }
    }
}
