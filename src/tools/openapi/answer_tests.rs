use pretty_assertions::assert_eq;
use reqwest::header::HeaderValue;

use super::*;

fn answer(status: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> ApiResult {
    let headers = headers.iter().map(|(name, value)| {
        (reqwest::header::HeaderName::from_static(name), HeaderValue::from_static(value))
    });
    let status = StatusCode::from_u16(status).unwrap();
    read(status, &headers.collect(), "/v1/report", body, /* is_cut */ false)
}

fn json(text: &str) -> Content {
    Content::Json(Raw::parse(text).unwrap())
}

fn text(text: &str) -> Content {
    Content::Text(text.to_owned())
}

fn file(mime: &str, name: &str, bytes: &[u8]) -> Content {
    let (mime, name) = (mime.to_owned(), name.to_owned());
    Content::File(ApiFile { mime, name, data: STANDARD.encode(bytes), bytes: bytes.len() })
}

#[test]
fn bodies_are_read_by_their_type() {
    const TYPE: &str = "content-type";
    const NAMED: &str = "content-disposition";
    for (headers, body, content) in [
        (
            &[(TYPE, "application/json")][..],
            &br#"{"b": 1.0,"a":2}"#[..],
            json(r#"{"b": 1.0,"a":2}"#),
        ),
        (&[(TYPE, "Application/Problem+JSON; charset=utf-8")], b"\xef\xbb\xbf[1]", json("[1]")),
        (&[(TYPE, "application/json")], b"{oops", text("{oops")),
        (&[], br#" {"a":1}"#, json(r#"{"a":1}"#)),
        (&[], b"hello", text("hello")),
        (&[], b"\x00\x01", file("application/octet-stream", "report.bin", b"\x00\x01")),
        (&[(TYPE, "text/html")], b"<h1>x</h1>", text("<h1>x</h1>")),
        (&[(TYPE, "text/plain; charset=\"ISO-8859-1\"")], b"caf\xe9", text("café")),
        (&[(TYPE, "text/plain")], b"caf\xe9", text("caf\u{fffd}")),
        (&[(TYPE, "image/svg+xml")], b"<svg/>", text("<svg/>")),
        (&[(TYPE, "text/csv; header=present")], b"a,b\n", file("text/csv", "report.csv", b"a,b\n")),
        (&[(TYPE, "image/PNG")], b"\x89PNG", file("image/png", "report.png", b"\x89PNG")),
        (
            &[(TYPE, "text/plain"), (NAMED, "attachment; filename=\"../../etc/pass wd\"")],
            b"x",
            file("text/plain", "pass wd.bin", b"x"),
        ),
        (
            &[(TYPE, "application/pdf"), (NAMED, "inline; filename*=UTF-8''b%C3%BCro%2Fr%0A.pdf")],
            b"x",
            file("application/pdf", "r.pdf", b"x"),
        ),
        (
            &[(TYPE, "application/zip"), (NAMED, "attachment; filename=..")],
            b"x",
            file("application/zip", "answer.zip", b"x"),
        ),
        (&[(TYPE, "application/json")], b"", Content::Empty),
    ] {
        assert_eq!(answer(200, headers, body).content, content, "{headers:?}");
    }
}

#[test]
fn models_are_told_the_status_when_it_matters() {
    let json = &[("content-type", "application/json")][..];
    for (status, headers, body, expected) in [
        (200, json, &b"{\"ok\": true}"[..], "{\"ok\": true}"),
        (204, &[], b"", "Done: the API answered with status 204 and no content."),
        (
            401,
            json,
            b"{\"e\": 1}",
            "The API answered with status 401 Unauthorized. It did not accept the credentials that this server sent, \
             or they may not do this.\n\n{\"e\": 1}",
        ),
        (404, &[], b"", "The API answered with status 404 Not Found."),
        (
            500,
            &[("content-type", "text/html")],
            b"<h1>",
            "The API answered with status 500 Internal Server Error.\n\n<h1>",
        ),
        (
            200,
            &[("content-type", "image/png")],
            b"123",
            "The API answered with the file `report.png` (image/png, 3 bytes).",
        ),
    ] {
        let answer = answer(status, headers, body);
        assert_eq!(answer.text(), expected);
        assert_eq!(answer.is_auth_error(), status == 401);
        assert_eq!(answer.is_error(), status >= 400);
    }
    let cut = ApiResult { is_cut: true, ..answer(500, &[], b"x") };
    assert!(cut.text().ends_with("x\n\n[The rest of the answer was left out.]"));
}
