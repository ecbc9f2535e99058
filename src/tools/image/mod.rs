//! `generate_image`, offered by the hosted type `image_generation`: pictures from any API in the form of OpenAI's.
//!
//! **Invariants:** the client gets the picture, the model only hears that there is one: no base64 ever stands in a prompt. A picture is copied
//! from the answer into the item, and not once more.

mod answer;
mod api;
mod error;
mod given;
mod settings;

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::{
    protocol::{Extra, hosted_tool::ImageTool},
    turn::{self, ToolFailure, ToolOutput},
};

use self::{
    api::{Finished, Order, Shape},
    error::ImageError,
    given::{Given, Place, latest},
    settings::{Action, Settings},
};
use super::{Call, Spec, Tool, ToolError};

pub use self::api::ImageApi;

/// What the model is told of a picture.
const SHOWN: &str = "The picture is made and shown to the user: close with one short sentence about it, without links and without a picture of your own.";

/// Makes pictures.
pub(super) struct GenerateImage {
    spec: Spec,
    api: ImageApi,
    settings: Settings,
}

impl GenerateImage {
    /// As a request wants it; else the field that is wrong, and why.
    pub(super) fn new(api: ImageApi, asked: &ImageTool) -> Result<Self, (&'static str, String)> {
        let settings = Settings::read(asked)?;
        let mut properties = json!({
            "prompt": { "type": "string", "description": "What the picture shows and in which style, in full: nothing else is known of the conversation." },
        });
        if settings.size.is_none() {
            properties["size"] = json!({
                "type": "string",
                "enum": ["square", "portrait", "landscape"],
                "description": "Leave it out where it does not matter.",
            });
        }
        if settings.action == Action::Auto {
            properties["edit"] = json!({
                "type": "boolean",
                "description": "Whether to change the latest picture of the conversation instead of making a new one. The prompt then says what is to change.",
            });
        }
        let parameters = json!({
            "type": "object",
            "properties": properties,
            "required": ["prompt"],
            "additionalProperties": false,
        });
        let description = match settings.action {
            Action::Edit => {
                "Changes the latest picture of the conversation and shows the result to the user."
            }
            Action::Auto | Action::Generate => "Makes a picture and shows it to the user.",
        };
        let spec = Spec {
            shape: turn::Shape::Image,
            aliases: &[("description", "prompt"), ("shape", "size")],
            ends_loop: true,
            // Each picture costs.
            is_repeatable: false,
            time_limit: api.timeout(),
            ..Spec::own("generate_image", "Make a picture", description, &parameters)
        };
        Ok(Self { spec, api, settings })
    }

    async fn make(&self, call: &Call<'_>, is_edit: bool) -> Result<Finished, ImageError> {
        let prompt = call.arguments.get("prompt").and_then(Value::as_str).unwrap_or_default();
        let shape = match call.arguments.get("size").and_then(Value::as_str) {
            Some("square") => Some(Shape::Square),
            Some("portrait") => Some(Shape::Portrait),
            Some("landscape") => Some(Shape::Landscape),
            _ => None,
        };
        let mut order =
            Order { prompt, shape, settings: &self.settings, given: Vec::new(), mask: None };
        if is_edit {
            let web = self.api.web();
            for place in latest(&call.context.history) {
                let given = Given::get(place, web).await.map_err(ImageError::Given)?;
                order.given.push(given);
            }
            if order.given.is_empty() {
                return Err(ImageError::NothingToEdit);
            }
            if let Some(mask) = &self.settings.mask {
                let mask = Given::get(Place::Url(mask), web).await.map_err(ImageError::Mask)?;
                order.mask = Some(mask);
            }
        }
        self.api.make(&order, &call.progress).await
    }
}

impl Tool for GenerateImage {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let prompt = call.arguments.get("prompt").and_then(Value::as_str);
            if prompt.is_none_or(|prompt| prompt.trim().is_empty()) {
                return Err(ToolError::told(
                    r#"There is no prompt. A right example: {"prompt":"A red fox in the snow, watercolour"}"#,
                ));
            }
            let is_edit = match self.settings.action {
                Action::Generate => false,
                Action::Edit => true,
                Action::Auto => call.arguments.get("edit").and_then(Value::as_bool) == Some(true),
            };
            let made = self.make(&call, is_edit).await;
            let mut fields = Extra::new();
            fields.insert("action", if is_edit { "edit" } else { "generate" }.into());
            match made {
                Ok(picture) => {
                    self.describe(&mut fields, picture);
                    Ok(ToolOutput { fields, ..ToolOutput::text(SHOWN) })
                }
                Err(error) => {
                    let told = error.to_string();
                    tracing::warn!(response = %call.context.response_id, why = %told, "no picture was made");
                    fields.insert("error", json!({ "message": told }));
                    Err(ToolError::ForModel(ToolFailure { fields, ..ToolFailure::new(told) }))
                }
            }
        })
    }
}

impl GenerateImage {
    /// The fields of the item: what the API says of the picture, else what it was asked for.
    fn describe(&self, fields: &mut Extra, picture: Finished) {
        let Settings { quality, background, .. } = &self.settings;
        let described = [
            ("revised_prompt", picture.revised_prompt),
            ("size", picture.size),
            ("quality", picture.quality.or_else(|| quality.clone())),
            ("background", picture.background.or_else(|| background.clone())),
            ("output_format", picture.output_format),
        ];
        for (name, value) in described {
            if let Some(value) = value {
                fields.insert(name, value.into());
            }
        }
        fields.insert("result", picture.base64.into());
    }
}
