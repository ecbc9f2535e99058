//! The reading of documents and the building of requests against the shared vectors, as their README says which values are right.

use std::{fs, path::PathBuf};

use pretty_assertions::assert_eq;
use reqwest::{
    Request, StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde_json::{Map, Value, json};

use super::{Access, Content, Operation, Wanted, answer, build_request, parse, sanitise};
use crate::config::{ApiCredential, CredentialKind, Secret};

#[expect(clippy::disallowed_methods, reason = "a test may be pointed at another folder of vectors")]
fn vectors(section: &str) -> Vec<Value> {
    let folder = std::env::var_os("ANTIPHON_VECTORS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"),
        PathBuf::from,
    );
    let text = fs::read(folder.join("openapi_tools.json")).unwrap();
    let file: Value = serde_json::from_slice(&text).unwrap();
    let mut cases = file[section].as_array().unwrap().clone();
    cases.retain(|case| case.get("not_asked").is_none());
    cases
}

#[expect(clippy::print_stderr, reason = "seen with --nocapture")]
fn report(section: &str, asserted: usize, informative: usize) {
    eprintln!("openapi_tools.json {section}: {asserted} asserted, {informative} informative");
}

/// The value that is right, if the case gives one.
fn right(case: &Value) -> Option<&Value> {
    match case.get("recommended") {
        Some(recommended) if !recommended.is_string() => Some(recommended),
        _ if case.get("onyx_quirk").is_some() => None,
        _ => Some(&case["expected"]),
    }
}

fn operations(schema: &Value) -> Result<Vec<Operation>, super::SchemaFault> {
    let wanted = Wanted { server_url: None, schema_url: None, allowed: None, max_operations: 100 };
    parse(schema, &wanted)
}

#[test]
fn documents_become_tools() {
    let (mut asserted, mut informative) = (0, 0);
    for case in vectors("validation") {
        let read = operations(&case["schema"]);
        let Some(right) = right(&case) else {
            informative += 1;
            continue;
        };
        assert_eq!(read.is_ok(), right["valid"] == true, "{}: {read:?}", case["id"]);
        if let (Ok(operations), Some(tools)) = (read, right.get("tools")) {
            let told = operations.iter().map(|operation| {
                json!({"type": "function", "function": {
                    "name": operation.name,
                    "description": operation.description,
                    "parameters": operation.parameters,
                }})
            });
            assert_eq!(&told.collect::<Value>(), tools, "{}", case["id"]);
        }
        asserted += 1;
    }
    assert!(asserted > 8, "{asserted} asserted");
    report("validation", asserted, informative);
}

/// The request of a call, or `None` when the arguments make none.
fn request(case: &Value) -> Option<Request> {
    let operations = operations(&case["schema"]).unwrap();
    let method = &case["expected"]["requests"][0]["method"];
    let operation = operations
        .iter()
        .find(|operation| method.is_null() || *method == *operation.method.as_str())
        .unwrap();
    let arguments: &Map<String, Value> = case["arguments"].as_object().unwrap();
    let prepared = build_request(operation, arguments).ok()?;
    let headers = case["headers"].as_array().into_iter().flatten();
    let headers =
        headers.map(|header| (header["key"].as_str().unwrap(), header["value"].as_str().unwrap()));
    let credential = case["oauth_token"].as_str().map(|token| ApiCredential {
        kind: CredentialKind::Bearer,
        name: None,
        value_env: String::new(),
        value: Some(Secret::from(token.to_owned())),
        hosts: vec![prepared.url.origin().ascii_serialization().try_into().unwrap()],
    });
    let access = Access::new(headers, credential.as_ref().map(|credential| ("token", credential)));
    Some(access.dress(prepared).unwrap())
}

#[test]
fn calls_become_requests_and_answers_text() {
    let (mut asserted, mut informative) = (0, 0);
    for case in vectors("request") {
        let id = &case["id"];
        let request = request(&case);
        let Some(right) = right(&case) else {
            informative += 1;
            continue;
        };
        let Some(expected) = right["requests"].get(0) else {
            assert!(request.is_none(), "{id}");
            asserted += 1;
            continue;
        };
        let request = request.unwrap();
        assert_eq!(request.method().as_str(), expected["method"], "{id}");
        assert_eq!(request.url().as_str(), expected["url"], "{id}");
        let body = request.body().and_then(reqwest::Body::as_bytes);
        let body = body.map_or(Value::Null, |body| serde_json::from_slice(body).unwrap());
        assert_eq!(body, expected["json"], "{id}");
        for (name, value) in expected["headers"].as_object().unwrap() {
            assert_eq!(request.headers()[name].to_str().unwrap(), value, "{id}");
        }

        let response = &case["response"];
        let kind = HeaderValue::from_str(response["type"].as_str().unwrap()).unwrap();
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, kind)]);
        let body = response
            .get("json")
            .map_or_else(|| response["text"].as_str().unwrap().to_owned(), Value::to_string);
        let status =
            StatusCode::from_u16(u16::try_from(response["status"].as_u64().unwrap()).unwrap());
        let result =
            answer::read(status.unwrap(), &headers, "/", body.as_bytes(), /* is_cut */ false);
        assert_eq!(result.is_auth_error(), right["auth_error"] == true, "{id}");
        let text: Value = serde_json::from_str(right["llm_text"].as_str().unwrap()).unwrap();
        match &result.content {
            Content::Json(json) => assert_eq!(json.to::<Value>().unwrap(), text, "{id}"),
            other => panic!("{id}: {other:?}"),
        }
        // With an error the model is told the status first.
        assert!(result.text().ends_with(&body), "{id}: {}", result.text());
        asserted += 1;
    }
    assert!(asserted > 3, "{asserted} asserted");
    report("request", asserted, informative);
}

/// What the vectors show as quirks of the original, as it is right here.
#[test]
fn quirks_are_not_repeated() {
    let cases = vectors("request");
    let case = |id: &str| cases.iter().find(|case| case["id"] == id);
    for (id, url) in [
        ("rq-encode", "http://api.example/v1/a/7?q=a%20b%26c%3Dd"),
        ("rq-path-traversal", "http://api.example/v1/a/..%2Fadmin%3Fx%3D1"),
        ("rq-bool", "http://api.example/v1/a/7?q=true"),
        ("rq-dynamic", "http://h.example/CHAT_SESSION_ID/MESSAGE_ID/USER_ID/USER_EMAIL/x"),
    ] {
        let Some(case) = case(id) else { continue };
        assert_eq!(request(case).unwrap().url().as_str(), url, "{id}");
    }
    let cases = vectors("validation");
    let case = |id: &str| cases.iter().find(|case| case["id"] == id);
    if let Some(case) = case("oa-path-level-parameters") {
        assert_eq!(operations(&case["schema"]).unwrap()[0].parameters["required"], json!(["id"]));
    }
    if let Some(case) = case("oa-ref") {
        let fault = operations(&case["schema"]).unwrap_err();
        assert!(fault.path.ends_with("schema.$ref"), "{fault:?}");
    }
}

#[test]
fn names_are_sanitised() {
    let (mut asserted, mut informative) = (0, 0);
    for case in vectors("sanitise") {
        let name = sanitise(case["input"].as_str().unwrap());
        assert!(name.len() <= super::MAX_NAME, "{name}");
        match right(&case) {
            Some(right) => {
                assert_eq!(&name, right, "{}", case["id"]);
                asserted += 1;
            }
            None => informative += 1,
        }
    }
    assert!(asserted > 2, "{asserted} asserted");
    report("sanitise", asserted, informative);
}
