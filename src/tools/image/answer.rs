//! What an images API answers: JSON, or a stream of pictures that get better.

use reqwest::Response;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    model::sse::{Frame, SseLimits, SseReader},
    net::NetError,
    protocol::json::unknown_is_none,
    text::excerpt::shortened,
};

use super::{error::ImageError, given::LARGEST_PICTURE};

/// The longest answer, and the longest event of a stream, in bytes: the largest picture as base64, and a little.
pub(super) const LARGEST_ANSWER: usize = LARGEST_PICTURE / 3 * 4 + (1 << 20);
/// The longest stream: every picture of it may be the largest.
const LARGEST_STREAM: usize = 4 * LARGEST_ANSWER;
/// The longest sentence of an API that is passed on, in characters.
const LONGEST_MESSAGE: usize = 300;

/// A picture, or what surrounds the pictures of an answer, as the API describes it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Made {
    #[serde(default)]
    pub(super) b64_json: Option<String>,
    #[serde(default)]
    pub(super) url: Option<String>,
    #[serde(default, deserialize_with = "unknown_is_none")]
    pub(super) revised_prompt: Option<String>,
    #[serde(default, deserialize_with = "unknown_is_none")]
    pub(super) size: Option<String>,
    #[serde(default, deserialize_with = "unknown_is_none")]
    pub(super) quality: Option<String>,
    #[serde(default, deserialize_with = "unknown_is_none")]
    pub(super) background: Option<String>,
    #[serde(default, deserialize_with = "unknown_is_none")]
    pub(super) output_format: Option<String>,
    /// The pictures, in an answer that is no stream.
    #[serde(default)]
    data: Vec<Made>,
    /// What a piece of a stream is.
    #[serde(rename = "type", default, deserialize_with = "unknown_is_none")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "unknown_is_none")]
    partial_image_index: Option<u32>,
    #[serde(default)]
    error: Option<Value>,
}

/// What a stream tells.
enum Heard {
    Partial(u32, String),
    Completed(Box<Made>),
    Failed(String),
    Unreadable,
}

impl Made {
    /// Reads an answer that is no stream.
    pub(super) fn read(body: &[u8]) -> Result<Self, ImageError> {
        let mut around: Self = serde_json::from_slice(body).map_err(|error| {
            tracing::debug!(%error, "an answer with a picture cannot be read");
            ImageError::Unreadable(if error.is_data() {
                "it lacks what its documentation promises"
            } else {
                "it is not JSON"
            })
        })?;
        let pictures = std::mem::take(&mut around.data);
        let is_picture = |made: &Self| made.b64_json.is_some() || made.url.is_some();
        let picture = pictures.into_iter().find(is_picture);
        let picture = picture.ok_or(ImageError::Unreadable("there is no picture in it"))?;
        Ok(Self {
            size: picture.size.or(around.size),
            quality: picture.quality.or(around.quality),
            background: picture.background.or(around.background),
            output_format: picture.output_format.or(around.output_format),
            ..picture
        })
    }
}

impl Heard {
    fn of(frame: &Frame<'_>) -> Option<Self> {
        if frame.data == "[DONE]" {
            return None;
        }
        let Ok(made) = serde_json::from_str::<Made>(&frame.data) else {
            return Some(Self::Unreadable);
        };
        let kind = made.kind.as_deref().or(frame.event.as_deref()).unwrap_or_default();
        if kind == "error" || made.error.is_some() {
            return Some(Self::Failed(said(frame.data.as_bytes())));
        }
        if kind.ends_with(".partial_image") {
            return Some(Self::Partial(made.partial_image_index.unwrap_or(0), made.b64_json?));
        }
        kind.ends_with(".completed").then(|| Self::Completed(Box::new(made)))
    }
}

/// Hears a stream out. `partial` is told each picture that is not finished.
pub(super) async fn hear(
    mut response: Response,
    mut partial: impl FnMut(u32, String) + Send,
) -> Result<Made, ImageError> {
    let mut reader = SseReader::new(SseLimits { frame_bytes: LARGEST_ANSWER });
    let mut length = 0;
    let mut heard = Vec::new();
    loop {
        let piece = response.chunk().await.map_err(NetError::from)?;
        let read = match &piece {
            Some(bytes) => {
                length += bytes.len();
                if length > LARGEST_STREAM {
                    return Err(NetError::TooLarge { limit: LARGEST_STREAM }.into());
                }
                reader.push(bytes, |frame| heard.extend(Heard::of(&frame)))
            }
            None => reader.finish(|frame| heard.extend(Heard::of(&frame))),
        };
        read.map_err(|_| NetError::TooLarge { limit: LARGEST_ANSWER })?;
        for news in heard.drain(..) {
            match news {
                Heard::Partial(index, picture) => partial(index, picture),
                Heard::Completed(made) => return Ok(*made),
                Heard::Failed(message) => return Err(ImageError::BrokeOff { message }),
                Heard::Unreadable => {
                    return Err(ImageError::Unreadable("an event of its stream is not JSON"));
                }
            }
        }
        if piece.is_none() {
            return Err(ImageError::BrokeOff { message: String::new() });
        }
    }
}

/// What an API says when something is wrong, shortened; empty when it says nothing.
pub(super) fn said(body: &[u8]) -> String {
    let Ok(json) = serde_json::from_slice::<Value>(body) else { return String::new() };
    let places = ["/error/message", "/error", "/detail", "/message"];
    let message = places.iter().find_map(|place| json.pointer(place)?.as_str());
    shortened(message.unwrap_or_default().trim(), LONGEST_MESSAGE).into_owned()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_are_read_in_their_forms() {
        let made = Made::read(
            json!({
                "created": 1, "background": "opaque", "output_format": "png", "size": "1024x1024",
                "quality": "high", "usage": {}, "data": [{ "b64_json": "AAAA", "size": 5 }],
            })
            .to_string()
            .as_bytes(),
        )
        .unwrap();
        assert_eq!(made.b64_json.as_deref(), Some("AAAA"));
        assert_eq!(made.size.as_deref(), Some("1024x1024"));
        assert_eq!(made.quality.as_deref(), Some("high"));
        let other = json!({ "data": [{ "url": "http://a/b", "revised_prompt": "a cat" }] });
        let made = Made::read(other.to_string().as_bytes()).unwrap();
        assert_eq!(made.url.as_deref(), Some("http://a/b"));
        assert_eq!(made.revised_prompt.as_deref(), Some("a cat"));
        for (body, why) in [
            (r#"{"data":[]}"#, "there is no picture in it"),
            (r#"{"data":[{"b64_json":null}]}"#, "there is no picture in it"),
            ("{}", "there is no picture in it"),
            (r#"{"data":5}"#, "it lacks what its documentation promises"),
            ("<html>", "it is not JSON"),
            (r#"{"data":[{"b64"#, "it is not JSON"),
        ] {
            let error = Made::read(body.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{body}: {error}");
        }
    }

    #[test]
    fn what_an_api_says_is_found() {
        for (body, message) in [
            (r#"{"error":{"message":"no","code":"x"}}"#, "no"),
            (r#"{"error":"nope"}"#, "nope"),
            (r#"{"detail":"gone"}"#, "gone"),
            (r#"{"message":" m "}"#, "m"),
            (r#"{"detail":[{"msg":"field"}]}"#, ""),
            ("<html>", ""),
        ] {
            assert_eq!(said(body.as_bytes()), message, "{body}");
        }
        let long = json!({ "message": "a".repeat(1000) }).to_string();
        assert_eq!(said(long.as_bytes()).chars().count(), LONGEST_MESSAGE + 1);
    }
}
