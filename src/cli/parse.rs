use std::io::{self, Write};

use crate::documents::child;

/// Parses one document in this process, which its parent may kill; see [`crate::documents`].
pub(super) fn run(out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
    tokio::task::block_in_place(|| child::run(io::stdin().lock(), out))?;
    Ok(())
}
