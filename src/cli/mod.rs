//! The command line: what can be typed, and what comes of it.
//!
//! Arguments are the types of the files here; a command writes to the [`Streams`] it is given, so that a test reads what a
//! user would. Nothing here reads the environment: it comes in.

mod check;
mod db;
mod keys;
mod parse;
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
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  antiphon                                       find a model server on this machine and listen on 127.0.0.1:8090
  OPENAI_BASE_URL=http://gpu:8000/v1 antiphon    use this model server
  antiphon serve --script answers.toml           answer from a script, without any model
  antiphon keys new --name laptop                make an API key
  antiphon config check                          see what is in force, and where it comes from
  antiphon config check --config team.toml       check a file before it is used
  ANTIPHON_HTTP__PING_SECONDS=5 antiphon config check
                                                 any key can be set by ANTIPHON_SECTION__KEY

Every key with its default is in config/default.toml.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the API; what happens when no command is given
    Serve(ServeArgs),
    /// Look at the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Make, list and end API keys
    Keys(KeysArgs),
    /// List the models that the upstreams have
    Models(ModelsArgs),
    /// Save and restore the database
    Db(DbArgs),
    /// Turn a document into text; the server starts this for itself
    #[command(hide = true)]
    Parse,
}

/// Runs what `args` (the program's name first) ask for. The exit code is 0 when all went well, 1 when it did not, and 2 when
/// the arguments cannot be understood.
pub async fn run<I>(args: I, env: &Environment, streams: Streams<'_>) -> ExitCode
where
    I: IntoIterator,
    I::Item: Into<OsString> + Clone,
{
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(usage) => return tell(&usage, streams),
    };
    let done = match cli.command.unwrap_or_else(|| Command::Serve(ServeArgs::default())) {
        Command::Serve(args) => serve::serve(&args, env, streams.out).await,
        Command::Config { command: ConfigCommand::Check(args) } => {
            check::check(&args, env, streams.out)
        }
        Command::Keys(args) => keys::run(&args, env, streams.out).await,
        Command::Models(args) => serve::models(&args, env, streams.out).await,
        Command::Db(args) => db::run(&args, env, streams.out).await,
        Command::Parse => parse::run(streams.out),
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
