//! What a failure of the database means, in the three ways that a caller can act on.

use crate::protocol::ApiError;

/// Why the store could not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or cannot serve at the moment: the same call may work later.
    #[error("the database is unavailable: {0}")]
    Unavailable(#[source] sqlx::Error),
    /// A named constraint refused the row: somebody was faster, or the row contradicts another.
    #[error("the constraint `{0}` refused the row")]
    Conflict(String),
    /// Anything else is a mistake of ours, or a database that is not what we left there.
    #[error("the database refused what should be right: {0}")]
    Bug(#[source] sqlx::Error),
}

impl StoreError {
    /// Whether this is a conflict with the constraint of that name.
    pub fn is_conflict(&self, constraint: &str) -> bool {
        matches!(self, Self::Conflict(name) if name == constraint)
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        if let sqlx::Error::Database(refusal) = &error
            && let Some(constraint) = refusal.constraint()
            && refusal.code().is_some_and(|code| code.starts_with("23"))
        {
            return Self::Conflict(constraint.to_owned());
        }
        if is_passing(&error) { Self::Unavailable(error) } else { Self::Bug(error) }
    }
}

/// Whether it may work later as it stands.
pub(super) fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(refusal) => refusal.code().is_some_and(|code| passes(&code)),
        _ => false,
    }
}

/// The client hears only that it may try again or that it is our fault; the log hears the rest, here and once.
impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => {
                tracing::warn!(%error, "database unavailable");
                Self::database_unavailable()
            }
            StoreError::Conflict(_) | StoreError::Bug(_) => {
                tracing::error!(%error, "database error");
                Self::server()
            }
        }
    }
}

/// Whether this SQLSTATE tells of a state that passes by itself.
fn passes(code: &str) -> bool {
    const CLASSES: [&str; 2] = ["08", "53"]; // connection lost; out of connections, memory or disk
    const CODES: [&str; 7] = [
        "25006", // read-only: the primary has just become a standby
        "40001", // serialization failure
        "40P01", // deadlock
        "57P01", // shut down by an administrator
        "57P02", // another process crashed
        "57P03", // starting up or shutting down
        "57P05", // idle session timeout
    ];
    CLASSES.iter().any(|class| code.starts_with(class)) || CODES.contains(&code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ErrorKind;

    #[test]
    fn a_lost_connection_is_unavailable_and_a_wrong_column_is_a_bug() {
        let lost = sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert_eq!(ApiError::from(StoreError::from(lost)), ApiError::database_unavailable());
        let slow = StoreError::from(sqlx::Error::PoolTimedOut);
        assert!(matches!(slow, StoreError::Unavailable(_)), "{slow}");
        let wrong = StoreError::from(sqlx::Error::ColumnNotFound("x".into()));
        assert_eq!(ApiError::from(wrong).kind, ErrorKind::Server);
    }

    #[test]
    fn only_states_that_pass_are_tried_again() {
        for code in ["08006", "53300", "53100", "40P01", "57P01", "57P03", "25006"] {
            assert!(passes(code), "{code}");
        }
        for code in ["23505", "42P01", "42703", "22P02", "57014", "25001", ""] {
            assert!(!passes(code), "{code}");
        }
    }
}
