//! Finds out what kind of server an upstream is: by its address, by who owns its models, by what it says of its version.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, de::IgnoredAny};
use tokio::time::timeout;
use url::Url;

use super::{backend::Backend, dialect::Dialect};
use crate::net::read_limited;

/// How long one question about the server may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// The longest answer, in bytes.
const LONGEST: usize = 4 * 1024 * 1024;

/// The dialect of an upstream; `None` when it cannot be reached, so nothing is known yet.
pub(super) async fn detect(backend: &Backend) -> Option<Arc<Dialect>> {
    let name = match by_host(&backend.settings.base_url) {
        Some(name) => name,
        None => by_asking(backend).await?,
    };
    tracing::info!(upstream = backend.name(), dialect = name, "found out the dialect");
    Some(Dialect::named(name).unwrap_or_else(Dialect::generic))
}

/// Services that are known by their host.
fn by_host(base: &Url) -> Option<&'static str> {
    let host = base.host_str()?;
    let of = |domain: &str| {
        host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    };
    [
        ("openai.com", "openai"),
        ("openai.azure.com", "openai"),
        ("deepseek.com", "deepseek"),
        ("mistral.ai", "mistral"),
        ("openrouter.ai", "openrouter"),
        ("googleapis.com", "gemini"),
    ]
    .into_iter()
    .find_map(|(domain, name)| of(domain).then_some(name))
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "version")]
    _version: String,
}

#[derive(Deserialize)]
struct Props {
    #[serde(rename = "default_generation_settings")]
    _settings: IgnoredAny,
}

#[derive(Deserialize)]
struct ModelInfo {
    #[serde(rename = "model_path")]
    _path: IgnoredAny,
}

/// Servers at home: asked who they are.
async fn by_asking(backend: &Backend) -> Option<&'static str> {
    let base = &backend.settings.base_url;
    let at = |path: &str| {
        let mut url = base.clone();
        url.set_path(path);
        url.set_query(None);
        url
    };
    let models = ask(backend, backend.settings.endpoint("models")).await?;
    if let Some(name) = models.as_deref().and_then(by_owner) {
        return Some(name);
    }
    if tells::<Version>(ask(backend, at("/api/version")).await?.as_deref()) {
        return Some("ollama");
    }
    if tells::<Version>(ask(backend, at("/version")).await?.as_deref()) {
        return Some("vllm");
    }
    if tells::<Props>(ask(backend, at("/props")).await?.as_deref()) {
        return Some("llama.cpp");
    }
    if tells::<ModelInfo>(ask(backend, at("/get_model_info")).await?.as_deref()) {
        return Some("sglang");
    }
    Some(if base.port() == Some(1234) { "lmstudio" } else { "generic" })
}

fn tells<'a, T: Deserialize<'a>>(body: Option<&'a str>) -> bool {
    body.is_some_and(|body| serde_json::from_str::<T>(body).is_ok())
}

/// Who owns the models of a list.
fn by_owner(models: &str) -> Option<&'static str> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        data: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        #[serde(default)]
        owned_by: Option<String>,
    }
    let list: List = serde_json::from_str(models).ok()?;
    list.data.iter().find_map(|entry| match entry.owned_by.as_deref()? {
        "vllm" => Some("vllm"),
        "llamacpp" => Some("llama.cpp"),
        "sglang" => Some("sglang"),
        "library" => Some("ollama"),
        "organization_owner" => Some("lmstudio"),
        _ => None,
    })
}

/// The body of a GET; the inner `None` when it says no, the outer when the server is not there.
async fn ask(backend: &Backend, url: Url) -> Option<Option<String>> {
    let response = timeout(PATIENCE, backend.get(url).send()).await.ok()?.ok()?;
    if !response.status().is_success() {
        return Some(None);
    }
    let body = timeout(PATIENCE, read_limited(response, LONGEST)).await.ok()?.ok();
    Some(body.map(|body| String::from_utf8_lossy(&body).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_known_by_their_host() {
        for (url, expected) in [
            ("https://api.openai.com/v1", Some("openai")),
            ("https://me.openai.azure.com/openai/v1", Some("openai")),
            ("https://generativelanguage.googleapis.com/v1beta/openai", Some("gemini")),
            ("https://openrouter.ai/api/v1", Some("openrouter")),
            ("https://notopenai.com/v1", None),
            ("http://127.0.0.1:8000/v1", None),
        ] {
            assert_eq!(by_host(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn servers_are_known_by_who_owns_their_models() {
        let list = |owner: &str| {
            format!(
                r#"{{"object":"list","data":[{{"id":"a"}},{{"id":"b","owned_by":"{owner}"}}]}}"#
            )
        };
        assert_eq!(by_owner(&list("vllm")), Some("vllm"));
        assert_eq!(by_owner(&list("library")), Some("ollama"));
        assert_eq!(by_owner(&list("me")), None);
        assert_eq!(by_owner("<html>"), None);
    }
}
