//! The call itself: sends a request and reads what comes back, within limits of time and size.

use std::time::Duration;

use reqwest::{Method, Response};

use crate::net::{Client, NetError, read_limited};

use super::{
    access::{Access, CredentialRefused},
    answer::{self, ApiResult},
    request::Prepared,
};

/// How much of an error's body is read, in bytes.
const MAX_ERROR_BODY: usize = 16 * 1024;

/// How far a call may go.
#[derive(Clone, Copy, Debug)]
pub struct CallLimits {
    /// The longest it may take, redirects and the reading of the answer included.
    pub time: Duration,
    /// The largest answer, in bytes.
    pub answer: usize,
}

/// Why there is no answer. The sentence may be shown to the model.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The credential may not go there.
    #[error(transparent)]
    Credential(#[from] CredentialRefused),
    /// The API, or the way to it.
    #[error("The API could not be called: {0}.")]
    Net(#[from] NetError),
    /// The answer is over the limit.
    #[error(
        "The answer of the API is larger than {limit} bytes. Ask for less of it, with a filter or page by page."
    )]
    TooLarge {
        /// In bytes.
        limit: usize,
    },
    /// It took longer than the limit.
    #[error("The API did not answer within {} seconds.", .limit.as_secs())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
}

/// Sends a request with what only the server may give. `client` is the one for addresses that people chose. Dropping the future cancels it.
///
/// Errors of the API are results, and a secret that it reflects is masked. Redirects are followed; to another origin no credential and no header of the definition goes along.
pub async fn execute(
    client: &Client,
    access: &Access,
    prepared: Prepared,
    limits: CallLimits,
) -> Result<ApiResult, CallError> {
    let request = access.dress(prepared)?;
    let is_head = *request.method() == Method::HEAD;
    let path = request.url().path().to_owned();
    let call = async {
        let mut response = client.execute(request).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let (body, is_cut) = if is_head {
            (Vec::new(), false)
        } else if status.is_success() {
            (whole(response, limits.answer).await?, false)
        } else {
            beginning(&mut response, MAX_ERROR_BODY.min(limits.answer)).await
        };
        Ok(answer::read(status, &headers, &path, &access.mask(&body), is_cut))
    };
    match tokio::time::timeout(limits.time, call).await {
        Ok(outcome) => outcome,
        Err(_elapsed) => Err(CallError::Timeout { limit: limits.time }),
    }
}

async fn whole(response: Response, limit: usize) -> Result<Vec<u8>, CallError> {
    match read_limited(response, limit).await {
        Ok(body) => Ok(body.into()),
        Err(NetError::TooLarge { limit }) => Err(CallError::TooLarge { limit }),
        Err(error) => Err(error.into()),
    }
}

/// The beginning of a body, and whether there was more. That an error's body breaks off is no error: its status says enough.
async fn beginning(response: &mut Response, limit: usize) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        let room = limit - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            return (body, true);
        }
    }
    (body, false)
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
