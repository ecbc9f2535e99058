use pretty_assertions::assert_eq;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::tools::openapi::{Wanted, parse};

fn operation() -> Operation {
    let document = json!({
        "openapi": "3.0.3", "info": {"title": "T"}, "servers": [{"url": "https://api.example/v1/"}],
        "paths": {"/users/{user}/files/{name}.json": {"put": {
            "operationId": "putFile",
            "parameters": [
                {"name": "user", "in": "path", "schema": {"type": "integer"}},
                {"name": "name", "in": "path"},
                {"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                {"name": "filter", "in": "query", "style": "deepObject"},
                {"name": "url", "in": "query", "allowReserved": true},
                {"name": "X-Trace", "in": "header", "required": true, "example": "t1"},
            ],
            "requestBody": {"required": true, "content": {"application/json": {"schema": {
                "type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}},
            }}}},
        }}},
    });
    let wanted = Wanted { server_url: None, schema_url: None, allowed: None, max_operations: 1 };
    parse(&document, &wanted).unwrap().remove(0)
}

fn build(arguments: Value) -> Result<Prepared, String> {
    let Value::Object(arguments) = arguments else { panic!("{arguments}") };
    build_request(&operation(), &arguments).map_err(|error| error.to_string())
}

/// Right arguments with these over them.
fn with(more: &Value) -> Value {
    let mut arguments = json!({"user": 7, "name": "n", "X-Trace": "t", "requestBody": {"a": 1}});
    arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    arguments
}

#[test]
fn arguments_go_where_they_belong() {
    let prepared = build(with(&json!({
        "name": "../x y?#", "tags": ["a&b", "c"], "filter": {"k": "v"}, "url": "https://x/?q", "X-Trace": " t ",
    })))
    .unwrap();
    assert_eq!(prepared.method, Method::PUT);
    assert_eq!(
        prepared.url.as_str(),
        "https://api.example/v1/users/7/files/..%2Fx%20y%3F%23.json\
         ?tags=a%26b&tags=c&filter%5Bk%5D=v&url=https://x/?q"
    );
    let headers: Vec<_> = prepared
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    assert_eq!(
        headers,
        [
            ("accept", "application/json, text/*;q=0.9, */*;q=0.8"),
            ("x-trace", "t"),
            ("content-type", "application/json"),
        ]
    );
    assert_eq!(prepared.body.unwrap(), br#"{"a":1}"#);
}

#[test]
fn wrong_arguments_come_with_a_right_example() {
    for (arguments, sentence) in [
        (
            json!({"name": "n"}),
            r#"`putFile` needs the argument `user`. A right example: {"user":1,"name":"n","X-Trace":"t1","requestBody":{"a":1}}"#,
        ),
        (
            with(&json!({"requestBody": null})),
            r#"`putFile` needs the argument `requestBody`. A right example: {"user":7,"name":"n","X-Trace":"t","requestBody":{"a":1}}"#,
        ),
        (
            with(&json!({"a": 5})),
            r#"`putFile` has no argument `a`; it takes `user`, `name`, `tags`, `filter`, `url`, `X-Trace`, `requestBody`. A right example: {"user":7,"name":"n","X-Trace":"t","requestBody":{"a":1}}"#,
        ),
    ] {
        assert_eq!(build(arguments).unwrap_err(), sentence);
    }
    for (arguments, words) in [
        (with(&json!({"user": ""})), "`user` must not be empty"),
        (with(&json!({"user": "."})), "`user` must not be `.` or `..`"),
        (with(&json!({"user": ".."})), "`user` must not be `.` or `..`"),
        (with(&json!({"user": [[1]]})), "`user` goes into the path"),
        (with(&json!({"tags": [{"a": 1}]})), "`tags` goes into the query"),
        (with(&json!({"X-Trace": "a\r\nHost: b"})), "`X-Trace` is sent as a header"),
        (with(&json!({"X-Trace": "ü"})), "printable ASCII"),
        (with(&json!({"X-Trace": null})), "needs the argument `X-Trace`"),
        (with(&json!({"name": "x".repeat(20_000)})), "a URL of more than 16384 bytes"),
    ] {
        let error = build(arguments).unwrap_err();
        assert!(error.contains(words), "{error}");
        assert!(error.contains("A right example: {"), "{error}");
        assert!(error.len() < 1000, "{error}");
    }
}

#[test]
fn values_are_not_taken_for_variables() {
    let url = build(with(&json!({"user": "{name}", "name": "x"}))).unwrap().url;
    assert_eq!(url.path(), "/v1/users/%7Bname%7D/files/x.json");
}

proptest! {
    /// Whatever a model writes, the request stays on its operation: as many steps of the path and as many pairs as always.
    #[test]
    fn no_value_leaves_its_place(user in any::<String>(), tag in any::<String>(), trace in any::<String>()) {
        let arguments = with(&json!({"user": user, "tags": [tag], "X-Trace": trace}));
        if let Ok(prepared) = build(arguments) {
            let steps: Vec<&str> = prepared.url.path().split('/').collect();
            prop_assert_eq!(&steps[..3], &["", "v1", "users"]);
            prop_assert_eq!(&steps[4..], &["files", "n.json"]);
            let pairs: Vec<_> = prepared.url.query_pairs().into_owned().collect();
            prop_assert_eq!(pairs, vec![("tags".to_owned(), tag)]);
            prop_assert_eq!(prepared.url.fragment(), None);
            prop_assert_eq!(prepared.headers.len(), 3);
        }
    }
}
