use super::*;

#[test]
fn content_is_sorted_by_what_its_server_says() {
    for (header, sort, charset) in [
        ("text/html; charset=\"UTF-8\"", Sort::Html, Some("\"UTF-8\"")),
        ("Application/PDF", Sort::Pdf, None),
        ("text/plain;format=flowed; Charset = latin1", Sort::Text, Some("latin1")),
        ("application/ld+json", Sort::Text, None),
        ("application/rss+xml", Sort::Text, None),
        ("image/svg+xml", Sort::Other, None),
        ("image/png", Sort::Other, None),
        ("application/zip", Sort::Other, None),
        ("application/octet-stream", Sort::Unknown, None),
        ("", Sort::Unknown, None),
    ] {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(header))]);
        let declared = Declared::of(&headers);
        assert_eq!((declared.sort(), declared.charset.as_deref()), (sort, charset), "{header}");
    }
}

#[test]
fn bytes_tell_what_the_server_does_not_know() {
    for (body, expected) in [
        (&b"%PDF-1.7"[..], Some(Sort::Pdf)),
        (b" \n<!DOCTYPE HTML><p>", Some(Sort::Html)),
        ("\u{feff}<html>".as_bytes(), Some(Sort::Html)),
        ("# Grüße".as_bytes(), Some(Sort::Text)),
        (b"\x89PNG\x00", None),
        (b"\xff\xfe\xfd", None),
    ] {
        assert_eq!(sniff(body).map(|(sort, _)| sort), expected, "{body:?}");
    }
}

#[test]
fn text_is_kept_as_it_is_up_to_a_limit() {
    let kept = plain("a\0b\n  c");
    assert_eq!((kept.text.as_str(), kept.truncated), ("a\u{fffd}b\n  c", false));
    let kept = plain(&"ä".repeat(LONGEST_TEXT));
    assert_eq!((kept.text.len(), kept.truncated), (LONGEST_TEXT, true));
}
