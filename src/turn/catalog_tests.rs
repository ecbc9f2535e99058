use serde_json::json;

use super::*;
use crate::turn::script::hosted_tool;

fn catalog(
    tools: &serde_json::Value,
    choice: &serde_json::Value,
) -> Result<Catalog, (String, String)> {
    let tools: Vec<Tool> = serde_json::from_str(&tools.to_string()).unwrap();
    let choice: ToolChoice = serde_json::from_str(&choice.to_string()).unwrap();
    let hosted = vec![
        hosted_tool("antiphon", "clock"),
        hosted_tool("docs", "search"),
        hosted_tool("web", "search"),
        hosted_tool("web", "open"),
    ];
    Catalog::new(&tools, &choice, hosted, &[])
}

fn offered(tools: &serde_json::Value) -> Vec<String> {
    let catalog = catalog(tools, &json!("auto")).unwrap();
    catalog.offered().iter().map(|tool| tool.name.clone()).collect()
}

fn function(name: &str) -> serde_json::Value {
    json!({ "type": "function", "name": name })
}

#[test]
fn names_are_such_as_every_backend_takes() {
    let long = "x".repeat(70);
    let names = offered(&json!([
        function("plain-1_A"), function("a.b"), function("a_b"), function("a_b"), function(&long),
        function(&format!("{long}y")),
        { "type": "namespace", "name": "crm", "tools": [function("find"), { "type": "custom", "name": "note" }] },
        { "type": "namespace", "name": "erp__", "tools": [function("find")] },
        { "type": "shell" }, { "type": "future_tool", "x": 1 },
    ]));
    let stem = "x".repeat(55);
    let digest = |name: &str| name.strip_prefix(&format!("{stem}_")).map(str::len);
    assert_eq!(names[..4], ["plain-1_A", "a_b", "a_b_2", "a_b_3"]);
    assert_eq!((digest(&names[4]), digest(&names[5])), (Some(8), Some(8)));
    assert_ne!(names[4], names[5]);
    let rest = [
        "crm__find",
        "crm__note",
        "erp__find",
        "shell",
        "clock",
        "search",
        "mcp_web_search",
        "open",
    ];
    assert_eq!(names[6..], rest);
}

#[test]
fn names_are_mapped_back_exactly() {
    let long = "x".repeat(70);
    let tools = json!([
        function("a.b"), function("a_b"), function(&long),
        { "type": "namespace", "name": "crm", "tools": [function("a.b")] },
    ]);
    let catalog = catalog(&tools, &json!("auto")).unwrap();
    for (namespace, name) in [(None, "a.b"), (None, "a_b"), (None, &*long), (Some("crm"), "a.b")] {
        let model = catalog.name_for(namespace, name);
        assert!(model.len() <= 64, "{model}");
        let target =
            Target::Function { name: name.to_owned(), namespace: namespace.map(str::to_owned) };
        assert_eq!(catalog.target(&model), target);
    }
    for (label, name) in [("antiphon", "clock"), ("docs", "search"), ("web", "search")] {
        let model = match label {
            "antiphon" => catalog.own_name(name),
            label => catalog.name_for(Some(label), name),
        };
        let Target::Hosted(target) = catalog.target(&model) else { panic!("{model}") };
        assert_eq!((&*target.tool.label, &*target.tool.name), (label, name));
    }
    // What is no longer offered keeps a name that a backend takes.
    assert_eq!(catalog.name_for(Some("gone"), "a.b"), "gone__a_b");
    assert_eq!(catalog.own_name("gone"), "gone");
}

#[test]
fn a_function_named_like_a_tool_type_stays_itself() {
    for tools in [
        json!([function("shell"), { "type": "shell" }]),
        json!([{ "type": "shell" }, function("shell")]),
    ] {
        let catalog = catalog(&tools, &json!("auto")).unwrap();
        let function = Target::Function { name: "shell".to_owned(), namespace: None };
        assert_eq!(catalog.target(&catalog.name_for(None, "shell")), function);
        let kind = Target::Client(ClientKind::Shell);
        assert_eq!(catalog.target(&catalog.name_of_kind(ClientKind::Shell)), kind);
    }
}

#[test]
fn many_tools_of_one_name_stay_apart_and_short() {
    let tools: Vec<serde_json::Value> = (0..1100).map(|_| function(&"y".repeat(64))).collect();
    let names = offered(&json!(tools));
    let distinct: std::collections::HashSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len());
    assert!(names.iter().all(|name| name.len() <= 64));
}

#[test]
fn schemas_are_object_schemas_and_whole_ones_stay_as_they_came() {
    for (given, sent) in [
        (None, r#"{"type":"object","properties":{}}"#),
        (Some("null"), r#"{"type":"object","properties":{}}"#),
        (Some("{}"), r#"{"type":"object","properties":{}}"#),
        (Some(r#"{"type":"object"}"#), r#"{"type":"object","properties":{}}"#),
        (Some(r#"{"properties":{"a":{}}}"#), r#"{"properties":{"a":{}},"type":"object"}"#),
        (
            Some(r#"{ "type":"object", "properties":{"b":{"minimum":1.0},"a":{}} }"#),
            r#"{ "type":"object", "properties":{"b":{"minimum":1.0},"a":{}} }"#,
        ),
        (Some("[1]"), r#"{"type":"object","properties":{}}"#),
    ] {
        let parameters = given.map(|json| format!(",\"parameters\":{json}")).unwrap_or_default();
        let tool = format!(r#"[{{"type":"function","name":"f"{parameters}}}]"#);
        let tools: Vec<Tool> = serde_json::from_str(&tool).unwrap();
        let catalog = Catalog::new(&tools, &ToolChoice::default(), Vec::new(), &[]).unwrap();
        assert_eq!(catalog.offered()[0].parameters.json(), sent);
    }
}

#[test]
fn a_custom_tool_tells_its_grammar_and_only_what_there_is() {
    let grammar = json!({ "type": "grammar", "syntax": "lark", "definition": "start: /.+/s" });
    let told = |tool: serde_json::Value| {
        let catalog = catalog(&json!([tool]), &json!("auto")).unwrap();
        let OfferedTool { description, grammar, .. } = catalog.offered()[0].clone();
        (description, grammar.map(|grammar| grammar.json().to_owned()))
    };
    let (plain, none) = told(json!({ "type": "custom", "name": "c" }));
    assert_eq!((plain, none), (None, None));
    let (text, given) =
        told(json!({ "type": "custom", "name": "c", "description": "Edits.", "format": grammar }));
    assert!(text.unwrap().starts_with("Edits.\n\nThe input must follow this grammar: {"));
    assert_eq!(given, Some(grammar.to_string()));
    let (text, _) = told(json!({ "type": "custom", "name": "c", "format": grammar }));
    assert!(text.unwrap().starts_with("The input must"));
}

#[test]
fn a_namespace_holds_only_functions_and_custom_tools() {
    let tools = json!([function("f"), { "type": "namespace", "name": "n", "tools": [{ "type": "shell" }] }]);
    let (path, why) = catalog(&tools, &json!("auto")).unwrap_err();
    assert_eq!(path, "tools[1]");
    assert_eq!(why, "A namespace holds functions and custom tools, not `shell`.");
}

#[test]
fn choices_in_all_their_forms() {
    let tools = json!([
        function("a.b"), { "type": "custom", "name": "patch" },
        { "type": "namespace", "name": "crm", "tools": [function("find"), { "type": "custom", "name": "note" }] },
        { "type": "namespace", "name": "erp", "tools": [function("find")] },
        { "type": "shell" }, { "type": "apply_patch" }, { "type": "computer_use_preview" },
    ]);
    let named = |name: &str| FirstChoice::Named(name.to_owned());
    for (choice, first) in [
        (json!("auto"), FirstChoice::Auto),
        (json!("none"), FirstChoice::None),
        (json!("required"), FirstChoice::Required),
        (json!({ "type": "function", "name": "a.b" }), named("a_b")),
        (json!({ "type": "function", "name": "find", "namespace": "erp" }), named("erp__find")),
        (json!({ "type": "function", "name": "find" }), named("crm__find")),
        (json!({ "type": "custom", "name": "patch" }), named("patch")),
        (json!({ "type": "custom", "name": "note" }), named("crm__note")),
        (json!({ "type": "shell" }), named("shell")),
        (json!({ "type": "apply_patch" }), named("apply_patch")),
        (json!({ "type": "computer" }), named("computer")),
        (
            json!({ "type": "mcp", "server_label": "web", "name": "search" }),
            named("mcp_web_search"),
        ),
        (json!({ "type": "mcp", "server_label": "docs" }), named("search")),
        (json!({ "type": "mcp", "server_label": "web" }), FirstChoice::Required),
        (json!({ "type": "allowed_tools", "tools": [function("a.b")] }), FirstChoice::Auto),
        (
            json!({ "type": "allowed_tools", "mode": "required", "tools": [function("a.b")] }),
            FirstChoice::Required,
        ),
    ] {
        let catalog = catalog(&tools, &choice).unwrap();
        assert_eq!(*catalog.choice(), first, "{choice}");
    }
}

#[test]
fn choices_of_what_there_is_not_are_refused() {
    let tools = json!([function("f")]);
    for (choice, name) in [
        (json!({ "type": "function", "name": "g" }), "g"),
        (json!({ "type": "function", "name": "f", "namespace": "" }), ""),
        (json!({ "type": "custom", "name": "g" }), "g"),
        (json!({ "type": "shell" }), "shell"),
        (json!({ "type": "file_search" }), "file_search"),
        (json!({ "type": "mcp", "server_label": "gone" }), "mcp"),
        (
            json!({ "type": "allowed_tools", "mode": "auto", "tools": [function("f"), function("g")] }),
            "g",
        ),
        (
            json!({ "type": "allowed_tools", "tools": [{ "type": "mcp", "server_label": "gone" }] }),
            "gone",
        ),
    ] {
        let refused = catalog(&tools, &choice);
        if name.is_empty() {
            // The name alone says which.
            assert!(refused.is_ok());
            continue;
        }
        let (path, why) = refused.unwrap_err();
        assert_eq!(path, "tool_choice");
        assert_eq!(
            why,
            format!(
                "Tool choice `{name}` not found in `tools`. Name a tool that the request offers."
            )
        );
    }
    let (path, why) = Catalog::new(
        &[],
        &ToolChoice::Mode(crate::protocol::tool::ToolMode::Required),
        Vec::new(),
        &[],
    )
    .unwrap_err();
    assert_eq!(
        (&*path, &*why),
        ("tool_choice", "`tool_choice` is `required`, but `tools` offers none.")
    );
}

#[test]
fn allowed_tools_are_all_that_is_offered_and_all_that_is_called() {
    let tools = json!([function("f"), function("g"), { "type": "shell" }]);
    let choice = json!({ "type": "allowed_tools", "mode": "auto", "tools": [
        function("f"), { "type": "shell" }, { "type": "mcp", "server_label": "web" },
        { "type": "mcp", "server_label": "docs", "name": "search" },
    ] });
    let catalog = catalog(&tools, &choice).unwrap();
    let names: Vec<&str> = catalog.offered().iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["f", "shell", "search", "mcp_web_search", "open"]);
    for name in ["g", "clock", "nobody"] {
        assert!(matches!(catalog.target(name), Target::Refused(_)), "{name}");
    }
    for name in names {
        assert!(!matches!(catalog.target(name), Target::Refused(_)), "{name}");
    }
}

#[test]
fn an_empty_catalog_says_that_there_is_nothing_to_call() {
    let Target::Refused(why) = Catalog::default().target("f") else { panic!() };
    assert_eq!(
        why,
        "There is no tool named `f`. No tool can be called here; answer with what you know."
    );
}
