//! `read_file`, offered by the extension type `antiphon:read_file`: pages through a file of the input that is too large for the context.
//!
//! A file that is longer than a preview is shown to the model as its beginning, with a note how to read on ([`Previews`]). What is stored
//! and shown to clients stays whole.

mod files;

use std::{fmt::Write as _, sync::Arc};

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::turn::ToolOutput;

use self::files::File;
use super::{Call, Spec, Tool, ToolError};

pub use self::files::{FileReader, Files, Previews};

/// The most characters of one call.
const LONGEST_PAGE: usize = 16_000;

/// Reads files.
pub(super) struct ReadFile {
    spec: Spec,
    files: Arc<Files>,
}

impl ReadFile {
    pub(super) fn new(files: Arc<Files>) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "file": { "type": "string", "description": "The name of the file." },
                "start": {
                    "type": "integer",
                    "description": "The first character that is read, counted from 0. Default: 0.",
                },
                "length": {
                    "type": "integer",
                    "description": format!("How many characters are read, {LONGEST_PAGE} at most, which is the default."),
                },
            },
            "required": ["file"],
            "additionalProperties": false,
        });
        let spec = Spec {
            aliases: &[
                ("filename", "file"),
                ("name", "file"),
                ("file_id", "file"),
                ("path", "file"),
                ("start_char", "start"),
                ("offset", "start"),
                ("num_chars", "length"),
                ("limit", "length"),
            ],
            ..Spec::own(
                "read_file",
                "Read a file",
                "Reads a part of a file that the user gave, where only its beginning is shown.",
                &parameters,
            )
        };
        Self { spec, files }
    }
}

impl Tool for ReadFile {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let files = self.files.of(&call.context.history).await;
            page(files, call.arguments).map(ToolOutput::text).map_err(ToolError::told)
        })
    }
}

/// What a call asks for, with a line before it that says what it is; else a sentence for the model.
fn page(files: &[File], arguments: &Map<String, Value>) -> Result<String, String> {
    let wanted = arguments.get("file").and_then(Value::as_str).unwrap_or_default().trim();
    let file = find(files, wanted).ok_or_else(|| unknown(files, wanted))?;
    let name = &file.name;
    let text = file.text.as_ref().map_err(|why| format!("`{name}` cannot be read: {why}."))?;
    let total = text.characters;
    if total == 0 {
        return Ok(format!("[`{name}` is empty.]"));
    }
    let number = |key| arguments.get(key).and_then(Value::as_i64);
    let start = usize::try_from(number("start").unwrap_or(0).max(0)).unwrap_or(usize::MAX);
    if start >= total {
        let last = total.saturating_sub(LONGEST_PAGE);
        return Err(format!(
            "`{name}` has {total} characters, so there is nothing at {start}. Its last page begins at start={last}."
        ));
    }
    let asked = number("length")
        .map_or(LONGEST_PAGE, |length| usize::try_from(length.max(1)).unwrap_or(usize::MAX));
    let shown = text.slice(start, asked.min(LONGEST_PAGE));
    let end = start + shown.chars().count();
    let mut page = format!("[`{name}`: characters {start} to {end} of {total}.");
    if asked > LONGEST_PAGE {
        // Writing into a `String` cannot fail.
        let _ = write!(page, " One call reads at most {LONGEST_PAGE}.");
    }
    if end < total {
        let _ = write!(page, " Go on with start={end}.");
    } else if text.truncated {
        page.push_str(" The file is longer, but more of it cannot be read.");
    } else {
        page.push_str(" This is its end.");
    }
    page.push_str("]\n");
    page.push_str(shown);
    Ok(page)
}

/// The file of this name; letters may be written large or small.
fn find<'a>(files: &'a [File], name: &str) -> Option<&'a File> {
    let exact = files.iter().find(|file| file.name == name);
    exact.or_else(|| files.iter().find(|file| file.name.to_lowercase() == name.to_lowercase()))
}

fn unknown(files: &[File], name: &str) -> String {
    if files.is_empty() {
        return "There are no files in this conversation.".to_owned();
    }
    let names: Vec<String> = files.iter().map(|file| format!("`{}`", file.name)).collect();
    format!("There is no file `{name}`. These are there: {}.", names.join(", "))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_page_says_what_it_is_and_how_to_go_on() {
        let long = "é".repeat(40_000);
        let files = [
            File::of("Report.txt", "abcdef"),
            File::of("long.txt", &long),
            File::of("none.txt", ""),
        ];
        let first_line = |arguments: Value| {
            let Value::Object(arguments) = arguments else { panic!("{arguments}") };
            match page(&files, &arguments) {
                Ok(text) => {
                    let (line, shown) = text.split_once('\n').unwrap_or((&text, ""));
                    format!("{line} {}", shown.chars().count())
                }
                Err(why) => why,
            }
        };
        for (arguments, expected) in [
            (
                json!({ "file": "Report.txt" }),
                "[`Report.txt`: characters 0 to 6 of 6. This is its end.] 6",
            ),
            (
                json!({ "file": " report.TXT", "start": 2, "length": 3 }),
                "[`Report.txt`: characters 2 to 5 of 6. Go on with start=5.] 3",
            ),
            (
                json!({ "file": "Report.txt", "start": -4, "length": 0 }),
                "[`Report.txt`: characters 0 to 1 of 6. Go on with start=1.] 1",
            ),
            (
                json!({ "file": "Report.txt", "start": 6 }),
                "`Report.txt` has 6 characters, so there is nothing at 6. Its last page begins at start=0.",
            ),
            (
                json!({ "file": "long.txt" }),
                "[`long.txt`: characters 0 to 16000 of 40000. Go on with start=16000.] 16000",
            ),
            (
                json!({ "file": "long.txt", "length": 99_999 }),
                "[`long.txt`: characters 0 to 16000 of 40000. One call reads at most 16000. Go on with start=16000.] 16000",
            ),
            (
                json!({ "file": "long.txt", "start": 32_000 }),
                "[`long.txt`: characters 32000 to 40000 of 40000. This is its end.] 8000",
            ),
            (
                json!({ "file": "long.txt", "start": i64::MAX }),
                "`long.txt` has 40000 characters, so there is nothing at 9223372036854775807. Its last page begins at start=24000.",
            ),
            (json!({ "file": "none.txt" }), "[`none.txt` is empty.] 0"),
            (
                json!({ "file": "other" }),
                "There is no file `other`. These are there: `Report.txt`, `long.txt`, `none.txt`.",
            ),
        ] {
            assert_eq!(first_line(arguments), expected);
        }
        assert_eq!(page(&[], &Map::new()).unwrap_err(), "There are no files in this conversation.");
    }
}
