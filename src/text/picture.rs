//! What the first bytes of a picture tell: its format and its size.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// So much of a picture is looked at: the size of a JPEG may stand behind its preview.
const HEAD: usize = 256 << 10;

/// Width and height in pixels of a PNG, GIF, JPEG or WebP in a `data:` URL; neither is ever 0.
pub fn size_of_url(url: &str) -> Option<(u32, u32)> {
    let (_, encoded) = url.strip_prefix("data:")?.split_once(";base64,")?;
    size(&head(encoded)?).filter(|(width, height)| *width > 0 && *height > 0)
}

/// The media type, and width and height in pixels, of such a picture that is given as base64. A size that it does not tell is `None`.
pub fn of_base64(encoded: &str) -> Option<(&'static str, Option<(u32, u32)>)> {
    let bytes = head(encoded)?;
    let size = size(&bytes).filter(|(width, height)| *width > 0 && *height > 0);
    Some((media_type(&bytes)?, size))
}

/// The media type of a PNG, GIF, JPEG or WebP, by its first bytes.
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [0xff, 0xd8, ..] => Some("image/jpeg"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The first bytes.
fn head(encoded: &str) -> Option<Vec<u8>> {
    let head = encoded.as_bytes().get(..HEAD).unwrap_or(encoded.as_bytes());
    // Whole groups of four, so that a cut picture is no error.
    let whole = head.len() - head.len() % 4;
    STANDARD.decode(&head[..whole]).ok()
}

fn size(bytes: &[u8]) -> Option<(u32, u32)> {
    match media_type(bytes)? {
        "image/png" => {
            let word =
                |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
            Some((word(16)?, word(20)?))
        }
        "image/gif" => Some((little(bytes, 6)?, little(bytes, 8)?)),
        "image/jpeg" => jpeg(bytes),
        _ => webp(bytes),
    }
}

fn little(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn big(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

/// Goes from segment to segment until one that begins a frame.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else { return None };
        match marker {
            // Filling.
            0xff => at += 1,
            // A frame of any coding; C4, C8 and CC are tables.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((big(bytes, at + 7)?, big(bytes, at + 5)?));
            }
            _ => at += 2 + usize::try_from(big(bytes, at + 2)?).ok()?.max(2),
        }
    }
}

fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8X" => {
            let side = |at: usize| {
                let low = little(bytes, at)?;
                Some((low | u32::from(*bytes.get(at + 2)?) << 16) + 1)
            };
            Some((side(24)?, side(27)?))
        }
        b"VP8L" => {
            let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => Some((little(bytes, 26)? & 0x3fff, little(bytes, 28)? & 0x3fff)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(bytes: &[u8]) -> String {
        format!("data:image/any;base64,{}", STANDARD.encode(bytes))
    }

    #[test]
    fn each_format_tells_its_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x04\0\0\0\x02\0\x08\x06\0\0\0".as_slice();
        let gif = b"GIF89a\0\x04\0\x02\0\0\0".as_slice();
        let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc4\0\x03\0\xff\xc2\0\x11\x08\x02\0\x04\0\x03".as_slice();
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\x03\0\xff\x01\0".as_slice();
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\xff\xc3\x7f\0".as_slice();
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\0\x04\0\x02".as_slice();
        for (picture, kind) in [
            (png, "image/png"),
            (gif, "image/gif"),
            (jpeg, "image/jpeg"),
            (extended, "image/webp"),
            (lossless, "image/webp"),
            (lossy, "image/webp"),
        ] {
            assert_eq!(size_of_url(&url(picture)), Some((1024, 512)), "{picture:?}");
            let known = of_base64(&STANDARD.encode(picture));
            assert_eq!(known, Some((kind, Some((1024, 512)))), "{picture:?}");
            for cut in 0..picture.len() {
                // Never a panic, and never another size.
                let seen = size_of_url(&url(&picture[..cut]));
                assert!(matches!(seen, None | Some((1024, 512))), "{seen:?} at {cut}");
            }
        }
    }

    #[test]
    fn what_is_no_picture_has_no_size() {
        for url in [
            "https://a.example/b.png",
            "data:image/png;base64,",
            "data:image/png;base64,%%%%",
            "data:,x",
        ] {
            assert_eq!(size_of_url(url), None, "{url}");
        }
        assert_eq!(of_base64("AAAA"), None);
        assert_eq!(of_base64("iVBORw0K"), None, "the head is cut");
        assert_eq!(of_base64("iVBORw0KGgoAAAAN"), Some(("image/png", None)));
    }
}
