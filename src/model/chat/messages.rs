//! The messages of a Chat Completions request.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
};

use serde::Serialize;

use crate::{
    config::{CallIdForm, SystemPolicy},
    model::{
        Ask, ModelError, ModelErrorKind,
        dialect::{BlankContent, Dialect},
    },
    protocol::Raw,
    turn::prompt::{AssistantMessage, PromptCall, PromptMessage, PromptPart},
};

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Message<'a> {
    Plain { role: &'static str, content: Content<'a> },
    Assistant(Assistant<'a>),
    Tool { role: &'static str, tool_call_id: Cow<'a, str>, content: Cow<'a, str> },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
    File { file: FileData<'a> },
    InputAudio { input_audio: &'a Raw },
    VideoUrl { video_url: VideoUrl<'a> },
}

#[derive(Serialize)]
pub(super) struct ImageUrl<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct FileData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    file_data: Cow<'a, str>,
}

#[derive(Serialize)]
pub(super) struct VideoUrl<'a> {
    url: &'a str,
}

#[derive(Serialize)]
pub(super) struct Assistant<'a> {
    role: &'static str,
    content: Option<&'a str>,
    #[serde(flatten)]
    reasoning: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a Raw>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
pub(super) struct Call<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Raw>,
}

#[derive(Serialize)]
pub(super) struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// What stands where a picture was that the model cannot see.
const UNSEEN: &str = "[a picture, which this model cannot be shown]";

/// The prompt of `ask`, as `dialect` wants it.
pub(super) fn messages<'a>(
    ask: &'a Ask<'_>,
    dialect: &'a Dialect,
) -> Result<Vec<Message<'a>>, ModelError> {
    let ids = CallIds::of(&ask.messages, dialect.call_id_form);
    let mut out = Vec::with_capacity(ask.messages.len() + 1);
    // What tools returned besides text, shown after the last output of the group: outputs must follow their calls directly.
    let mut shown: Vec<ContentPart<'a>> = Vec::new();
    for (at, message) in ask.messages.iter().enumerate() {
        if !matches!(message, PromptMessage::Tool { .. }) {
            show(&mut out, &mut shown);
        }
        match message {
            PromptMessage::System(text) => {
                let told = at == 0 || dialect.system_policy == SystemPolicy::Keep;
                let role = if told { "system" } else { "user" };
                out.push(Message::Plain { role, content: Content::Text(Cow::Borrowed(text)) });
            }
            PromptMessage::User(parts) => {
                if !dialect.image_support
                    && parts.iter().any(|part| matches!(part, PromptPart::Image { .. }))
                {
                    return Err(ModelError::new(
                        ModelErrorKind::Rejected,
                        format!("The model `{}` cannot be shown images.", ask.model),
                    ));
                }
                out.push(Message::Plain { role: "user", content: content(parts) });
            }
            PromptMessage::Assistant(message) => {
                out.push(Message::Assistant(assistant(message, dialect, &ids)));
            }
            PromptMessage::Tool { call_id, output } => {
                out.push(tool(call_id, output, dialect, &ids, &mut shown));
            }
        }
    }
    show(&mut out, &mut shown);
    Ok(out)
}

/// Hands on what tools returned besides text, in a message of the user.
fn show<'a>(out: &mut Vec<Message<'a>>, shown: &mut Vec<ContentPart<'a>>) {
    if !shown.is_empty() {
        out.push(Message::Plain { role: "user", content: Content::Parts(std::mem::take(shown)) });
    }
}

/// Only text: one string, which every template takes. Else the parts.
fn content<'a>(parts: &'a [PromptPart<'a>]) -> Content<'a> {
    let texts = || {
        parts.iter().map(|part| match part {
            PromptPart::Text(text) => Some(text.as_ref()),
            PromptPart::Image { .. }
            | PromptPart::File { .. }
            | PromptPart::Audio(_)
            | PromptPart::Video(_) => None,
        })
    };
    if texts().any(|text| text.is_none()) {
        return Content::Parts(parts.iter().map(part).collect());
    }
    Content::Text(joined(texts().flatten()))
}

fn joined<'a>(mut texts: impl Iterator<Item = &'a str>) -> Cow<'a, str> {
    let Some(first) = texts.next() else { return Cow::Borrowed("") };
    let mut all = Cow::Borrowed(first);
    for text in texts {
        let all = all.to_mut();
        all.push('\n');
        all.push_str(text);
    }
    all
}

fn part<'a>(part: &'a PromptPart<'a>) -> ContentPart<'a> {
    match part {
        PromptPart::Text(text) => ContentPart::Text { text },
        PromptPart::Image { url, detail } => {
            // `original` is a word of the Responses API only.
            let detail = matches!(*detail, "low" | "high" | "auto").then_some(*detail);
            ContentPart::ImageUrl { image_url: ImageUrl { url, detail } }
        }
        PromptPart::File { filename, data, url } => ContentPart::File {
            file: FileData {
                filename: *filename,
                file_data: data.map_or_else(
                    || Cow::Borrowed(url.unwrap_or_default()),
                    |data| data_url(data, *filename),
                ),
            },
        },
        PromptPart::Audio(audio) => ContentPart::InputAudio { input_audio: audio },
        PromptPart::Video(url) => ContentPart::VideoUrl { video_url: VideoUrl { url } },
    }
}

/// Backends take bytes as a `data:` URL only.
fn data_url<'a>(data: &'a str, filename: Option<&str>) -> Cow<'a, str> {
    if data.starts_with("data:") {
        return Cow::Borrowed(data);
    }
    let extension = filename
        .and_then(|name| name.rsplit_once('.'))
        .map(|(_, extension)| extension.to_ascii_lowercase());
    let media = match extension.as_deref() {
        Some("pdf") | None => "application/pdf",
        Some("txt" | "md") => "text/plain",
        Some("csv") => "text/csv",
        Some("json") => "application/json",
        Some("html" | "htm") => "text/html",
        Some(_) => "application/octet-stream",
    };
    Cow::Owned(format!("data:{media};base64,{data}"))
}

fn assistant<'a>(
    message: &'a AssistantMessage<'a>,
    dialect: &'a Dialect,
    ids: &CallIds<'a>,
) -> Assistant<'a> {
    let blank = match dialect.blank_content {
        BlankContent::Null if !message.calls.is_empty() => None,
        BlankContent::Null | BlankContent::Empty => Some(""),
    };
    let reasoning = message.reasoning.as_deref().filter(|text| !text.is_empty());
    let details =
        message.reasoning_data.as_ref().filter(|data| data.json().contains("\"reasoning."));
    Assistant {
        role: "assistant",
        content: if message.text.is_empty() { blank } else { Some(&message.text) },
        reasoning: reasoning
            .map(|text| dialect.reasoning_out.iter().map(|field| (field.as_str(), text)).collect())
            .unwrap_or_default(),
        reasoning_details: details
            .filter(|_| dialect.reasoning_in.iter().any(|field| field == "reasoning_details")),
        tool_calls: message.calls.iter().map(|call| self::call(call, ids)).collect(),
    }
}

fn call<'a>(call: &'a PromptCall<'a>, ids: &CallIds<'a>) -> Call<'a> {
    Call {
        id: ids.get(call.call_id),
        kind: "function",
        function: Function { name: &call.name, arguments: &call.arguments },
        extra_content: call.data.as_ref(),
    }
}

fn tool<'a>(
    call_id: &'a str,
    output: &'a [PromptPart<'a>],
    dialect: &Dialect,
    ids: &CallIds<'a>,
    shown: &mut Vec<ContentPart<'a>>,
) -> Message<'a> {
    let mut texts: Vec<&str> = Vec::with_capacity(output.len());
    for piece in output {
        match piece {
            PromptPart::Text(text) => texts.push(text),
            PromptPart::Image { .. } if !dialect.image_support => texts.push(UNSEEN),
            PromptPart::Image { .. }
            | PromptPart::File { .. }
            | PromptPart::Audio(_)
            | PromptPart::Video(_) => {
                if shown.is_empty() {
                    shown.push(ContentPart::Text { text: "What the tools returned besides text:" });
                }
                shown.push(part(piece));
                texts.push("[shown in the next message]");
            }
        }
    }
    Message::Tool {
        role: "tool",
        tool_call_id: ids.get(call_id),
        content: joined(texts.into_iter()),
    }
}

/// The ids of calls, in the form that the backend takes.
struct CallIds<'a>(HashMap<&'a str, String>);

impl<'a> CallIds<'a> {
    fn of(messages: &'a [PromptMessage<'a>], form: CallIdForm) -> Self {
        let mut map = HashMap::new();
        if form == CallIdForm::Any {
            return Self(map);
        }
        let ids = messages.iter().flat_map(|message| match message {
            PromptMessage::Assistant(message) => {
                message.calls.iter().map(|call| call.call_id).collect()
            }
            PromptMessage::Tool { call_id, .. } => vec![*call_id],
            PromptMessage::System(_) | PromptMessage::User(_) => Vec::new(),
        });
        // Ids that fit keep themselves, so no made one may take their place.
        let ids: Vec<&str> = ids.collect();
        let mut taken: HashSet<String> =
            ids.iter().filter(|id| is_alnum9(id)).map(|id| (*id).to_owned()).collect();
        for id in ids {
            if is_alnum9(id) || map.contains_key(id) {
                continue;
            }
            let short = (0..u64::from(u16::MAX))
                .map(|salt| alnum9(id, salt))
                .find(|short| !taken.contains(short))
                .unwrap_or_default();
            taken.insert(short.clone());
            map.insert(id, short);
        }
        Self(map)
    }

    fn get(&self, id: &'a str) -> Cow<'a, str> {
        self.0.get(id).map_or(Cow::Borrowed(id), |short| Cow::Owned(short.clone()))
    }
}

fn is_alnum9(id: &str) -> bool {
    id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Nine letters and digits for `id`, the same in every prompt, so that the backend's prompt cache holds: FNV-1a in base 62.
fn alnum9(id: &str, salt: u64) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut hash =
        id.bytes().chain(salt.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    (0..9)
        .map(|_| {
            let digit = usize::try_from(hash % 62).unwrap_or_default();
            hash /= 62;
            char::from(DIGITS[digit])
        })
        .collect()
}
