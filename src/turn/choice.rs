//! How the request wants the model to choose among its tools.

use std::collections::HashSet;

use crate::protocol::{
    ToolChoice,
    tool::{ChoiceRule, ToolMode},
};

use super::catalog::{Catalog, ClientKind, Target};

/// What the first Round must call.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum FirstChoice {
    /// Nothing at all, in no Round.
    None,
    /// Nothing in particular.
    #[default]
    Auto,
    /// Something.
    Required,
    /// The function of this name for the model.
    Named(String),
}

impl Catalog {
    /// Takes in what the request says about choosing. The error is the path of the wrong field and a sentence.
    pub(super) fn choose(
        &mut self,
        choice: &ToolChoice,
        absent: &[&str],
    ) -> Result<(), (String, String)> {
        let unknown = |what: &str| {
            (
                "tool_choice".to_owned(),
                format!(
                    "Tool choice {what} not found in `tools`. Name a tool that the request offers."
                ),
            )
        };
        self.choice = match choice {
            ToolChoice::Mode(mode) => mode_of(*mode),
            ToolChoice::Rule(ChoiceRule::Function { name, namespace }) => {
                let key = (namespace.clone(), name.clone());
                let named = self.names.get(&key).or_else(|| self.in_any_namespace(name));
                FirstChoice::Named(named.ok_or_else(|| unknown(&format!("`{name}`")))?.clone())
            }
            ToolChoice::Rule(ChoiceRule::Custom { name }) => {
                let named =
                    self.names.get(&(None, name.clone())).or_else(|| self.in_any_namespace(name));
                FirstChoice::Named(named.ok_or_else(|| unknown(&format!("`{name}`")))?.clone())
            }
            ToolChoice::Rule(ChoiceRule::AllowedTools { mode, tools }) => {
                let mut allowed = HashSet::new();
                for tool in tools {
                    let label = tool.extra.get("server_label").and_then(|label| label.as_str());
                    let named = match (&tool.name, label) {
                        (None, Some(label)) => self.of_server(label),
                        (Some(name), Some(label)) => {
                            let key = (Some(label.to_owned()), name.clone());
                            self.names.get(&key).into_iter().cloned().collect()
                        }
                        (name, None) => {
                            let name = name.as_deref().unwrap_or(&tool.kind);
                            self.names
                                .get(&(None, name.to_owned()))
                                .or_else(|| self.in_any_namespace(name))
                                .or_else(|| self.of_kind(name))
                                .into_iter()
                                .cloned()
                                .collect()
                        }
                    };
                    if named.is_empty() && !label.is_some_and(|label| absent.contains(&label)) {
                        let name = tool.name.as_deref().or(label).unwrap_or(&tool.kind);
                        return Err(unknown(&format!("`{name}`")));
                    }
                    allowed.extend(named);
                }
                self.allow_only(&allowed);
                mode_of(*mode)
            }
            ToolChoice::Hosted(raw) => {
                let HostedChoice { kind, server_label, name } = raw.to().unwrap_or_default();
                if server_label.as_deref().is_some_and(|label| absent.contains(&label)) {
                    // Its tools cannot be chosen; the model does what it can.
                    self.choice = FirstChoice::Auto;
                    return Ok(());
                }
                let named = match (server_label, name) {
                    (None, _) => self.of_kind(&kind).cloned(),
                    (Some(label), Some(name)) => self.names.get(&(Some(label), name)).cloned(),
                    (Some(label), None) => match self.of_server(&label).as_slice() {
                        [] => None,
                        [only] => Some(only.clone()),
                        // No backend can be told to choose among some: whichever it calls, it calls one.
                        _ => return self.require(absent),
                    },
                };
                FirstChoice::Named(named.ok_or_else(|| unknown(&format!("`{kind}`")))?)
            }
        };
        if self.choice == FirstChoice::Required { self.require(absent) } else { Ok(()) }
    }

    fn require(&mut self, absent: &[&str]) -> Result<(), (String, String)> {
        if self.offered.is_empty() {
            if !absent.is_empty() {
                self.choice = FirstChoice::Auto;
                return Ok(());
            }
            return Err((
                "tool_choice".to_owned(),
                "`tool_choice` is `required`, but `tools` offers none.".to_owned(),
            ));
        }
        self.choice = FirstChoice::Required;
        Ok(())
    }

    /// The first tool of this name, whatever it belongs to.
    fn in_any_namespace(&self, name: &str) -> Option<&String> {
        self.offered.iter().map(|tool| &tool.name).find(|model_name| {
            self.names.iter().any(|((_, known), model)| known == name && model == *model_name)
        })
    }

    /// The names for the model of a server's tools.
    fn of_server(&self, label: &str) -> Vec<String> {
        let of_it = |name: &str| matches!(self.targets.get(name), Some(Target::Hosted(target)) if target.tool.label == label);
        self.offered.iter().map(|tool| &tool.name).filter(|name| of_it(name)).cloned().collect()
    }

    /// The name for the model of a tool that is chosen by its type.
    fn of_kind(&self, kind: &str) -> Option<&String> {
        let kind = match kind {
            "local_shell" => Target::Client(ClientKind::LocalShell),
            "shell" => Target::Client(ClientKind::Shell),
            "apply_patch" => Target::Client(ClientKind::ApplyPatch),
            "tool_search" => Target::Client(ClientKind::ToolSearch),
            kind if kind.starts_with("computer") => Target::Client(ClientKind::Computer),
            "antiphon:clock" => return self.in_any_namespace("get_current_time"),
            "antiphon:open_url" => return self.in_any_namespace("open_url"),
            "antiphon:memory" => return self.in_any_namespace("remember"),
            "antiphon:read_file" => return self.in_any_namespace("read_file"),
            "image_generation" => return self.in_any_namespace("generate_image"),
            kind if kind.starts_with("web_search") => return self.in_any_namespace("web_search"),
            _ => return None,
        };
        self.offered
            .iter()
            .map(|tool| &tool.name)
            .find(|name| self.targets.get(*name) == Some(&kind))
    }

    /// Hides all other tools, and refuses their calls should the model make them all the same: this is a promise to the client, so names that
    /// nobody declared are refused too.
    fn allow_only(&mut self, allowed: &HashSet<String>) {
        self.offered.retain(|tool| allowed.contains(&tool.name));
        self.has_client_tools = false;
        let there_is = self.what_there_is();
        for (name, target) in &mut self.targets {
            if !allowed.contains(name) {
                *target =
                    Target::Refused(format!("The tool `{name}` may not be called now. {there_is}"));
            }
        }
    }
}

/// What a choice of a hosted tool may say.
#[derive(Default, serde::Deserialize)]
struct HostedChoice {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    server_label: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

fn mode_of(mode: ToolMode) -> FirstChoice {
    match mode {
        ToolMode::None => FirstChoice::None,
        ToolMode::Auto => FirstChoice::Auto,
        ToolMode::Required => FirstChoice::Required,
    }
}
