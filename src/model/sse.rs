//! Server-sent events: bytes in, frames out, as the WHATWG standard reads them and wherever the bytes are cut.
//!
//! Lines are found in the bytes and decoded only when a frame is whole, so that a character cut in two is not damaged. A
//! frame of one line that arrived in one piece, which nearly all are, is handed on without being copied.

use std::borrow::Cow;

use memchr::memchr2;

/// One event of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Frame<'a> {
    /// The last `event:` field; `None` when there was none or it was empty.
    pub event: Option<Cow<'a, str>>,
    /// The `data:` fields, joined by a line feed. `[DONE]` is data like any other.
    pub data: Cow<'a, str>,
}

/// How much one frame may be.
#[derive(Clone, Copy, Debug)]
pub struct SseLimits {
    /// The longest line, and the most data of one frame, in bytes.
    pub frame_bytes: usize,
}

impl Default for SseLimits {
    fn default() -> Self {
        Self { frame_bytes: 16 * 1024 * 1024 }
    }
}

/// Why a stream cannot be read on. The reader is of no use afterwards.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SseError {
    /// A line or a frame is over [`SseLimits::frame_bytes`].
    #[error("the stream holds an event of more than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

/// Reads one stream.
///
/// Comments, `id` and `retry` are passed over, and so is a frame without `data`: its `event:` does not reach the next one.
/// Bytes that are not UTF-8 become U+FFFD.
#[derive(Debug, Default)]
pub struct SseReader {
    limits: SseLimits,
    /// The line that the last piece ended in.
    line: Vec<u8>,
    /// The last piece ended in CR: a LF at the beginning of the next one belongs to it.
    after_cr: bool,
    /// A line has been read, so a byte order mark can no longer come.
    begun: bool,
    event: Vec<u8>,
    data: Vec<u8>,
    /// Tells empty data from none.
    has_data: bool,
}

impl SseReader {
    /// A reader at the beginning of a stream.
    pub fn new(limits: SseLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Reads the next bytes and hands on each frame that they complete.
    pub fn push(
        &mut self,
        bytes: &[u8],
        mut on_frame: impl FnMut(Frame<'_>),
    ) -> Result<(), SseError> {
        let mut rest = bytes;
        // The data of the open frame while it is one line within `bytes`.
        let mut here: Option<&[u8]> = None;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr2(b'\r', b'\n', rest) {
            let (line, tail) = (&rest[..end], &rest[end + 1..]);
            if rest[end] == b'\r' {
                self.after_cr = tail.is_empty();
                rest = tail.strip_prefix(b"\n").unwrap_or(tail);
            } else {
                rest = tail;
            }
            if self.line.len() + line.len() > self.limits.frame_bytes {
                return Err(self.too_long());
            }
            if self.line.is_empty() {
                match self.field(line) {
                    Field::Data(value) if self.has_data => {
                        if let Some(first) = here.take() {
                            self.data.extend_from_slice(first);
                        }
                        self.add_data(value)?;
                    }
                    Field::Data(value) => {
                        self.has_data = true;
                        here = Some(value);
                    }
                    Field::Event(name) => self.set_event(name),
                    Field::End => self.end_frame(here.take(), &mut on_frame),
                    Field::Other => (),
                }
            } else {
                // Only the first line of a piece: `here` is still empty.
                self.line.extend_from_slice(line);
                self.kept_line()?;
            }
        }
        if let Some(data) = here {
            self.data.extend_from_slice(data);
        }
        if self.line.len() + rest.len() > self.limits.frame_bytes {
            return Err(self.too_long());
        }
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// The stream has ended: a last frame counts although no blank line followed it.
    pub fn finish(&mut self, mut on_frame: impl FnMut(Frame<'_>)) -> Result<(), SseError> {
        if !self.line.is_empty() {
            self.kept_line()?;
        }
        self.end_frame(None, &mut on_frame);
        Ok(())
    }

    /// Reads the line that was kept over pieces. It is never blank.
    fn kept_line(&mut self) -> Result<(), SseError> {
        let line = std::mem::take(&mut self.line);
        match self.field(&line) {
            Field::Data(value) => self.add_data(value)?,
            Field::Event(name) => self.set_event(name),
            // A lone byte order mark before a blank line.
            Field::End | Field::Other => (),
        }
        self.line = line;
        self.line.clear();
        Ok(())
    }

    fn field<'l>(&mut self, line: &'l [u8]) -> Field<'l> {
        let line = if self.begun {
            line
        } else {
            line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line)
        };
        self.begun = true;
        Field::read(line)
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), SseError> {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        if self.data.len() + value.len() > self.limits.frame_bytes {
            return Err(self.too_long());
        }
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn set_event(&mut self, name: &[u8]) {
        self.event.clear();
        self.event.extend_from_slice(name);
    }

    fn end_frame(&mut self, here: Option<&[u8]>, on_frame: &mut impl FnMut(Frame<'_>)) {
        if self.has_data {
            let event = (!self.event.is_empty()).then(|| String::from_utf8_lossy(&self.event));
            on_frame(Frame { event, data: String::from_utf8_lossy(here.unwrap_or(&self.data)) });
            self.data.clear();
            self.has_data = false;
        }
        self.event.clear();
    }

    fn too_long(&self) -> SseError {
        SseError::TooLong { limit: self.limits.frame_bytes }
    }
}

/// What a line says.
enum Field<'l> {
    Data(&'l [u8]),
    Event(&'l [u8]),
    /// A blank line: the frame is whole.
    End,
    /// A comment, or a field that means nothing to us.
    Other,
}

impl<'l> Field<'l> {
    fn read(line: &'l [u8]) -> Self {
        if let Some(value) = value_of(line, b"data") {
            Self::Data(value)
        } else if let Some(value) = value_of(line, b"event") {
            Self::Event(value)
        } else if line.is_empty() {
            Self::End
        } else {
            Self::Other
        }
    }
}

/// The value of the field `name`: after the colon and one blank, empty where there is no colon.
fn value_of<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    match line.strip_prefix(name)? {
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        [] => Some(&[]),
        _ => None,
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
