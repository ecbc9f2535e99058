//! JSON schemas with what their references lead to in their place.

use serde_json::{Map, Value};

use super::{
    fault::SchemaFault,
    refs::{Source, weight},
};

/// How deep a schema may get: it must still be readable inside of a request to a model.
const MAX_DEPTH: usize = 90;

/// What a reference that leads back into itself becomes: anything, and a word on why.
const RECURSIVE: &str = "Nested like the object it is in.";

/// How many references are followed one inside of the other. When a schema gets too large or too deep with the first, the next is tried.
const LEVELS: [usize; 5] = [32, 4, 2, 1, 0];

/// Keys of a schema that hold plain data. A `$ref` in them means nothing.
pub(super) const DATA: [&str; 5] = ["example", "examples", "default", "enum", "const"];

/// Keys of a schema that say nothing about what fits.
const NOTES: [&str; 8] = [
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Keys of a schema that hold schemas by name.
pub(super) const NAMED: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// A schema without references.
#[derive(Debug)]
pub(super) struct Inlined {
    pub(super) schema: Value,
    /// Whether inner parts of it were left open, for it would be too large with them.
    pub(super) is_shortened: bool,
}

/// A JSON schema with what its references lead to in their place, of about `most` bytes at most. A reference that leads back into itself ends
/// there, and so do the inner ones of a schema that gets too large: they become a schema that takes more than it should.
pub(super) fn inlined(
    schema: &Value,
    source: &Source<'_>,
    most: usize,
) -> Result<Inlined, SchemaFault> {
    for levels in LEVELS {
        let mut inliner = Inliner { source, open: Vec::new(), levels, left: most, is_cut: false };
        match inliner.schema(schema, 0) {
            Ok(schema) => return Ok(Inlined { schema, is_shortened: inliner.is_cut }),
            Err(Stop::TooLarge) => (),
            Err(Stop::Fault(fault)) => return Err(fault),
        }
    }
    Err(SchemaFault::here(format!(
        "This schema has more than {most} bytes or {MAX_DEPTH} levels. Leave the operation out with `allowed_operations`."
    )))
}

/// Why a schema is not inlined.
enum Stop {
    TooLarge,
    Fault(SchemaFault),
}

impl Stop {
    fn under(self, part: &str) -> Self {
        match self {
            Self::TooLarge => Self::TooLarge,
            Self::Fault(fault) => Self::Fault(fault.under(part)),
        }
    }
}

impl From<SchemaFault> for Stop {
    fn from(fault: SchemaFault) -> Self {
        Self::Fault(fault)
    }
}

struct Inliner<'a> {
    source: &'a Source<'a>,
    /// The references that are being put in place.
    open: Vec<String>,
    /// How many of them there may be.
    levels: usize,
    /// How much room is left, in bytes.
    left: usize,
    /// Whether one was not followed because of that.
    is_cut: bool,
}

impl Inliner<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Result<Value, Stop> {
        if depth > MAX_DEPTH {
            return Err(Stop::TooLarge);
        }
        match schema {
            Value::Object(fields) => match fields.get("$ref") {
                Some(Value::String(reference)) => self.reference(reference, fields, depth),
                _ => self.fields(fields, depth).map(Value::Object),
            },
            Value::Array(entries) => {
                self.take(8)?;
                let entries = entries.iter().enumerate().map(|(at, entry)| {
                    self.schema(entry, depth + 1).map_err(|stop| stop.under(&format!("[{at}]")))
                });
                entries.collect::<Result<_, _>>().map(Value::Array)
            }
            data => self.data(data),
        }
    }

    fn reference(
        &mut self,
        reference: &str,
        fields: &Map<String, Value>,
        depth: usize,
    ) -> Result<Value, Stop> {
        if self.open.iter().any(|open| open == reference) {
            self.take(RECURSIVE.len())?;
            return Ok(serde_json::json!({ "description": RECURSIVE }));
        }
        let target = self.source.target(reference)?;
        let target = if self.open.len() < self.levels {
            self.open.push(reference.to_owned());
            let inlined = self.schema(target, depth + 1);
            self.open.pop();
            inlined?
        } else {
            self.is_cut = true;
            self.outline(target)?
        };
        Ok(joined(target, self.fields(fields, depth)?))
    }

    /// Of a schema only what it is for, and which kind of value it takes.
    fn outline(&mut self, target: &Value) -> Result<Value, Stop> {
        let mut out = Map::new();
        for word in ["type", "description"] {
            if let Some(value) = target.get(word) {
                out.insert(word.to_owned(), self.data(value)?);
            }
        }
        Ok(Value::Object(out))
    }

    /// The fields of a schema, all but a reference.
    fn fields(
        &mut self,
        fields: &Map<String, Value>,
        depth: usize,
    ) -> Result<Map<String, Value>, Stop> {
        let mut out = Map::new();
        for (name, value) in fields {
            if name == "$ref" && value.is_string() {
                continue;
            }
            self.take(name.len() + 8)?;
            let value = match value {
                Value::Object(named) if NAMED.contains(&name.as_str()) => {
                    self.named(named, depth + 1)
                }
                data if DATA.contains(&name.as_str()) => self.data(data),
                schema => self.schema(schema, depth + 1),
            };
            out.insert(name.clone(), value.map_err(|stop| stop.under(name))?);
        }
        Ok(out)
    }

    /// Schemas under names of their author's own, none of which is a word.
    fn named(&mut self, named: &Map<String, Value>, depth: usize) -> Result<Value, Stop> {
        let mut out = Map::new();
        for (name, schema) in named {
            self.take(name.len() + 8)?;
            let schema = self.schema(schema, depth + 1).map_err(|stop| stop.under(name))?;
            out.insert(name.clone(), schema);
        }
        Ok(Value::Object(out))
    }

    fn data(&mut self, data: &Value) -> Result<Value, Stop> {
        self.take(weight(data))?;
        Ok(data.clone())
    }

    fn take(&mut self, bytes: usize) -> Result<(), Stop> {
        self.left = self.left.checked_sub(bytes).ok_or(Stop::TooLarge)?;
        Ok(self.source.take(bytes)?)
    }
}

/// What a reference leads to, with what 3.1 lets stand beside it: notes are about this place, so they win; rules hold as well.
fn joined(target: Value, beside: Map<String, Value>) -> Value {
    let Value::Object(mut target) = target else { return target };
    let (notes, rules): (Map<_, _>, Map<_, _>) =
        beside.into_iter().partition(|(name, _)| NOTES.contains(&name.as_str()));
    if rules.iter().any(|(name, rule)| target.get(name).is_some_and(|theirs| theirs != rule)) {
        target = Map::from_iter([("allOf".to_owned(), Value::from(vec![target, rules]))]);
    } else {
        target.extend(rules);
    }
    target.extend(notes);
    Value::Object(target)
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({"components": {"schemas": {
            "Pet": {"type": "object", "properties": {
                "name": {"type": "string"},
                "owner": {"$ref": "#/components/schemas/Owner"},
            }},
            "Owner": {"type": "object", "properties": {
                "pets": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
            }},
            "a/b c": {"type": "integer"},
            "Loop": {"$ref": "#/components/schemas/Loop"},
            "Data": {"enum": [{"$ref": "#/not/followed"}]},
        }}})
    }

    fn inline(schema: &Value) -> Result<Value, SchemaFault> {
        let document = document();
        inlined(schema, &Source::new(&document, 10_000), 5000).map(|inlined| {
            assert!(!inlined.is_shortened);
            inlined.schema
        })
    }

    #[test]
    fn references_are_put_in_place_and_recursion_ends() {
        assert_eq!(
            inline(&json!({"$ref": "#/components/schemas/Pet", "description": "Mine."})).unwrap(),
            json!({"type": "object", "description": "Mine.", "properties": {
                "name": {"type": "string"},
                "owner": {"type": "object", "properties": {
                    "pets": {"type": "array", "items": {"description": RECURSIVE}},
                }},
            }})
        );
        assert_eq!(
            inline(&json!({"$ref": "#/components/schemas/a~1b%20c"})).unwrap(),
            json!({"type": "integer"})
        );
        assert_eq!(
            inline(&json!({"$ref": "#/components/schemas/Loop"})).unwrap(),
            json!({"description": RECURSIVE})
        );
        assert_eq!(
            inline(&json!({"$ref": "#/components/schemas/a~1b c", "type": "number", "minimum": 1, "title": "N"}))
                .unwrap(),
            json!({"allOf": [{"type": "integer"}, {"type": "number", "minimum": 1}], "title": "N"})
        );
        let data = inline(&json!({"$ref": "#/components/schemas/Data"})).unwrap();
        assert_eq!(data, json!({"enum": [{"$ref": "#/not/followed"}]}));
        // A property may be called like a word.
        let named = json!({"properties": {"$ref": {"type": "string"}, "example": {"$ref": "#/components/schemas/a~1b c"}}});
        assert_eq!(
            inline(&named).unwrap(),
            json!({"properties": {"$ref": {"type": "string"}, "example": {"type": "integer"}}})
        );
    }

    #[test]
    fn references_to_nowhere_are_named() {
        let fault = |reference: &str| inline(&json!({"items": [{"$ref": reference}]})).unwrap_err();
        assert_eq!(
            fault("#/components/schemas/Cat"),
            SchemaFault::at(
                "items[0].$ref",
                "`#/components/schemas/Cat` leads to nothing in this document."
            )
        );
        assert_eq!(
            fault("pets.yaml#/Cat").sentence,
            "`pets.yaml#/Cat` leads to another document. Bundle the schema into one document first."
        );
    }

    #[test]
    fn schemas_that_explode_are_shortened_or_refused() {
        let mut schemas = Map::new();
        for level in 0..40 {
            let next = json!({"$ref": format!("#/s/{}", level + 1)});
            let schema =
                json!({"type": "object", "properties": {"a": next, "b": next}, "description": "D"});
            schemas.insert(level.to_string(), schema);
        }
        schemas.insert("40".to_owned(), json!({}));
        schemas.insert("long".to_owned(), json!({"description": "x".repeat(2000)}));
        let document = json!({ "s": schemas });
        let source = Source::new(&document, 20_000);
        let short = inlined(&json!({"$ref": "#/s/0"}), &source, 1000).unwrap();
        let inner = json!({"type": "object", "description": "D"});
        let middle =
            json!({"type": "object", "properties": {"a": inner, "b": inner}, "description": "D"});
        assert_eq!(
            short.schema,
            json!({"type": "object", "properties": {"a": middle, "b": middle}, "description": "D"})
        );
        assert!(short.is_shortened);

        let refusal = |reference: &str, room: usize, most: usize| {
            let source = Source::new(&document, room);
            inlined(&json!({ "$ref": reference }), &source, most).unwrap_err().sentence
        };
        assert!(refusal("#/s/0", 2000, 1000).starts_with("The schemas get too large"));
        assert!(
            refusal("#/s/long", 20_000, 1000).starts_with("This schema has more than 1000 bytes")
        );
    }
}
