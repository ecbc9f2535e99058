//! `image_generation` before an images API.

mod backend;
mod edits;
mod faults;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use self::backend::{Backend, KEY, Reply, png};
use crate::support::{
    model::{Round, Script, call, text},
    schema,
    server::{Server, Setup, start_with},
    stream::Listener,
};

/// A server whose model does this.
async fn server(backend: &Backend, rounds: impl IntoIterator<Item = Round>) -> Server {
    start_with(Script::new(rounds), setup(backend)).await
}

fn setup(backend: &Backend) -> Setup {
    Setup { tools: backend.tools(|_| ()), ..Setup::default() }
}

/// What is asked, with the tool as this object says.
fn request(tool: Value) -> Value {
    let mut tool = tool;
    tool["type"] = json!("image_generation");
    json!({ "model": "m", "input": "Draw a fox.", "tools": [tool] })
}

/// Asks, and gets a Response.
async fn create(server: &Server, body: Value) -> Value {
    let (status, response) = server.post("/v1/responses", body).await;
    assert_eq!(status, 200, "{response}");
    schema::check("Response", &response);
    response
}

fn draw(arguments: &Value) -> Round {
    call("call_1", "generate_image", &arguments.to_string())
}

#[tokio::test]
async fn a_picture_is_for_the_client_and_a_sentence_for_the_model() {
    let backend = Backend::start([Reply::picture(&png("fox"))]).await;
    let script = Script::new([
        draw(&json!({ "prompt": "a fox", "size": "landscape" })),
        text("There it is."),
    ]);
    let server = start_with(script.clone(), setup(&backend)).await;
    let tool = json!({
        "model": "gpt-image-1", "quality": "high", "output_format": "png", "output_compression": 90,
        "background": "opaque", "moderation": "low", "input_fidelity": "high",
    });
    let response = create(&server, request(tool)).await;

    let mut item = response["output"][0].clone();
    let encoded = STANDARD.encode(png("fox"));
    item.as_object_mut().unwrap().remove("id");
    assert_eq!(
        item,
        json!({
            "type": "image_generation_call", "status": "completed", "action": "generate", "size": "1024x512",
            "quality": "medium", "background": "opaque", "output_format": "png", "result": encoded,
        })
    );
    assert_eq!(response["output"][1]["content"][0]["text"], "There it is.");

    let [asked] = backend.asked().try_into().unwrap();
    assert_eq!(asked.line, "POST /v1/images/generations");
    assert_eq!(asked.authorization, Some(format!("Bearer {KEY}")));
    assert_eq!(
        asked.json(),
        json!({
            "model": "gpt-image-1", "prompt": "a fox", "size": "1536x1024", "quality": "high", "output_format": "png",
            "output_compression": 90, "background": "opaque", "moderation": "low",
        })
    );

    let [first, second] = script.asked().try_into().unwrap();
    assert_eq!(first.tools, ["generate_image"]);
    assert_eq!(second.tools, [""; 0], "the loop ends");
    let told = second.messages.join("\n");
    assert!(told.contains("one short sentence"), "{told}");
    assert!(!told.contains(&encoded[..20]) && !told.contains("From outside"), "{told}");
}

#[tokio::test]
async fn sizes_and_models_come_from_request_model_and_configuration() {
    for (tool, arguments, sent) in [
        (json!({}), json!({}), json!(["own", "512x512"])),
        (json!({}), json!({ "size": "portrait" }), json!(["own", "1024x1536"])),
        (
            json!({ "model": "dall-e-3" }),
            json!({ "size": "portrait" }),
            json!(["dall-e-3", "1024x1792"]),
        ),
        (
            json!({ "model": "dall-e-2" }),
            json!({ "size": "landscape" }),
            json!(["dall-e-2", "1024x1024"]),
        ),
        (json!({ "size": "640x480" }), json!({}), json!(["own", "640x480"])),
        (json!({ "size": "auto" }), json!({ "size": "square" }), json!(["own", "1024x1024"])),
    ] {
        let backend = Backend::start([Reply::picture(&png("fox"))]).await;
        let mut arguments = arguments;
        arguments["prompt"] = json!("a fox");
        let tools = backend.tools(|config| {
            config.model = Some("own".to_owned());
            config.size = Some("512x512".to_owned());
        });
        let rounds = [draw(&arguments), text("Done.")];
        let server = start_with(Script::new(rounds), Setup { tools, ..Setup::default() }).await;
        create(&server, request(tool)).await;
        let asked = backend.asked()[0].json();
        assert_eq!(json!([asked["model"], asked["size"]]), sent, "{arguments}");
    }
}

#[tokio::test]
async fn a_stream_shows_pictures_before_the_last() {
    let piece = |index: u32| {
        json!({
            "type": "image_generation.partial_image", "partial_image_index": index, "created_at": 1, "size": "1024x512",
            "quality": "low", "background": "opaque", "output_format": "png", "b64_json": STANDARD.encode(png(&format!("half {index}"))),
        })
    };
    let last = json!({
        "type": "image_generation.completed", "created_at": 1, "size": "1024x512", "quality": "low",
        "background": "transparent", "output_format": "png", "b64_json": STANDARD.encode(png("whole")),
        "usage": { "total_tokens": 1 },
    });
    let backend = Backend::start([Reply::stream(&[piece(0), piece(1), last])]).await;
    let server = server(&backend, [draw(&json!({ "prompt": "a fox" })), text("Done.")]).await;
    let mut body = request(json!({ "partial_images": 2 }));
    body["stream"] = json!(true);
    let heard = Listener::open(&server, &body).await.whole().await;
    let kinds: Vec<String> = heard
        .events
        .iter()
        .filter_map(|event| event["type"].as_str()?.strip_prefix("response.image_generation_call."))
        .map(str::to_owned)
        .collect();
    assert_eq!(kinds, ["in_progress", "generating", "partial_image", "partial_image", "completed"]);
    let partial: Vec<&Value> =
        heard.events.iter().filter(|event| !event["partial_image_b64"].is_null()).collect();
    for (index, event) in partial.iter().enumerate() {
        assert_eq!(event["partial_image_index"], index);
        assert_eq!(event["partial_image_b64"], STANDARD.encode(png(&format!("half {index}"))));
    }
    let item = &heard.response["output"][0];
    assert_eq!(item["result"], STANDARD.encode(png("whole")));
    assert_eq!(item["background"], "transparent");
    let asked = backend.asked()[0].json();
    assert_eq!((&asked["stream"], &asked["partial_images"]), (&json!(true), &json!(2)));
}

#[tokio::test]
async fn an_api_that_does_not_stream_answers_all_the_same() {
    let refusal = |message: &str| {
        Reply::json(400, &json!({ "error": { "message": message, "code": "unknown_parameter" } }))
    };
    for (replies, questions) in [
        (vec![Reply::picture(&png("fox"))], 1),
        (vec![refusal("Unknown parameter: 'partial_images'."), Reply::picture(&png("fox"))], 2),
        (vec![refusal("Streaming is not supported."), Reply::picture(&png("fox"))], 2),
    ] {
        let backend = Backend::start(replies).await;
        let server = server(&backend, [draw(&json!({ "prompt": "a fox" })), text("Done.")]).await;
        let response = create(&server, request(json!({ "partial_images": 3 }))).await;
        assert_eq!(response["output"][0]["status"], "completed", "{response}");
        let asked = backend.asked();
        assert_eq!(asked.len(), questions);
        assert_eq!(asked[0].json()["stream"], true);
        if let Some(second) = asked.get(1) {
            assert!(second.json()["stream"].is_null() && second.json()["partial_images"].is_null());
        }
    }
}

#[tokio::test]
async fn an_address_is_fetched_where_it_may_be() {
    let at = |url: &str| {
        Reply::json(
            200,
            &json!({ "created": 1, "data": [{ "url": url, "revised_prompt": "a red fox" }] }),
        )
    };
    let rounds = || [draw(&json!({ "prompt": "a fox" })), text("Done.")];
    // The API itself has been configured, so its pictures may be fetched from it.
    let backend = Backend::start([]).await;
    let own = format!("{}/files/fox.png", backend.base);
    backend.then(at(&own));
    backend.then(Reply::new(200, "image/png", png("fox")));
    let response = create(&server(&backend, rounds()).await, request(json!({}))).await;
    let item = &response["output"][0];
    assert_eq!(item["result"], STANDARD.encode(png("fox")));
    assert_eq!(
        (&item["size"], &item["revised_prompt"], &item["output_format"]),
        (&json!("1024x512"), &json!("a red fox"), &json!("png"))
    );
    let fetch = &backend.asked()[1];
    assert_eq!(
        (&*fetch.line, &fetch.authorization),
        ("GET /v1/files/fox.png", &None),
        "no key goes along"
    );

    // No other address of this machine is.
    let other = Backend::start([Reply::new(200, "image/png", png("secret"))]).await;
    let inner = format!("{}/secret.png", other.base);
    let data = format!("data:image/png;base64,{}", STANDARD.encode(png("fox")));
    for (url, status, why) in [
        (&*inner, "failed", "not allowed"),
        ("http://[", "failed", "address"),
        (&*data, "completed", ""),
    ] {
        let backend = Backend::start([at(url)]).await;
        let response = create(&server(&backend, rounds()).await, request(json!({}))).await;
        let item = &response["output"][0];
        assert_eq!(item["status"], status, "{item}");
        let told = item["error"]["message"].as_str().unwrap_or_default();
        assert!(told.contains(why), "{told}");
    }
    assert_eq!(other.asked().len(), 0);
    // What is there is no picture.
    for reply in [Reply::new(200, "image/png", "<html>"), Reply::new(404, "text/plain", "gone")] {
        let backend = Backend::start([]).await;
        backend.then(at(&format!("{}/fox.png", backend.base)));
        backend.then(reply);
        let response = create(&server(&backend, rounds()).await, request(json!({}))).await;
        assert_eq!(response["output"][0]["status"], "failed");
    }
}
