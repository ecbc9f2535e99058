use std::num::NonZeroUsize;

use serde::Deserialize;

/// `[tools.memory]`: facts about users that later Responses are told.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Memory {
    /// Whether requests may name this tool.
    pub enabled: bool,
    /// How many facts are remembered about one user; the one not said for longest makes room.
    pub max_per_user: NonZeroUsize,
}

impl Default for Memory {
    fn default() -> Self {
        Self { enabled: true, max_per_user: NonZeroUsize::MIN.saturating_add(49) }
    }
}

/// `[tools.read_file]`: files of the input that are too large for the context.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReadFile {
    /// Whether requests may name this tool.
    pub enabled: bool,
    /// A longer file is shown to the model only so far, in characters; it reads on with the tool.
    pub preview_characters: NonZeroUsize,
}

impl Default for ReadFile {
    fn default() -> Self {
        Self { enabled: true, preview_characters: NonZeroUsize::MIN.saturating_add(7999) }
    }
}
