use std::collections::{BTreeSet, HashSet};

use pretty_assertions::assert_eq;

use super::*;

/// The routes as the source of the router says them: `method path`.
fn routed() -> BTreeSet<String> {
    let source = include_str!("../mod.rs");
    let code = source.split("pub fn router(").nth(1).unwrap().split("\n}\n").next().unwrap();
    // The routes above are those below `/v1`.
    let (below, beside) = code.split_once(".nest(\"/v1\"").unwrap();
    let mut found = BTreeSet::new();
    for (part, prefix) in [(below, "/v1"), (beside, "")] {
        for route in part.split(".route(").skip(1) {
            let path = route.split('"').nth(1).unwrap().replace("{*", "{");
            let paths = match path.as_str() {
                "/{path}" => passthrough::PATHS.iter().map(|path| format!("/{path}")).collect(),
                _ => vec![path],
            };
            for method in ["get", "post", "delete", "put", "patch", "any"] {
                let called =
                    [" ", ".", "("].iter().any(|b| route.contains(&format!("{b}{method}(")));
                if called {
                    found.extend(paths.iter().map(|path| format!("{method} {prefix}{path}")));
                }
            }
        }
    }
    found
}

#[test]
fn every_route_is_described_and_everything_described_is_routed() {
    let document = build();
    let described: BTreeSet<String> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, operations)| {
            operations.as_object().unwrap().keys().map(move |method| format!("{method} {path}"))
        })
        .collect();
    assert!(described.len() > 15, "the table was read");
    assert_eq!(described, routed());
    assert_eq!(
        described.len(),
        OPERATIONS.len() + passthrough::PATHS.len(),
        "each stands there once"
    );
}

#[test]
fn operations_have_names_of_their_own_and_schemas_that_are_there() {
    let document = build();
    let ids: HashSet<&str> = OPERATIONS.iter().map(|operation| operation.id).collect();
    assert_eq!(ids.len(), OPERATIONS.len());
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = document.to_string();
    let mut used = HashSet::new();
    for reference in text.split("#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "{name}");
        used.insert(name);
    }
    let unused: Vec<_> = schemas.keys().filter(|name| !used.contains(name.as_str())).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn every_schema_is_a_schema() {
    let document = build();
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        let schema = json!({
            "$ref": format!("#/components/schemas/{name}"),
            "components": document["components"],
        });
        jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn every_tool_that_is_known_is_described_and_no_other() {
    let document = build();
    let schema = |name: &str| {
        let schema = json!({
            "$ref": format!("#/components/schemas/{name}"),
            "components": document["components"],
        });
        jsonschema::validator_for(&schema).unwrap()
    };
    let tool = schema("Tool");
    let mut described = BTreeSet::new();
    for named in document["components"]["schemas"]["Tool"]["anyOf"].as_array().unwrap() {
        let name = named["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let kinds = &document["components"]["schemas"][name]["properties"]["type"]["enum"];
        described.extend(kinds.as_array().unwrap().iter().map(|kind| kind.as_str().unwrap()));
    }
    for kind in &described {
        let asked = json!({ "type": kind, "server_label": "a", "name": "a", "tools": [] });
        assert!(tool.is_valid(&asked), "{kind}");
        let read: crate::protocol::Tool = serde_json::from_str(&asked.to_string()).unwrap();
        assert!(!matches!(read, crate::protocol::Tool::Unknown(_)), "{kind}");
    }
    let source = include_str!("../../protocol/tool.rs");
    let known = source.split("tagged! {").nth(1).unwrap().split("untyped:").next().unwrap();
    let known: BTreeSet<&str> =
        known.split(" = \"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(described, known);

    let item = schema("Item");
    for (value, fits) in [
        (
            json!({ "type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true }),
            true,
        ),
        (json!({ "type": "mcp_approval_response", "approve": true }), false),
        (
            json!({ "type": "mcp_call", "server_label": "antiphon", "name": "remember", "output": null }),
            true,
        ),
        (json!({ "type": "mcp_call" }), false),
        (json!({ "type": "message", "role": "user", "content": "Hi" }), true),
    ] {
        assert_eq!(item.is_valid(&value), fits, "{value}");
    }
}
