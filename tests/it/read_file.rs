//! `antiphon:read_file`.

use std::{fmt::Write as _, sync::Arc};

use antiphon::{
    documents::{Limits, Parser},
    tools::{Toolbox, read_file::FileReader},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::support::{
    model::{Round, Script, call, text},
    server::{Server, Setup, start_with},
};

const PREVIEW: usize = 100;

async fn server(rounds: impl IntoIterator<Item = Round>) -> (Server, Arc<Script>) {
    let parser = Parser::new(env!("CARGO_BIN_EXE_antiphon").into(), Limits::default());
    let files = Some(FileReader::new(parser, PREVIEW));
    let tools = Toolbox { files, ..Toolbox::default() };
    let script = Script::new(rounds);
    (start_with(script.clone(), Setup { tools, ..Setup::default() }).await, script)
}

fn read(arguments: &Value) -> Round {
    call("call_1", "read_file", &arguments.to_string())
}

fn file(name: &str, kind: &str, bytes: &[u8]) -> Value {
    let data = format!("data:{kind};base64,{}", STANDARD.encode(bytes));
    json!({ "type": "input_file", "filename": name, "file_data": data })
}

fn request(files: &[Value]) -> Value {
    let mut content = files.to_vec();
    content.push(json!({ "type": "input_text", "text": "What does it say?" }));
    json!({
        "model": "m", "input": [{ "role": "user", "content": content }],
        "tools": [{ "type": "antiphon:read_file" }],
    })
}

async fn create(server: &Server, body: &Value) -> Value {
    let (status, response) = server.post("/v1/responses", body.clone()).await;
    assert_eq!(status, 200, "{response}");
    response
}

/// Numbers, ten characters each.
fn long(lines: usize) -> String {
    (0..lines).fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "line {line:04}");
        text
    })
}

#[tokio::test]
async fn a_long_file_is_shown_as_its_beginning_and_read_on() {
    let (server, script) = server([
        read(&json!({ "file": "log.txt", "start": 5000, "length": 20 })),
        text("Line 500."),
        text("As before."),
        text("Whole."),
    ])
    .await;
    let body = request(&[
        file("log.txt", "text/plain", long(1000).as_bytes()),
        file("short.txt", "text/plain", b"short"),
    ]);
    let response = create(&server, &body).await;
    assert_eq!(
        response["output"][0]["output"],
        "[`log.txt`: characters 5000 to 5020 of 10000. Go on with start=5020.]\nline 0500\nline 0501\n"
    );
    let first = &script.asked()[0];
    assert_eq!(first.tools, ["read_file"]);
    let shown = &first.messages[0];
    assert!(
        shown.contains("characters 0 to 100 of 10000") && shown.contains("start=100"),
        "{shown}"
    );
    assert!(shown.contains("line 0009") && !shown.contains("line 0010"), "{shown}");
    assert!(shown.contains("<file>"), "the short one is given whole: {shown}");

    // What is stored is whole, and later Responses of the chain are shown the same.
    let id = response["id"].as_str().unwrap();
    let (_, items) = server.get(&format!("/v1/responses/{id}/input_items")).await;
    let kept = &items["data"][0]["content"][0];
    assert_eq!(kept["file_data"], body["input"][0]["content"][0]["file_data"]);
    let mut next = json!({ "model": "m", "input": "And then?", "previous_response_id": id });
    next["tools"] = body["tools"].clone();
    create(&server, &next).await;
    assert!(script.asked()[2].messages[0].contains("characters 0 to 100 of 10000"));
    // Without the tool, the model gets all there is.
    next["tools"] = json!([]);
    create(&server, &next).await;
    let messages = &script.asked()[3].messages;
    assert!(messages[0].starts_with("user: <file> <file>"), "{messages:?}");
}

#[tokio::test]
async fn tokens_are_counted_as_the_model_is_shown() {
    let (server, _) = server([]).await;
    let body = request(&[file("log.txt", "text/plain", long(2000).as_bytes())]);
    let mut whole = body.clone();
    whole["tools"] = json!([]);
    let count = async |body: Value| {
        let (status, counted) = server.post("/v1/responses/input_tokens", body).await;
        assert_eq!(status, 200, "{counted}");
        counted["input_tokens"].as_u64().unwrap()
    };
    let (shown, all) = (count(body).await, count(whole).await);
    assert!(shown < 500 && all > 4000, "{shown} {all}");
}

#[tokio::test]
async fn documents_are_read_as_text() {
    let paragraph =
        "The committee met again on Tuesday and agreed on all points after long talks. ";
    let page = format!(
        "<html><head><title>News</title></head><body><p>{}</p></body></html>",
        paragraph.repeat(40)
    );
    let (server, script) = server([
        read(&json!({ "file": "news.html", "start": 50 })),
        read(&json!({ "file": "paper.pdf" })),
        text("Done."),
    ])
    .await;
    let body = request(&[
        file("news.html", "text/html", page.as_bytes()),
        file("paper.pdf", "application/pdf", &pdf("Nine hundred bottles")),
    ]);
    let response = create(&server, &body).await;
    let shown = &script.asked()[0].messages[0];
    assert!(shown.contains("[The file `news.html` begins here"), "{shown}");
    assert!(!shown.contains("<p>"), "{shown}");
    let outputs: Vec<&str> =
        (0..2).map(|at| response["output"][at]["output"].as_str().unwrap_or_default()).collect();
    assert!(outputs[0].contains("agreed on all points"), "{outputs:?}");
    assert!(outputs[1].contains("Nine hundred bottles"), "{outputs:?}");
}

#[tokio::test]
async fn what_cannot_be_read_is_said() {
    let calls = ["nothing.txt", "picture.png", "far.txt", "bad.txt"];
    let mut rounds: Vec<Round> = calls.iter().map(|name| read(&json!({ "file": name }))).collect();
    rounds.push(text("Sorry."));
    let (server, _) = server(rounds).await;
    let body = request(&[
        file("a.txt", "text/plain", b"a"),
        file("picture.png", "image/png", b"\x89PNG"),
        json!({ "type": "input_file", "filename": "far.txt", "file_url": "https://a.example/far.txt" }),
        json!({ "type": "input_file", "filename": "bad.txt", "file_data": "data:text/plain;base64,!!!" }),
    ]);
    let response = create(&server, &body).await;
    for (at, why) in [
        "There is no file `nothing.txt`. These are there: `a.txt`, `picture.png`, `far.txt`, `bad.txt`.",
        "`picture.png` cannot be read: it is of a kind that has no text",
        "`far.txt` cannot be read: it is given by its address alone",
        "`bad.txt` cannot be read: its data is not base64",
    ]
    .into_iter()
    .enumerate()
    {
        let item = &response["output"][at];
        assert_eq!(item["status"], "failed");
        assert!(item["error"]["content"][0]["text"].as_str().unwrap().contains(why), "{item}");
    }
}

#[tokio::test]
async fn only_the_last_files_are_read() {
    let (server, script) = server([
        read(&json!({ "file": "a.txt" })),
        read(&json!({ "file": "a.txt (101)" })),
        text("Done."),
    ])
    .await;
    let files = vec![file("a.txt", "text/plain", long(20).as_bytes()); 101];
    let response = create(&server, &request(&files)).await;
    let first = response["output"][0]["error"].to_string();
    assert!(first.contains("only the last 100 files"), "{first}");
    let last = response["output"][1]["output"].as_str().unwrap();
    assert!(last.starts_with("[`a.txt (101)`: characters 0 to 200 of 200."), "{last}");
    let shown = &script.asked()[0].messages[0];
    assert!(shown.starts_with("user: <file> [The file `a.txt (2)` begins here"), "{shown}");
}

/// A PDF of one page with this text.
fn pdf(text: &str) -> Vec<u8> {
    let stream = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>";
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        page.to_owned(),
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut file = "%PDF-1.4\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (at, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", file.len());
        let _ = write!(file, "{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let start = file.len();
    let count = objects.len() + 1;
    let _ = write!(
        file,
        "{table}trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    );
    file.into_bytes()
}
