//! The servers of tools that a request names: their lists, which come before the model is asked.

use std::sync::Arc;

use serde_json::json;

use crate::protocol::{Event, Item, Raw, hosted::McpListTools};

use super::{Catalog, Turn};

/// A list of tools that is waited for.
pub(super) struct OpenList {
    output_index: usize,
    item_id: Arc<str>,
    label: String,
}

impl Turn {
    /// Announces that the tools of a server are asked for. The number is for [`Turn::listed`].
    pub fn list_tools(&mut self, label: &str) -> usize {
        let (output_index, item_id) = self.add("mcpl", |id| {
            let server_label = label.to_owned();
            Item::McpListTools(McpListTools { id, server_label, ..McpListTools::default() })
        });
        self.emit(Event::McpListInProgress { item_id: Arc::clone(&item_id), output_index });
        self.lists.push(Some(OpenList { output_index, item_id, label: label.to_owned() }));
        self.lists.len() - 1
    }

    /// Hears the tools of a server, or why there are none. `definition` tells under which terms they were listed.
    pub fn listed(&mut self, list: usize, tools: Result<Vec<Raw>, String>, definition: String) {
        let Some(OpenList { output_index, item_id, label }) =
            self.lists.get_mut(list).and_then(Option::take)
        else {
            return;
        };
        let mut item = McpListTools {
            id: item_id.to_string(),
            server_label: label,
            definition: Some(definition),
            ..McpListTools::default()
        };
        match tools {
            Ok(tools) => {
                item.tools = tools;
                self.emit(Event::McpListCompleted { item_id, output_index });
            }
            Err(why) => {
                item.error = Some(Raw::of(&json!(why)));
                self.emit(Event::McpListFailed { item_id, output_index });
            }
        }
        self.done(output_index, Item::McpListTools(item));
    }

    /// Takes the tools of this Response, once all of them are known.
    pub fn offer(&mut self, catalog: Catalog) {
        self.catalog = Arc::new(catalog);
    }

    /// Closes lists that will not come.
    pub(super) fn drop_lists(&mut self) {
        for list in 0..self.lists.len() {
            self.listed(list, Err("The list was not waited for.".to_owned()), String::new());
        }
        self.lists.clear();
    }
}
