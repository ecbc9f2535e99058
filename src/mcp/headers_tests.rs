use pretty_assertions::assert_eq;

use super::*;

fn given(pairs: &[(&str, &str)]) -> Vec<Given> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), secret(value))).collect()
}

fn secret(text: &str) -> Secret {
    Secret::from(text.to_owned())
}

fn sent(merged: &Merged) -> Vec<String> {
    let mut lines: Vec<String> = merged
        .headers
        .map()
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines
}

#[test]
fn later_wins_whatever_the_case() {
    let merged = merge(
        &given(&[
            ("X-Key", "request"),
            ("x-key", "request again"),
            ("x-a", "1"),
            ("AUTHORIZATION", "r"),
        ]),
        &given(&[("X-KEY", "connector"), ("x-b", "2")]),
        Some(&secret("token")),
    );
    assert_eq!(
        sent(&merged),
        ["authorization: Bearer token", "x-a: 1", "x-b: 2", "x-key: connector"]
    );
    assert_eq!(merged.refused, Vec::<String>::new());
    let merged = merge(&given(&[("authorization", "Basic eA==")]), &[], None);
    assert_eq!(sent(&merged), ["authorization: Basic eA=="]);
}

#[test]
fn what_the_transport_owns_is_refused_by_name() {
    let refused = [
        "Host",
        "Connection",
        "Keep-Alive",
        "Transfer-Encoding",
        "TE",
        "Trailer",
        "Upgrade",
        "Proxy-Authorization",
        "Content-Length",
        "content-type",
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
        "Accept",
        "Last-Event-ID",
        "a b",
        "",
    ];
    for name in refused {
        let merged = merge(&given(&[(name, "v")]), &[], None);
        assert_eq!((sent(&merged), merged.refused), (Vec::new(), vec![name.to_owned()]), "{name}");
    }
    assert_eq!(merge(&given(&[("x", "a\nb")]), &[], None).refused, ["x"]);
}

#[test]
fn a_token_gets_a_scheme_when_it_has_none() {
    for (token, value) in [
        ("abc", "Bearer abc"),
        (" abc ", "Bearer abc"),
        ("Bearer abc", "Bearer abc"),
        ("bearer abc", "bearer abc"),
        ("Basic dXNlcg==", "Basic dXNlcg=="),
        ("AWS4-HMAC-SHA256 Credential=x", "AWS4-HMAC-SHA256 Credential=x"),
        ("a=b c", "Bearer a=b c"),
    ] {
        assert_eq!(
            sent(&merge(&[], &[], Some(&secret(token)))),
            [format!("authorization: {value}")]
        );
    }
    for token in ["", "  ", "a\nb"] {
        assert!(!can_authorize(&secret(token)), "{token:?}");
        assert_eq!(merge(&[], &[], Some(&secret(token))).refused, ["authorization"]);
    }
}

#[test]
fn nothing_prints_a_value() {
    let merged = merge(&given(&[("x-key", "hunter2")]), &[], Some(&secret("hunter3")));
    let shown = format!("{merged:?} {:?}", merged.headers.map());
    assert!(!shown.contains("hunter"), "{shown}");
    assert!(shown.contains("x-key") && shown.contains("authorization"), "{shown}");
}

#[test]
fn secrets_are_tokens_and_what_is_named_like_one() {
    let merged = merge(
        &given(&[("x-env", "production"), ("x-api-key", "hdr_SECRET"), ("x-token", "short")]),
        &[],
        Some(&secret("tok_SECRET")),
    );
    let mut secrets: Vec<String> =
        merged.headers.secrets().iter().map(|secret| secret.expose().to_owned()).collect();
    secrets.sort();
    assert_eq!(secrets, ["hdr_SECRET", "tok_SECRET"]);
}

#[test]
fn a_fault_is_told_without_the_value() {
    assert_eq!(fault("x-key", &secret("v")), None);
    assert!(fault("x key", &secret("v")).unwrap().contains("name"));
    assert!(fault("x-key", &secret("v\0")).unwrap().contains("control character"));
}
