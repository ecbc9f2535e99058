use std::collections::{BTreeSet, HashSet};

use pretty_assertions::assert_eq;

use super::*;

/// The routes as the source of the router says them: `method path`.
fn routed() -> BTreeSet<String> {
    let source = include_str!("../mod.rs");
    let router = source.split("pub fn router(").nth(1).unwrap().split("\n}\n").next().unwrap();
    let mut routes = BTreeSet::new();
    for (at, part) in router.split(".route(").enumerate().skip(1) {
        let inner = part.split('"').nth(1).unwrap();
        let prefix = if router.split(".route(").take(at).any(|p| p.contains(".nest(\"/v1\"")) {
            ""
        } else {
            "/v1"
        };
        for method in ["get", "post", "delete", "put", "patch", "any"] {
            let code = part.split(".nest(").next().unwrap();
            if code.contains(&format!(" {method}(")) || code.contains(&format!(".{method}(")) {
                routes.insert(format!("{method} {prefix}{inner}"));
            }
        }
    }
    routes
}

#[test]
fn every_route_is_described_and_everything_described_is_routed() {
    let described: BTreeSet<String> = OPERATIONS
        .iter()
        .map(|operation| format!("{} {}", operation.method, operation.path))
        .collect();
    assert!(described.len() > 15, "the table was read");
    assert_eq!(described, routed());
    assert_eq!(described.len(), OPERATIONS.len(), "each stands there once");
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
