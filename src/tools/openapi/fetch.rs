//! Documents by URL, kept for a while. Many who ask for the same one at once cause one request.

use std::sync::Arc;

use moka::future::Cache;
use reqwest::{
    Method, Request,
    header::{ACCEPT, HeaderValue},
};
use serde_json::Value;
use url::Url;

use crate::{
    config::{ApiCredential, OpenApi},
    net::{Client, NetError, read_limited},
    tasks::Tasks,
};

use super::{
    access::show_if_allowed,
    document::{read_document, too_large},
    fault::SchemaFault,
};

const WISHED: HeaderValue =
    HeaderValue::from_static("application/json, application/yaml, text/yaml, */*;q=0.5");

/// A document as it takes memory: about so many bytes for each of its text.
const SPREAD: u64 = 8;

/// A fetched document.
#[derive(Debug)]
pub struct Document {
    /// The document.
    pub root: Value,
    /// Where it came from in the end: relative servers start there.
    pub url: Url,
    bytes: u64,
}

/// Why a document cannot be had. The sentence is for the client.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It may not be asked for, or did not come.
    #[error("The schema could not be fetched: {0}.")]
    Net(NetError),
    /// Its server says no.
    #[error("The schema could not be fetched: its server answered with status {0}.")]
    Status(u16),
    /// It took longer than the limit.
    #[error("The schema could not be fetched within {0} seconds.")]
    Timeout(u64),
    /// It is no document.
    #[error(transparent)]
    Document(#[from] SchemaFault),
    /// The server is being stopped.
    #[error("The schema could not be read: the server is being stopped.")]
    Stopped,
}

/// Fetches documents and keeps them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Documents {
    /// By URL and name of the credential: what one credential may see is not shown to another.
    kept: Cache<(String, Option<String>), Arc<Document>>,
    settings: OpenApi,
    tasks: Tasks,
}

impl Documents {
    /// With these limits.
    pub fn new(settings: &OpenApi, tasks: Tasks) -> Self {
        let kept = Cache::builder()
            .weigher(|_, document: &Arc<Document>| {
                u32::try_from(document.bytes.saturating_mul(SPREAD) / 1024 + 1).unwrap_or(u32::MAX)
            })
            .max_capacity(settings.schema_cache_mib.get().saturating_mul(1024))
            .time_to_live(settings.schema_cache)
            .build();
        Self { kept, settings: settings.clone(), tasks }
    }

    /// The document at this URL. The credential, given with its name, goes along where it may. Errors are not kept.
    pub async fn fetch(
        &self,
        client: &Client,
        url: &Url,
        credential: Option<(&str, &ApiCredential)>,
    ) -> Result<Arc<Document>, Arc<FetchError>> {
        let key = (url.to_string(), credential.map(|(name, _)| name.to_owned()));
        let (client, url) = (client.clone(), url.clone());
        let credential = credential.map(|(_, credential)| credential.clone());
        // Boxed, for the future of a request is large.
        self.kept.try_get_with(key, Box::pin(self.get(client, url, credential))).await
    }

    /// Reads a document that a request brought along, on a thread that serves nobody else: a large one takes seconds.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, SchemaFault> + Send + 'static,
    ) -> Result<T, SchemaFault> {
        let read = self.tasks.spawn_blocking(read);
        read.await.unwrap_or_else(|_| {
            Err(SchemaFault::here("The schema could not be read: the server is being stopped."))
        })
    }

    async fn get(
        &self,
        client: Client,
        url: Url,
        credential: Option<ApiCredential>,
    ) -> Result<Arc<Document>, FetchError> {
        let limit = self.settings.schema_limit();
        let mut request = Request::new(Method::GET, url);
        request.headers_mut().insert(ACCEPT, WISHED);
        show_if_allowed(credential.as_ref(), &mut request);
        let get = async {
            let response = client.execute(request).await.map_err(FetchError::Net)?;
            let status = response.status();
            if !status.is_success() {
                return Err(FetchError::Status(status.as_u16()));
            }
            let mut url = response.url().clone();
            // Whatever it carries there, a credential perhaps, is of no use to a relative server.
            url.set_query(None);
            match read_limited(response, limit).await {
                Ok(body) => Ok((url, body)),
                Err(NetError::TooLarge { .. }) => Err(too_large(limit).into()),
                Err(error) => Err(FetchError::Net(error)),
            }
        };
        let (url, body) = tokio::time::timeout(self.settings.timeout, get)
            .await
            .map_err(|_elapsed| FetchError::Timeout(self.settings.timeout.as_secs()))??;
        let bytes = body.len() as u64;
        // Milliseconds per megabyte: too long for a thread that serves others.
        let read = self.tasks.spawn_blocking(move || {
            let text = std::str::from_utf8(&body)
                .map_err(|_| SchemaFault::here("The schema is not UTF-8 text."))?;
            read_document(text, limit)
        });
        let root = read.await.map_err(|_| FetchError::Stopped)??;
        Ok(Arc::new(Document { root, url, bytes }))
    }
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
