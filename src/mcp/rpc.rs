//! JSON-RPC 2.0 as MCP writes it. Pure.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::protocol::Raw;

use super::McpError;

/// The longest message of an error that is kept, in characters.
const LONGEST_MESSAGE: usize = 2000;
/// JSON-RPC's code for a method that we do not have.
const NO_METHOD: i64 = -32601;

/// What a server said.
#[derive(Debug)]
pub(super) enum Incoming {
    /// An answer. An error about a message that the server could not read has no id.
    Answer { id: Option<u64>, outcome: Result<Raw, McpError> },
    /// A question of its own, with the answer that it gets.
    Asked { reply: Vec<u8> },
    /// A notification.
    Told,
}

/// A question.
pub(super) fn request(id: u64, method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        jsonrpc: &'a str,
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    write(&Request { jsonrpc: "2.0", id, method, params })
}

/// A message that wants no answer.
pub(super) fn notification(method: &str, params: &impl Serialize) -> Vec<u8> {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'a str,
        method: &'a str,
        params: &'a P,
    }
    write(&Notification { jsonrpc: "2.0", method, params })
}

/// Reads a message, or a batch of them.
pub(super) fn read(json: &str) -> Result<Vec<Incoming>, McpError> {
    let unreadable =
        |error: serde_json::Error| McpError::invalid(format!("it is no JSON-RPC ({error})"));
    if json.trim_start().starts_with('[') {
        let batch: Vec<&RawValue> = serde_json::from_str(json).map_err(unreadable)?;
        batch.into_iter().map(|message| read_one(message.get()).map_err(unreadable)).collect()
    } else {
        Ok(vec![read_one(json).map_err(unreadable)?])
    }
}

fn read_one(json: &str) -> Result<Incoming, serde_json::Error> {
    #[derive(Deserialize)]
    struct Shape<'a> {
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
        #[serde(default)]
        method: Option<String>,
        #[serde(default)]
        result: Option<Raw>,
        #[serde(default)]
        error: Option<ErrorShape>,
    }
    #[derive(Deserialize)]
    struct ErrorShape {
        #[serde(default)]
        code: i64,
        #[serde(default)]
        message: String,
    }
    let shape: Shape<'_> = serde_json::from_str(json)?;
    Ok(match (shape.method, shape.id) {
        (Some(method), Some(id)) => Incoming::Asked { reply: reply(&method, id) },
        (Some(_), None) => Incoming::Told,
        (None, id) => {
            let outcome = match (shape.error, shape.result) {
                (Some(ErrorShape { code, message }), _) => {
                    let message = message.chars().take(LONGEST_MESSAGE).collect();
                    Err(McpError::Rpc { code, message })
                }
                (None, Some(result)) => Ok(result),
                (None, None) => Err(McpError::invalid("it holds neither a result nor an error")),
            };
            Incoming::Answer { id: id.and_then(number), outcome }
        }
    })
}

/// Our ids are numbers; some servers give them back as text.
fn number(id: &RawValue) -> Option<u64> {
    id.get().trim_matches('"').parse().ok()
}

/// We offer a server nothing but to answer that we are there.
fn reply(method: &str, id: &RawValue) -> Vec<u8> {
    #[derive(Serialize)]
    struct Pong<'a> {
        jsonrpc: &'a str,
        id: &'a RawValue,
        result: Empty,
    }
    #[derive(Serialize)]
    struct Empty {}
    #[derive(Serialize)]
    struct Refused<'a> {
        jsonrpc: &'a str,
        id: &'a RawValue,
        error: Refusal<'a>,
    }
    #[derive(Serialize)]
    struct Refusal<'a> {
        code: i64,
        message: &'a str,
    }
    if method == "ping" {
        return write(&Pong { jsonrpc: "2.0", id, result: Empty {} });
    }
    let error = Refusal { code: NO_METHOD, message: "this client has no such method" };
    write(&Refused { jsonrpc: "2.0", id, error })
}

fn write(message: &impl Serialize) -> Vec<u8> {
    // Of our own types only, whose writing cannot fail.
    serde_json::to_vec(message).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn told(json: &str) -> Vec<String> {
        match read(json) {
            Err(error) => vec![error.to_string()],
            Ok(messages) => messages
                .into_iter()
                .map(|message| match message {
                    Incoming::Answer { id, outcome: Ok(result) } => {
                        format!("{id:?} {}", result.json())
                    }
                    Incoming::Answer { id, outcome: Err(error) } => format!("{id:?} {error}"),
                    Incoming::Asked { reply } => String::from_utf8(reply).unwrap(),
                    Incoming::Told => "told".to_owned(),
                })
                .collect(),
        }
    }

    #[test]
    fn messages_are_read() {
        for (json, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{ "b":1.0,"a":2}}"#,
                r#"Some(1) { "b":1.0,"a":2}"#,
            ),
            (r#"{"id":"7","result":{}}"#, "Some(7) {}"),
            (
                r#"{"id":1,"error":{"code":-32602,"message":"bad"}}"#,
                "Some(1) the MCP server answered with error -32602: bad",
            ),
            (r#"{"id":null,"error":{"code":1}}"#, "None the MCP server answered with error 1: "),
            (
                r#"{"id":1}"#,
                "Some(1) the MCP server's answer is not valid: it holds neither a result nor an error",
            ),
            (r#"{"method":"notifications/message","params":{}}"#, "told"),
            (r#"{"id":"s","method":"ping"}"#, r#"{"jsonrpc":"2.0","id":"s","result":{}}"#),
            (
                r#"{"id":3,"method":"sampling/createMessage"}"#,
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"this client has no such method"}}"#,
            ),
        ] {
            assert_eq!(told(json), [expected], "{json}");
        }
        assert_eq!(told(r#" [{"id":1,"result":1},{"method":"x"}]"#), ["Some(1) 1", "told"]);
    }

    #[test]
    fn what_is_cut_or_no_object_is_refused_at_every_place() {
        let whole = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ä"}]}}"#;
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            assert!(matches!(read(&whole[..end]), Err(McpError::Invalid(_))), "{end}");
        }
        for json in ["1", "\"x\"", "[1]", "<html>", "{\"id\":1,\"result\":{}} x"] {
            assert!(matches!(read(json), Err(McpError::Invalid(_))), "{json}");
        }
    }

    #[test]
    fn long_messages_are_cut() {
        let json = format!(r#"{{"id":1,"error":{{"message":"{}"}}}}"#, "ä".repeat(5000));
        assert!(told(&json)[0].chars().count() < 2100);
    }

    #[test]
    fn arguments_are_written_as_they_are() {
        let params =
            Raw::parse(r#"{"arguments":{"z":1.50, "a":12345678901234567890123}}"#).unwrap();
        assert_eq!(
            String::from_utf8(request(4, "tools/call", &params)).unwrap(),
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"arguments":{"z":1.50, "a":12345678901234567890123}}}"#
        );
    }
}
