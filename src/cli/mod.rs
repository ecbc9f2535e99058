//! The command line: what can be typed, and what comes of it.
//!
//! Arguments are the types of the files here; a command writes to the [`Streams`] it is given, so that a test reads what a
//! user would. Nothing here reads the environment: it comes in.

mod check;
mod db;
mod keys;
mod serve;

use std::{ffi::OsString, io::Write, process::ExitCode};

use clap::{Parser, Subcommand};

pub use self::{
    check::{CheckArgs, ConfigCommand},
    db::{DbArgs, DbCommand},
    keys::{KeysArgs, KeysCommand, Lifetime, ListKeys, NewKey, RevokeKey, RotateKey},
    serve::{ModelsArgs, ServeArgs},
};
use crate::config::Environment;

/// Where a command writes.
pub struct Streams<'a> {
    /// The answer.
    pub out: &'a mut (dyn Write + Send),
    /// What went wrong.
    pub err: &'a mut (dyn Write + Send),
}

/// The command line as a whole.
#[derive(Debug, Parser)]
#[command(
    name = "antiphon",
    version,
    about = "The whole OpenAI Responses API in front of any chat model.",
    after_help = EXAMPLES,
    arg_required_else_help = true,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  antiphon config check                          see what is in force, and where it comes from
  antiphon config check --config team.toml       check a file before it is used
  ANTIPHON_HTTP__PING_SECONDS=5 antiphon config check
                                                 any key can be set by ANTIPHON_SECTION__KEY

Every key with its default is in config/default.toml.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Look at the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
}

/// Runs what `args` (the program's name first) ask for. The exit code is 0 when all went well, 1 when it did not, and 2 when
/// the arguments cannot be understood.
#[expect(
    clippy::unused_async,
    reason = "the commands that wait for the network or the database are called from here"
)]
pub async fn run<I>(args: I, env: &Environment, streams: Streams<'_>) -> ExitCode
where
    I: IntoIterator,
    I::Item: Into<OsString> + Clone,
{
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(usage) => return tell(&usage, streams),
    };
    let done = match cli.command {
        Command::Config { command: ConfigCommand::Check(args) } => {
            check::check(&args, env, streams.out)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody reads a standard error output that cannot be written to.
            let _ = writeln!(streams.err, "antiphon: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Help and version are an answer; everything else that clap has to say is a complaint.
fn tell(usage: &clap::Error, streams: Streams<'_>) -> ExitCode {
    let code = u8::try_from(usage.exit_code()).unwrap_or(2);
    let stream = if usage.use_stderr() { streams.err } else { streams.out };
    let _ = write!(stream, "{usage}");
    ExitCode::from(code)
}

#[cfg(test)]
#[path = "cli_tests.rs"]
mod tests;
