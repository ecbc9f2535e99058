//! What `antiphon parse` does: one document from the standard input, its text to the standard output. Started by [`Parser`](super::Parser).

use std::io::{self, BufRead, Write};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::{Kind, ParseError, Parsed, Task, charset::decode, html, pdf};

/// Address space, in bytes. Also for the stack below.
const MEMORY: u64 = 2 << 30;
/// Processor time, in seconds; whoever waits gives up earlier.
const CPU_SECONDS: u64 = 30;
/// Parsers walk trees by calling themselves, as deep as the document is nested.
const STACK: usize = 256 << 20;

/// Reads one line of JSON, a [`Task`], and the document after it; writes one line of JSON, the result.
pub fn run(mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    limit_myself()?;
    let mut line = String::new();
    input.read_line(&mut line)?;
    let task: Task = serde_json::from_str(&line)?;
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let result = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || parse(&task, &bytes))?
        .join()
        // A panic: the document is not what the parser takes for possible.
        .unwrap_or(Err(ParseError::Damaged));
    serde_json::to_writer(&mut output, &result)?;
    output.flush()
}

fn parse(task: &Task, bytes: &[u8]) -> Result<Parsed, ParseError> {
    let parsed = match task.kind {
        Kind::Html => html::parse(&decode(bytes, task.charset.as_deref()), task.url.as_deref()),
        Kind::Pdf => pdf::parse(bytes)?,
    };
    Ok(parsed.bounded())
}

/// Memory and time, no files, no core dump of somebody's document.
fn limit_myself() -> io::Result<()> {
    for (resource, most) in [
        (Resource::As, MEMORY),
        (Resource::Cpu, CPU_SECONDS),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        let limited = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
        // Only Linux counts the address space in a way that can be limited.
        if cfg!(target_os = "linux") || !matches!(resource, Resource::As) {
            limited?;
        }
    }
    Ok(())
}
