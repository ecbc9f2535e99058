use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `antiphon db …`
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  antiphon db dump backup.dump                   save everything, also before Postgres gets a new major version
  antiphon db restore backup.dump                bring it back into an empty database")]
pub struct DbArgs {
    /// Configuration file, instead of antiphon.toml in the working directory
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: DbCommand,
}

/// What can be done with the database as a whole.
#[derive(Clone, Debug, Subcommand)]
pub enum DbCommand {
    /// Save the database into a file
    Dump {
        /// The file to write
        file: PathBuf,
    },
    /// Fill an empty database from such a file
    Restore {
        /// The file to read
        file: PathBuf,
    },
}
