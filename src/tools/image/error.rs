//! What goes wrong with pictures, as sentences for the model and the client. None of them holds a key or an inner address.

use crate::net::{Denied, NetError};

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub(super) enum ImageError {
    /// There is nothing that could be changed.
    #[error(
        "There is no picture in this conversation that could be changed. Make a new one, or ask the user for one."
    )]
    NothingToEdit,
    /// One of the conversation's pictures.
    #[error("A picture of this conversation cannot be changed: {0}.")]
    Given(PictureFault),
    /// The mask of the request.
    #[error("The mask of the request cannot be used: {0}.")]
    Mask(PictureFault),
    /// The key is wrong.
    #[error(
        "The image service refused the key of this server. Its operator has to check `tools.image_generation.api_key_env`."
    )]
    BadKey,
    /// Too many requests, or an account that is used up.
    #[error("The image service takes no more requests at the moment{}{message}", colon(.message))]
    Busy {
        /// What it said.
        message: String,
    },
    /// It will not do what was asked.
    #[error("The image service refused the request (HTTP {status}){}{message}", colon(.message))]
    Refused {
        /// As it answered.
        status: u16,
        /// What it said.
        message: String,
    },
    /// It failed on its side.
    #[error("The image service failed on its side (HTTP {status}){}{message}", colon(.message))]
    Failed {
        /// As it answered.
        status: u16,
        /// What it said.
        message: String,
    },
    /// It broke off in the middle of its answer, or said there that it failed.
    #[error("The image service failed while it worked{}{message}", colon(.message))]
    BrokeOff {
        /// What it said.
        message: String,
    },
    /// Its answer is not what its documentation says.
    #[error("The image service gave an answer that cannot be read: {0}.")]
    Unreadable(&'static str),
    /// The way to it.
    #[error("The image service {}.", reached(.0))]
    Net(#[from] NetError),
    /// What it gave an address of.
    #[error("The image service made a picture, but it cannot be fetched: {0}.")]
    Result(PictureFault),
}

/// Why a picture cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum PictureFault {
    /// Its data URL.
    #[error("its data is not base64")]
    Base64,
    /// Its bytes.
    #[error("it is not a PNG, JPEG, WebP or GIF")]
    Format,
    /// Its address.
    #[error("its address is none of the web")]
    Address,
    /// How its server answered.
    #[error("its server answered HTTP {0}")]
    Status(u16),
    /// The way to it.
    #[error("{0}")]
    Net(#[from] NetError),
}

impl From<Denied> for ImageError {
    fn from(denied: Denied) -> Self {
        Self::Net(denied.into())
    }
}

fn colon(message: &str) -> &'static str {
    if message.is_empty() { "." } else { ": " }
}

fn reached(error: &NetError) -> String {
    match error {
        NetError::Denied(denied) => format!("is not asked: {denied}"),
        NetError::Timeout(_) => "did not answer in time".to_owned(),
        NetError::TooLarge { limit } => format!("gave an answer of more than {limit} bytes"),
        NetError::Failed { .. } => "cannot be reached".to_owned(),
    }
}
