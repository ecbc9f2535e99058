//! Why what a model wrote is no arguments, in sentences that it can act on.

use std::fmt;

/// What a model wrote as arguments is none. [`fmt::Display`] is a sentence for the model.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub struct ArgumentFault {
    kind: FaultKind,
}

/// What is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FaultKind {
    /// The JSON begins and does not end.
    CutOff,
    /// It cannot be read, even leniently.
    NotJson {
        /// What is wrong.
        what: String,
        /// The text from there on, a few characters.
        near: String,
    },
    /// It is JSON, and no object: what it is.
    NotAnObject(&'static str),
    /// There are several objects that differ.
    Several,
    /// It is nested too deeply.
    TooDeep,
}

impl ArgumentFault {
    pub(super) fn new(kind: FaultKind) -> Self {
        Self { kind }
    }

    /// What is wrong.
    pub fn kind(&self) -> &FaultKind {
        &self.kind
    }
}

impl fmt::Display for ArgumentFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FaultKind::CutOff => f.write_str(
                "The arguments are cut off: their JSON has no end. Write the whole call again.",
            ),
            FaultKind::NotJson { what, near } => {
                f.write_str("The arguments are not JSON: ")?;
                match near.as_str() {
                    "" => write!(f, "{what}, at the end.")?,
                    near => write!(f, "{what}, at `{near}`.")?,
                }
                f.write_str(
                    " Write them as one JSON object; inside strings, escape quotes and backslashes.",
                )
            }
            FaultKind::NotAnObject(found) => {
                write!(f, "The arguments are {found}; they must be one JSON object.")
            }
            FaultKind::Several => f.write_str(
                "The arguments are several JSON objects. Make one call for each of them.",
            ),
            FaultKind::TooDeep => f.write_str(
                "The arguments are nested too deeply: at most 127 objects and lists inside each other.",
            ),
        }
    }
}
