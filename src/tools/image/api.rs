//! An API that makes pictures, in the form of OpenAI's `/images/generations` and `/images/edits`.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::{
    RequestBuilder, Response,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue},
    multipart::{Form, Part},
};
use serde_json::{Map, Value, json};
use url::Url;

use crate::{
    config::{ImageGeneration, Secret},
    net::{self, BuildError, GuardedSettings, Policies, read_limited},
    text::picture,
};

use super::{
    answer::{LARGEST_ANSWER, Made, hear, said},
    error::{ImageError, PictureFault},
    given::{Given, fetch},
    settings::Settings,
};
use crate::tools::Progress;

/// The longest refusal that is read, in bytes.
const LONGEST_REFUSAL: usize = 1 << 20;

/// An API that makes pictures. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ImageApi {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    base: Url,
    key: Option<Secret>,
    model: Option<String>,
    size: Option<String>,
    timeout: Duration,
    /// Goes to the API.
    service: net::Client,
    /// Goes where the API says that its pictures are: to the API itself, else where content may lead.
    results: net::Client,
    /// Goes where content may lead.
    web: net::Client,
}

/// A picture to be made.
#[derive(Debug)]
pub(super) struct Order<'a> {
    pub(super) prompt: &'a str,
    /// What the chat model asks for.
    pub(super) shape: Option<Shape>,
    pub(super) settings: &'a Settings,
    /// What is changed; empty when a new one is made.
    pub(super) given: Vec<Given>,
    pub(super) mask: Option<Given>,
}

/// Roughly how wide and high.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    Square,
    Portrait,
    Landscape,
}

/// A picture that was made, and what is known of it.
#[derive(Debug, Default)]
pub(super) struct Finished {
    pub(super) base64: String,
    pub(super) revised_prompt: Option<String>,
    pub(super) size: Option<String>,
    pub(super) quality: Option<String>,
    pub(super) background: Option<String>,
    pub(super) output_format: Option<String>,
}

impl ImageApi {
    /// The API that is configured, if one is.
    pub fn from_config(
        config: &ImageGeneration,
        policies: &Policies,
    ) -> Result<Option<Self>, BuildError> {
        let Some(base) = &config.base_url else { return Ok(None) };
        let client = |policy| {
            // The whole call has its own limit; an API may be silent as long as that.
            net::guarded(GuardedSettings {
                read_timeout: config.timeout,
                ..GuardedSettings::new(policy)
            })
        };
        Ok(Some(Self {
            inner: Arc::new(Inner {
                base: base.clone(),
                key: config.api_key.clone(),
                model: config.model.clone(),
                size: config.size.clone(),
                timeout: config.timeout,
                service: client(policies.named.clone().with_configured(base))?,
                results: client(policies.found.clone().with_configured(base))?,
                web: client(policies.found.clone())?,
            }),
        }))
    }

    /// How long one picture may take.
    pub(super) fn timeout(&self) -> Duration {
        self.inner.timeout
    }

    /// Fetches what the conversation names.
    pub(super) fn web(&self) -> &net::Client {
        &self.inner.web
    }

    /// Makes a picture. An API that does not stream is asked again without.
    pub(super) async fn make(
        &self,
        order: &Order<'_>,
        progress: &Progress,
    ) -> Result<Finished, ImageError> {
        let most = order.settings.partial_images;
        let made = match self.ask(order, most, progress).await {
            Err(ImageError::Refused { status: 400 | 422, message })
                if most > 0 && is_about_streams(&message) =>
            {
                tracing::debug!(%message, "pictures are not streamed");
                self.ask(order, 0, progress).await?
            }
            made => made?,
        };
        self.finish(made).await
    }

    async fn ask(
        &self,
        order: &Order<'_>,
        partial_images: u8,
        progress: &Progress,
    ) -> Result<Made, ImageError> {
        let request = self.request(order, partial_images)?;
        let response = request.send().await.map_err(net::NetError::from)?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let heard = hear(response, |index, picture| {
                if index < u32::from(partial_images) {
                    progress.picture(index, picture);
                }
            });
            return heard.await.map_err(|error| match error {
                ImageError::BrokeOff { message } => {
                    ImageError::BrokeOff { message: self.without_key(&message) }
                }
                other => other,
            });
        }
        Made::read(&read_limited(response, LARGEST_ANSWER).await?)
    }

    fn request(&self, order: &Order<'_>, partial_images: u8) -> Result<RequestBuilder, ImageError> {
        let path = if order.given.is_empty() { "generations" } else { "edits" };
        let mut url = self.inner.base.clone();
        let whole = format!("{}/images/{path}", url.path().trim_end_matches('/'));
        url.set_path(&whole);
        let mut request = self.inner.service.raw(&url)?.post(url);
        if let Some(key) = &self.inner.key {
            let value = HeaderValue::try_from(format!("Bearer {}", key.expose()));
            let mut value = value.map_err(|_| ImageError::BadKey)?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        let fields = self.fields(order, partial_images);
        if order.given.is_empty() {
            return Ok(request.json(&fields));
        }
        Ok(request.multipart(form(fields, order)))
    }

    fn fields(&self, order: &Order<'_>, partial_images: u8) -> Map<String, Value> {
        let settings = order.settings;
        let model = settings.model.as_ref().or(self.inner.model.as_ref());
        let shape =
            order.shape.map(|shape| shape.size(model.map_or("", String::as_str)).to_owned());
        let size = settings.size.clone().or(shape).or_else(|| self.inner.size.clone());
        let is_edit = !order.given.is_empty();
        let mut fields = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            fields.extend(value.map(|value| (name.to_owned(), value)));
        };
        let text = |text: &Option<String>| text.clone().map(Value::from);
        set("model", model.cloned().map(Value::from));
        set("prompt", Some(order.prompt.into()));
        set("size", size.map(Value::from));
        set("quality", text(&settings.quality));
        set("output_format", text(&settings.output_format));
        set("output_compression", settings.output_compression.map(Value::from));
        set("background", text(&settings.background));
        if is_edit {
            // This form of the API has no `moderation`, and the other no `input_fidelity`.
            set("input_fidelity", text(&settings.input_fidelity));
        } else {
            set("moderation", text(&settings.moderation));
        }
        if partial_images > 0 {
            set("stream", Some(json!(true)));
            set("partial_images", Some(json!(partial_images)));
        }
        fields
    }

    async fn refusal(&self, response: Response) -> ImageError {
        let status = response.status().as_u16();
        let body = read_limited(response, LONGEST_REFUSAL).await.unwrap_or_default();
        let message = self.without_key(&said(&body));
        match status {
            401 => ImageError::BadKey,
            402 | 429 => ImageError::Busy { message },
            408 | 500.. => ImageError::Failed { status, message },
            _ => ImageError::Refused { status, message },
        }
    }

    /// Some APIs repeat the key that they refuse.
    fn without_key(&self, message: &str) -> String {
        match &self.inner.key {
            Some(key) if !key.expose().is_empty() => message.replace(key.expose(), "[key]"),
            _ => message.to_owned(),
        }
    }

    /// Gets hold of the picture itself, and of what its bytes tell where the API does not.
    async fn finish(&self, made: Made) -> Result<Finished, ImageError> {
        let base64 = match (made.b64_json, made.url) {
            (Some(base64), _) if !base64.is_empty() => base64,
            (_, Some(url)) if url.starts_with("data:") => url,
            (_, Some(url)) => {
                let url = self.inner.base.join(&url);
                let url = url.map_err(|_| ImageError::Result(PictureFault::Address))?;
                let picture = fetch(url, &self.inner.results).await.map_err(ImageError::Result)?;
                STANDARD.encode(picture.bytes)
            }
            _ => return Err(ImageError::Unreadable("there is no picture in it")),
        };
        let base64 = bare(base64).ok_or(ImageError::Unreadable("its picture is not base64"))?;
        let (media_type, measured) = picture::of_base64(&base64)
            .ok_or(ImageError::Unreadable("its picture is not a PNG, JPEG, WebP or GIF"))?;
        let size = made.size.filter(|size| ImageGeneration::is_size(size));
        Ok(Finished {
            base64,
            revised_prompt: made.revised_prompt,
            size: size.or_else(|| measured.map(|(width, height)| format!("{width}x{height}"))),
            quality: made.quality,
            background: made.background,
            output_format: Some(media_type.trim_start_matches("image/").to_owned()),
        })
    }
}

impl Shape {
    /// The size that a model makes of it.
    fn size(self, model: &str) -> &'static str {
        match self {
            _ if model.starts_with("dall-e-2") => "1024x1024",
            Self::Square => "1024x1024",
            Self::Portrait if model.starts_with("dall-e-3") => "1024x1792",
            Self::Landscape if model.starts_with("dall-e-3") => "1792x1024",
            Self::Portrait => "1024x1536",
            Self::Landscape => "1536x1024",
        }
    }
}

/// The fields and pictures as a form.
fn form(fields: Map<String, Value>, order: &Order<'_>) -> Form {
    let mut form = Form::new();
    for (name, value) in fields {
        form = match value {
            Value::String(text) => form.text(name, text),
            other => form.text(name, other.to_string()),
        };
    }
    // One picture has this name with every API; several are a list where the API takes several at all.
    let name = if order.given.len() > 1 { "image[]" } else { "image" };
    for (at, given) in order.given.iter().enumerate() {
        form = form.part(name, part(given, &format!("image-{at}")));
    }
    if let Some(mask) = &order.mask {
        form = form.part("mask", part(mask, "mask"));
    }
    form
}

fn part(given: &Given, name: &str) -> Part {
    let length = u64::try_from(given.bytes.len()).unwrap_or(u64::MAX);
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(given.media_type));
    Part::stream_with_length(given.bytes.clone(), length)
        .file_name(format!("{name}.{}", given.extension()))
        .headers(headers)
}

/// Base64 alone: without what stands before it in a `data:` URL, and without line breaks.
fn bare(mut base64: String) -> Option<String> {
    if base64.starts_with("data:") {
        let start = base64.find(";base64,")? + ";base64,".len();
        base64.drain(..start);
    }
    if base64.bytes().any(|byte| byte.is_ascii_whitespace()) {
        base64.retain(|letter| !letter.is_ascii_whitespace());
    }
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    base64.bytes().all(is_letter).then_some(base64)
}

/// Whether an API refuses to stream, and not something else.
fn is_about_streams(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("stream") || message.contains("partial_image")
}
