use std::{io::Write, path::PathBuf};

use clap::{Args, Subcommand};

use crate::{
    app,
    config::{Environment, Sources, effective},
};

/// `antiphon config …`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the configuration and print what is in force
    #[command(
        long_about = "Reads the configuration as `antiphon serve` would, names every key that is wrong, and prints all \
                            settings that are in force, as TOML. Secrets are not shown. Ends with 0 when the configuration \
                            can be used, else with 1."
    )]
    Check(CheckArgs),
}

/// `antiphon config check`
#[derive(Args, Clone, Debug, Default)]
pub struct CheckArgs {
    /// Configuration file, instead of antiphon.toml in the working directory
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

pub(super) fn check(
    args: &CheckArgs,
    env: &Environment,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let loaded = Sources::new(env).file(args.config.as_deref()).load()?;
    app::policies(&loaded.config)?;
    write!(out, "{}", effective(&loaded))?;
    Ok(())
}
