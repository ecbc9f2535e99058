//! Bytes of an answer in, [`Delta`]s out, whichever wire: finds out whether the answer is a stream at all, and reads its events.

use super::{
    ModelError, ModelErrorKind,
    sse::{Frame, SseLimits, SseReader},
};
use crate::turn::Delta;

/// The longest answer that is not a stream, in bytes.
const LONGEST_WHOLE: usize = 64 * 1024 * 1024;

/// Reads the events of one wire. After an error, or once it is done, it is not asked again.
pub(crate) trait Reading: Send {
    /// The next event of the stream.
    fn frame(
        &mut self,
        event: Option<&str>,
        data: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError>;
    /// An answer that came whole, as JSON.
    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<(), ModelError>;
    /// The connection was closed in good order.
    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError>;
    /// How far the answer is.
    fn progress(&self) -> Progress;
}

impl Reading for Box<dyn Reading> {
    fn frame(
        &mut self,
        event: Option<&str>,
        data: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), ModelError> {
        (**self).frame(event, data, out)
    }
    fn whole(&mut self, json: &str, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        (**self).whole(json, out)
    }
    fn end(&mut self, out: &mut Vec<Delta>) -> Result<(), ModelError> {
        (**self).end(out)
    }
    fn progress(&self) -> Progress {
        (**self).progress()
    }
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Progress {
    /// More is to come.
    Open,
    /// The model has said why it stopped; only the usage may still come.
    Finished,
    /// Nothing more is to come.
    Done,
}

/// Reads one answer.
pub(crate) struct Intake<R> {
    reading: R,
    form: Form,
    failed: bool,
}

enum Form {
    /// Nothing but white space so far.
    Unknown,
    Stream(SseReader),
    /// JSON that is not a stream.
    Whole(Vec<u8>),
}

/// What some bytes gave: first the deltas, then perhaps the error that ends them.
pub(crate) type Taken = (Vec<Delta>, Option<ModelError>);

impl<R: Reading> Intake<R> {
    pub(crate) fn new(reading: R) -> Self {
        Self { reading, form: Form::Unknown, failed: false }
    }

    /// The next bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Taken {
        if let Form::Unknown = self.form {
            bytes = bytes.trim_ascii_start();
            match bytes.first() {
                None => return (Vec::new(), None),
                // No line of a stream begins so.
                Some(b'{' | b'[') => self.form = Form::Whole(Vec::new()),
                Some(_) => self.form = Form::Stream(SseReader::new(SseLimits::default())),
            }
        }
        match &mut self.form {
            Form::Whole(body) if body.len() + bytes.len() > LONGEST_WHOLE => {
                self.failed = true;
                (
                    Vec::new(),
                    Some(broken(format!(
                        "The upstream's answer is longer than {LONGEST_WHOLE} bytes."
                    ))),
                )
            }
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                (Vec::new(), None)
            }
            Form::Stream(_) | Form::Unknown => {
                self.frames(|sse, on_frame| sse.push(bytes, on_frame))
            }
        }
    }

    /// The connection was closed in good order.
    pub(crate) fn end(&mut self) -> Taken {
        // Half a frame after the model has said why it stopped takes nothing away from what it said.
        let finished = self.reading.progress() == Progress::Finished;
        let (mut out, mut error) = match &mut self.form {
            Form::Unknown => (Vec::new(), None),
            Form::Stream(_) => self.frames(|sse, on_frame| sse.finish(on_frame)),
            Form::Whole(body) => {
                let text = String::from_utf8_lossy(body).into_owned();
                let mut out = Vec::new();
                let read = self.reading.whole(&text, &mut out);
                (out, read.err())
            }
        };
        if error.is_none() && !self.failed && self.reading.progress() != Progress::Done {
            error = self.reading.end(&mut out).err();
        }
        (out, error.filter(|_| !finished))
    }

    pub(crate) fn progress(&self) -> Progress {
        self.reading.progress()
    }

    fn frames(
        &mut self,
        read: impl FnOnce(&mut SseReader, &mut dyn FnMut(Frame<'_>)) -> Result<(), super::sse::SseError>,
    ) -> Taken {
        let Form::Stream(sse) = &mut self.form else { return (Vec::new(), None) };
        let (mut out, mut error) = (Vec::new(), None);
        let reading = &mut self.reading;
        let result = read(sse, &mut |frame: Frame<'_>| {
            if error.is_none() && reading.progress() != Progress::Done {
                error = reading.frame(frame.event.as_deref(), &frame.data, &mut out).err();
            }
        });
        let error = error.or_else(|| {
            result.err().map(|error| broken(format!("The upstream cannot be read: {error}.")))
        });
        self.failed |= error.is_some();
        (out, error)
    }
}

/// The answer is none.
pub(crate) fn broken(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::BrokenStream, message)
}

#[cfg(test)]
#[path = "intake_tests.rs"]
mod tests;
