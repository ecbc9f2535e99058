use std::path::PathBuf;

use clap::Args;

use crate::config::{ConfigError, Environment, Loaded, Sources};

/// `antiphon serve`, and `antiphon` alone.
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  antiphon                                       find a model server on this machine and listen on 127.0.0.1:8090
  antiphon serve --listen 0.0.0.0:8090           listen to other machines too
  antiphon serve --config team.toml              use this file
  OPENAI_BASE_URL=http://gpu:8000/v1 antiphon    use this model server
  antiphon serve --script answers.jsonl          answer from a script, without any model")]
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
