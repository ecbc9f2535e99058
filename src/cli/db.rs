use std::{io::Write, path::PathBuf};

use clap::{Args, Subcommand};

use crate::{
    app::{data_dir, embedded},
    config::{Environment, Sources},
    store::{
        dump::{dump, restore},
        embedded::{Embedded, find_tools},
    },
    tasks::Tasks,
};

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

/// Saves or restores the database.
pub(super) async fn run(
    args: &DbArgs,
    env: &Environment,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let config = Sources::new(env).file(args.config.as_deref()).load()?.config;
    let settings = embedded(&config.places, data_dir(&config)?)?;
    if let Some(url) = &config.database_url {
        return command(&args.command, url.expose(), &find_tools(&settings).await?, out).await;
    }
    let private = Embedded::start(settings, &Tasks::default()).await?;
    let done = command(&args.command, private.url(), private.bin(), out).await;
    private.stop().await?;
    done
}

async fn command(
    command: &DbCommand,
    url: &str,
    bin: &std::path::Path,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    match command {
        DbCommand::Dump { file } => {
            dump(url, bin, file).await?;
            writeln!(out, "Saved the database into {}.", file.display())?;
        }
        DbCommand::Restore { file } => {
            restore(url, bin, file).await?;
            writeln!(out, "Restored the database from {}.", file.display())?;
        }
    }
    Ok(())
}
