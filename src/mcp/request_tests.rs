use pretty_assertions::assert_eq;

use super::*;

fn parse(json: &str) -> Result<McpTool, Wrong> {
    McpTool::parse(&Raw::parse(json).unwrap())
}

#[test]
fn a_tool_is_read() {
    let tool = parse(
        r#"{"type":"mcp","server_label":"dice","server_url":"https://dice.example/mcp?x=1","authorization":"tok",
            "headers":{"X-Key":"k"},"server_description":"rolls","allowed_tools":["roll"],"require_approval":"never",
            "defer_loading":true,"unknown":[1]}"#,
    )
    .unwrap();
    assert_eq!(tool.server_label, "dice");
    assert_eq!(tool.server_url.unwrap().as_str(), "https://dice.example/mcp?x=1");
    assert_eq!(tool.authorization.unwrap().expose(), "tok");
    assert_eq!((&*tool.headers[0].0, tool.headers[0].1.expose()), ("X-Key", "k"));
    assert_eq!(tool.server_description.as_deref(), Some("rolls"));
    assert!(tool.allowed_tools.is_some() && tool.require_approval.is_some());
    let least =
        parse(r#"{"server_label":"s","server_url":null,"headers":null,"allowed_tools":null}"#)
            .unwrap();
    assert!(
        least.server_url.is_none() && least.allowed_tools.is_none() && least.headers.is_empty()
    );
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (json, path, says) in [
        (r#"{"server_url":"https://a"}"#, "server_label", "a label is needed"),
        (r#"{"server_label":" "}"#, "server_label", "a label is needed"),
        (r#"{"server_label":7}"#, "server_label", "expected a text"),
        (r#"{"server_label":"a\u0000"}"#, "server_label", "control character"),
        (r#"{"server_label":"s","server_url":"dice.example"}"#, "server_url", "no address"),
        (r#"{"server_label":"s","server_url":"file:///etc/passwd"}"#, "server_url", "`file`"),
        (r#"{"server_label":"s","server_url":1}"#, "server_url", "expected a text"),
        (
            r#"{"server_label":"s","server_url":"https://a","connector_id":"c"}"#,
            "connector_id",
            "one way only",
        ),
        (r#"{"server_label":"s","tunnel_id":"t"}"#, "tunnel_id", "not supported"),
        (r#"{"server_label":"s","authorization":""}"#, "authorization", "empty"),
        (r#"{"server_label":"s","authorization":"a\nb"}"#, "authorization", "cannot be sent"),
        (r#"{"server_label":"s","headers":["x"]}"#, "headers", "object of texts"),
        (r#"{"server_label":"s","headers":{"X-Key":1}}"#, "headers.X-Key", "expected a text"),
        (r#"{"server_label":"s","headers":{"X Key":"v"}}"#, "headers.X Key", "name"),
        (
            r#"{"server_label":"s","headers":{"X-Key":"a\nb"}}"#,
            "headers.X-Key",
            "control character",
        ),
        (
            r#"{"server_label":"s","allowed_tools":{"tool_names":1}}"#,
            "allowed_tools.tool_names",
            "expected a list",
        ),
        (
            r#"{"server_label":"s","require_approval":{"never":{"tool_names":1}}}"#,
            "require_approval.never.tool_names",
            "expected a list",
        ),
    ] {
        let wrong = parse(json).unwrap_err();
        assert_eq!(wrong.path, path, "{json}: {wrong}");
        assert!(wrong.message.contains(says), "{json}: {wrong}");
    }
    let error =
        parse(r#"{"server_label":"s","authorization":""}"#).unwrap_err().into_error("tools[2]");
    assert_eq!(error.param.as_deref(), Some("tools[2].authorization"));
    assert!(error.message.starts_with("Invalid value for `tools[2].authorization`: "));
    let many: serde_json::Map<String, Value> =
        (0..65).map(|n| (format!("x-{n}"), "v".into())).collect();
    let json = serde_json::json!({ "server_label": "s", "headers": many }).to_string();
    assert_eq!(parse(&json).unwrap_err().path, "headers");
}

#[test]
fn no_sentence_and_no_debug_output_holds_a_secret() {
    for json in [
        r#"{"server_label":"s","authorization":"hunter2\n"}"#,
        r#"{"server_label":"s","headers":{"x":"hunter2\n"}}"#,
        r#"{"server_label":"s","server_url":"https://u:hunter2@"}"#,
    ] {
        let wrong = parse(json).map_or_else(|wrong| wrong.to_string(), |tool| format!("{tool:?}"));
        assert!(!wrong.contains("hunter2"), "{wrong}");
    }
    let tool = parse(r#"{"server_label":"s","authorization":"hunter2","headers":{"x":"hunter2"}}"#)
        .unwrap();
    assert!(!format!("{tool:?}").contains("hunter2"));
}

#[test]
fn the_echo_holds_no_secret_and_all_else() {
    let raw = Raw::parse(
        r#"{"type":"mcp","server_label":"s","authorization":"tok","headers":{"x":"y"},"z":1.0}"#,
    )
    .unwrap();
    assert_eq!(
        McpTool::echo(&raw).json(),
        r#"{"type":"mcp","server_label":"s","headers":null,"z":1.0}"#
    );
    let raw = Raw::parse(r#"{"server_label":"s"}"#).unwrap();
    assert_eq!(McpTool::echo(&raw).json(), r#"{"server_label":"s","headers":null}"#);
}
