//! Which models there are: a script, the configured upstreams, those found on this machine, or the demo.

use std::{fmt::Write as _, path::Path, sync::Arc, time::Duration};

use crate::{
    clock::{Clock, Ids},
    config::Config,
    model::{Demo, Patience, Router, Script, Source, Surroundings, discover},
    net,
    tasks::Tasks,
};

/// How often upstreams are asked whether they are there.
const CHECK: Duration = Duration::from_secs(30);

/// The models of a server, and what is told of them at start.
pub struct Models {
    /// Asks them.
    pub source: Arc<Source>,
    /// What there is, for people.
    pub description: Vec<String>,
    /// What is missing, for people.
    pub missing: Vec<String>,
    /// A model to try.
    pub example: String,
}

impl Models {
    /// Finds the models: the script that is named, else the configured upstreams, else model servers on this machine, else the demo.
    pub async fn find(config: &Config, script: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = script {
            return Self::of(
                Source::Script(Script::load(path)?),
                vec![format!("a script, {} (scripted answers, no AI)", path.display())],
                Vec::new(),
            )
            .await;
        }
        let around = surroundings(config)?;
        let (upstreams, how) = match config.upstreams.as_slice() {
            [] => (discover(&around.client).await, "found on this machine"),
            upstreams => (upstreams.to_vec(), "configured"),
        };
        if upstreams.is_empty() {
            return Self::of(
                Source::Demo(Demo::new(Demo::READABLE)),
                vec!["`demo`, which is built in: scripted answers, no AI".to_owned()],
                vec![
                    "no model server answers on this machine (Ollama 11434, vLLM 8000, llama.cpp 8080, LM Studio 1234, SGLang 30000).".to_owned(),
                    "Start one, or set OPENAI_BASE_URL (and OPENAI_API_KEY), or write [[upstreams]] into antiphon.toml.".to_owned(),
                ],
            )
            .await;
        }
        let description = upstreams
            .iter()
            .map(|upstream| format!("{} at {} ({how})", upstream.name, upstream.base_url))
            .collect();
        let router = Router::new(upstreams, &around)?;
        let missing = Vec::new();
        Self::of(Source::Upstreams(router), description, missing).await
    }

    async fn of(
        source: Source,
        mut description: Vec<String>,
        mut missing: Vec<String>,
    ) -> anyhow::Result<Self> {
        let listed = source.models().await;
        if listed.is_empty() {
            missing.push(
                "the upstreams list no models; a model is asked for by its name all the same."
                    .to_owned(),
            );
        } else {
            let names: Vec<&str> = listed.iter().take(6).map(|model| &*model.id).collect();
            let more = if listed.len() > names.len() { ", …" } else { "" };
            description.push(format!("{} listed: {}{more}", listed.len(), names.join(", ")));
        }
        let example = listed.first().map_or_else(|| "MODEL".to_owned(), |model| model.id.clone());
        Ok(Self { source: Arc::new(source), description, missing, example })
    }

    /// Asks the upstreams now and then whether they are there, so that one that is down is not asked first.
    pub fn watch(source: Arc<Source>, tasks: &Tasks) {
        let stopping = tasks.stopping();
        tasks.spawn(async move {
            let Source::Upstreams(router) = &*source else { return };
            while tokio::time::timeout(CHECK, stopping.cancelled()).await.is_err() {
                router.check().await;
            }
        });
    }
}

fn surroundings(config: &Config) -> anyhow::Result<Surroundings> {
    let clock = Clock::System;
    Ok(Surroundings {
        client: net::trusted(net::TrustedSettings::default())?,
        patience: Patience::from(&config.engine),
        overrides: config.models.overrides.clone().into(),
        ids: Ids::Random(clock.clone()),
        clock,
    })
}

/// The models that the upstreams have, for people.
pub async fn list(config: &Config) -> anyhow::Result<String> {
    let models = Models::find(config, None).await?;
    let mut text = String::new();
    for line in models.description.iter().chain(&models.missing) {
        let _ = writeln!(text, "# {line}");
    }
    for model in models.source.models().await {
        let _ = writeln!(text, "{}  {}", model.id, model.owned_by);
    }
    Ok(text)
}
