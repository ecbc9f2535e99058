//! Starts the right command.

use std::{io, process::ExitCode};

use antiphon::{
    cli::{self, Streams},
    config::Environment,
};

fn main() -> ExitCode {
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = io::Write::write_fmt(
                &mut err,
                format_args!("antiphon: the runtime cannot be started: {error}\n"),
            );
            return ExitCode::FAILURE;
        }
    };
    let streams = Streams { out: &mut out, err: &mut err };
    runtime.block_on(cli::run(std::env::args_os(), &Environment::of_process(), streams))
}
