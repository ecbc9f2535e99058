//! The files of a request and its history, as text.

use std::collections::HashMap;

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use futures::future::join_all;
use tokio::sync::OnceCell;

use crate::{
    documents::{Kind, ParseError, Parser, Task, decode},
    protocol::{Item, Part, SharedItem, content::InputFile, item::Message},
};

/// How many files of a conversation are read; documents cost a process each.
const MOST_FILES: usize = 100;
/// How much of a file of unknown kind is looked at, in bytes.
const HEAD: usize = 8 * 1024;

/// Some leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How files are read. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FileReader {
    parser: Parser,
    preview: usize,
}

/// The files of one Response. They are read once, when they are first asked for.
#[derive(Debug)]
pub struct Files {
    reader: FileReader,
    read: OnceCell<Vec<File>>,
}

/// The items that the model is shown in the place of those with long files.
#[derive(Debug, Default)]
pub struct Previews {
    by_id: HashMap<String, Item>,
}

/// A file.
#[derive(Debug)]
pub(super) struct File {
    /// Unique among the files of the Response.
    pub(super) name: String,
    pub(super) text: Result<Text, Unreadable>,
    /// The item that it stands in, and its place among the parts there.
    place: (String, usize),
}

/// The text of a file.
#[derive(Debug)]
pub(super) struct Text {
    content: String,
    pub(super) characters: usize,
    /// Whether the file has more text than is kept.
    pub(super) truncated: bool,
}

/// Why a file has no text; reads on from "it".
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("only the last {MOST_FILES} files of a conversation are read")]
    Surplus,
    #[error("it is given by its address alone")]
    Address,
    #[error("its data is not base64")]
    Base64,
    #[error("it is of a kind that has no text; text, PDF and HTML can be read")]
    Kind,
    #[error("{0}")]
    Document(#[from] ParseError),
}

/// What the bytes of a file are.
#[derive(Debug, Eq, PartialEq)]
enum Form {
    Text { charset: Option<String> },
    Document { kind: Kind, charset: Option<String> },
}

impl FileReader {
    /// Reads documents with this parser. Files longer than `preview` characters are shown to the model only so far.
    pub fn new(parser: Parser, preview: usize) -> Self {
        Self { parser, preview }
    }

    async fn text(&self, file: &InputFile) -> Result<Text, Unreadable> {
        let data = file.file_data.as_deref().ok_or(Unreadable::Address)?;
        let (declared, encoded) = match data.strip_prefix("data:") {
            Some(rest) => rest.split_once(";base64,").ok_or(Unreadable::Base64)?,
            None => ("", data),
        };
        let bytes = BASE64.decode(encoded).map_err(|_| Unreadable::Base64)?;
        let name = file.filename.as_deref().unwrap_or_default();
        match form(declared, name, &bytes).ok_or(Unreadable::Kind)? {
            Form::Text { charset } => Ok(Text::new(decode(&bytes, charset.as_deref()), false)),
            Form::Document { kind, charset } => {
                let task = Task { kind, url: None, charset };
                let parsed = self.parser.parse(&task, &bytes).await?;
                Ok(Text::new(parsed.text, parsed.truncated))
            }
        }
    }
}

impl Files {
    /// Files that this reader will read.
    pub(in crate::tools) fn new(reader: FileReader) -> Self {
        Self { reader, read: OnceCell::new() }
    }

    /// All files of a history, in their order.
    pub(super) async fn of(&self, history: &[SharedItem]) -> &[File] {
        self.read.get_or_init(|| self.read(history)).await
    }

    async fn read(&self, history: &[SharedItem]) -> Vec<File> {
        let mut surplus = given(history).count().saturating_sub(MOST_FILES);
        let mut names = HashMap::new();
        let mut reading = Vec::new();
        for item in history {
            let Item::Message(message) = &**item else { continue };
            for (at, part) in message.content.iter().enumerate() {
                let Part::InputFile(file) = part else { continue };
                let name = unique(file.filename.as_deref(), &mut names);
                let place = (message.id.clone(), at);
                let is_read = surplus == 0;
                surplus = surplus.saturating_sub(1);
                reading.push(async move {
                    let text = if is_read {
                        self.reader.text(file).await
                    } else {
                        Err(Unreadable::Surplus)
                    };
                    File { name, text, place }
                });
            }
        }
        join_all(reading).await
    }

    /// The items of a history that hold files which are too long, with the beginnings of these files in their place.
    pub async fn previews(&self, history: &[SharedItem]) -> Previews {
        let mut shown: HashMap<(&str, usize), String> = HashMap::new();
        for file in self.of(history).await {
            if let Ok(text) = &file.text
                && text.characters > self.reader.preview
            {
                let (id, at) = &file.place;
                shown.insert((id, *at), preview(&file.name, text, self.reader.preview));
            }
        }
        let mut previews = Previews::default();
        for item in history {
            let Item::Message(message) = &**item else { continue };
            let is_long = |at| shown.contains_key(&(&*message.id, at));
            if (0..message.content.len()).any(is_long) {
                let parts = message.content.iter().enumerate();
                let content = parts.map(|(at, part)| match shown.remove(&(&*message.id, at)) {
                    Some(text) => Part::input_text(text),
                    None => part.clone(),
                });
                let shorter = Message {
                    id: message.id.clone(),
                    status: message.status,
                    role: message.role,
                    content: content.collect(),
                    extra: message.extra.clone(),
                };
                previews.by_id.insert(message.id.clone(), Item::Message(shorter));
            }
        }
        previews
    }
}

#[cfg(test)]
impl File {
    /// A file with this text.
    pub(super) fn of(name: &str, text: &str) -> Self {
        let text = Ok(Text::new(text.to_owned(), false));
        Self { name: name.to_owned(), text, place: (String::new(), 0) }
    }
}

impl Previews {
    /// What the model is shown of an item.
    pub fn of<'a>(&'a self, item: &'a Item) -> &'a Item {
        if self.by_id.is_empty() { item } else { self.by_id.get(item.id()).unwrap_or(item) }
    }
}

impl Text {
    fn new(content: String, truncated: bool) -> Self {
        Self { characters: content.chars().count(), content, truncated }
    }

    /// Some characters of it, from one on.
    pub(super) fn slice(&self, start: usize, length: usize) -> &str {
        let from =
            |text: &str, at| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
        let rest = &self.content[from(&self.content, start)..];
        &rest[..from(rest, length)]
    }
}

/// The files of a history, as they were given.
fn given(history: &[SharedItem]) -> impl Iterator<Item = &InputFile> {
    let messages = history.iter().filter_map(|item| match &**item {
        Item::Message(message) => Some(&message.content),
        _ => None,
    });
    messages.flatten().filter_map(|part| match part {
        Part::InputFile(file) => Some(file),
        _ => None,
    })
}

fn preview(name: &str, text: &Text, most: usize) -> String {
    let (beginning, total) = (text.slice(0, most), text.characters);
    format!(
        "[The file `{name}` begins here: characters 0 to {most} of {total}. The rest is read with read_file, from start={most} on.]\n{beginning}\n[Here the preview of `{name}` ends, not the file.]"
    )
}

/// A name that no file before has.
///
/// `names` has how often each was given: thousands of the same are not counted through for each of them.
fn unique(given: Option<&str>, names: &mut HashMap<String, usize>) -> String {
    let given = given.map(str::trim).filter(|name| !name.is_empty()).unwrap_or("file");
    let Some(mut count) = names.get(given).copied() else {
        names.insert(given.to_owned(), 1);
        return given.to_owned();
    };
    let name = loop {
        count += 1;
        let name = format!("{given} ({count})");
        if !names.contains_key(&name) {
            break name;
        }
    };
    names.insert(given.to_owned(), count);
    names.insert(name.clone(), 1);
    name
}

/// What the bytes are: as their media type says, else as they look, else as they are called.
fn form(declared: &str, name: &str, bytes: &[u8]) -> Option<Form> {
    let mut words = declared.split(';').map(str::trim);
    let media_type = words.next().unwrap_or_default().to_ascii_lowercase();
    let charset = words.find_map(|word| word.strip_prefix("charset=")).map(str::to_owned);
    let name = name.to_ascii_lowercase();
    let is_named = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if media_type == "application/pdf" || bytes.starts_with(b"%PDF-") {
        return Some(Form::Document { kind: Kind::Pdf, charset });
    }
    if matches!(&*media_type, "text/html" | "application/xhtml+xml")
        || (is_vague(&media_type) && is_named(&[".html", ".htm", ".xhtml"]))
    {
        return Some(Form::Document { kind: Kind::Html, charset });
    }
    let is_text = media_type.starts_with("text/")
        || ["json", "xml", "yaml", "javascript", "toml", "sql", "csv", "x-sh", "x-ndjson"]
            .iter()
            .any(|word| media_type.ends_with(word));
    let looks_like_text = || !bytes[..bytes.len().min(HEAD)].contains(&0);
    (is_text || (is_vague(&media_type) && looks_like_text())).then_some(Form::Text { charset })
}

/// Whether a media type says nothing.
fn is_vague(media_type: &str) -> bool {
    matches!(media_type, "" | "application/octet-stream" | "binary/octet-stream")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn kinds_are_told_by_type_bytes_and_name() {
        let text = Some(Form::Text { charset: None });
        let document = |kind| Some(Form::Document { kind, charset: None });
        for (declared, name, bytes, expected) in [
            ("text/plain", "a", b"x".as_slice(), &text),
            ("application/json", "a", b"{}", &text),
            ("application/vnd.api+json", "a", b"{}", &text),
            ("", "notes.md", b"# x", &text),
            ("application/octet-stream", "", b"x", &text),
            ("application/octet-stream", "", b"x\0y", &None),
            ("", "a.docx", b"PK\x03\x04\x14\0", &None),
            ("image/png", "a.png", b"x", &None),
            ("application/zip", "", b"x", &None),
            ("", "a", b"%PDF-1.7", &document(Kind::Pdf)),
            ("application/pdf", "a", b"", &document(Kind::Pdf)),
            ("text/html", "a", b"<p>", &document(Kind::Html)),
            ("", "A.HTM", b"<p>", &document(Kind::Html)),
            ("text/plain", "a.html", b"<p>", &text),
        ] {
            assert_eq!(&form(declared, name, bytes), expected, "{declared} {name}");
        }
        let latin = Some(Form::Text { charset: Some("latin1".to_owned()) });
        assert_eq!(form("text/csv; charset=latin1", "", b""), latin);
    }

    #[test]
    fn names_are_unique() {
        let mut names = HashMap::new();
        let given =
            [Some("a.txt"), None, Some("a.txt"), Some(" "), Some("a.txt (2)"), Some("a.txt")];
        let made = given.map(|name| unique(name, &mut names));
        assert_eq!(made, ["a.txt", "file", "a.txt (2)", "file (2)", "a.txt (2) (2)", "a.txt (3)"]);
    }

    #[test]
    fn slices_are_of_characters() {
        let text = Text::new("aé日x".to_owned(), false);
        for (start, length, expected) in [
            (0, 2, "aé"),
            (1, 2, "é日"),
            (3, 9, "x"),
            (4, 1, ""),
            (9, 9, ""),
            (0, 0, ""),
            (0, usize::MAX, "aé日x"),
        ] {
            assert_eq!(text.slice(start, length), expected, "{start} {length}");
        }
        assert_eq!(text.characters, 4);
    }
}
