//! Where the operations are: the server that is chosen, as a URL.

use serde_json::{Map, Value};
use url::Url;

use super::{fault::SchemaFault, refs::shortened};

/// The URL that the paths of an operation are appended to. `servers` is the list that holds for it; `wished` is the request's choice: the
/// URL of one of them as it is written there, or any other instead.
pub(super) fn base_url(
    servers: &[Value],
    wished: Option<&str>,
    schema_url: Option<&Url>,
) -> Result<Url, SchemaFault> {
    let url_of = |server: &Value| server.get("url").and_then(Value::as_str).map(str::to_owned);
    let written = |wished: &str| servers.iter().position(|s| url_of(s).as_deref() == Some(wished));
    let at = match wished {
        Some(wished) => match written(wished) {
            Some(at) => at,
            None => return absolute(wished, schema_url).map_err(|fault| fault.under("server_url")),
        },
        None => 0,
    };
    let Some(server) = servers.get(at) else {
        // Without servers the document's own place is meant; only a fetched document has one.
        let nowhere = || {
            SchemaFault::at(
                "schema.servers",
                "The schema names no server. Add `servers: [{url: \"https://…\"}]` to it, or set `server_url`.",
            )
        };
        return absolute("/", Some(schema_url.ok_or_else(nowhere)?));
    };
    let place = |fault: SchemaFault| fault.under(&format!("schema.servers[{at}]"));
    let template =
        url_of(server).ok_or_else(|| place(SchemaFault::at("url", "A server needs a `url`.")))?;
    let variables = server.get("variables").and_then(Value::as_object);
    let filled = filled(&template, variables).map_err(place)?;
    absolute(&filled, schema_url).map_err(|fault| place(fault.under("url")))
}

/// The template with the defaults of its variables.
fn filled(template: &str, variables: Option<&Map<String, Value>>) -> Result<String, SchemaFault> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or_else(|| {
            SchemaFault::at("url", format!("A `{{` in `{}` is never closed.", shortened(template)))
        })?;
        let variable = variables.and_then(|variables| variables.get(name));
        let default = variable.and_then(|variable| variable.get("default")).and_then(Value::as_str);
        let default = default.ok_or_else(|| {
            SchemaFault::at(
                "variables",
                format!(
                    "The variable `{}` has no `default`. Give it one, or set `server_url` to the whole URL.",
                    shortened(name)
                ),
            )
        })?;
        out += before;
        out += default;
        rest = after;
    }
    Ok(out + rest)
}

fn absolute(text: &str, schema_url: Option<&Url>) -> Result<Url, SchemaFault> {
    let shown = shortened(text);
    let url = match (Url::parse(text), schema_url) {
        (Ok(url), _) => url,
        (Err(url::ParseError::RelativeUrlWithoutBase), Some(base)) => base
            .join(text)
            .map_err(|error| SchemaFault::here(format!("`{shown}` is not a URL: {error}.")))?,
        (Err(url::ParseError::RelativeUrlWithoutBase), None) => {
            return Err(SchemaFault::here(format!(
                "`{shown}` is relative to where the schema came from, which is not known here. \
                 Set `server_url` to the whole URL."
            )));
        }
        (Err(error), _) => {
            return Err(SchemaFault::here(format!("`{shown}` is not a URL: {error}.")));
        }
    };
    let wrong = if !matches!(url.scheme(), "http" | "https") {
        "it must begin with https:// or http://"
    } else if !url.username().is_empty() || url.password().is_some() {
        "it must not hold a user or a password; use `credential`"
    } else if url.query().is_some() || url.fragment().is_some() {
        "it must have no query and no fragment"
    } else {
        return Ok(url);
    };
    // Not the URL itself: it may hold a password.
    Err(SchemaFault::here(format!("The server's URL cannot be used: {wrong}.")))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_server_is_chosen() {
        let servers = json!([
            {"url": "https://{region}.example/{base}/", "variables": {
                "region": {"default": "eu", "enum": ["eu", "us"]}, "base": {"default": "v1"},
            }},
            {"url": "/v2"},
            {"url": "v3"},
        ]);
        let servers = servers.as_array().unwrap();
        let from: Url = "https://docs.example/specs/api.json".parse().unwrap();
        for (wished, from, expected) in [
            (None, None, Ok("https://eu.example/v1/")),
            (Some("https://{region}.example/{base}/"), None, Ok("https://eu.example/v1/")),
            (Some("https://us.example/v1"), None, Ok("https://us.example/v1")),
            (Some("/v2"), Some(&from), Ok("https://docs.example/v2")),
            (Some("v3"), Some(&from), Ok("https://docs.example/specs/v3")),
            (
                Some("/v2"),
                None,
                Err(
                    "schema.servers[1].url: `/v2` is relative to where the schema came from, which is not known here. Set `server_url` to the whole URL.",
                ),
            ),
            (
                Some("/v9"),
                None,
                Err(
                    "server_url: `/v9` is relative to where the schema came from, which is not known here. Set `server_url` to the whole URL.",
                ),
            ),
            (
                Some("ftp://a.example"),
                None,
                Err(
                    "server_url: The server's URL cannot be used: it must begin with https:// or http://.",
                ),
            ),
            (
                Some("https://u:p@a.example"),
                None,
                Err(
                    "server_url: The server's URL cannot be used: it must not hold a user or a password; use `credential`.",
                ),
            ),
            (
                Some("https://a.example/?a=1"),
                None,
                Err(
                    "server_url: The server's URL cannot be used: it must have no query and no fragment.",
                ),
            ),
            (Some("https://"), None, Err("server_url: `https://` is not a URL: empty host.")),
        ] {
            let found = base_url(servers, wished, from)
                .map(String::from)
                .map_err(|fault| format!("{}: {fault}", fault.path));
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{wished:?}");
        }
    }

    #[test]
    fn servers_that_say_too_little_are_faults() {
        let from: Url = "https://docs.example/specs/api.json".parse().unwrap();
        assert_eq!(base_url(&[], None, Some(&from)).unwrap().as_str(), "https://docs.example/");
        for (servers, path) in [
            (json!([]), "schema.servers"),
            (json!([{}]), "schema.servers[0].url"),
            (json!([{"url": "https://{a}.example"}]), "schema.servers[0].variables"),
            (json!([{"url": "https://{a.example"}]), "schema.servers[0].url"),
        ] {
            let fault = base_url(servers.as_array().unwrap(), None, None).unwrap_err();
            assert_eq!(fault.path, path, "{fault}");
        }
    }
}
