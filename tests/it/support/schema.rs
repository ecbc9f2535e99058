//! Checks bodies and events against the published schema, with the relaxations that `tests/cases/schema_check.py --relaxed` lists.
//!
//! An alternative whose branches all have a constant `type` becomes a choice by that type, so that an error names the field that is wrong
//! and not every branch that did not fit.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

/// Where a list of tools or a choice of one is echoed, types that the schema does not know are let through.
const UNKNOWN_TYPES_PASS: [&str; 2] = ["Tool", "ToolChoiceParam"];

/// What the schema says and does not mean, or means and we do not check.
const NOT_CHECKED: [&str; 12] = [
    "nullable",
    "discriminator",
    "description",
    "example",
    "examples",
    "title",
    "default",
    "format",
    "pattern",
    "deprecated",
    "$recursiveAnchor",
    "$recursiveRef",
];

static EVENT: LazyLock<Validator> = LazyLock::new(|| validator("ResponseStreamEvent"));
static RESPONSE: LazyLock<Validator> = LazyLock::new(|| validator("Response"));
static ITEMS: LazyLock<Validator> = LazyLock::new(|| validator("ResponseItemList"));
static ERROR: LazyLock<Validator> = LazyLock::new(|| jsonschema::validator_for(&error()).unwrap());
static DEFINITIONS: LazyLock<Map<String, Value>> = LazyLock::new(definitions);

/// Fails the test if an event is not as published.
pub(crate) fn check_event(event: &Value) {
    let begins = event["type"] == "response.output_item.added";
    if begins && event["item"]["type"] == "web_search_call" {
        // Nothing is known of it yet.
        assert_eq!(event["item"].get("action"), None);
        let mut known = event.clone();
        known["item"]["action"] = json!({ "type": "search", "query": "" });
        refuse(&EVENT, &known);
    } else {
        refuse(&EVENT, event);
    }
}

/// Fails the test if the body of an error has not the one form.
pub(crate) fn check_error(body: &Value) {
    refuse(&ERROR, body);
}

/// Fails the test if a body is not as published.
pub(crate) fn check(name: &str, body: &Value) {
    let validator = match name {
        "Response" => &RESPONSE,
        "ResponseItemList" => &ITEMS,
        other => panic!("no validator for {other}"),
    };
    refuse(validator, body);
}

/// The envelope of errors, in which all four keys are always there; this part of the published file is not kept here.
fn error() -> Value {
    let text = json!({ "type": "string", "minLength": 1 });
    let or_null = json!({ "type": ["string", "null"], "minLength": 1 });
    json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": { "message": text, "type": text, "param": or_null, "code": or_null },
            "additionalProperties": false,
        } },
        "additionalProperties": false,
    })
}

fn refuse(validator: &Validator, instance: &Value) {
    let errors: Vec<String> = validator
        .iter_errors(instance)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}\nin {instance:#}");
}

fn validator(name: &str) -> Validator {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": format!("#/$defs/{name}"),
        "$defs": &*DEFINITIONS,
    });
    jsonschema::validator_for(&schema).unwrap()
}

/// All named schemas, relaxed.
fn definitions() -> Map<String, Value> {
    let text = include_str!("../../schemas/openai-openapi.json");
    let document: Value = serde_json::from_str(text).unwrap();
    let published = document["components"]["schemas"].as_object().unwrap();
    let relaxing = Relaxing { published };
    let mut relaxed: Map<String, Value> = published
        .iter()
        .map(|(name, schema)| {
            let strict = !UNKNOWN_TYPES_PASS.contains(&name.as_str());
            (name.clone(), relaxing.relaxed(schema, strict))
        })
        .collect();
    relaxed["ResponseUsage"]["properties"]["input_tokens_details"]["required"] =
        json!(["cached_tokens"]);
    relaxed["ResponseErrorCode"] = json!({ "type": "string", "minLength": 1 });
    for (name, fields) in [
        ("OutputTextContent", &["logprobs"][..]),
        ("ResponseTextDeltaEvent", &["logprobs"]),
        ("ResponseTextDoneEvent", &["logprobs"]),
        ("CodeInterpreterTool", &["container"]),
        ("MCPListToolsTool", &["annotations", "description"]),
    ] {
        not_required(&mut relaxed[name], fields);
    }
    for name in ["MCPToolCall", "MCPListTools"] {
        relaxed[name]["properties"]["error"] = json!({});
    }
    relaxed
}

fn not_required(schema: &mut Value, fields: &[&str]) {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|field| !fields.iter().any(|name| field == name));
    }
    for part in schema.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
        not_required(part, fields);
    }
}

struct Relaxing<'a> {
    published: &'a Map<String, Value>,
}

impl Relaxing<'_> {
    /// A schema of `OpenAPI` 3.0 as one of JSON Schema, relaxed. Types it does not know are refused when `strict`.
    fn relaxed(&self, schema: &Value, strict: bool) -> Value {
        let Value::Object(fields) = schema else { return schema.clone() };
        let nullable = schema["nullable"] == true;
        if let Some(name) = fields.get("$ref").map(name_of) {
            let link = json!({ "$ref": format!("#/$defs/{name}") });
            return if nullable { or_null(&link) } else { link };
        }
        let mut out = Map::new();
        for (key, value) in fields {
            match key.as_str() {
                "additionalProperties" if *value == false => (),
                "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => (),
                known if NOT_CHECKED.contains(&known) || known.starts_with("x-") => (),
                "properties" => {
                    out.insert(key.clone(), self.properties(value, &schema["required"]));
                }
                "oneOf" | "anyOf" => self.alternative(schema, value, strict, &mut out),
                "allOf" => {
                    out.insert(key.clone(), self.all(value));
                }
                "items" | "additionalProperties" | "not" => {
                    out.insert(key.clone(), self.relaxed(value, true));
                }
                "required" => {
                    // One schema lists its fields twice.
                    let mut fields: Vec<&Value> = Vec::new();
                    for field in value.as_array().unwrap() {
                        if !fields.contains(&field) {
                            fields.push(field);
                        }
                    }
                    out.insert(key.clone(), json!(fields));
                }
                _ => {
                    out.insert(key.clone(), value.clone());
                }
            }
        }
        if nullable { or_null(&Value::Object(out)) } else { Value::Object(out) }
    }

    fn all(&self, schemas: &Value) -> Value {
        schemas.as_array().unwrap().iter().map(|schema| self.relaxed(schema, true)).collect()
    }

    /// `null` stands for what is absent.
    fn properties(&self, properties: &Value, required: &Value) -> Value {
        let required = required.as_array().cloned().unwrap_or_default();
        let relaxed = properties.as_object().unwrap().iter().map(|(name, schema)| {
            let schema = self.relaxed(schema, true);
            let needed = required.iter().any(|field| field == name);
            (name.clone(), if needed { schema } else { or_null(&schema) })
        });
        Value::Object(relaxed.collect())
    }

    /// One of several: by `type` where that tells, else any that fits.
    fn alternative(
        &self,
        schema: &Value,
        branches: &Value,
        strict: bool,
        out: &mut Map<String, Value>,
    ) {
        let property = schema["discriminator"]["propertyName"].as_str().unwrap_or("type");
        let (mut choices, mut others, mut words) = (Vec::new(), Vec::new(), Vec::new());
        let mut tells = branches.as_array().unwrap().len() > 1;
        for branch in branches.as_array().unwrap() {
            let constants = self.constants(branch, property);
            let relaxed = self.relaxed(branch, true);
            if constants.is_empty() {
                let kind = self.followed(branch)["type"].as_str();
                tells &= kind.is_some_and(|kind| kind != "object");
                others.push(relaxed);
                continue;
            }
            let new: Vec<Value> =
                constants.into_iter().filter(|word| !words.contains(word)).collect();
            let is = json!({ "required": [property], "properties": { property: { "enum": new } } });
            choices.push(json!({ "if": is, "then": relaxed }));
            words.extend(new);
        }
        if !tells || words.len() < 2 {
            out.insert("anyOf".to_owned(), self.all(branches));
            return;
        }
        let known = if strict {
            json!({ "required": [property], "properties": { property: { "enum": words } } })
        } else {
            json!({})
        };
        let mut object = json!({ "type": "object", "allOf": choices });
        object.as_object_mut().unwrap().extend(known.as_object().unwrap().clone());
        if others.is_empty() {
            out.extend(object.as_object().unwrap().clone());
        } else {
            others.push(object);
            out.insert("anyOf".to_owned(), others.into());
        }
    }

    /// The words that a field of this schema may have.
    fn constants(&self, schema: &Value, property: &str) -> Vec<Value> {
        let schema = self.followed(schema);
        let field = self.followed(&schema["properties"][property]);
        if let Some(word) = field.get("const") {
            return vec![word.clone()];
        }
        if let Some(words) = field["enum"].as_array() {
            return words.clone();
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            let words = self.constants(part, property);
            if !words.is_empty() {
                return words;
            }
        }
        let branches = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
        let words: Vec<Vec<Value>> =
            branches.into_iter().flatten().map(|branch| self.constants(branch, property)).collect();
        if words.iter().any(Vec::is_empty) { Vec::new() } else { words.concat() }
    }

    fn followed<'s>(&'s self, mut schema: &'s Value) -> &'s Value {
        while let Some(link) = schema.get("$ref") {
            schema = &self.published[name_of(link)];
        }
        schema
    }
}

fn name_of(link: &Value) -> &str {
    link.as_str().unwrap().rsplit('/').next().unwrap()
}

fn or_null(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

#[test]
fn a_wrong_event_is_refused() {
    let delta = json!({
        "type": "response.output_text.delta", "sequence_number": 1, "item_id": "msg_1", "output_index": 0,
        "content_index": 0, "delta": "a", "logprobs": [],
    });
    assert!(EVENT.is_valid(&delta));
    for (field, wrong) in [
        ("type", json!("response.text.delta")),
        ("delta", json!(1)),
        ("output_index", json!("0")),
        ("item_id", Value::Null),
    ] {
        let mut event = delta.clone();
        event[field] = wrong;
        assert!(!EVENT.is_valid(&event), "{field}");
        event.as_object_mut().unwrap().remove(field);
        assert!(!EVENT.is_valid(&event), "{field}");
    }
}
