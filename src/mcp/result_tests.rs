use pretty_assertions::assert_eq;

use super::*;

fn read(json: &str) -> CallResult {
    CallResult::read(&Raw::parse(json).unwrap()).unwrap()
}

#[test]
fn nothing_is_lost() {
    let result = read(
        r#"{"content":[
            {"type":"text","text":"one","annotations":{"audience":["user"]}},
            {"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},
            {"type":"audio","data":"AAFFEE==","mimeType":"audio/wav"},
            {"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"body"}},
            {"type":"resource","resource":{"uri":"file:///b","blob":"AAAA"}},
            {"type":"resource","resource":{"uri":"file:///c","mimeType":"image/gif","blob":"R0lGODlh"}},
            {"type":"resource_link","uri":"https://x/y","name":"y","description":"about y"},
            {"type":"hologram","beam":[ 1 ]},
            {"type":"image","data":"no base64!","mimeType":"image/png"},
            {"type":"image"},
            {"type":"resource","resource":{"uri":"file:///d"}}
        ],"structuredContent":{"z":1.0}}"#,
    );
    assert_eq!(
        result.text(),
        "one\n\
         [image image/png, 8 bytes]\n\
         [audio audio/wav, 4 bytes, not shown]\n\
         [resource file:///a.txt]\nbody\n\
         [resource file:///b, of unknown type, 3 bytes, not shown]\n\
         [resource file:///c, image/gif, 6 bytes, not shown]\n\
         [link y https://x/y]: about y\n\
         {\"type\":\"hologram\",\"beam\":[ 1 ]}\n\
         [image image/png, 7 bytes, which cannot be read]\n\
         {\"type\":\"image\"}\n\
         {\"type\":\"resource\",\"resource\":{\"uri\":\"file:///d\"}}\n\
         {\"z\":1.0}"
    );
    let urls: Vec<Option<String>> = result.images().map(|image| image.data_url()).collect();
    assert_eq!(
        urls,
        [
            Some("data:image/png;base64,iVBORw0KGgo=".to_owned()),
            Some("data:image/gif;base64,R0lGODlh".to_owned()),
            None
        ]
    );
    assert_eq!(result.item_error(), None);
}

#[test]
fn structured_content_stands_there_once() {
    for (json, text) in [
        (
            r#"{"content":[{"type":"text","text":"{\"a\": 1}"}],"structuredContent":{"a":1}}"#,
            r#"{"a": 1}"#,
        ),
        (r#"{"content":[{"type":"text","text":"42"}],"structuredContent":{"result":42}}"#, "42"),
        (r#"{"content":[{"type":"text","text":"hi"}],"structuredContent":{"result":"hi"}}"#, "hi"),
        (
            r#"{"content":[{"type":"text","text":"one"}],"structuredContent":{"a":1}}"#,
            "one\n{\"a\":1}",
        ),
        (r#"{"content":[],"structuredContent":{"a": 1}}"#, r#"{"a": 1}"#),
        (r#"{"structuredContent":{"a":1}}"#, r#"{"a":1}"#),
        (r#"{"content":[{"type":"text","text":"one"}],"structuredContent":null}"#, "one"),
        (r#"{"content":[]}"#, ""),
        (r#"{"toolResult":"old"}"#, r#"{"toolResult":"old"}"#),
    ] {
        assert_eq!(read(json).text(), text, "{json}");
    }
}

#[test]
fn a_failure_always_says_something() {
    let failed = read(r#"{"isError":true,"content":[{"type":"text","text":"no such city"}]}"#);
    assert!(failed.is_error);
    assert_eq!(
        failed.item_error().unwrap().json(),
        r#"{"type":"mcp_tool_execution_error","content":[{"type":"text","text":"no such city"}]}"#
    );
    for json in [
        r#"{"isError":true,"content":[]}"#,
        r#"{"isError":true,"content":[{"type":"text","text":" "}]}"#,
    ] {
        assert_eq!(read(json).text(), "The tool failed and did not say why.");
    }
}

#[test]
fn what_is_no_result_is_an_error() {
    for json in ["null", "[]", "\"x\"", r#"{"content":"x"}"#, r#"{"content":[],"isError":"yes"}"#] {
        let read = CallResult::read(&Raw::parse(json).unwrap());
        assert!(matches!(read, Err(McpError::Invalid(_))), "{json}: {read:?}");
    }
}

#[test]
fn only_real_pictures_become_addresses() {
    for (mime, data, good) in [
        ("image/png", "AAAA", true),
        ("image/svg+xml", "AAAA", true),
        ("image/", "AAAA", false),
        ("image/png;x=\"", "AAAA", false),
        ("text/html", "AAAA", false),
        ("image/png", "", false),
        ("image/png", "A\nA=", false),
    ] {
        let image = Image { mime: mime.to_owned(), data: data.to_owned() };
        assert_eq!(image.data_url().is_some(), good, "{mime} {data:?}");
    }
}
