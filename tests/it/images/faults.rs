//! What goes wrong with pictures.

use std::time::Duration;

use antiphon::tools::Toolbox;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::{
    backend::{Backend, KEY, Reply, png},
    create, draw, request, server,
};
use crate::support::{
    model::{Gate, Script, text},
    schema,
    server::{Setup, start, start_with},
};

#[tokio::test]
async fn the_model_hears_why_and_the_response_goes_on() {
    let error =
        |status, message: &str| Reply::json(status, &json!({ "error": { "message": message } }));
    let failing =
        json!({ "type": "error", "error": { "message": format!("out of paint, {KEY}") } });
    let partial = json!({ "type": "image_generation.partial_image", "partial_image_index": 0, "b64_json": "AAAA" });
    for (reply, why) in [
        (
            error(400, "Your request was rejected by the safety system."),
            "refused the request (HTTP 400): Your request was rejected",
        ),
        (error(400, "Invalid value: 'ultra' for 'quality'."), "'quality'"),
        (error(403, "Your organization must be verified."), "must be verified"),
        (error(401, &format!("Incorrect API key: {KEY}")), "tools.image_generation.api_key_env"),
        (error(429, "Rate limit reached."), "no more requests at the moment: Rate limit reached."),
        (error(500, &format!("oops {KEY}")), "failed on its side (HTTP 500): oops [key]"),
        (Reply::new(502, "text/html", "<html>"), "failed on its side (HTTP 502)."),
        (Reply::new(302, "text/plain", "elsewhere"), "refused the request (HTTP 302)."),
        (Reply::new(200, "text/html", "<html>"), "it is not JSON"),
        (Reply::json(200, &json!({ "data": [] })), "there is no picture in it"),
        (Reply::json(200, &json!({ "data": [{ "b64_json": "%%%%" }] })), "not base64"),
        (
            Reply::json(200, &json!({ "data": [{ "b64_json": STANDARD.encode("no picture") }] })),
            "not a PNG",
        ),
        (Reply::stream(&[partial.clone(), failing]), "failed while it worked: out of paint, [key]"),
        (Reply::stream(&[partial]), "failed while it worked."),
        (Reply::new(200, "text/event-stream", "data: {\n\n"), "is not JSON"),
    ] {
        let backend = Backend::start([reply]).await;
        let server = server(&backend, [draw(&json!({ "prompt": "a fox" })), text("Sorry.")]).await;
        let response = create(&server, request(json!({}))).await;
        let item = &response["output"][0];
        let told = item["error"]["message"].as_str().unwrap();
        assert!(told.contains(why), "{told}");
        assert!(!told.contains(KEY), "{told}");
        assert_eq!((&item["status"], &item["result"]), (&json!("failed"), &json!(null)));
        assert_eq!(response["status"], "completed");
    }
}

#[tokio::test]
async fn one_that_hangs_is_stopped() {
    let gate = Gate::closed();
    let backend = Backend::start([Reply::picture(&png("late")).gate(&gate)]).await;
    let tools = backend.tools(|config| config.timeout = Duration::from_millis(200));
    let rounds = [draw(&json!({ "prompt": "a fox" })), text("Sorry.")];
    let script = Script::new(rounds);
    let server = start_with(script.clone(), Setup { tools, ..Setup::default() }).await;
    let response = create(&server, request(json!({}))).await;
    assert_eq!(response["output"][0]["status"], "failed");
    let told = script.asked()[1].messages.join("\n");
    assert!(told.contains("took longer") || told.contains("in time"), "{told}");
}

#[tokio::test]
async fn one_that_is_gone_is_said() {
    let backend = Backend::start([]).await;
    let tools =
        backend.tools(|config| config.base_url = Some("http://127.0.0.1:1/v1".parse().unwrap()));
    let rounds = [draw(&json!({ "prompt": "a fox" })), text("Sorry.")];
    let server = start_with(Script::new(rounds), Setup { tools, ..Setup::default() }).await;
    let response = create(&server, request(json!({}))).await;
    assert_eq!(response["output"][0]["error"]["message"], "The image service cannot be reached.");
}

#[tokio::test]
async fn a_setting_that_cannot_be_is_refused_with_its_place() {
    let backend = Backend::start([]).await;
    let server = server(&backend, []).await;
    for (tool, param) in [
        (json!({ "quality": "ultra" }), "tools[0].quality"),
        (json!({ "partial_images": 4 }), "tools[0].partial_images"),
        (json!({ "output_compression": 101 }), "tools[0].output_compression"),
        (json!({ "output_compression": 1000 }), "tools[0].output_compression"),
        (
            json!({ "input_image_mask": { "file_id": "file_1" } }),
            "tools[0].input_image_mask.file_id",
        ),
    ] {
        let (status, answer) = server.post("/v1/responses", request(tool)).await;
        schema::check_error(&answer);
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{answer}");
    }
}

#[tokio::test]
async fn without_an_api_the_operator_is_told_what_to_set() {
    assert!(Toolbox::default().images.is_none());
    let server = start(Script::new([])).await;
    let (status, answer) = server.post("/v1/responses", request(json!({}))).await;
    assert_eq!((status, &answer["error"]["param"]), (400, &json!("tools[0]")));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("tools.image_generation.base_url"), "{message}");
}
