//! What a JSON schema asks of a value, as far as it can be seen without trying: for mending what does not fit.

use serde_json::{Map, Value};

use crate::text::schema::local_target;

/// How many schemas are looked into for one answer. What is further away is not known.
const REACH: u32 = 200;

/// A set of kinds of JSON values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    /// A number with a fraction.
    pub(super) const FRACTION: Self = Self(8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ALL: Self = Self(127);

    /// The kind of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() != 0.0 => Self::FRACTION,
                _ => Self::INTEGER,
            },
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// Whether one of `others` is in it.
    pub(super) fn has(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn named(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::INTEGER.or(Self::FRACTION),
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::ALL,
        }
    }
}

/// A schema inside a schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'s> {
    /// The whole, which references point into.
    root: &'s Value,
    node: &'s Value,
}

/// What was found under a name.
#[derive(Clone, Copy)]
enum Found<'s> {
    Nothing,
    One(&'s Value),
    /// Alternatives say different things, or it is too far away.
    Several,
}

impl<'s> Shape<'s> {
    /// The schema itself.
    pub(super) fn of(root: &'s Value) -> Self {
        Self { root, node: root }
    }

    /// The kinds of values that it may take: those it takes are among them.
    pub(super) fn kinds(self) -> Kinds {
        self.kinds_of(self.node, &mut { REACH })
    }

    /// What it asks of a property; `None` when it says nothing, or different things in different cases.
    pub(super) fn property(self, name: &str) -> Option<Self> {
        let found = self.find(self.node, Kinds::OBJECT, &mut { REACH }, &|fields| {
            fields.get("properties").and_then(|properties| properties.get(name))
        });
        let other = || {
            self.find(self.node, Kinds::OBJECT, &mut { REACH }, &|fields| {
                fields.get("additionalProperties").filter(|schema| schema.is_object())
            })
        };
        match found {
            Found::Nothing => self.one(other()),
            found => self.one(found),
        }
    }

    /// What it asks of the items of a list.
    pub(super) fn item(self, at: usize) -> Option<Self> {
        self.one(self.find(self.node, Kinds::ARRAY, &mut { REACH }, &|fields| {
            let tuple = [fields.get("prefixItems"), fields.get("items")].into_iter().flatten();
            let placed = tuple.filter_map(Value::as_array).find_map(|items| items.get(at));
            placed.or_else(|| fields.get("items").filter(|items| items.is_object()))
        }))
    }

    /// Whether it names the property.
    pub(super) fn declares(self, name: &str) -> bool {
        let found = self.find(self.node, Kinds::OBJECT, &mut { REACH }, &|fields| {
            fields.get("properties").and_then(|properties| properties.get(name))
        });
        !matches!(found, Found::Nothing)
    }

    /// Whether the property must be there, in some case at least.
    pub(super) fn requires(self, name: &str) -> bool {
        let found = self.find(self.node, Kinds::OBJECT, &mut { REACH }, &|fields| {
            let required = fields.get("required").and_then(Value::as_array)?;
            required.iter().find(|required| required.as_str() == Some(name))
        });
        !matches!(found, Found::Nothing)
    }

    fn one(self, found: Found<'s>) -> Option<Self> {
        match found {
            Found::One(node) => Some(Self { root: self.root, node }),
            Found::Nothing | Found::Several => None,
        }
    }

    fn kinds_of(self, node: &Value, left: &mut u32) -> Kinds {
        let fields = match node {
            Value::Object(fields) => fields,
            Value::Bool(false) => return Kinds::NONE,
            _ => return Kinds::ALL,
        };
        if *left == 0 {
            return Kinds::ALL;
        }
        *left -= 1;
        let mut kinds = match fields.get("type") {
            Some(Value::String(name)) => Kinds::named(name),
            Some(Value::Array(names)) => names
                .iter()
                .map(|name| name.as_str().map_or(Kinds::ALL, Kinds::named))
                .fold(Kinds::NONE, Kinds::or),
            _ if fields.contains_key("properties") => Kinds::OBJECT,
            _ if fields.contains_key("items") => Kinds::ARRAY,
            _ => Kinds::ALL,
        };
        if fields.get("nullable") == Some(&Value::Bool(true)) {
            kinds = kinds.or(Kinds::NULL);
        }
        if let Some(value) = fields.get("const") {
            kinds = kinds.and(Kinds::of(value));
        }
        if let Some(Value::Array(values)) = fields.get("enum") {
            kinds = kinds.and(values.iter().map(Kinds::of).fold(Kinds::NONE, Kinds::or));
        }
        if let Some(target) = self.target(fields) {
            kinds = kinds.and(self.kinds_of(target, left));
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(Value::Array(cases)) = fields.get(word) {
                let any = cases.iter().map(|case| self.kinds_of(case, left));
                kinds = kinds.and(any.fold(Kinds::NONE, Kinds::or));
            }
        }
        if let Some(Value::Array(all)) = fields.get("allOf") {
            kinds = all.iter().fold(kinds, |kinds, part| kinds.and(self.kinds_of(part, left)));
        }
        kinds
    }

    /// Looks for something in a schema and in those that hold for the same value, which is of the kind `whole`.
    fn find(
        self,
        node: &'s Value,
        whole: Kinds,
        left: &mut u32,
        look: &impl Fn(&'s Map<String, Value>) -> Option<&'s Value>,
    ) -> Found<'s> {
        let Value::Object(fields) = node else { return Found::Nothing };
        if *left == 0 {
            return Found::Several;
        }
        *left -= 1;
        if let Some(found) = look(fields) {
            return Found::One(found);
        }
        let parts = fields.get("allOf").and_then(Value::as_array).into_iter().flatten();
        for part in self.target(fields).into_iter().chain(parts) {
            match self.find(part, whole, left, look) {
                Found::Nothing => (),
                found => return found,
            }
        }
        ["anyOf", "oneOf"]
            .iter()
            .filter_map(|word| fields.get(*word)?.as_array())
            .map(|cases| self.in_all(cases, whole, left, look))
            .find(|found| !matches!(found, Found::Nothing))
            .unwrap_or(Found::Nothing)
    }

    /// What all cases say that such a value may be of.
    fn in_all(
        self,
        cases: &'s [Value],
        whole: Kinds,
        left: &mut u32,
        look: &impl Fn(&'s Map<String, Value>) -> Option<&'s Value>,
    ) -> Found<'s> {
        let mut all: Option<Found<'s>> = None;
        for case in cases {
            if !self.kinds_of(case, left).has(whole) {
                continue;
            }
            let found = self.find(case, whole, left, look);
            all = Some(match (all, found) {
                (None, found) => found,
                (Some(Found::Nothing), Found::Nothing) => Found::Nothing,
                (Some(Found::One(one)), Found::One(other)) if one == other => Found::One(one),
                _ => Found::Several,
            });
        }
        all.unwrap_or(Found::Nothing)
    }

    fn target(self, fields: &'s Map<String, Value>) -> Option<&'s Value> {
        local_target(self.root, fields.get("$ref")?.as_str()?)
    }
}
