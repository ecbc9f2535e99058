//! `GET /openapi.json` against what is really served.

use serde_json::json;

use crate::support::{model::Script, server::start};

#[tokio::test]
async fn every_operation_is_served() {
    let server = start(Script::new([])).await;
    let (status, document) = server.get("/openapi.json").await;
    assert_eq!((status, &document["openapi"]), (200, &json!("3.1.0")));
    let mut seen = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let path = path.replace("{id}", "x").replace("{item_id}", "y");
            let body = (method == "post").then(|| json!({}));
            let (status, answer) =
                server.send(&method.to_ascii_uppercase(), &path, body, None).await;
            assert!(
                status != 405 && answer["error"]["code"] != "unknown_url",
                "{method} {path}: {answer}"
            );
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen}");
}
