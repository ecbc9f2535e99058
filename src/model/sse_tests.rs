use pretty_assertions::assert_eq;

use super::*;

type Read = Vec<(Option<String>, String)>;
/// Frames as (event or nothing, data).
type Expected = &'static [(&'static str, &'static str)];

fn read_with(limit: usize, pieces: &[&[u8]]) -> (Read, Result<(), SseError>) {
    let mut frames = Read::new();
    let mut keep = |frame: Frame<'_>| {
        frames.push((frame.event.map(Cow::into_owned), frame.data.into_owned()));
    };
    let mut reader = SseReader::new(SseLimits { frame_bytes: limit });
    let mut end = pieces.iter().try_for_each(|piece| reader.push(piece, &mut keep));
    if end.is_ok() {
        end = reader.finish(&mut keep);
        assert_eq!(reader.finish(|frame| panic!("{frame:?} after the end")), Ok(()));
    }
    (frames, end)
}

fn read(pieces: &[&[u8]]) -> Read {
    let (frames, end) = read_with(SseLimits::default().frame_bytes, pieces);
    end.unwrap();
    frames
}

fn frames(expected: Expected) -> Read {
    let event = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    expected.iter().map(|(name, data)| (event(name), (*data).to_owned())).collect()
}

/// Each case: its name, the stream, and its frames.
const CASES: &[(&str, &[u8], Expected)] = &[
    ("nothing", b"", &[]),
    ("one", b"data: {\"a\":1}\n\n", &[("", "{\"a\":1}")]),
    ("no blank after the colon", b"data:{\"a\":1}\n\ndata:[DONE]\n\n", &[("", "{\"a\":1}"), ("", "[DONE]")]),
    ("only one blank is taken", b"data:  x\n\n", &[("", " x")]),
    ("a tab is data", b"data:\tx\n\n", &[("", "\tx")]),
    ("CR LF", b"data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", &[("", "a\nb"), ("", "c")]),
    ("CR", b"data: a\rdata: b\r\rdata: c\r\r", &[("", "a\nb"), ("", "c")]),
    ("mixed line ends", b"data: a\r\n\ndata: b\n\r\n\r\ndata: c\r\n\rdata: d\n\r", &[("", "a"), ("", "b"), ("", "c"), ("", "d")]),
    ("a last frame without a blank line", b"data: a\n\ndata: b\n", &[("", "a"), ("", "b")]),
    ("a last line without an end", b"data: a\n\ndata: b", &[("", "a"), ("", "b")]),
    ("byte order mark", b"\xef\xbb\xbfdata: a\n\n", &[("", "a")]),
    ("byte order mark and a blank line", b"\xef\xbb\xbf\ndata: a\n\n", &[("", "a")]),
    ("a second mark is no mark", b"\n\xef\xbb\xbfdata: a\n\ndata: b\n\n", &[("", "b")]),
    (
        "comments, id and retry",
        b": PROCESSING\n\n:\n\n: ping\nevent: message\nid: 7\nretry: 3000\ndata: ok\n\n: x=3\n\ndata: [DONE]\n\n",
        &[("message", "ok"), ("", "[DONE]")],
    ),
    ("an event's name", b"event: error\ndata: {}\n\ndata: x\n\n", &[("error", "{}"), ("", "x")]),
    ("the name after the data", b"data: {}\nevent:error\n\n", &[("error", "{}")]),
    ("the last name counts", b"event: a\nevent: b\ndata: x\n\nevent: a\nevent\ndata: y\n\n", &[("b", "x"), ("", "y")]),
    ("a name alone is no frame and does not stay", b"event: ping\n\ndata: x\n\n", &[("", "x")]),
    ("empty data is data", b"data\n\ndata:\n\ndata: \n\n", &[("", ""), ("", ""), ("", "")]),
    ("lines are joined", b"data: a\ndata\ndata: b\ndata:\n\n", &[("", "a\n\nb\n")]),
    ("only a line feed", b"data\ndata\n\n", &[("", "\n")]),
    ("fields that are nearly ours", b"dat: a\ndatax: b\nDATA: c\n data: d\nevents: e\n\ndata: f\n\n", &[("", "f")]),
    ("a colon in the data", b"data: a: b\n\n", &[("", "a: b")]),
    ("letters of several bytes", "event: \u{e9}\ndata: \u{e9}\u{1f600}\u{4e2d}\n\n".as_bytes(), &[("\u{e9}", "\u{e9}\u{1f600}\u{4e2d}")]),
    ("an invalid byte", b"data: a\xffb\n\ndata: c\n\n", &[("", "a\u{fffd}b"), ("", "c")]),
    ("a letter broken by the line's end", b"data: a\xc3\ndata: \xa9b\n\n", &[("", "a\u{fffd}\n\u{fffd}b")]),
    ("a letter broken by the stream's end", b"data: a\xf0\x9f\x98", &[("", "a\u{fffd}")]),
    ("NUL", b"data: a\0b\n\n", &[("", "a\0b")]),
    ("many blank lines", b"\n\n\ndata: a\n\n\n\n\r\n\rdata: b\n\n", &[("", "a"), ("", "b")]),
];

#[test]
fn streams_are_read() {
    for (name, stream, expected) in CASES {
        assert_eq!(read(&[stream]), frames(expected), "{name}");
    }
}

#[test]
fn where_the_bytes_are_cut_does_not_matter() {
    for (name, stream, expected) in CASES {
        let expected = frames(expected);
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let pieces = [&stream[..first], &stream[first..second], &stream[second..]];
                assert_eq!(read(&pieces), expected, "{name}, cut at {first} and {second}");
            }
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(&bytes), expected, "{name}, byte by byte");
    }
}

#[test]
fn a_whole_frame_is_not_copied() {
    let stream = b"event: x\ndata: {\"a\":1}\n\ndata: b\ndata: c\n\n";
    let within = |s: &str| stream.as_ptr_range().contains(&s.as_ptr());
    let mut borrowed = Vec::new();
    SseReader::default().push(stream, |frame| borrowed.push(within(&frame.data))).unwrap();
    assert_eq!(borrowed, [true, false]);
}

#[test]
fn too_much_is_refused_at_every_cut() {
    // Of 12 bytes: a line, the data of a frame, an endless line, a comment.
    let cases: &[(&[u8], Expected, bool)] = &[
        (b"data: 123456\n\n", &[("", "123456")], true),
        (b"data: a\n\ndata: 1234567\n\n", &[("", "a")], false),
        (b"data: 12345\ndata: 123456\n\n", &[("", "12345\n123456")], true),
        (b"data: 123456\ndata: 123456\n\n", &[], false),
        (b"data: 1234567", &[], false),
        (b": 123456789012\n", &[], false),
    ];
    for (stream, expected, ok) in cases {
        let end = if *ok { Ok(()) } else { Err(SseError::TooLong { limit: 12 }) };
        for cut in 0..=stream.len() {
            let (got, ended) = read_with(12, &[&stream[..cut], &stream[cut..]]);
            assert_eq!((got, &ended), (frames(expected), &end), "{stream:?} cut at {cut}");
        }
    }
}
