use std::{io::Write, path::PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::{
    app::{self, App, Models},
    clock::{Clock, Ids},
    config::{Config, ConfigError, Environment, Loaded, LogFormat, Sources},
    telemetry::{Format, Settings, Telemetry},
};

/// `antiphon serve`, and `antiphon` alone.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  antiphon                                       find a model server on this machine and listen on 127.0.0.1:8090
  antiphon serve --listen 0.0.0.0:8090           listen to other machines too
  antiphon serve --config team.toml              use this file
  OPENAI_BASE_URL=http://gpu:8000/v1 antiphon    use this model server
  antiphon serve --script answers.toml          answer from a script, without any model")]
pub struct ServeArgs {
    /// Configuration file, instead of antiphon.toml in the working directory
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address and port to listen on, instead of `listen` in the configuration
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<String>,
    /// Serve requests without a key too. Only for a machine that nobody else can reach
    #[arg(long)]
    pub open: bool,
    /// Play the model's part from this file instead of asking an upstream
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
}

impl ServeArgs {
    /// The configuration with these options laid over it.
    pub fn load(&self, env: &Environment) -> Result<Loaded, ConfigError> {
        Sources::new(env)
            .file(self.config.as_deref())
            .option("--listen", "listen", self.listen.clone())
            .option("--open", "auth.open", self.open.then_some(true))
            .load()
    }
}

/// `antiphon models`: lists the models that the upstreams have.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  antiphon models                                every model, its upstream and its dialect")]
pub struct ModelsArgs {
    /// Configuration file, instead of antiphon.toml in the working directory
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Serves until it is told to stop.
pub(super) async fn serve(
    args: &ServeArgs,
    env: &Environment,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let config = args.load(env)?.config;
    let telemetry = Telemetry::start(&telemetry(&config))?;
    let served = run(args, &config, out).await;
    // The exporter's last batch is sent from a thread of its own, and waited for here.
    tokio::task::block_in_place(|| telemetry.shutdown());
    served
}

async fn run(
    args: &ServeArgs,
    config: &Config,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let (stop, at_once) = (signal(1)?, signal(2)?);
    let models = Models::find(config, args.script.as_deref()).await?;
    let clock = Clock::System;
    let app = App::build(config, models, clock.clone(), Ids::Random(clock)).await?;
    writeln!(out, "{}", app.banner())?;
    out.flush()?;
    tokio::select! {
        served = app.serve(stop) => served,
        () = at_once => {
            tracing::warn!("told twice to stop: what still runs is cut off");
            Ok(())
        }
    }
}

/// Resolves at the `nth` SIGINT or SIGTERM.
fn signal(nth: u32) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
    Ok(async move {
        for count in 1..=nth {
            let name = tokio::select! {
                _ = interrupt.recv() => "SIGINT",
                _ = terminate.recv() => "SIGTERM",
            };
            if count == nth {
                tracing::info!("stopping ({name})");
            }
        }
    })
}

fn telemetry(config: &Config) -> Settings {
    Settings {
        filter: config.log.filter.clone(),
        format: match config.log.format {
            LogFormat::Text => Format::Text,
            LogFormat::Json => Format::Json,
        },
        otlp_endpoint: config.telemetry.otlp_endpoint.as_ref().map(ToString::to_string),
    }
}

/// Lists the models that the upstreams have.
pub(super) async fn models(
    args: &ModelsArgs,
    env: &Environment,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let config = Sources::new(env).file(args.config.as_deref()).load()?.config;
    write!(out, "{}", app::list(&config).await?)?;
    Ok(())
}
