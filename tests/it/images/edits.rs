//! Pictures of the conversation that are changed.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{
    backend::{Asked, Backend, Reply, png},
    create, draw, request, server,
};
use crate::support::model::text;

/// A form as text: bytes that are no text look the same everywhere.
fn form(asked: &Asked) -> Vec<(String, String)> {
    assert_eq!(asked.line, "POST /v1/images/edits");
    asked.form()
}

fn file(name: &str, mark: &str) -> String {
    format!("{name} image/png {}", String::from_utf8_lossy(&png(mark)))
}

fn pairs(expected: &[(&str, String)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

fn url(mark: &str) -> String {
    format!("data:image/png;base64,{}", STANDARD.encode(png(mark)))
}

#[tokio::test]
async fn what_was_made_before_is_changed() {
    let backend = Backend::start([
        Reply::picture(&png("red")),
        Reply::picture(&png("blue")),
        Reply::picture(&png("green")),
    ])
    .await;
    let edit = || draw(&json!({ "prompt": "another colour", "edit": true }));
    let server = server(
        &backend,
        [
            draw(&json!({ "prompt": "a fox" })),
            text("Red."),
            edit(),
            text("Blue."),
            edit(),
            text("Green."),
        ],
    )
    .await;
    let first = create(&server, request(json!({}))).await;
    let mut again = request(json!({ "quality": "low", "moderation": "low" }));
    again["previous_response_id"] = first["id"].clone();
    let second = create(&server, again).await;
    assert_eq!(second["output"][0]["action"], "edit");
    assert_eq!(second["output"][0]["result"], STANDARD.encode(png("blue")));
    // By its id alone, as clients do that keep their own history.
    let mut third = request(json!({}));
    third["input"] = json!([
        { "role": "user", "content": "Draw a fox." },
        { "type": "image_generation_call", "id": second["output"][0]["id"] },
        { "role": "user", "content": "Greener." },
    ]);
    create(&server, third).await;
    let asked = backend.asked();
    assert_eq!(
        form(&asked[1]),
        pairs(&[
            ("prompt", "another colour".to_owned()),
            ("quality", "low".to_owned()),
            ("image", file("image-0.png", "red")),
        ])
    );
    assert_eq!(form(&asked[2]).last().unwrap().1, file("image-0.png", "blue"));
}

#[tokio::test]
async fn what_the_user_shows_is_changed_within_the_mask() {
    let backend = Backend::start([Reply::picture(&png("new"))]).await;
    let server = server(&backend, [draw(&json!({ "prompt": "join them" })), text("Done.")]).await;
    let mut body = request(json!({
        "action": "edit", "input_fidelity": "high", "size": "1024x1024", "partial_images": 1,
        "input_image_mask": { "image_url": url("mask") },
    }));
    body["input"] = json!([{ "role": "user", "content": [
        { "type": "input_image", "image_url": url("one") },
        { "type": "input_image", "image_url": url("two") },
        { "type": "input_text", "text": "Join them." },
    ] }]);
    create(&server, body).await;
    assert_eq!(
        form(&backend.asked()[0]),
        pairs(&[
            ("prompt", "join them".to_owned()),
            ("size", "1024x1024".to_owned()),
            ("input_fidelity", "high".to_owned()),
            ("stream", "true".to_owned()),
            ("partial_images", "1".to_owned()),
            ("image[]", file("image-0.png", "one")),
            ("image[]", file("image-1.png", "two")),
            ("mask", file("mask.png", "mask")),
        ])
    );
}

#[tokio::test]
async fn a_client_without_a_store_brings_the_picture_along() {
    let backend = Backend::start([Reply::picture(&png("red")), Reply::picture(&png("blue"))]).await;
    let rounds = [
        draw(&json!({ "prompt": "a fox" })),
        text("Red."),
        draw(&json!({ "prompt": "bluer", "edit": true })),
        text("Blue."),
    ];
    let server = server(&backend, rounds).await;
    let mut first = request(json!({}));
    first["store"] = json!(false);
    let made = create(&server, first.clone()).await;
    let mut items: Vec<Value> = made["output"].as_array().unwrap().clone();
    items.push(json!({ "role": "user", "content": "Bluer." }));
    first["input"] = json!(items);
    create(&server, first).await;
    assert_eq!(form(&backend.asked()[1]).last().unwrap().1, file("image-0.png", "red"));
}

#[tokio::test]
async fn without_a_picture_the_model_may_try_again() {
    let backend = Backend::start([Reply::picture(&png("new"))]).await;
    let script = crate::support::model::Script::new([
        draw(&json!({ "prompt": "bluer", "edit": true })),
        draw(&json!({ "prompt": "" })),
        draw(&json!({ "prompt": "a blue fox" })),
        text("Done."),
    ]);
    let server =
        crate::support::server::start_with(Arc::clone(&script) as _, super::setup(&backend)).await;
    let response = create(&server, request(json!({}))).await;
    let output = response["output"].as_array().unwrap();
    let ended: Vec<(&Value, bool)> =
        output.iter().map(|item| (&item["status"], item["result"].is_string())).collect();
    let (failed, completed) = (json!("failed"), json!("completed"));
    assert_eq!(
        ended,
        [(&failed, false), (&failed, false), (&completed, true), (&completed, false)]
    );
    let asked = script.asked();
    let told = asked[1].messages.join("\n");
    assert!(told.contains("no picture in this conversation"), "{told}");
    let offered: Vec<usize> = asked.iter().map(|asked| asked.tools.len()).collect();
    assert_eq!(offered, [1, 1, 1, 0]);
}

#[tokio::test]
async fn a_picture_that_cannot_be_had_is_said() {
    let other = Backend::start([Reply::new(200, "image/png", png("secret"))]).await;
    let inner = format!("{}/secret.png", other.base);
    for (given, why) in [
        (&*inner, "not allowed"),
        ("data:image/png;base64,!!!!", "not base64"),
        ("data:image/bmp;base64,Qk0AAA==", "not a PNG"),
    ] {
        let backend = Backend::start([]).await;
        let server = server(&backend, [draw(&json!({ "prompt": "bluer" })), text("Sorry.")]).await;
        let mut body = request(json!({ "action": "edit" }));
        body["input"] =
            json!([{ "role": "user", "content": [{ "type": "input_image", "image_url": given }] }]);
        let response = create(&server, body).await;
        let told = response["output"][0]["error"]["message"].as_str().unwrap();
        assert!(told.contains(why), "{told}");
    }
    assert_eq!(other.asked().len(), 0);
}
