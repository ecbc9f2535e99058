//! The pictures that are to be changed: those of the conversation, and the mask of the request.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;
use url::Url;

use crate::{
    net,
    protocol::{
        Item, Part, SharedItem,
        item::{CallOutput, Role, TextOrParts},
    },
    text::picture::media_type,
};

use super::error::PictureFault;

/// How many pictures go into one new one; OpenAI takes so many.
const MOST: usize = 16;
/// The largest picture, in bytes.
pub(super) const LARGEST_PICTURE: usize = 50 << 20;

/// Some leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Where a picture is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place<'a> {
    /// In these letters.
    Base64(&'a str),
    /// At this address, which may be a `data:` URL.
    Url(&'a str),
}

/// A picture.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) bytes: Bytes,
    pub(super) media_type: &'static str,
}

/// The pictures of the latest item of a history that has any: what a user showed, what a function returned, or what was made before.
pub(super) fn latest(history: &[SharedItem]) -> Vec<Place<'_>> {
    let mut found = history.iter().rev().map(|item| pictures(item));
    let mut places = found.find(|pictures| !pictures.is_empty()).unwrap_or_default();
    places.drain(..places.len().saturating_sub(MOST));
    places
}

fn pictures(item: &Item) -> Vec<Place<'_>> {
    match item {
        Item::Message(message) if message.role == Role::User => shown(&message.content),
        Item::FunctionCallOutput(CallOutput { output: TextOrParts::Parts(parts), .. })
        | Item::CustomToolCallOutput(CallOutput { output: TextOrParts::Parts(parts), .. }) => {
            shown(parts)
        }
        Item::ImageGenerationCall(call) => {
            let result = call.body.get("result").and_then(serde_json::Value::as_str);
            result.filter(|result| !result.is_empty()).map(Place::Base64).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn shown(parts: &[Part]) -> Vec<Place<'_>> {
    let urls = parts.iter().filter_map(|part| match part {
        Part::InputImage(image) => image.image_url.as_deref(),
        _ => None,
    });
    urls.map(Place::Url).collect()
}

impl Given {
    /// Gets a picture; one of the web through this client.
    pub(super) async fn get(place: Place<'_>, web: &net::Client) -> Result<Self, PictureFault> {
        match place {
            Place::Base64(text) => decode(text),
            Place::Url(url) => match url.strip_prefix("data:") {
                Some(data) => {
                    let (_, text) = data.split_once(";base64,").ok_or(PictureFault::Base64)?;
                    decode(text)
                }
                None => fetch(Url::parse(url).map_err(|_| PictureFault::Address)?, web).await,
            },
        }
    }

    /// What a picture of its format is called.
    pub(super) fn extension(&self) -> &'static str {
        self.media_type.trim_start_matches("image/")
    }
}

/// Fetches a picture.
pub(super) async fn fetch(url: Url, web: &net::Client) -> Result<Given, PictureFault> {
    let request = web
        .raw(&url)
        .map_err(net::NetError::from)?
        .get(url)
        .header("accept", "image/*")
        .build()
        .map_err(net::NetError::from)?;
    let response = web.execute(request).await?;
    let status = response.status();
    if !status.is_success() {
        return Err(PictureFault::Status(status.as_u16()));
    }
    of_bytes(net::read_limited(response, LARGEST_PICTURE).await?)
}

fn decode(text: &str) -> Result<Given, PictureFault> {
    of_bytes(BASE64.decode(text).map_err(|_| PictureFault::Base64)?.into())
}

fn of_bytes(bytes: Bytes) -> Result<Given, PictureFault> {
    let media_type = media_type(&bytes).ok_or(PictureFault::Format)?;
    Ok(Given { bytes, media_type })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn latest_of(items: &Value) -> Vec<String> {
        let items: Vec<Item> = serde_json::from_str(&items.to_string()).unwrap();
        let items: Vec<SharedItem> = items.into_iter().map(Arc::new).collect();
        latest(&items).into_iter().map(|place| format!("{place:?}")).collect()
    }

    #[test]
    fn the_latest_pictures_are_taken() {
        let shown = json!({ "role": "user", "content": [
            { "type": "input_text", "text": "these" },
            { "type": "input_image", "image_url": "https://a.example/1.png" },
            { "type": "input_image", "image_url": "https://a.example/2.png" },
            { "type": "input_image", "file_id": "file_1" },
        ] });
        let made = json!({ "type": "image_generation_call", "id": "ig_1", "result": "AAAA" });
        let failed = json!({ "type": "image_generation_call", "id": "ig_2", "result": null });
        let said = json!({ "role": "user", "content": "bluer" });
        let both = [r#"Url("https://a.example/1.png")"#, r#"Url("https://a.example/2.png")"#];
        assert_eq!(latest_of(&json!([shown, said])), both);
        assert_eq!(latest_of(&json!([shown, made, failed, said])), [r#"Base64("AAAA")"#]);
        assert_eq!(latest_of(&json!([made, shown])), both);
        let returned = json!({ "type": "function_call_output", "call_id": "c", "output": [
            { "type": "input_image", "image_url": "data:image/png;base64,AAAA" },
        ] });
        assert_eq!(latest_of(&json!([made, returned])), [r#"Url("data:image/png;base64,AAAA")"#]);
        assert_eq!(latest_of(&json!([said])), [""; 0]);
        let image = json!({ "type": "input_image", "image_url": "https://a.example/1.png" });
        let many = json!([{ "role": "user", "content": vec![image; 20] }]);
        assert_eq!(latest_of(&many).len(), MOST);
    }

    #[tokio::test]
    async fn data_is_read_and_what_is_no_picture_is_not() {
        let web = net::guarded(net::GuardedSettings::new(net::Policy::default())).unwrap();
        let get = async |place| match Given::get(place, &web).await {
            Ok(given) => format!("{} of {} bytes", given.extension(), given.bytes.len()),
            Err(fault) => fault.to_string(),
        };
        for (place, expected) in [
            (Place::Base64("/9j/4A"), "jpeg of 4 bytes"),
            (Place::Url("data:image/png;base64,/9j/4A=="), "jpeg of 4 bytes"),
            (Place::Base64("AAAA"), "it is not a PNG, JPEG, WebP or GIF"),
            (Place::Base64("%"), "its data is not base64"),
            (Place::Url("data:image/png,x"), "its data is not base64"),
            (Place::Url("nowhere"), "its address is none of the web"),
        ] {
            assert_eq!(get(place).await, expected, "{place:?}");
        }
        let inner = get(Place::Url("http://127.0.0.1:1/secret.png")).await;
        assert!(inner.contains("127.0.0.1"), "{inner}");
        assert!(!inner.contains("reached"), "it was not even tried: {inner}");
    }
}
