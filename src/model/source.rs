//! Where the words come from: upstreams, a script, or the demo.

use futures::future::BoxFuture;

use super::{
    Ask, Deltas, Demo, Facts, Model, ModelError, ModelErrorKind, Script,
    passthrough::{Forward, Forwarded},
    router::{ListedModel, Router},
};

/// Where the words come from.
#[derive(Debug)]
pub enum Source {
    /// Upstream models.
    Upstreams(Router),
    /// A script that plays a model's part.
    Script(Script),
    /// The built-in demo, when there is nothing else.
    Demo(Demo),
}

impl Source {
    /// Which of them it is, in a word.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Upstreams(_) => "upstreams",
            Self::Script(_) => "script",
            Self::Demo(_) => "demo",
        }
    }

    /// All models that can be asked for.
    pub async fn models(&self) -> Vec<ListedModel> {
        let scripted = |names: Vec<String>, owned_by: &str| {
            names
                .into_iter()
                .map(|id| ListedModel { id, created: 0, owned_by: owned_by.to_owned() })
                .collect()
        };
        match self {
            Self::Upstreams(router) => router.models().await,
            Self::Script(script) => scripted(script.names(), "antiphon-script"),
            Self::Demo(demo) => scripted(demo.names(), "antiphon-demo (scripted, no AI)"),
        }
    }

    /// Hands a request that is not ours to understand to the right upstream.
    pub async fn forward(&self, request: Forward<'_>) -> Result<Forwarded, ModelError> {
        match self {
            Self::Upstreams(router) => router.forward(request).await,
            Self::Script(_) | Self::Demo(_) => Err(ModelError::new(
                ModelErrorKind::ModelNotFound,
                "This server has no upstream model to hand the request to; only /v1/responses is served by its scripted model.",
            )),
        }
    }

    fn model(&self) -> &dyn Model {
        match self {
            Self::Upstreams(router) => router,
            Self::Script(script) => script,
            Self::Demo(demo) => demo,
        }
    }
}

impl Model for Source {
    fn ask<'a>(&'a self, ask: &'a Ask<'a>) -> BoxFuture<'a, Result<Deltas, ModelError>> {
        self.model().ask(ask)
    }

    fn facts<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Facts> {
        self.model().facts(model)
    }
}
