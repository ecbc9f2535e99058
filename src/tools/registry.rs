//! Which tools of ours a Response may use.

use std::{collections::HashMap, sync::Arc};

use crate::turn::{HostedRef, HostedTarget, HostedTool};

use super::Tool;

/// The tools that antiphon runs in one Response.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
    places: HashMap<HostedRef, usize>,
}

impl Registry {
    /// Adds a tool. One of the same label and name that is there already stays: the request named it twice.
    pub fn add(&mut self, tool: Arc<dyn Tool>) {
        let spec = tool.spec();
        let key = HostedRef { label: spec.label.clone(), name: spec.name.clone() };
        if !self.places.contains_key(&key) {
            self.places.insert(key, self.tools.len());
            self.tools.push(tool);
        }
    }

    /// The tool that a call names.
    pub fn get(&self, tool: &HostedRef) -> Option<&Arc<dyn Tool>> {
        self.places.get(tool).and_then(|place| self.tools.get(*place))
    }

    /// The tools as the model is to be offered them.
    pub fn hosted(&self) -> Vec<HostedTool> {
        let hosted = |tool: &Arc<dyn Tool>| {
            let spec = tool.spec();
            HostedTool {
                target: target(tool),
                description: spec.description.clone(),
                parameters: spec.parameters.clone(),
            }
        };
        self.tools.iter().map(hosted).collect()
    }
}

/// What a call of a tool stands for.
pub fn target(tool: &Arc<dyn Tool>) -> HostedTarget {
    let spec = tool.spec();
    HostedTarget {
        tool: HostedRef { label: spec.label.clone(), name: spec.name.clone() },
        shape: spec.shape,
        needs_approval: spec.needs_approval,
        ends_loop: spec.ends_loop,
    }
}
