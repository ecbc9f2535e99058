//! Values in the styles of OpenAPI, percent-encoded.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::parameter::Style;

/// All but the unreserved characters of RFC 3986: no value can end its step of a path or its pair of a query.
const STRICT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// With `allowReserved`: what neither ends nor divides a pair of a query may stand as it is. `+` may not, for many read it as a blank.
const RESERVED: &AsciiSet = &STRICT
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';');

/// How the pieces of a value are encoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Encoding {
    Strict,
    Reserved,
    /// As they are: a header.
    Plain,
}

impl Encoding {
    fn apply(self, text: &str) -> String {
        match self {
            Self::Strict => utf8_percent_encode(text, STRICT).to_string(),
            Self::Reserved => utf8_percent_encode(text, RESERVED).to_string(),
            Self::Plain => text.to_owned(),
        }
    }
}

/// A value holds lists or objects where its style has no form for them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Nested;

/// A value in a path or a header: one text.
pub(super) fn one(
    style: Style,
    explode: bool,
    encoding: Encoding,
    name: &str,
    value: &Value,
) -> Result<String, Nested> {
    let pieces = Pieces { encoding };
    let label = encoding.apply(name);
    let (start, between) = match (style, explode) {
        (Style::Label, true) => (".", "."),
        (Style::Label, false) => (".", ","),
        (Style::Matrix, true) => (";", ";"),
        (Style::Matrix, false) => (";", ","),
        _ => ("", ","),
    };
    let is_named = style == Style::Matrix;
    let text = match value {
        _ if style == Style::Json => pieces.json(value),
        Value::Array(entries) => {
            let mut texts = pieces.list(entries)?;
            if is_named && explode {
                texts = texts.into_iter().map(|text| format!("{label}={text}")).collect();
            }
            texts.join(between)
        }
        Value::Object(fields) => {
            let equals = if explode { "=" } else { "," };
            let pairs = pieces.pairs(fields)?.into_iter();
            pairs.map(|(name, text)| name + equals + &text).collect::<Vec<_>>().join(between)
        }
        scalar => pieces.scalar(scalar).ok_or(Nested)?,
    };
    let names_itself = explode && matches!(value, Value::Array(_) | Value::Object(_));
    Ok(if is_named && !names_itself {
        format!("{start}{label}={text}")
    } else {
        format!("{start}{text}")
    })
}

/// A value in a query: its pairs, encoded, in order.
pub(super) fn pairs(
    style: Style,
    explode: bool,
    encoding: Encoding,
    name: &str,
    value: &Value,
) -> Result<Vec<(String, String)>, Nested> {
    let pieces = Pieces { encoding };
    // A name is never trusted to hold reserved characters, whatever its value may.
    let label = Encoding::Strict.apply(name);
    let between = match style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        _ => ",",
    };
    match value {
        _ if style == Style::Json => Ok(vec![(label, pieces.json(value))]),
        _ if style == Style::DeepObject && value.is_object() => {
            let mut out = Vec::new();
            pieces.deep(name, value, &mut out);
            Ok(out)
        }
        Value::Array(entries) if explode || style == Style::DeepObject => {
            Ok(pieces.list(entries)?.into_iter().map(|text| (label.clone(), text)).collect())
        }
        Value::Array(entries) if entries.is_empty() => Ok(Vec::new()),
        Value::Array(entries) => Ok(vec![(label, pieces.list(entries)?.join(between))]),
        Value::Object(fields) if explode => pieces.pairs(fields),
        Value::Object(fields) if fields.is_empty() => Ok(Vec::new()),
        Value::Object(fields) => {
            let flat = pieces.pairs(fields)?.into_iter().flat_map(|(name, text)| [name, text]);
            Ok(vec![(label, flat.collect::<Vec<_>>().join(between))])
        }
        scalar => Ok(vec![(label, pieces.scalar(scalar).ok_or(Nested)?)]),
    }
}

#[derive(Clone, Copy)]
struct Pieces {
    encoding: Encoding,
}

impl Pieces {
    fn scalar(self, value: &Value) -> Option<String> {
        let text = match value {
            Value::String(text) => return Some(self.encoding.apply(text)),
            Value::Null => String::new(),
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Array(_) | Value::Object(_) => return None,
        };
        Some(self.encoding.apply(&text))
    }

    /// The entries of a list; `null` is no entry.
    fn list(self, entries: &[Value]) -> Result<Vec<String>, Nested> {
        let there = entries.iter().filter(|entry| !entry.is_null());
        there.map(|entry| self.scalar(entry).ok_or(Nested)).collect()
    }

    fn pairs(self, fields: &Map<String, Value>) -> Result<Vec<(String, String)>, Nested> {
        let name = |name: &str| match self.encoding {
            Encoding::Plain => name.to_owned(),
            Encoding::Strict | Encoding::Reserved => Encoding::Strict.apply(name),
        };
        let there = fields.iter().filter(|(_, value)| !value.is_null());
        there.map(|(key, value)| Ok((name(key), self.scalar(value).ok_or(Nested)?))).collect()
    }

    /// `filter[a][b]=c`, and a pair for each entry of a list: what APIs that speak of `deepObject` understand.
    fn deep(self, name: &str, value: &Value, out: &mut Vec<(String, String)>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.deep(&format!("{name}[{key}]"), value, out);
                }
            }
            Value::Array(entries) => entries.iter().for_each(|entry| self.deep(name, entry, out)),
            Value::Null => (),
            scalar => {
                let text = self.scalar(scalar).unwrap_or_default();
                out.push((Encoding::Strict.apply(name), text));
            }
        }
    }

    fn json(self, value: &Value) -> String {
        self.encoding.apply(&value.to_string())
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::{
        Style::{DeepObject, Form, Json, Label, Matrix, PipeDelimited, Simple, SpaceDelimited},
        *,
    };

    fn query(style: Style, explode: bool, value: &Value) -> String {
        let pairs = pairs(style, explode, Encoding::Strict, "c", value).unwrap();
        pairs
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join("&")
    }

    /// The tables of the OpenAPI specification.
    #[test]
    fn queries_follow_the_styles() {
        let list = json!(["blue", "black", null, "br own"]);
        let object = json!({"R": 100, "G": "a&b", "B": null});
        for (style, explode, value, expected) in [
            (Form, true, json!("blue"), "c=blue"),
            (Form, true, json!("a b&c=d/é+"), "c=a%20b%26c%3Dd%2F%C3%A9%2B"),
            (Form, true, json!(true), "c=true"),
            (Form, true, json!(1.5), "c=1.5"),
            (Form, true, json!(""), "c="),
            (Form, true, list.clone(), "c=blue&c=black&c=br%20own"),
            (Form, false, list.clone(), "c=blue,black,br%20own"),
            (Form, true, json!([]), ""),
            (Form, false, json!([]), ""),
            (Form, true, object.clone(), "R=100&G=a%26b"),
            (Form, false, object.clone(), "c=R,100,G,a%26b"),
            (SpaceDelimited, false, list.clone(), "c=blue%20black%20br%20own"),
            (SpaceDelimited, false, object.clone(), "c=R%20100%20G%20a%26b"),
            (PipeDelimited, false, list.clone(), "c=blue%7Cblack%7Cbr%20own"),
            (PipeDelimited, true, list.clone(), "c=blue&c=black&c=br%20own"),
            (DeepObject, true, object.clone(), "c%5BR%5D=100&c%5BG%5D=a%26b"),
            (
                DeepObject,
                true,
                json!({"a": {"b": [1, 2]}, "x]&": "y"}),
                "c%5Ba%5D%5Bb%5D=1&c%5Ba%5D%5Bb%5D=2&c%5Bx%5D%26%5D=y",
            ),
            (Json, true, json!({"a": [1]}), "c=%7B%22a%22%3A%5B1%5D%7D"),
        ] {
            assert_eq!(query(style, explode, &value), expected, "{style:?} {explode} {value}");
        }
        let nested = json!([[1], {"a": [1]}]);
        assert_eq!(pairs(Form, true, Encoding::Strict, "c", &nested), Err(Nested));
        let reserved = pairs(Form, true, Encoding::Reserved, "c", &json!("a/b?c&d=e#f+g[h]%"));
        assert_eq!(reserved.unwrap()[0].1, "a/b?c%26d%3De%23f%2Bg%5Bh%5D%25");
    }

    #[test]
    fn paths_and_headers_follow_the_styles() {
        let list = json!(["blue", "black"]);
        let object = json!({"R": 100, "G": "a/b"});
        for (style, explode, value, expected) in [
            (Simple, false, json!("../x?y#z"), "..%2Fx%3Fy%23z"),
            (Simple, false, list.clone(), "blue,black"),
            (Simple, false, object.clone(), "R,100,G,a%2Fb"),
            (Simple, true, object.clone(), "R=100,G=a%2Fb"),
            (Label, false, json!("blue"), ".blue"),
            (Label, false, list.clone(), ".blue,black"),
            (Label, true, list.clone(), ".blue.black"),
            (Label, true, object.clone(), ".R=100.G=a%2Fb"),
            (Matrix, false, json!("blue"), ";c=blue"),
            (Matrix, true, json!(1), ";c=1"),
            (Matrix, false, list.clone(), ";c=blue,black"),
            (Matrix, true, list.clone(), ";c=blue;c=black"),
            (Matrix, false, object.clone(), ";c=R,100,G,a%2Fb"),
            (Matrix, true, object.clone(), ";R=100;G=a%2Fb"),
            (Json, false, json!([1]), "%5B1%5D"),
        ] {
            let text = one(style, explode, Encoding::Strict, "c", &value).unwrap();
            assert_eq!(text, expected, "{style:?} {explode} {value}");
        }
        assert_eq!(
            one(Simple, false, Encoding::Plain, "c", &json!(["a b", "c"])).unwrap(),
            "a b,c"
        );
        assert_eq!(one(Simple, false, Encoding::Strict, "c", &json!([[1]])), Err(Nested));
    }
}
