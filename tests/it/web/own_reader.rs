//! Our own reader against a site of the test's own, documents parsed by the real binary.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use antiphon::{
    documents::{Limits, Parser},
    net::Policy,
    web::{OwnReader, OwnReaderSettings, Page, Pages, ReadError},
};
use pretty_assertions::assert_eq;

use super::{
    only,
    site::{Reply, Site},
};

const PARAGRAPH: &str = "The committee met again on Tuesday, and after long talks, which went on into the night, agreed on all points.";

/// The program that parses documents.
const BINARY: &str = env!("CARGO_BIN_EXE_antiphon");

fn parser() -> Parser {
    Parser::new(BINARY.into(), Limits::default())
}

fn settings(policy: Policy) -> OwnReaderSettings {
    OwnReaderSettings {
        timeout: Duration::from_secs(40),
        ..OwnReaderSettings::new(policy, parser())
    }
}

fn pages(settings: OwnReaderSettings) -> Pages {
    let policy = settings.policy.clone();
    Pages::new(None, Arc::new(OwnReader::new(settings).unwrap()), policy)
}

/// Reads one page of the site.
async fn read(site: &Site, path: &str) -> Result<Page, ReadError> {
    read_with(settings(only(site)), site, path).await
}

async fn read_with(
    settings: OwnReaderSettings,
    site: &Site,
    path: &str,
) -> Result<Page, ReadError> {
    pages(settings).read(&[site.url(path)]).await.remove(0)
}

async fn reason(site: &Site, path: &str) -> String {
    read(site, path).await.unwrap_err().to_string()
}

/// A PDF of one page with this text, complete with its table of objects.
fn pdf(text: &str) -> Vec<u8> {
    let stream = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        "<< /Title (A short paper) >>".to_owned(),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (i, object) in objects.iter().enumerate() {
        writeln!(table, "{:010} 00000 n ", file.len()).unwrap();
        write!(file, "{} 0 obj\n{object}\nendobj\n", i + 1).unwrap();
    }
    let start = file.len();
    write!(
        file,
        "{table}trailer\n<< /Size {} /Root 1 0 R /Info 6 0 R >>\nstartxref\n{start}\n%%EOF\n",
        objects.len() + 1
    )
    .unwrap();
    file.into_bytes()
}

#[tokio::test]
async fn a_page_is_read_with_its_query() {
    let site = Site::start().await;
    let html = format!(
        "<html><head><title>News</title></head><body><nav>Menu</nav><article><h1>Agreement</h1><p>{}</p>\
         <p>See <a href='/minutes?id=7'>the minutes</a>.</p></article><script>track()</script></body></html>",
        PARAGRAPH.repeat(20)
    );
    site.on("/watch", [Reply::html(html)]);
    let page = read(&site, "/watch?v=1&t=2#part").await.unwrap();
    assert_eq!(page.url, site.url("/watch?v=1&t=2"));
    assert_eq!(
        (page.title.as_deref(), page.content_type.as_str(), page.truncated),
        (Some("News"), "text/html", false)
    );
    assert!(
        page.text.contains(&format!("[the minutes]({})", site.url("/minutes?id=7"))),
        "{}",
        page.text
    );
    assert!(
        page.text.contains(PARAGRAPH)
            && !page.text.contains("Menu")
            && !page.text.contains("track")
    );
    let asked = site.asked().remove(0);
    assert_eq!(asked.line, "GET /watch?v=1&t=2");
    assert!(asked.header("user-agent").unwrap().contains("antiphon/"));
}

#[tokio::test]
async fn files_are_read_as_they_are() {
    let site = Site::start().await;
    for (path, reply, text, kind) in [
        ("/a.txt", Reply::new(200, "text/plain", "a\n  b\tc"), "a\n  b\tc", "text/plain"),
        (
            "/a.md",
            Reply::new(200, "text/markdown; charset=utf-8", "# Grüße"),
            "# Grüße",
            "text/markdown",
        ),
        ("/a.json", Reply::json(200, r#"{ "a": "<b>" }"#), r#"{ "a": "<b>" }"#, "application/json"),
        (
            "/feed",
            Reply::new(200, "application/rss+xml", "<rss/>"),
            "<rss/>",
            "application/rss+xml",
        ),
        (
            "/unknown",
            Reply::new(200, "application/octet-stream", "just text"),
            "just text",
            "text/plain",
        ),
        (
            "/latin",
            Reply::new(200, "text/plain; charset=iso-8859-1", *b"Caf\xe9"),
            "Café",
            "text/plain",
        ),
        (
            "/cyrillic",
            Reply::new(200, "text/plain; charset=windows-1251", *b"\xcf\xf0\xe8"),
            "При",
            "text/plain",
        ),
    ] {
        site.on(path, [reply]);
        let page = read(&site, path).await;
        // Markdown of a few characters looks like a page that was to be filled.
        if kind == "text/markdown" {
            assert!(matches!(page, Err(ReadError::Empty)), "{page:?}");
            continue;
        }
        let page = page.unwrap();
        assert_eq!((page.text.as_str(), page.content_type.as_str()), (text, kind), "{path}");
    }
}

#[tokio::test]
async fn a_page_is_decoded_as_it_says_itself() {
    let site = Site::start().await;
    let mut html =
        b"<html><head><meta charset=windows-1251><title>\xcf\xf0\xe8</title></head><body><p>"
            .to_vec();
    html.extend(b"\xcf\xf0\xe8\xe2\xe5\xf2 ".repeat(30));
    site.on("/", [Reply::new(200, "text/html", html)]);
    let page = read(&site, "/").await.unwrap();
    assert_eq!(page.title.as_deref(), Some("При"));
    assert!(page.text.starts_with("Привет Привет"), "{}", page.text);
}

#[tokio::test]
async fn a_pdf_is_read_whatever_its_server_calls_it() {
    let site = Site::start().await;
    for (path, kind) in
        [("/a.pdf", "application/pdf"), ("/b", "application/octet-stream"), ("/c", "text/plain")]
    {
        site.on(path, [Reply::new(200, kind, pdf("The quick brown fox"))]);
        let page = read(&site, path).await.unwrap();
        assert_eq!(
            (page.text.as_str(), page.content_type.as_str()),
            ("The quick brown fox", "application/pdf"),
            "{kind}"
        );
        assert_eq!(page.title.as_deref(), Some("A short paper"));
    }
}

#[tokio::test]
async fn damaged_documents_fail_by_themselves() {
    let site = Site::start().await;
    let whole = pdf("The quick brown fox");
    site.on("/cut.pdf", [Reply::new(200, "application/pdf", &whole[..20])]);
    site.on("/none.pdf", [Reply::new(200, "application/pdf", "no pdf at all")]);
    site.on("/empty.pdf", [Reply::new(200, "application/pdf", pdf(""))]);
    for (path, expected) in [
        ("/cut.pdf", "failed: the document is damaged"),
        ("/none.pdf", "failed: the document is damaged"),
        ("/empty.pdf", "failed: there is no text in the document, only pictures"),
    ] {
        assert_eq!(reason(&site, path).await, expected, "{path}");
    }
}

/// Reading such a page takes time with the square of its depth, and more stack than there is.
#[tokio::test]
async fn a_page_that_is_made_to_harm_costs_only_itself() {
    let site = Site::start().await;
    site.on("/deep", [Reply::html(format!("{}deep {PARAGRAPH}", "<div>".repeat(1_000_000)))]);
    site.on("/fine", [Reply::html(format!("<p>{PARAGRAPH}</p>"))]);
    let parser =
        Parser::new(BINARY.into(), Limits { time: Duration::from_secs(5), ..Limits::default() });
    let settings = OwnReaderSettings { parser, ..settings(only(&site)) };
    let pages = pages(settings).read(&[site.url("/deep"), site.url("/fine")]).await;
    let sentence = pages[0].as_ref().unwrap_err().to_string();
    assert_eq!(sentence, "failed: reading the document took too long");
    assert_eq!(pages[1].as_ref().unwrap().text, PARAGRAPH);
}

/// A program that plays the part of a parser gone wrong.
fn script(name: &str, lines: &str) -> PathBuf {
    let program = crate::support::postgres::folder().join(name);
    std::fs::write(&program, format!("#!/bin/sh\n{lines}\n")).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    program
}

#[tokio::test]
async fn a_parser_that_breaks_is_told() {
    let site = Site::start().await;
    site.on("/", [Reply::html(PARAGRAPH)]);
    let broke = "failed: the document cannot be read: it is damaged, or needs too much memory";
    for (program, expected) in [
        (script("dies", "kill -9 $$"), broke),
        (script("babbles", "echo nonsense"), broke),
        (script("floods", "exec /bin/cat /dev/zero"), broke),
        (script("is-silent", "exit 0"), broke),
        (PathBuf::from("/no/such/program"), "failed: documents cannot be read at the moment"),
    ] {
        let parser = Parser::new(program.clone(), Limits::default());
        let error = read_with(OwnReaderSettings { parser, ..settings(only(&site)) }, &site, "/")
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), expected, "{}", program.display());
    }
}

#[tokio::test]
async fn a_parser_that_hangs_is_killed() {
    let program = script("hangs", "echo $$ > \"${0%/*}/pid\"\nexec /bin/sleep 600");
    let seen = program.with_file_name("pid");
    let site = Site::start().await;
    site.on("/", [Reply::html(PARAGRAPH)]);
    let parser = Parser::new(program, Limits { time: Duration::from_millis(500), parallel: 1 });
    let slow = OwnReaderSettings { parser, ..settings(only(&site)) };
    let error = read_with(slow, &site, "/").await.unwrap_err().to_string();
    assert_eq!(error, "failed: reading the document took too long");
    let pid = std::fs::read_to_string(&seen).unwrap();
    let process = format!("/proc/{}/cmdline", pid.trim());
    // Killed, and at most not waited for yet.
    while std::fs::read(Path::new(&process)).is_ok_and(|line| !line.is_empty()) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_they_may_go() {
    let (site, inner) = (Site::start().await, Site::start().await);
    site.on("/moved", [Reply::redirect("/new?id=1")]);
    site.on("/new", [Reply::new(200, "text/plain", "here")]);
    site.on("/inwards", [Reply::redirect(inner.url("/secret").as_str())]);
    site.on("/metadata", [Reply::redirect("http://169.254.169.254/latest/meta-data/")]);
    site.on("/file", [Reply::redirect("file:///etc/passwd")]);
    site.on("/loop", [Reply::redirect("/loop")]);
    inner.on("/secret", [Reply::new(200, "text/plain", "secret")]);

    let page = read(&site, "/moved").await.unwrap();
    assert_eq!((page.url, page.text.as_str()), (site.url("/new?id=1"), "here"));
    for (path, expected) in [
        ("/inwards", "not read: the host `127.0.0.1` leads to an address that is not allowed"),
        (
            "/metadata",
            "not read: the host `169.254.169.254` leads to an address that is not allowed",
        ),
        ("/file", "not read: the URL's scheme `file` is not allowed"),
        ("/loop", "failed: the site redirects too often"),
    ] {
        assert_eq!(reason(&site, path).await, expected, "{path}");
    }
    assert!(inner.asked().is_empty());

    let both = only(&site).with_configured(&inner.url(""));
    let page = read_with(settings(both), &site, "/inwards").await.unwrap();
    assert_eq!((page.url, page.text.as_str()), (inner.url("/secret"), "secret"));
    // Without the list not even the first address may be read.
    let error =
        read_with(settings(Policy::default()), &site, "/moved").await.unwrap_err().to_string();
    assert_eq!(error, "not read: the host `127.0.0.1` leads to an address that is not allowed");
}

#[tokio::test]
async fn a_page_that_is_not_there_says_why() {
    let site = Site::start().await;
    let challenge = "<html><title>Just a moment...</title><script src='/cdn-cgi/challenge-platform/h/b/x.js'></script>";
    for (path, reply, expected) in [
        (
            "/forbidden",
            Reply::new(403, "text/html", "no"),
            "failed: the site answered HTTP 403 (access is restricted)",
        ),
        (
            "/gone",
            Reply::new(410, "text/html", "no"),
            "failed: the site answered HTTP 410 (there is no such page)",
        ),
        (
            "/broken",
            Reply::new(500, "text/html", "no"),
            "failed: the site answered HTTP 500 (the site has a fault)",
        ),
        (
            "/cf1",
            Reply::new(403, "text/html", "x").header("cf-mitigated", "challenge"),
            "failed: the site is protected by a challenge that only a browser can pass",
        ),
        (
            "/cf2",
            Reply::new(503, "text/html", challenge).header("server", "cloudflare"),
            "failed: the site is protected by a challenge that only a browser can pass",
        ),
        (
            "/cf3",
            Reply::new(403, "text/html", "blocked").header("server", "cloudflare"),
            "failed: the site answered HTTP 403 (access is restricted)",
        ),
        (
            "/a.png",
            Reply::new(200, "image/png", *b"\x89PNG"),
            "failed: it is not a text but `image/png`",
        ),
        (
            "/a.bin",
            Reply::new(200, "application/octet-stream", *b"\x7fELF\x00"),
            "failed: it is not a text but `application/octet-stream`",
        ),
        (
            "/a.br",
            Reply::html("x").header("content-encoding", "br"),
            "failed: it is not a text but `compressed data`",
        ),
        (
            "/shell",
            Reply::html("<div id=root>Loading...</div><script>fill()</script>"),
            "failed: there is no readable text on the page; it may need a browser that runs scripts",
        ),
        (
            "/empty",
            Reply::html(""),
            "failed: there is no readable text on the page; it may need a browser that runs scripts",
        ),
    ] {
        site.on(path, [reply]);
        assert_eq!(reason(&site, path).await, expected, "{path}");
    }
}

#[tokio::test]
async fn a_page_has_a_limit_in_size_and_time() {
    let site = Site::start().await;
    let megabyte = vec![b'x'; 1 << 20];
    let drip = |kind| Reply::endless(kind, "x", Duration::from_millis(50));
    site.on("/huge", [Reply::endless("text/html", megabyte.clone(), Duration::ZERO)]);
    site.on("/huge.pdf", [Reply::endless("application/pdf", megabyte, Duration::ZERO)]);
    site.on("/drip", [drip("text/html")]);
    site.on("/silent", [Reply::never()]);
    assert_eq!(reason(&site, "/huge").await, "failed: it is larger than 20 MB");
    assert_eq!(reason(&site, "/huge.pdf").await, "failed: it is larger than 50 MB");
    let hasty = |path: &'static str| {
        let settings =
            OwnReaderSettings { timeout: Duration::from_millis(400), ..settings(only(&site)) };
        let site = &site;
        async move { read_with(settings, site, path).await.unwrap_err().to_string() }
    };
    for path in ["/drip", "/silent"] {
        assert_eq!(hasty(path).await, "failed: the site did not answer in time", "{path}");
    }
    let impatient =
        OwnReaderSettings { read_timeout: Duration::from_millis(200), ..settings(only(&site)) };
    let error = read_with(impatient, &site, "/silent").await.unwrap_err().to_string();
    assert_eq!(error, "failed: the site did not answer in time");
}

#[tokio::test]
async fn pages_are_read_side_by_side() {
    let site = Site::start().await;
    site.on("/fast", [Reply::new(200, "text/plain", "fast")]);
    site.on("/never", [Reply::never()]);
    let settings = OwnReaderSettings { timeout: Duration::from_secs(2), ..settings(only(&site)) };
    let addresses: Vec<_> =
        (0..9).map(|i| site.url(&format!("/never?{i}"))).chain([site.url("/fast")]).collect();
    let begun = std::time::Instant::now();
    let results = pages(settings).read(&addresses).await;
    assert!(begun.elapsed() < Duration::from_secs(4), "one silence costs as much as nine");
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert_eq!(results[9].as_ref().unwrap().text, "fast");
}
