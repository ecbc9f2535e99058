//! `get_current_time`, offered by the extension type `antiphon:clock`.

use futures::future::{BoxFuture, FutureExt as _, ready};
use serde_json::{Value, json};
use time::{UtcOffset, format_description::well_known::Rfc3339};

use crate::{clock::Clock, turn::ToolOutput};

use super::{Call, Spec, Tool, ToolError};

/// Tells the time.
#[derive(Debug)]
pub struct ClockTool {
    clock: Clock,
    spec: Spec,
}

impl ClockTool {
    /// A tool that tells the time of this clock.
    pub fn new(clock: Clock) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "utc_offset": {
                    "type": "string",
                    "description": "Offset from UTC, such as +02:00. Default: UTC.",
                },
            },
            "additionalProperties": false,
        });
        let spec = Spec::own(
            "get_current_time",
            "Clock",
            "Tells the current date and time in RFC 3339, and the weekday.",
            &parameters,
        );
        Self { clock, spec }
    }

    fn tell(&self, offset_asked: Option<&str>) -> Result<ToolOutput, ToolError> {
        let offset = match offset_asked {
            None | Some("") => UtcOffset::UTC,
            Some(text) => offset(text).ok_or_else(|| {
                ToolError::told(format!(
                    r#"`{text}` is not an offset from UTC. A right example: {{"utc_offset":"+02:00"}}"#
                ))
            })?,
        };
        let now = self.clock.now().to_offset(offset);
        let text = now.format(&Rfc3339).map_err(anyhow::Error::from)?;
        Ok(ToolOutput::text(format!("{text} ({})", now.weekday())))
    }
}

impl Tool for ClockTool {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let told = self.tell(call.arguments.get("utc_offset").and_then(Value::as_str));
        ready(told).boxed()
    }
}

/// Reads `Z`, `UTC`, `+2`, `-05:30`, `+0530`.
fn offset(text: &str) -> Option<UtcOffset> {
    let text = text.trim();
    if matches!(text, "Z" | "z" | "UTC" | "utc") {
        return Some(UtcOffset::UTC);
    }
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => (1, text),
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() == 4 && digits.is_ascii() => digits.split_at(2),
        None => (digits, "0"),
    };
    let (hours, minutes): (i8, i8) = (hours.parse().ok()?, minutes.parse().ok()?);
    if hours < 0 || minutes < 0 {
        return None;
    }
    UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("Z", Some(0)),
            ("+02:00", Some(7200)),
            ("-05:30", Some(-19_800)),
            ("+0530", Some(19_800)),
            ("3", Some(10_800)),
            ("+99:00", None),
            ("Europe/Oslo", None),
            ("--1", None),
        ] {
            assert_eq!(offset(text).map(UtcOffset::whole_seconds), seconds, "{text}");
        }
    }
}
