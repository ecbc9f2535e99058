//! One operation, read: its parameters, its body, and what the model is told.

use std::collections::HashSet;

use reqwest::header::HeaderValue;
use serde_json::{Map, Value, json};
use url::Url;

use super::{
    fault::SchemaFault,
    find::Found,
    operation::{BODY, Body, Operation},
    parameter::{self, Parameter, Place, is_json, shortening},
    refs::{Source, shortened},
    schema,
};

/// How many parameters an operation may have.
const MAX_PARAMETERS: usize = 200;

/// The longest description of a tool, in bytes.
pub(super) const MAX_DESCRIPTION: usize = 2000;

/// Reads an operation, whose paths begin at `base`.
pub(super) fn read<'a>(
    found: Found<'a>,
    base: Url,
    source: &Source<'a>,
) -> Result<Operation, SchemaFault> {
    let variables = variables(found.path)?;
    let (mut inputs, mut notes) = parameters(&found, source)?;
    for variable in &variables {
        if !inputs.iter().any(|input| input.place == Place::Path && input.name == *variable) {
            return Err(SchemaFault::at(
                "parameters",
                format!(
                    "The path names `{{{0}}}`, and no parameter `{0}` with `in: path` says what it is.",
                    shortened(variable)
                ),
            ));
        }
    }
    inputs.retain(|input| {
        let is_used = input.place != Place::Path || variables.contains(&input.name.as_str());
        if !is_used {
            notes.push(format!(
                "The parameter `{}` is not offered: the path does not name it.",
                shortened(&input.name)
            ));
        }
        is_used
    });
    let body = found
        .fields
        .get("requestBody")
        .map(|body| read_body(body, source, &mut notes))
        .transpose()
        .map_err(|fault| fault.under("requestBody"))?;
    name_arguments(&mut inputs, body.is_some());

    let mut properties = Map::new();
    let mut required = Vec::new();
    for input in &inputs {
        properties.insert(input.argument.clone(), input.schema.clone());
        required.extend(input.required.then(|| Value::from(input.argument.as_str())));
    }
    let body = body.map(|(body, schema)| {
        properties.insert(BODY.to_owned(), schema);
        required.extend(body.required.then(|| Value::from(BODY)));
        body
    });
    let mut parameters = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        parameters["required"] = required.into();
    }
    Ok(Operation {
        description: description(&found),
        name: found.name,
        operation_id: found.id.map(str::to_owned),
        parameters,
        method: found.method,
        template: found.path.to_owned(),
        base,
        notes,
        inputs,
        body,
    })
}

/// The names in the braces of a path.
fn variables(path: &str) -> Result<Vec<&str>, SchemaFault> {
    if !path.starts_with('/') {
        return Err(SchemaFault::here("A path begins with `/`."));
    }
    if path.contains(['?', '#']) {
        return Err(SchemaFault::here(
            "A path holds no `?` and no `#`. Declare query parameters instead.",
        ));
    }
    if path.split('/').any(|step| matches!(step, "." | "..")) {
        return Err(SchemaFault::here("A path holds no `.` and no `..`."));
    }
    let mut names = Vec::new();
    let mut rest = path;
    while let Some((_, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .ok_or_else(|| SchemaFault::here("A `{` in the path is never closed."))?;
        names.push(name);
        rest = after;
    }
    Ok(names)
}

/// The parameters of the path and of the operation, whose own override those of the path.
fn parameters<'a>(
    found: &Found<'a>,
    source: &Source<'a>,
) -> Result<(Vec<Parameter>, Vec<String>), SchemaFault> {
    let mut seen = HashSet::new();
    let mut inputs = Vec::new();
    let mut notes = Vec::new();
    let own = listed(found.fields)?;
    let of_path = listed(found.item)?;
    if own.len() + of_path.len() > MAX_PARAMETERS {
        let message = format!("There are more than {MAX_PARAMETERS} parameters.");
        return Err(SchemaFault::at("parameters", message));
    }
    let mut own_identities = HashSet::new();
    for (at, value) in own.iter().enumerate() {
        let (name, place, _) =
            parameter::identity(value, source).map_err(|fault| at_parameter(fault, at))?;
        if !own_identities.insert((name, place)) {
            let message = format!("The parameter `{}` stands here twice.", shortened(name));
            return Err(at_parameter(SchemaFault::here(message), at));
        }
    }
    let all = of_path.iter().enumerate().chain(own.iter().enumerate());
    for (index, (at, value)) in all.enumerate() {
        let (name, place, fields) =
            parameter::identity(value, source).map_err(|fault| at_parameter(fault, at))?;
        let is_overridden = index < of_path.len() && own_identities.contains(&(name, place));
        if is_overridden || !seen.insert((name, place)) {
            continue;
        }
        let read = parameter::read(name, place, fields, source, &mut notes);
        inputs.extend(read.map_err(|fault| at_parameter(fault, at))?);
    }
    Ok((inputs, notes))
}

fn at_parameter(fault: SchemaFault, at: usize) -> SchemaFault {
    fault.under(&format!("[{at}]")).under("parameters")
}

fn listed(fields: &Map<String, Value>) -> Result<&[Value], SchemaFault> {
    match fields.get("parameters") {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(entries)) => Ok(entries),
        Some(_) => Err(SchemaFault::at("parameters", "A list of parameters is expected here.")),
    }
}

fn read_body<'a>(
    body: &'a Value,
    source: &Source<'a>,
    notes: &mut Vec<String>,
) -> Result<(Body, Value), SchemaFault> {
    let fields = source.object(body)?;
    let content = fields.get("content").and_then(Value::as_object);
    let kinds = content.into_iter().flatten();
    let any = |kind: &str| matches!(kind, "*/*" | "application/*");
    let json = kinds
        .clone()
        .find(|(kind, _)| is_json(kind))
        .or_else(|| kinds.clone().find(|(kind, _)| any(kind)));
    let Some((kind, media)) = json else {
        let offered: Vec<&str> = kinds.map(|(kind, _)| shortened(kind)).take(5).collect();
        return Err(SchemaFault::at(
            "content",
            format!(
                "Only JSON bodies are sent (`application/json`), and this one is {}. Leave the operation out with `allowed_operations`.",
                if offered.is_empty() {
                    "of no type".to_owned()
                } else {
                    format!("`{}`", offered.join("`, `"))
                }
            ),
        ));
    };
    let mut schema = match media.get("schema") {
        Some(schema) => {
            let sent = schema::sent(schema, source).map_err(|fault| {
                let media = format!("[\"{}\"]", shortened(kind));
                fault.under("schema").under(&media).under("content")
            })?;
            notes.extend(sent.is_shortened.then(|| shortening(BODY)));
            sent.schema
        }
        None => json!({}),
    };
    if let (Value::Object(schema), Some(Value::String(said))) =
        (&mut schema, fields.get("description"))
        && !schema.contains_key("description")
    {
        schema.insert("description".to_owned(), source.copied(&Value::from(said.as_str()))?);
    }
    let content_type =
        Some(kind).filter(|kind| !any(kind)).and_then(|kind| HeaderValue::from_str(kind).ok());
    let content_type = content_type.unwrap_or(HeaderValue::from_static("application/json"));
    Ok((
        Body { required: fields.get("required") == Some(&Value::Bool(true)), content_type },
        schema,
    ))
}

/// Arguments are called like their parameters; where two are called alike, the later ones are told apart by their place.
fn name_arguments(inputs: &mut [Parameter], has_body: bool) {
    let mut taken: HashSet<String> = HashSet::new();
    taken.extend(has_body.then(|| BODY.to_owned()));
    for input in inputs {
        let mut name = input.name.clone();
        while !taken.insert(name.clone()) {
            name = format!("{}_{name}", input.place.word());
        }
        input.argument = name;
    }
}

fn description(found: &Found<'_>) -> String {
    let text = |fields: &Map<String, Value>, key: &str| {
        fields
            .get(key)
            .and_then(Value::as_str)
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    let (summary, more) = (text(found.fields, "summary"), text(found.fields, "description"));
    let mut said = match (summary, more) {
        (Some(summary), Some(more)) if summary != more => format!("{summary}\n\n{more}"),
        (Some(one), _) | (None, Some(one)) => one,
        (None, None) => text(found.item, "summary")
            .or_else(|| text(found.item, "description"))
            .unwrap_or_else(|| format!("{} {}", found.method, found.path)),
    };
    if found.fields.get("deprecated") == Some(&Value::Bool(true)) {
        said = format!("Deprecated. {said}");
    }
    if said.len() > MAX_DESCRIPTION {
        said.truncate(said.floor_char_boundary(MAX_DESCRIPTION));
        said.push('…');
    }
    said
}
