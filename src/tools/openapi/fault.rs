//! What is wrong with a definition, and where.

/// Why a definition gives no tools. For the client: a sentence that says what to do.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{sentence}")]
pub struct SchemaFault {
    /// Where, inside the tool's object: `schema.paths["/a/{id}"].get.parameters[0]`, `server_url`.
    pub path: String,
    /// What is wrong, and what would be right.
    pub sentence: String,
}

impl SchemaFault {
    /// A fault of the place at hand; those around it add where that is.
    pub(super) fn here(sentence: impl Into<String>) -> Self {
        Self { path: String::new(), sentence: sentence.into() }
    }

    /// A fault of the field of this name.
    pub(super) fn at(path: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self { path: path.into(), sentence: sentence.into() }
    }

    /// The same fault, seen from the object that has it in `part`: a field's name, or `[3]`.
    pub(super) fn under(mut self, part: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{part}{dot}{}", self.path);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_put_together_from_inside() {
        let fault = SchemaFault::at("name", "A name is needed.")
            .under("[0]")
            .under("parameters")
            .under("get")
            .under("[\"/a\"]")
            .under("paths")
            .under("schema");
        assert_eq!(fault.path, "schema.paths[\"/a\"].get.parameters[0].name");
        assert_eq!(SchemaFault::here("No.").under("servers").path, "servers");
    }
}
