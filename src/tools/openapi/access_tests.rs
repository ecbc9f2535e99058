use pretty_assertions::assert_eq;
use reqwest::Method;

use super::*;

fn credential(kind: CredentialKind, name: Option<&str>, value: &str) -> ApiCredential {
    ApiCredential {
        kind,
        name: name.map(str::to_owned),
        value_env: "KEY".to_owned(),
        value: Some(Secret::from(value.to_owned())),
        hosts: vec!["api.example".to_owned().try_into().unwrap()],
    }
}

fn prepared(url: &str) -> Prepared {
    let headers = [("x-model", "m"), ("x-key", "model"), ("accept", "a/b")];
    let headers = headers
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    Prepared {
        method: Method::GET,
        url: url.parse().unwrap(),
        headers: headers.collect(),
        body: None,
    }
}

fn sent(access: &Access, url: &str) -> (String, Vec<String>) {
    let request = access.dress(prepared(url)).unwrap();
    let headers = request.headers().iter();
    let mut headers: Vec<String> =
        headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    headers.sort();
    (request.url().to_string(), headers)
}

#[test]
fn the_definition_wins_over_the_model_and_the_credential_over_both() {
    let url = "https://api.example/a?b=c";
    let headers = [
        ("X-Key", "definition"),
        ("authorization", "Bearer definition"),
        ("Host", "evil.test"),
        ("Transfer-Encoding", "chunked"),
        ("Keep-Alive", "1"),
        ("x bad", "1"),
        ("x-bad", "a\r\nb"),
    ];
    let plain = Access::new(headers, None);
    assert_eq!(plain.refused(), ["Host", "Transfer-Encoding", "Keep-Alive", "x bad", "x-bad"]);
    assert_eq!(
        sent(&plain, url),
        (
            url.to_owned(),
            ["accept: a/b", "authorization: Bearer definition", "x-key: definition", "x-model: m"]
                .map(str::to_owned)
                .to_vec()
        )
    );
    for (credential, url_sent, header) in [
        (credential(CredentialKind::Bearer, None, "tok"), url, Some("authorization: Bearer tok")),
        (credential(CredentialKind::Basic, None, "u:p"), url, Some("authorization: Basic dTpw")),
        (credential(CredentialKind::Header, Some("X-Key"), "tok"), url, Some("x-key: tok")),
        (
            credential(CredentialKind::Query, Some("api key"), "t&k"),
            "https://api.example/a?b=c&api+key=t%26k",
            None,
        ),
    ] {
        let (url, headers) = sent(&Access::new(headers, Some(("k", &credential))), url);
        assert_eq!(url, url_sent);
        assert!(
            header.is_none_or(|header| headers.iter().any(|sent| sent == header)),
            "{headers:?}"
        );
        assert_eq!(headers.len(), 4, "{headers:?}");
    }
}

#[test]
fn a_credential_in_the_query_takes_the_place_of_what_the_model_wrote() {
    let credential = credential(CredentialKind::Query, Some("key"), "secret");
    let access = Access::new([], Some(("k", &credential)));
    for (url, sent_url) in [
        ("https://api.example/a", "https://api.example/a?key=secret"),
        ("https://api.example/a?key=m&b=%26", "https://api.example/a?b=%26&key=secret"),
        ("https://api.example/a?%6Bey=m&keys=1", "https://api.example/a?keys=1&key=secret"),
    ] {
        assert_eq!(sent(&access, url).0, sent_url);
    }
}

#[test]
fn a_credential_goes_nowhere_else() {
    let credential = credential(CredentialKind::Bearer, None, "hunter2");
    let access = Access::new([("x", "hunter2")], Some(("k", &credential)));
    for url in ["http://api.example/a", "https://evil.test/a", "https://api.example:444/a"] {
        let error = access.dress(prepared(url)).unwrap_err();
        assert_eq!(error.name, "k");
        assert!(!error.to_string().contains("hunter2"));
        let mut request = Request::new(Method::GET, url.parse().unwrap());
        show_if_allowed(Some(&credential), &mut request);
        assert!(request.headers().is_empty());
    }
    assert_eq!(
        access.check(&"http://api.example/a".parse().unwrap()).unwrap_err().to_string(),
        "The credential `k` may not be sent to `http://api.example`; \
         the server's configuration lists its hosts under `tools.openapi.credentials.k.hosts`."
    );
    assert!(!format!("{access:?}").contains("hunter2"), "{access:?}");
    let request = access.dress(prepared("https://api.example/a")).unwrap();
    assert!(!format!("{request:?}").contains("hunter2"), "{request:?}");
}

#[test]
fn what_the_body_is_only_we_say() {
    let access = Access::new([("content-type", "text/plain")], None);
    let mut with_body = prepared("https://api.example/a");
    with_body.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    with_body.body = Some(b"{}".to_vec());
    assert_eq!(access.dress(with_body).unwrap().headers()[CONTENT_TYPE], "application/json");
}

#[test]
fn reflected_secrets_are_masked_in_every_form() {
    let basic = credential(CredentialKind::Basic, None, "ada:pass\"word");
    let headers =
        [("x-api-key", "key-12345"), ("x-team", "research"), ("authorization", "Bearer tok-123")];
    let access = Access::new(headers, Some(("k", &basic)));
    let encoded = STANDARD.encode("ada:pass\"word");
    let mask = |text: &str| String::from_utf8(access.mask(text.as_bytes()).into_owned()).unwrap();
    for (text, masked) in [
        ("key-12345 and key-12345!".to_owned(), "[secret] and [secret]!"),
        ("Basic ".to_owned() + &encoded, "Basic [secret]"),
        (r#"{"p":"pass\"word"}"#.to_owned(), r#"{"p":"[secret]"}"#),
        ("tok-123, research".to_owned(), "[secret], research"),
        ("ada:pass\"word".to_owned(), "[secret]"),
    ] {
        assert_eq!(mask(&text), masked);
    }
    let query = credential(CredentialKind::Query, Some("key"), "a&b=123456");
    let access = Access::new([], Some(("k", &query)));
    assert_eq!(&*access.mask(b"?key=a%26b%3D123456"), b"?key=[secret]");
    assert!(matches!(access.mask(b"nothing"), Cow::Borrowed(_)));
}
