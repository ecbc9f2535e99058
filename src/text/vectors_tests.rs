//! Reads the shared vectors, for all tests that assert them.

use std::{fs, path::PathBuf};

use serde_json::Value;

/// The cases of a section of a file of vectors that are asked. `ANTIPHON_VECTORS` names another folder of them.
#[expect(clippy::disallowed_methods, reason = "a test may be pointed at another folder of vectors")]
pub(crate) fn vectors(file: &str, section: &str) -> Vec<Value> {
    let folder = std::env::var_os("ANTIPHON_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"),
        PathBuf::from,
    );
    let path = folder.join(file);
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file: Value = serde_json::from_slice(&bytes).unwrap();
    let mut cases = file[section].as_array().unwrap().clone();
    cases.retain(|case| case.get("not_asked").is_none());
    cases
}

/// Says how many cases were asserted, and how many only looked at.
#[expect(clippy::print_stderr, reason = "seen with --nocapture")]
pub(crate) fn report(file: &str, section: &str, asserted: usize, informative: usize) {
    eprintln!("{file} {section}: {asserted} asserted, {informative} informative");
}
