//! Bytes to text, whatever their encoding.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// How far into a page its own word on its encoding is looked for.
const HEAD: usize = 1024;
/// How much is read to guess an encoding.
const SAMPLE: usize = 64 * 1024;

/// The text of a page or file: as its byte order mark says, else its server (`charset`), else the page itself (`<meta charset>`), else as
/// UTF-8 if it is that, else as is most likely. What cannot be decoded becomes U+FFFD.
pub fn decode(bytes: &[u8], charset: Option<&str>) -> String {
    let named = || {
        charset
            .and_then(|label| Encoding::for_label(label.trim_matches(['"', '\'', ' ']).as_bytes()))
    };
    let encoding = match Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding,
        None => named().or_else(|| from_meta(bytes)).unwrap_or_else(|| guess(bytes)),
    };
    // Removes the mark of its own kind.
    encoding.decode(bytes).0.into_owned()
}

/// What `<meta charset="…">` or `<meta … content="text/html; charset=…">` says.
fn from_meta(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes[..bytes.len().min(HEAD)].to_ascii_lowercase();
    let head = String::from_utf8_lossy(&head);
    let tags =
        head.match_indices("<meta").map(|(at, _)| head[at..].split('>').next().unwrap_or_default());
    let mut labels = tags.filter_map(|tag| {
        let value = tag.split_once("charset")?.1.trim_start().strip_prefix('=')?.trim_start();
        let value = value.trim_start_matches(['"', '\'']);
        value.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '/')).next()
    });
    let encoding = labels.find_map(|label| Encoding::for_label(label.as_bytes()))?;
    // The tag could be read, so it is not UTF-16.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes[..bytes.len().min(SAMPLE)], bytes.len() <= SAMPLE);
    detector.guess(None, Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_found() {
        let (latin, cyrillic) = (
            b"Caf\xe9 cr\xe8me, d\xe9j\xe0 vu, gar\xe7on",
            b"\xcf\xf0\xe8\xe2\xe5\xf2, \xec\xe8\xf0",
        );
        for (bytes, charset, expected) in [
            ("Grüße".as_bytes(), None, "Grüße"),
            ("Grüße".as_bytes(), Some("utf-8"), "Grüße"),
            (&latin[..], Some("iso-8859-1"), "Café crème, déjà vu, garçon"),
            (&latin[..], None, "Café crème, déjà vu, garçon"),
            (&latin[..], Some("no such thing"), "Café crème, déjà vu, garçon"),
            (&cyrillic[..], Some("\"windows-1251\""), "Привет, мир"),
            (b"<meta charset=windows-1251>\xcf", None, "<meta charset=windows-1251>П"),
            (
                b"<META http-equiv='x' content='text/html; Charset=Shift_JIS'>\x83e",
                None,
                "<META http-equiv='x' content='text/html; Charset=Shift_JIS'>テ",
            ),
            (b"<meta charset='utf-16'>x", None, "<meta charset='utf-16'>x"),
            (b"\xef\xbb\xbfx", Some("windows-1252"), "x"),
            (b"\xff\xfeG\x00r\x00", None, "Gr"),
            (b"a\xff", Some("utf-8"), "a\u{fffd}"),
            (b"", None, ""),
        ] {
            assert_eq!(decode(bytes, charset), expected, "{charset:?} {expected}");
        }
    }

    #[test]
    fn a_character_at_the_end_of_the_sample_does_not_turn_utf8_into_something_else() {
        let long = "ä".repeat(SAMPLE);
        assert_eq!(decode(long.as_bytes(), None), long);
        // Broken in one place only.
        let mut bytes = long.into_bytes();
        bytes.push(0xff);
        assert!(!decode(&bytes, Some("utf-8")).contains('Ã'));
    }
}
