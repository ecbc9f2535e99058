//! How the web is reached.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::{
    clock::{Clock, Ids},
    config::Config,
    net::Policies,
    web::{self, Parts, Web},
};

/// The search and page providers that are configured.
pub fn web(config: &Config, policies: &Policies, clock: &Clock, ids: &Ids) -> anyhow::Result<Web> {
    let parts = Parts {
        policies: policies.clone(),
        clock: clock.clone(),
        ids: ids.clone(),
        program: program()?,
    };
    Ok(web::from_config(&config.tools, &parts)?)
}

/// This very program, which parses documents as a child of itself.
pub(super) fn program() -> anyhow::Result<PathBuf> {
    // A link that also leads to a program whose file was replaced meanwhile.
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() {
        return Ok(link);
    }
    std::env::current_exe().context("this program cannot find itself, to parse documents with")
}

/// Where requests may go. Fails with the entry of `net.allow` that cannot be read.
pub fn policies(config: &Config) -> anyhow::Result<Policies> {
    Policies::new(&config.net).context("`net.allow`")
}
