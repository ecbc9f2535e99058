//! What a request says about its pictures, checked before anybody is asked.

use crate::{
    config::ImageGeneration,
    protocol::{Raw, hosted_tool::ImageTool},
};

/// The pictures that a client may be shown before the last.
const MOST_PARTIAL: u8 = 3;

/// What a request says about its pictures. `None` leaves a thing to the API; so does `auto`, which is what APIs do by themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    pub(super) model: Option<String>,
    pub(super) size: Option<String>,
    pub(super) quality: Option<String>,
    pub(super) output_format: Option<String>,
    pub(super) output_compression: Option<u8>,
    pub(super) background: Option<String>,
    pub(super) moderation: Option<String>,
    pub(super) partial_images: u8,
    pub(super) input_fidelity: Option<String>,
    /// What may be changed: a URL.
    pub(super) mask: Option<String>,
    pub(super) action: Action,
}

/// What is done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Action {
    /// As the model decides.
    #[default]
    Auto,
    /// A new picture is made.
    Generate,
    /// The latest picture of the conversation is changed.
    Edit,
}

/// A field that is wrong, and why.
type Fault = (&'static str, String);

impl Settings {
    /// Reads the tool of a request.
    pub(super) fn read(tool: &ImageTool) -> Result<Self, Fault> {
        let partial_images = tool.partial_images.unwrap_or(0);
        if partial_images > MOST_PARTIAL {
            return Err((
                "partial_images",
                format!("{partial_images} are too many; ask for 0 to {MOST_PARTIAL}."),
            ));
        }
        if let Some(compression) = tool.output_compression.filter(|percent| *percent > 100) {
            return Err((
                "output_compression",
                format!("{compression} is more than 100; it goes from 0 to 100."),
            ));
        }
        if tool.model.as_ref().is_some_and(|model| model.trim().is_empty()) {
            return Err(("model", "It is empty. Name a model, or leave it out.".to_owned()));
        }
        let action = match word("action", tool.action.as_ref(), &["generate", "edit"])?.as_deref() {
            Some("generate") => Action::Generate,
            Some(_) => Action::Edit,
            None => Action::Auto,
        };
        Ok(Self {
            model: tool.model.clone(),
            size: size(tool.size.as_ref())?,
            quality: word("quality", tool.quality.as_ref(), &["low", "medium", "high"])?,
            output_format: word(
                "output_format",
                tool.output_format.as_ref(),
                &["png", "jpeg", "webp"],
            )?,
            output_compression: tool.output_compression,
            background: word("background", tool.background.as_ref(), &["transparent", "opaque"])?,
            moderation: word("moderation", tool.moderation.as_ref(), &["low"])?,
            partial_images,
            input_fidelity: word("input_fidelity", tool.input_fidelity.as_ref(), &["high", "low"])?,
            mask: tool.input_image_mask.as_ref().map(mask).transpose()?.flatten(),
            action,
        })
    }
}

/// One of a few words; `auto` is none.
fn word(
    field: &'static str,
    given: Option<&String>,
    known: &[&str],
) -> Result<Option<String>, Fault> {
    match given.map(String::as_str) {
        None | Some("auto") => Ok(None),
        Some(word) if known.contains(&word) => Ok(Some(word.to_owned())),
        Some(other) => Err((
            field,
            format!("`{other}` is not known; it is `auto` or one of `{}`.", known.join("`, `")),
        )),
    }
}

fn size(given: Option<&String>) -> Result<Option<String>, Fault> {
    match given.map(String::as_str) {
        None | Some("auto") => Ok(None),
        Some(size) if ImageGeneration::is_size(size) => Ok(Some(size.to_owned())),
        Some(other) => Err((
            "size",
            format!("`{other}` is no size; it is `auto`, or width and height such as `1024x1536`."),
        )),
    }
}

#[derive(serde::Deserialize)]
struct MaskJson {
    #[serde(default)]
    image_url: Option<String>,
    #[serde(default)]
    file_id: Option<String>,
}

fn mask(given: &Raw) -> Result<Option<String>, Fault> {
    const FORM: &str = "Give it as `{\"image_url\": \"data:image/png;base64,…\"}`.";
    if given.json() == "null" {
        return Ok(None);
    }
    let MaskJson { image_url, file_id } = given
        .to()
        .map_err(|_| ("input_image_mask", format!("It is not an object of texts. {FORM}")))?;
    match (image_url, file_id) {
        (Some(url), _) if is_address(&url) => Ok(Some(url)),
        (Some(_), _) => Err((
            "input_image_mask.image_url",
            format!("It is neither a data URL nor a web address. {FORM}"),
        )),
        (None, Some(_)) => Err((
            "input_image_mask.file_id",
            format!("Files by id are not supported by this server. {FORM}"),
        )),
        (None, None) => Err(("input_image_mask", format!("There is no mask in it. {FORM}"))),
    }
}

fn is_address(url: &str) -> bool {
    ["data:", "http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;

    fn read(tool: Value) -> Result<Settings, Fault> {
        Settings::read(&serde_json::from_value(tool).unwrap())
    }

    #[test]
    fn what_is_known_is_taken() {
        assert_eq!(read(json!({})), Ok(Settings::default()));
        let auto = json!({
            "size": "auto", "quality": "auto", "background": "auto", "moderation": "auto",
            "action": "auto", "input_image_mask": null, "something": 1,
        });
        assert_eq!(read(auto), Ok(Settings::default()));
        let all = json!({
            "model": "gpt-image-1", "size": "1024x1536", "quality": "high", "output_format": "webp",
            "output_compression": 80, "background": "transparent", "moderation": "low", "partial_images": 3,
            "input_fidelity": "high", "input_image_mask": { "image_url": "data:image/png;base64,AA==" }, "action": "edit",
        });
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            read(all),
            Ok(Settings {
                model: text("gpt-image-1"),
                size: text("1024x1536"),
                quality: text("high"),
                output_format: text("webp"),
                output_compression: Some(80),
                background: text("transparent"),
                moderation: text("low"),
                partial_images: 3,
                input_fidelity: text("high"),
                mask: text("data:image/png;base64,AA=="),
                action: Action::Edit,
            })
        );
    }

    #[test]
    fn what_is_not_is_named() {
        for (tool, field) in [
            (json!({ "partial_images": 4 }), "partial_images"),
            (json!({ "output_compression": 101 }), "output_compression"),
            (json!({ "model": " " }), "model"),
            (json!({ "size": "big" }), "size"),
            (json!({ "size": "0x10" }), "size"),
            (json!({ "size": "1024x" }), "size"),
            (json!({ "size": "+1x1" }), "size"),
            (json!({ "quality": "ultra" }), "quality"),
            (json!({ "output_format": "gif" }), "output_format"),
            (json!({ "background": "blue" }), "background"),
            (json!({ "moderation": "off" }), "moderation"),
            (json!({ "input_fidelity": "medium" }), "input_fidelity"),
            (json!({ "action": "paint" }), "action"),
            (json!({ "input_image_mask": "data:" }), "input_image_mask"),
            (json!({ "input_image_mask": {} }), "input_image_mask"),
            (json!({ "input_image_mask": { "file_id": "file_1" } }), "input_image_mask.file_id"),
            (
                json!({ "input_image_mask": { "image_url": "ftp://a/b" } }),
                "input_image_mask.image_url",
            ),
        ] {
            let (named, why) = read(tool.clone()).unwrap_err();
            assert_eq!(named, field, "{tool}");
            assert!(why.ends_with('.'), "{why}");
        }
    }
}
