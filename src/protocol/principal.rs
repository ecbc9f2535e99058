//! Who asks.

/// Who asks: comes from a key or a token, never from the body of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Principal {
    /// Whose rows it sees.
    pub tenant_id: String,
    /// The user, owner of what it makes.
    pub user_id: String,
    /// The user's groups.
    pub groups: Vec<String>,
}

impl Principal {
    /// The one who asks when no keys are used: everything on this machine is one user's.
    pub fn local() -> Self {
        Self { tenant_id: "local".to_owned(), user_id: "local".to_owned(), groups: Vec::new() }
    }
}
