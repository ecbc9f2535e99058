use serde_json::json;

use super::*;

const NOW: i64 = 1_772_366_400;

fn settings() -> config::Oidc {
    serde_json::from_value(json!({
        "issuer": "https://idp.example",
        "audience": "antiphon",
        "tenant_claim": "org",
    }))
    .unwrap()
}

fn claims() -> Value {
    json!({
        "iss": "https://idp.example", "aud": "antiphon", "exp": NOW + 300, "sub": "ada",
        "groups": ["staff", "admins"], "org": "acme",
    })
}

#[test]
fn claims_become_a_principal() {
    let expected = Principal {
        tenant_id: "acme".to_owned(),
        user_id: "ada".to_owned(),
        groups: vec!["staff".to_owned(), "admins".to_owned()],
    };
    for change in [
        json!({}),
        json!({"iss": "https://idp.example/"}),
        json!({"aud": ["other", "antiphon"]}),
        json!({"exp": NOW - 59}),
        json!({"exp": 1_772_366_700.5}),
        json!({"nbf": NOW + 60}),
    ] {
        let mut claims = claims();
        claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let found = principal(claims.as_object().unwrap(), &settings(), NOW);
        assert_eq!(found, Ok(expected.clone()), "{change}");
    }
}

#[test]
fn the_default_tenant_is_used_only_where_no_claim_is_configured() {
    let without = config::Oidc { tenant_claim: None, ..settings() };
    let found = principal(claims().as_object().unwrap(), &without, NOW).unwrap();
    assert_eq!(found.tenant_id, "default");
}

#[test]
fn wrong_claims_are_named() {
    for (change, why) in [
        (json!({"iss": "https://evil.example"}), "issuer"),
        (json!({"iss": null}), "issuer"),
        (json!({"aud": "antiphon2"}), "audience"),
        (json!({"aud": []}), "audience"),
        (json!({"exp": NOW - 60}), "expired"),
        (json!({"exp": "tomorrow"}), "`exp`"),
        (json!({"exp": null}), "`exp`"),
        (json!({"nbf": NOW + 61}), "not valid yet"),
        (json!({"nbf": "soon"}), "`nbf`"),
        (json!({"sub": ""}), "claim `sub`"),
        (json!({"sub": 7}), "claim `sub`"),
        (json!({"org": null}), "claim `org`"),
    ] {
        let mut claims = claims();
        claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let refused = principal(claims.as_object().unwrap(), &settings(), NOW).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Authentication);
        assert!(refused.message.contains(why), "{change}: {refused}");
    }
}

#[test]
fn keys_do_not_look_like_tokens() {
    for key in ["ak_0123", "sk-abc.def.ghi", "eyJ", "", "ey.ab"] {
        assert!(!Oidc::looks_like_token(key), "{key}");
    }
    assert!(Oidc::looks_like_token("eyJhbGciOiJub25lIn0.e30."));
}
