//! The text of a document, JSON or YAML, read within bounds.

use serde_json::Value;

use super::fault::SchemaFault;

/// How deep a document in YAML may be nested: its reader takes much of the stack for every level. Real ones have some twenty.
const MAX_DEPTH: usize = 40;
/// How often nodes of a document in YAML may be repeated by aliases.
const MAX_REPLAYS: usize = 100_000;

/// Reads the text of a document. `limit` is in bytes.
///
/// YAML aliases are followed; what they repeat is bounded like the document itself.
pub fn read_document(text: &str, limit: usize) -> Result<Value, SchemaFault> {
    if text.len() > limit {
        return Err(too_large(limit));
    }
    let text = text.trim_start_matches('\u{feff}');
    let read = if text.trim_start().starts_with('{') {
        // JSON in almost every case; YAML may begin like that too.
        serde_json::from_str(text).map_err(|error| error.to_string()).or_else(|json_error| {
            read_yaml(text, limit).map_err(|_| format!("it is not JSON: {json_error}"))
        })
    } else {
        read_yaml(text, limit).map_err(|error| format!("it is neither JSON nor YAML: {error}"))
    };
    let document =
        read.map_err(|error| SchemaFault::here(format!("The schema cannot be read: {error}.")))?;
    if document.is_object() {
        Ok(document)
    } else {
        Err(SchemaFault::here("The schema must be an OpenAPI document, which is an object."))
    }
}

/// The fault of a document over the limit.
pub(super) fn too_large(limit: usize) -> SchemaFault {
    SchemaFault::here(format!(
        "The schema is larger than {limit} bytes. Leave out the operations that are not needed."
    ))
}

fn read_yaml(text: &str, limit: usize) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        with_snippet: false,
        // As YAML 1.2 has it: `no` is a text, and the code of a country.
        strict_booleans: true,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_documents: 1,
            max_total_scalar_bytes: limit,
            max_nodes: limit / 4,
            max_events: limit,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYS.min(limit / 4),
        },
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let mut words = error.to_string();
        words.truncate(words.floor_char_boundary(300));
        words.trim_end_matches('.').to_owned()
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    const LIMIT: usize = 100_000;

    #[test]
    fn json_and_yaml_read_alike() {
        let yaml = "openapi: 3.0.0\ninfo: {title: T, version: '1'}\npaths:\n  /a:\n    get:\n      responses:\n        200: {description: ok}\n        default: &d {description: no}\n        404: *d\n";
        let json = r#"{"openapi":"3.0.0","info":{"title":"T","version":"1"},"paths":{"/a":{"get":{"responses":{"200":{"description":"ok"},"default":{"description":"no"},"404":{"description":"no"}}}}}}"#;
        let read = read_document(yaml, LIMIT).unwrap();
        assert_eq!(read, read_document(json, LIMIT).unwrap());
        assert_eq!(read, read_document(&format!("\u{feff}\n{json}"), LIMIT).unwrap());
        assert_eq!(
            read_document("{openapi: 3.1.0, x: [1, 2.5, true, null, no]}", LIMIT).unwrap(),
            json!({"openapi": "3.1.0", "x": [1, 2.5, true, null, "no"]})
        );
        let order: Vec<&String> = read.as_object().unwrap().keys().collect();
        assert_eq!(order, ["openapi", "info", "paths"]);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let sentence = |text: &str| read_document(text, LIMIT).unwrap_err().sentence;
        assert_eq!(
            sentence("{\"openapi\": "),
            "The schema cannot be read: it is not JSON: EOF while parsing a value at line 1 column 12."
        );
        assert!(
            sentence("a: [1")
                .starts_with("The schema cannot be read: it is neither JSON nor YAML: ")
        );
        assert_eq!(
            sentence("just text"),
            "The schema must be an OpenAPI document, which is an object."
        );
        assert_eq!(
            read_document("openapi: 3.0.0", 5).unwrap_err().sentence,
            "The schema is larger than 5 bytes. Leave out the operations that are not needed."
        );
    }

    #[test]
    fn bombs_are_refused() {
        for (map, end) in [("{\"a\":", "}"), ("{a: ", "}")] {
            for levels in [95, 130, 5000] {
                let deep = format!("{}1{}", map.repeat(levels), end.repeat(levels));
                read_document(&format!("{{\"openapi\":\"3.1.0\",\"x\":{deep}}}"), LIMIT).ok();
                read_document(&format!("openapi: 3.1.0\nx: {deep}"), LIMIT).unwrap_err();
            }
        }
        let mut block = "openapi: 3.1.0\n".to_owned();
        for level in 0..400 {
            let _ = writeln!(block, "{}a:", " ".repeat(level));
        }
        read_document(&block, LIMIT).unwrap_err();
        let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
        for deep in [deep.clone(), format!("{{\"a\":{deep}}}"), format!("a: {deep}")] {
            read_document(&deep, LIMIT).unwrap_err();
        }
        let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
        for level in 1..9 {
            let inner = format!("*a{}, ", level - 1).repeat(9);
            _ = writeln!(laughs, "a{level}: &a{level} [{inner}]");
        }
        read_document(&laughs, LIMIT).unwrap_err();
    }
}
