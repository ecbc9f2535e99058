//! PDF to Markdown.

use unpdf::{
    Error, ErrorKind, ParseOptions,
    render::{RenderOptions, to_markdown},
};

use super::{ParseError, Parsed};

/// The text of a PDF; empty when its pages are pictures.
pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, ParseError> {
    // Text alone, page after page: pictures cost memory, and threads only spread it.
    let options = ParseOptions::new().lenient().sequential().with_resources(false);
    let document =
        unpdf::parse_bytes_with_options(bytes, options).map_err(|error| reason(&error))?;
    let text = to_markdown(&document, &RenderOptions::new()).map_err(|error| reason(&error))?;
    let metadata = &document.metadata;
    Ok(Parsed {
        title: metadata
            .title
            .as_deref()
            .map(str::trim)
            .filter(|title| !title.is_empty())
            .map(str::to_owned),
        text: text.trim().to_owned(),
        published: metadata.created.map(|when| when.to_rfc3339()),
        truncated: false,
    })
}

fn reason(error: &Error) -> ParseError {
    match error.kind() {
        ErrorKind::Encrypted | ErrorKind::InvalidPassword => ParseError::Encrypted,
        _ => ParseError::Damaged,
    }
}
