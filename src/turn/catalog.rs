//! The tools of one Response: what the model is offered, and what a name that it calls stands for.
//!
//! Every tool becomes a function for the model, whatever the client knows it as; a call is mapped back exactly.

use std::collections::HashMap;

use crate::{
    protocol::{
        Raw, Tool, ToolChoice,
        tool::{CustomTool, FunctionTool, ToolSearchTool},
    },
    text::{schema::object_schema, tool_name::tool_name},
};

pub use super::choice::FirstChoice;

/// A function as the model is offered it.
#[derive(Clone, Debug, PartialEq)]
pub struct OfferedTool {
    /// Its name for the model: at most 64 of `[a-zA-Z0-9_-]`, unique.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// JSON schema of its arguments, an object schema.
    pub parameters: Raw,
    /// Whether the arguments must fit the schema exactly.
    pub strict: bool,
    /// A grammar for free text, for backends that have such a thing: `{syntax, definition}` (custom tools).
    pub grammar: Option<Raw>,
}

/// What a call of the model stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A function of the client.
    Function {
        /// Its name for the client.
        name: String,
        /// The namespace tool it belongs to.
        namespace: Option<String>,
    },
    /// A tool of the client that takes free text.
    Custom {
        /// Its name for the client.
        name: String,
        /// The namespace tool it belongs to.
        namespace: Option<String>,
    },
    /// A tool of the client with an item type of its own.
    Client(ClientKind),
    /// A tool that antiphon runs.
    Hosted(HostedTarget),
    /// Nothing that may be called: the model is told this sentence.
    Refused(String),
}

/// The client's tools that have an item type of their own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientKind {
    /// `local_shell_call`
    LocalShell,
    /// `shell_call`
    Shell,
    /// `apply_patch_call`
    ApplyPatch,
    /// `computer_call`
    Computer,
    /// `tool_search_call`
    ToolSearch,
}

/// A tool that antiphon runs, as the items name it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct HostedRef {
    /// `antiphon`, or the label of an MCP server.
    pub label: String,
    /// The tool's name there.
    pub name: String,
}

/// A tool that antiphon runs, and how its calls appear.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostedTarget {
    /// What it is.
    pub tool: HostedRef,
    /// The type of its calls' items.
    pub shape: Shape,
    /// Whether the client is asked before it is run.
    pub needs_approval: bool,
    /// Whether the model calls no more tools after it.
    pub ends_loop: bool,
}

/// The type of the items in which calls of a tool appear.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Shape {
    /// `mcp_call`
    #[default]
    Mcp,
    /// `web_search_call`
    Web,
    /// `image_generation_call`
    Image,
}

impl HostedTarget {
    /// A tool of antiphon's own without an item type of its own.
    pub fn own(name: &str) -> Self {
        Self {
            tool: HostedRef { label: super::call::OWN_LABEL.to_owned(), name: name.to_owned() },
            shape: Shape::Mcp,
            needs_approval: false,
            ends_loop: false,
        }
    }
}

/// A tool that antiphon offers in this Response.
#[derive(Clone, Debug)]
pub struct HostedTool {
    /// What a call of it stands for.
    pub target: HostedTarget,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: Raw,
}

/// The tools of one Response.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    pub(super) offered: Vec<OfferedTool>,
    pub(super) targets: HashMap<String, Target>,
    /// Names for the model by the client's namespace and name.
    pub(super) names: HashMap<(Option<String>, String), String>,
    /// Whether the client runs anything: a call of an unknown name is then its business.
    pub(super) has_client_tools: bool,
    pub(super) choice: FirstChoice,
}

impl Catalog {
    /// The catalog of a request: its own tools, and those of antiphon that it may use. The error is the path of the wrong field and a sentence.
    /// `absent` are the labels of servers whose tools are not known (yet): a choice may name them all the same.
    pub fn new(
        tools: &[Tool],
        choice: &ToolChoice,
        hosted: Vec<HostedTool>,
        absent: &[&str],
    ) -> Result<Self, (String, String)> {
        let mut catalog = Self::default();
        for (at, tool) in tools.iter().enumerate() {
            catalog.add(tool, None).map_err(|why| (format!("tools[{at}]"), why))?;
        }
        for HostedTool { target, description, parameters } in hosted {
            let HostedRef { label, name } = target.tool.clone();
            let key = (Some(label), name.clone());
            let parameters = object_schema(Some(&parameters));
            let target = Target::Hosted(target);
            catalog.offer(key, &name, Some(description), parameters, false, target);
        }
        catalog.choose(choice, absent)?;
        Ok(catalog)
    }

    /// What the model is offered.
    pub fn offered(&self) -> &[OfferedTool] {
        &self.offered
    }

    /// What the first Round must call.
    pub fn choice(&self) -> &FirstChoice {
        &self.choice
    }

    /// What a name that the model called stands for.
    pub fn target(&self, called: &str) -> Target {
        match self.targets.get(called) {
            _ if self.choice == FirstChoice::None => Target::Refused(
                "No tool may be called now (`tool_choice` is `none`). Answer without one."
                    .to_owned(),
            ),
            Some(target) => target.clone(),
            None if self.has_client_tools => {
                Target::Function { name: called.to_owned(), namespace: None }
            }
            None => Target::Refused(format!(
                "There is no tool named `{called}`. {}",
                self.what_there_is()
            )),
        }
    }

    /// The name under which the model knows a tool of the history.
    pub fn name_for(&self, namespace: Option<&str>, name: &str) -> String {
        let key = (namespace.map(str::to_owned), name.to_owned());
        self.names.get(&key).cloned().unwrap_or_else(|| tool_name(namespace, name))
    }

    /// The name under which the model knows a tool of the client that has an item type of its own.
    pub fn name_of_kind(&self, kind: ClientKind) -> String {
        let key = (Some(OF_A_KIND.to_owned()), kind.model_name().to_owned());
        self.names.get(&key).cloned().unwrap_or_else(|| kind.model_name().to_owned())
    }

    /// The name under which the model knows a tool of antiphon's own.
    pub fn own_name(&self, name: &str) -> String {
        let key = (Some(super::call::OWN_LABEL.to_owned()), name.to_owned());
        self.names.get(&key).cloned().unwrap_or_else(|| tool_name(None, name))
    }

    pub(super) fn what_there_is(&self) -> String {
        if self.offered.is_empty() {
            return "No tool can be called here; answer with what you know.".to_owned();
        }
        let names: Vec<String> =
            self.offered.iter().take(50).map(|tool| format!("`{}`", tool.name)).collect();
        format!("You may call {}.", names.join(", "))
    }

    fn add(&mut self, tool: &Tool, namespace: Option<&str>) -> Result<(), String> {
        let owner = namespace.map(str::to_owned);
        match tool {
            Tool::Function(FunctionTool { name, description, parameters, strict, .. }) => {
                let target = Target::Function { name: name.clone(), namespace: owner.clone() };
                let parameters = object_schema(parameters.as_ref());
                self.offer(
                    (owner, name.clone()),
                    name,
                    description.clone(),
                    parameters,
                    *strict,
                    target,
                );
            }
            Tool::Custom(tool) => self.add_custom(tool, owner),
            Tool::Namespace(space) => {
                for tool in &space.tools {
                    match tool {
                        Tool::Function(_) | Tool::Custom(_) => self.add(tool, Some(&space.name))?,
                        _ => {
                            return Err(format!(
                                "A namespace holds functions and custom tools, not `{}`.",
                                tool.kind()
                            ));
                        }
                    }
                }
            }
            Tool::LocalShell(_) => self.add_client(ClientKind::LocalShell),
            Tool::Shell(_) => self.add_client(ClientKind::Shell),
            Tool::ApplyPatch(_) => self.add_client(ClientKind::ApplyPatch),
            Tool::Computer(_) | Tool::ComputerPreview(_) => self.add_client(ClientKind::Computer),
            Tool::ToolSearch(tool) => self.add_tool_search(tool),
            // Offered as hosted tools by whoever knows whether they can run.
            Tool::Mcp(_)
            | Tool::WebSearch(_)
            | Tool::WebSearchDated(_)
            | Tool::WebSearchPreview(_)
            | Tool::WebSearchPreviewDated(_)
            | Tool::ImageGeneration(_)
            | Tool::Clock(_)
            | Tool::OpenUrl(_)
            | Tool::OpenApi(_)
            | Tool::Memory(_)
            | Tool::ReadFile(_)
            | Tool::Unknown(_) => (),
        }
        Ok(())
    }

    fn add_custom(&mut self, tool: &CustomTool, namespace: Option<String>) {
        let CustomTool { name, description, format, .. } = tool;
        let grammar = format.as_ref().filter(|format| format.json().contains("\"grammar\""));
        let rule = grammar
            .map(|grammar| format!("The input must follow this grammar: {}", grammar.json()));
        let description = match (description.clone(), rule) {
            (Some(text), Some(rule)) => Some(format!("{text}\n\n{rule}")),
            (text, rule) => text.or(rule),
        };
        let parameters = schema(
            r#"{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text."}},"required":["input"],"additionalProperties":false}"#,
        );
        let target = Target::Custom { name: name.clone(), namespace: namespace.clone() };
        self.offer((namespace, name.clone()), name, description, parameters, false, target);
        if let Some(offered) = self.offered.last_mut() {
            offered.grammar = grammar.cloned();
        }
    }

    fn add_client(&mut self, kind: ClientKind) {
        let (description, parameters) = match kind {
            ClientKind::LocalShell => (
                "Runs a command on the user's machine and returns what it prints.",
                r#"{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments."},"working_directory":{"type":"string"},"timeout_ms":{"type":"integer"},"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["command"]}"#,
            ),
            ClientKind::Shell => (
                "Runs shell commands and returns what they print.",
                r#"{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"},"description":"Shell command lines, run one after the other."},"timeout_ms":{"type":"integer"},"max_output_length":{"type":"integer"}},"required":["commands"]}"#,
            ),
            ClientKind::ApplyPatch => (
                "Creates, updates or deletes one file. `diff` is a unified diff (V4A) for create_file and update_file.",
                r#"{"type":"object","properties":{"operation":{"type":"object","properties":{"type":{"type":"string","enum":["create_file","update_file","delete_file"]},"path":{"type":"string"},"diff":{"type":"string"}},"required":["type","path"]}},"required":["operation"]}"#,
            ),
            ClientKind::Computer => (
                "Acts on the user's screen: click, double_click, drag, keypress, move, screenshot, scroll, type or wait. Returns a picture of the screen.",
                r#"{"type":"object","properties":{"action":{"type":"object","properties":{"type":{"type":"string","enum":["click","double_click","drag","keypress","move","screenshot","scroll","type","wait"]},"x":{"type":"integer"},"y":{"type":"integer"},"button":{"type":"string"},"keys":{"type":"array","items":{"type":"string"}},"text":{"type":"string"},"scroll_x":{"type":"integer"},"scroll_y":{"type":"integer"},"path":{"type":"array","items":{"type":"object"}}},"required":["type"]}},"required":["action"]}"#,
            ),
            ClientKind::ToolSearch => (
                "Finds more tools for a task.",
                r#"{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}"#,
            ),
        };
        let name = kind.model_name();
        self.offer(
            (Some(OF_A_KIND.to_owned()), name.to_owned()),
            name,
            Some(description.to_owned()),
            schema(parameters),
            false,
            Target::Client(kind),
        );
    }

    fn add_tool_search(&mut self, tool: &ToolSearchTool) {
        self.add_client(ClientKind::ToolSearch);
        if let Some(offered) = self.offered.last_mut() {
            if let Some(description) = &tool.description {
                offered.description = Some(description.clone());
            }
            if let Some(parameters) = &tool.parameters {
                offered.parameters = object_schema(Some(parameters));
            }
        }
    }

    fn offer(
        &mut self,
        key: (Option<String>, String),
        name: &str,
        description: Option<String>,
        parameters: Raw,
        strict: bool,
        target: Target,
    ) {
        self.has_client_tools |= !matches!(target, Target::Hosted(_));
        let namespace = match &target {
            Target::Function { namespace, .. } | Target::Custom { namespace, .. } => {
                namespace.as_deref()
            }
            Target::Client(_) | Target::Hosted(_) | Target::Refused(_) => None,
        };
        let mut name_for_model = tool_name(namespace, name);
        if let Target::Hosted(HostedTarget { tool, .. }) = &target
            && self.targets.contains_key(&name_for_model)
        {
            name_for_model = tool_name(None, &format!("mcp_{}_{}", tool.label, tool.name));
        }
        let name = self.unused(name_for_model);
        self.names.insert(key, name.clone());
        self.targets.insert(name.clone(), target);
        self.offered.push(OfferedTool { name, description, parameters, strict, grammar: None });
    }

    /// The name, or the name with a number where another tool has it already.
    fn unused(&self, name: String) -> String {
        if !self.targets.contains_key(&name) {
            return name;
        }
        let stem: String = name.chars().take(58).collect();
        // One of these is free: there are fewer tools than numbers.
        (2..=self.targets.len() + 2)
            .map(|n| format!("{stem}_{n}"))
            .find(|name| !self.targets.contains_key(name))
            .unwrap_or(name)
    }
}

/// Stands for a namespace of the tools with an item type of their own: a client may have a function `shell` besides.
const OF_A_KIND: &str = "";

impl ClientKind {
    /// The tool's name for the model.
    pub const fn model_name(self) -> &'static str {
        match self {
            Self::LocalShell => "local_shell",
            Self::Shell => "shell",
            Self::ApplyPatch => "apply_patch",
            Self::Computer => "computer",
            Self::ToolSearch => "tool_search",
        }
    }
}

fn schema(json: &str) -> Raw {
    Raw::parse(json).unwrap_or_else(|_| Raw::null())
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
