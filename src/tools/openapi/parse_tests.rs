use pretty_assertions::assert_eq;
use serde_json::{Map, json};

use super::*;
use crate::tools::openapi::read::MAX_DESCRIPTION;

const WANTED: Wanted<'static> =
    Wanted { server_url: None, schema_url: None, allowed: None, max_operations: 100 };

fn document(paths: &Value) -> Value {
    json!({
        "openapi": "3.0.3",
        "info": {"title": "T", "version": "1"},
        "servers": [{"url": "https://api.example/v1"}],
        "paths": paths,
    })
}

fn operations(paths: &Value) -> Vec<Operation> {
    parse(&document(paths), &WANTED).unwrap()
}

fn fault(paths: &Value) -> (String, String) {
    let fault = parse(&document(paths), &WANTED).unwrap_err();
    (fault.path, fault.sentence)
}

#[test]
fn parameters_of_the_path_hold_unless_the_operation_overrides_them() {
    let operations = operations(&json!({"/pets/{id}": {
        "summary": "One pet",
        "parameters": [
            {"name": "id", "in": "path", "schema": {"type": "string"}},
            {"name": "verbose", "in": "query", "schema": {"type": "string"}, "required": true},
            {"name": "verbose", "in": "header", "schema": {"type": "integer"}},
        ],
        "get": {"parameters": [
            {"name": "verbose", "in": "query", "schema": {"type": "boolean"}, "description": "All of it."},
        ]},
        "delete": {"summary": "Remove", "description": "Gone for good.", "deprecated": true},
    }}));
    let told: Vec<_> = operations
        .iter()
        .map(|operation| {
            (operation.name.as_str(), operation.description.as_str(), &operation.parameters)
        })
        .collect();
    let verbose = json!({"type": "boolean", "description": "All of it."});
    assert_eq!(
        told,
        [
            (
                "get_pets_id",
                "One pet",
                &json!({"type": "object", "required": ["id"], "properties": {
                    "id": {"type": "string"}, "verbose": {"type": "integer"}, "query_verbose": verbose,
                }})
            ),
            (
                "delete_pets_id",
                "Deprecated. Remove\n\nGone for good.",
                &json!({"type": "object", "required": ["id", "verbose"], "properties": {
                    "id": {"type": "string"}, "verbose": {"type": "string"}, "header_verbose": {"type": "integer"},
                }})
            ),
        ]
    );
}

#[test]
fn references_lead_to_parameters_bodies_and_paths() {
    let mut document = document(&json!({
        "/a/{id}": {
            "post": {
                "operationId": "a",
                "parameters": [{"$ref": "#/components/parameters/Id"}],
                "requestBody": {"$ref": "#/components/requestBodies/Pet"},
            },
        },
        "/b/{id}": {"$ref": "#/paths/~1a~1%7Bid%7D"},
    }));
    document["components"] = json!({
        "parameters": {"Id": {"name": "id", "in": "path", "schema": {"$ref": "#/components/schemas/Id"}}},
        "requestBodies": {"Pet": {"required": true, "description": "The pet.", "content": {
            "text/plain": {},
            "application/vnd.pet+json": {"schema": {"$ref": "#/components/schemas/Pet"}},
        }}},
        "schemas": {
            "Id": {"type": "integer"},
            "Pet": {"type": "object", "properties": {"id": {"$ref": "#/components/schemas/Id"}}},
        },
    });
    document["paths"]["/b/{id}"] = json!({"$ref": "#/components/pathItems/B"});
    document["components"]["pathItems"] = json!({"B": {
        "get": {"parameters": [{"$ref": "#/components/parameters/Id"}]},
    }});
    let operations = parse(&document, &WANTED).unwrap();
    let parameters = json!({"type": "object", "required": ["id", "requestBody"], "properties": {
        "id": {"type": "integer"},
        "requestBody": {
            "type": "object", "description": "The pet.",
            "properties": {"id": {"type": "integer"}},
        },
    }});
    assert_eq!(operations[0].parameters, parameters);
    assert_eq!(operations[0].body.as_ref().unwrap().content_type, "application/vnd.pet+json");
    assert_eq!((operations[1].name.as_str(), operations[1].reads_only()), ("get_b_id", true));
}

#[test]
fn the_server_nearest_to_the_operation_counts() {
    let mut document = document(&json!({
        "/a": {"get": {"operationId": "root"}},
        "/b": {
            "servers": [{"url": "https://b.example"}],
            "get": {"operationId": "path"},
            "post": {"operationId": "own", "servers": [{"url": "/own"}]},
        },
    }));
    let from: Url = "https://docs.example/x.json".parse().unwrap();
    let bases = |document: &Value, wanted: &Wanted<'_>| -> Vec<String> {
        let operations = parse(document, wanted).unwrap();
        operations.into_iter().map(|operation| operation.base.to_string()).collect()
    };
    let fetched = Wanted { schema_url: Some(&from), ..WANTED };
    assert_eq!(
        bases(&document, &fetched),
        ["https://api.example/v1", "https://b.example/", "https://docs.example/own"]
    );
    let elsewhere = Wanted { server_url: Some("http://127.0.0.1:9000/x"), ..WANTED };
    assert_eq!(bases(&document, &elsewhere), vec!["http://127.0.0.1:9000/x"; 3]);
    document["servers"] = json!([]);
    assert_eq!(bases(&document, &fetched)[0], "https://docs.example/");
}

#[test]
fn only_allowed_operations_are_looked_at() {
    let document = document(&json!({
        "/a": {"get": {"operationId": "a.b"}, "post": {"operationId": "bad", "requestBody": {}}},
        "/b": {"get": {"operationId": "a_b"}, "put": {}, "delete": {"operationId": "bad"}},
    }));
    let names = |allowed: &[&str]| {
        let allowed: Vec<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        let wanted = Wanted { allowed: Some(&allowed), max_operations: 2, ..WANTED };
        parse(&document, &wanted)
            .map(|operations| {
                operations.into_iter().map(|operation| operation.name).collect::<Vec<_>>()
            })
            .map_err(|fault| format!("{}: {fault}", fault.path))
    };
    assert_eq!(names(&["a.b", "put_b"]).unwrap(), ["a_b", "put_b"]);
    assert_eq!(names(&["a_b_2"]).unwrap(), ["a_b_2"]);
    assert_eq!(names(&[]).unwrap(), Vec::<String>::new());
    assert_eq!(
        names(&["put_b", "get"]).unwrap_err(),
        "allowed_operations[1]: The schema has no operation `get`. It has `a_b`, `bad`, `a_b_2`, `put_b`, `bad_2`."
    );
    assert_eq!(
        names(&["a_b", "bad_2", "put_b"]).unwrap_err(),
        "schema.paths: 4 operations are too many for one tool; at most 2 are offered. \
         Name those that are needed in `allowed_operations`."
    );
    assert_eq!(
        names(&["bad"]).unwrap_err(),
        "schema.paths[\"/b\"].delete.operationId: `bad` is the id of another operation already; each needs its own."
    );
}

#[test]
fn what_a_model_may_not_fill_is_noted() {
    let operations = operations(&json!({"/a": {"get": {"parameters": [
        {"name": "session", "in": "cookie"},
        {"name": "Authorization", "in": "header", "required": true},
        {"name": "HOST", "in": "header"},
        {"name": "keep-alive", "in": "header"},
        {"name": "X-Trace", "in": "header", "example": "t1"},
        {"name": "id", "in": "path"},
    ]}}}));
    assert_eq!(
        operations[0].parameters["properties"],
        json!({"X-Trace": {"type": "string", "examples": ["t1"]}})
    );
    let kept = "is not offered: it is set by the server, by `headers` or by a credential, never by the model.";
    assert_eq!(
        operations[0].notes,
        [
            "The cookie `session` is not offered: cookies are not sent.".to_owned(),
            format!("The header `Authorization` {kept}"),
            format!("The header `HOST` {kept}"),
            format!("The header `keep-alive` {kept}"),
            "The parameter `id` is not offered: the path does not name it.".to_owned(),
        ]
    );
}

#[test]
fn faults_say_where_they_are() {
    for (paths, path, words) in [
        (json!([]), "schema.paths", "An object of paths"),
        (json!({"/a": 1}), "schema.paths[\"/a\"]", "An object is expected here."),
        (json!({"/a": {"get": []}}), "schema.paths[\"/a\"].get", "An object is expected here."),
        (json!({"a": {"get": {}}}), "schema.paths[\"a\"].get", "A path begins with `/`."),
        (
            json!({"/a?x=1": {"get": {}}}),
            "schema.paths[\"/a?x=1\"].get",
            "Declare query parameters",
        ),
        (json!({"/a/../b": {"get": {}}}), "schema.paths[\"/a/../b\"].get", "no `..`"),
        (json!({"/{a": {"get": {}}}), "schema.paths[\"/{a\"].get", "never closed"),
        (json!({"/{a}": {"get": {}}}), "schema.paths[\"/{a}\"].get.parameters", "names `{a}`"),
        (
            json!({"/a": {"get": {"parameters": {}}}}),
            "schema.paths[\"/a\"].get.parameters",
            "A list",
        ),
        (
            json!({"/a": {"get": {"parameters": [{"in": "query"}]}}}),
            "schema.paths[\"/a\"].get.parameters[0].name",
            "needs `name`",
        ),
        (
            json!({"/a": {"get": {"parameters": [{"name": "x", "in": "body"}]}}}),
            "schema.paths[\"/a\"].get.parameters[0].in",
            "there are `path`, `query` and `header`",
        ),
        (
            json!({"/a": {"get": {"parameters": [{"name": "x", "in": "query"}, {"name": "x", "in": "query"}]}}}),
            "schema.paths[\"/a\"].get.parameters[1]",
            "stands here twice",
        ),
        (
            json!({"/a": {"get": {"parameters": [{"name": "x", "in": "cookie", "required": true}]}}}),
            "schema.paths[\"/a\"].get.parameters[0]",
            "cookies are not sent",
        ),
        (
            json!({"/a": {"get": {"parameters": [{"name": "x y", "in": "header"}]}}}),
            "schema.paths[\"/a\"].get.parameters[0].name",
            "cannot be the name of a header",
        ),
        (
            json!({"/a": {"get": {"parameters": [{"name": "x", "in": "path", "style": "form"}]}}}),
            "schema.paths[\"/a\"].get.parameters[0].style",
            "`form` is not a style for a path parameter.",
        ),
        (
            json!({"/a": {"get": {"parameters": [{"name": "x", "in": "query", "content": {"text/plain": {}}}]}}}),
            "schema.paths[\"/a\"].get.parameters[0].content",
            "application/json",
        ),
        (
            json!({"/a": {"get": {"parameters": [{"$ref": "#/components/parameters/X"}]}}}),
            "schema.paths[\"/a\"].get.parameters[0].$ref",
            "leads to nothing in this document",
        ),
        (
            json!({"/a": {"post": {"requestBody": {"content": {"multipart/form-data": {}}}}}}),
            "schema.paths[\"/a\"].post.requestBody.content",
            "Only JSON bodies are sent (`application/json`), and this one is `multipart/form-data`.",
        ),
        (
            json!({"/a": {"post": {"requestBody": {"content": {"application/json": {"schema":
                {"properties": {"x": {"$ref": "#/components/schemas/X"}}}}}}}}}),
            "schema.paths[\"/a\"].post.requestBody.content[\"application/json\"].schema.properties.x.$ref",
            "leads to nothing in this document",
        ),
    ] {
        let (at, sentence) = fault(&paths);
        assert_eq!(at, path, "{sentence}");
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn heads_of_documents_are_checked() {
    for (document, path, words) in [
        (json!({}), "schema.openapi", "openapi: 3.1.0"),
        (json!({"swagger": "2.0"}), "schema.swagger", "Convert"),
        (json!({"openapi": 3.2}), "schema.openapi", "3.2 is not read here"),
        (json!({"openapi": "3.1.1"}), "schema.info.title", "info.title"),
        (json!({"openapi": 3.1, "info": {"title": ""}}), "schema.paths", "no operation"),
    ] {
        let fault = parse(&document, &WANTED).unwrap_err();
        assert_eq!(fault.path, path, "{fault}");
        assert!(fault.sentence.contains(words), "{fault}");
    }
}

#[test]
fn large_documents_are_read_in_bounds() {
    let long = "é".repeat(3000);
    let read = operations(&json!({"/a": {"get": {"description": long}}}));
    assert!(read[0].description.len() <= MAX_DESCRIPTION + "…".len());
    assert!(read[0].description.ends_with('…'));

    let parameters: Vec<Value> =
        (0..201).map(|at| json!({"name": at.to_string(), "in": "query"})).collect();
    let (path, _) = fault(&json!({"/a": {"get": {"parameters": parameters}}}));
    assert_eq!(path, "schema.paths[\"/a\"].get.parameters");

    // Many operations of one name cost no more than as many of different names.
    let paths: Map<String, Value> =
        (0..20_000).map(|at| (format!("/{at}"), json!({"get": {"operationId": "same"}}))).collect();
    let (path, _) = fault(&Value::Object(paths));
    assert_eq!(path, "schema.paths");
}

#[test]
fn a_large_published_document_becomes_tools() {
    let document: Value =
        serde_json::from_str(include_str!("../../../tests/schemas/openai-openapi.json")).unwrap();
    let all = Wanted { server_url: Some("https://api.example/v1"), ..WANTED };
    let fault = parse(&document, &all).unwrap_err();
    assert!(fault.sentence.contains("this one is `multipart/form-data`"), "{fault}");

    let paths = document["paths"].as_object().unwrap();
    let ids =
        paths.values().flat_map(|item| item.as_object().unwrap().values()).filter(|operation| {
            let body = operation.pointer("/requestBody/content");
            body.is_none_or(|content| content.get("application/json").is_some())
        });
    let ids: Vec<String> =
        ids.map(|operation| operation["operationId"].as_str().unwrap().to_owned()).collect();
    let operations = parse(&document, &Wanted { allowed: Some(&ids), ..all }).unwrap();
    assert_eq!(operations.len(), ids.len());
    assert!(operations.len() > 50, "{}", operations.len());
    for operation in &operations {
        let schema = operation.parameters.to_string();
        assert!(!schema.contains("\"$ref\":\"#"), "{}", operation.name);
        serde_json::from_str::<Value>(&schema).expect("it is read back within the usual depth");
    }
    let create = operations.iter().find(|operation| operation.is_called("createResponse")).unwrap();
    assert_eq!(create.parameters["required"], json!(["requestBody"]));
    assert_eq!(
        create.notes,
        [
            "The schema of `requestBody` is too large to be shown whole: inner parts of it are left open."
        ]
    );
    let shown = create.parameters.to_string();
    assert!(shown.contains("\"parallel_tool_calls\"") && shown.len() < 70_000, "{}", shown.len());
}
