use std::time::Duration;

use pretty_assertions::assert_eq;

use super::*;
use ModelErrorKind::*;

fn class(status: u16, body: &str) -> ModelErrorKind {
    Told::of_answer(status, body, None).means("m", None).kind
}

#[test]
fn every_backends_words() {
    for (status, body, expected) in [
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 0 output tokens and your prompt contains at least 9000 input tokens","type":"BadRequestError","param":"input_tokens","code":400}}"#,
            ContextOverflow,
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 8192 tokens","type":"BadRequestError","param":null,"code":400}"#,
            ContextOverflow,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000}}"#,
            ContextOverflow,
        ),
        (500, r#"{"error":{"message":"context shift is disabled"}}"#, ContextOverflow),
        (
            400,
            r#"{"error":{"message":"total message size 10176584 exceeds limit 2097152"}}"#,
            ContextOverflow,
        ),
        (413, "too large", ContextOverflow),
        (
            400,
            r#"{"error":{"message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","code":400}}"#,
            ContextOverflow,
        ),
        (
            400,
            r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}"#,
            ContextOverflow,
        ),
        (
            400,
            r#"{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}"#,
            ContextOverflow,
        ),
        (
            400,
            r#"{"object":"error","message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":"3051"}"#,
            ContextOverflow,
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]"#,
            ContextOverflow,
        ),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"prompt is too long: 210000 tokens > 200000 maximum","provider_name":"x"}}}"#,
            ContextOverflow,
        ),
        (
            400,
            r#"{"error":{"message":"input length exceeds the context length"}}"#,
            ContextOverflow,
        ),
        (
            404,
            r#"{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}"#,
            ModelNotFound,
        ),
        (
            404,
            r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}"#,
            ModelNotFound,
        ),
        (400, r#"{"error":{"message":"x is not a valid model ID","code":400}}"#, ModelNotFound),
        (404, r#"{"detail":"Not Found"}"#, Failed),
        (404, "<html>nginx</html>", Failed),
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-12345","code":"invalid_api_key"}}"#,
            Unauthorized,
        ),
        (403, "no", Unauthorized),
        (
            429,
            r#"{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded"}}"#,
            RateLimited(None),
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            QuotaExceeded,
        ),
        (402, r#"{"error":{"message":"Insufficient Balance"}}"#, QuotaExceeded),
        (
            429,
            r#"{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 17s.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"RetryInfo","retryDelay":"17s"}]}}"#,
            RateLimited(Some(Duration::from_secs(17))),
        ),
        (200, r#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#, RateLimited(None)),
        (
            503,
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            Unavailable(None),
        ),
        (529, r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, Unavailable(None)),
        (504, "", Timeout),
        (502, "<html>Bad Gateway</html>", Failed),
        (500, r#"{"error":{"message":"CUDA error"}}"#, Failed),
        (400, r#"{"error":{"message":"temperature must be at most 2"}}"#, Rejected),
        (422, r#"{"detail":[{"loc":["body","messages"],"msg":"field required"}]}"#, Rejected),
        (400, r#"{"error":{"message":"this model does not support tools"}}"#, Rejected),
    ] {
        assert_eq!(class(status, body), expected, "{status} {body}");
    }
}

#[test]
fn sentences_are_capped_and_hold_no_key() {
    let told =
        |status, body: &str| Told::of_answer(status, body, None).means("m", Some("sk-1")).message;
    assert_eq!(told(400, r#"{"error":{"message":"the key sk-1 is odd"}}"#), "the key [key] is odd");
    assert_eq!(
        told(401, r#"{"error":{"message":"bad key sk-1***"}}"#),
        "The upstream refused the credentials of this server (status 401)."
    );
    assert_eq!(
        told(502, "<html>"),
        "The upstream of the model `m` failed without saying why (status 502)."
    );
    let long = told(400, &format!("ü{}", "ü".repeat(3000)));
    assert!(long.len() <= LONGEST_MESSAGE + 4, "{}", long.len());
    assert_eq!(told(400, "\"\\ud83d!\""), "\u{fffd}!");
}

#[test]
fn refused_parameters_are_named() {
    for (body, expected) in [
        (
            r#"{"error":{"message":"Unknown parameter: 'parallel_tool_calls'","param":"parallel_tool_calls","code":"unknown_parameter"}}"#,
            Some("parallel_tool_calls"),
        ),
        (
            r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}"#,
            Some("max_tokens"),
        ),
        (
            r#"{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}"#,
            Some("stream_options"),
        ),
        (
            r#"{"error":{"message":"Unrecognized request argument supplied: reasoning_effort"}}"#,
            Some("reasoning_effort"),
        ),
        (
            r#"[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"frequency_penalty\": Cannot find field.","status":"INVALID_ARGUMENT"}}]"#,
            Some("frequency_penalty"),
        ),
        (
            r#"{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model.","param":"temperature","code":"unsupported_value"}}"#,
            Some("temperature"),
        ),
        (
            r#"{"error":{"message":"temperature must be at most 2","param":"temperature","code":"invalid_value"}}"#,
            None,
        ),
        (
            r#"{"error":{"message":"Unknown parameter: 'messages'","param":"messages","code":"unknown_parameter"}}"#,
            None,
        ),
        (r#"{"error":{"message":"response_format is not supported"}}"#, None),
        (r#"{"error":{"message":"this model does not support tools"}}"#, None),
    ] {
        assert_eq!(Told::of_answer(400, body, None).refused_param(), expected, "{body}");
    }
    assert_eq!(Told::of_answer(500, "unknown parameter top_p", None).refused_param(), None);
}

#[test]
fn the_output_that_fits_is_worked_out() {
    for (message, asked, expected) in [
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 100 input tokens (5000 > 4096 - 100).",
            5000,
            Some(3996),
        ),
        (
            "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (1000 in the messages, 4000 in the completion).",
            4000,
            Some(3097),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 4000 output tokens and your prompt contains at least 6000 input tokens",
            4000,
            Some(2192),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 100 output tokens and your prompt contains at least 9000 input tokens",
            100,
            None,
        ),
        (
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
            100_000,
            Some(16384),
        ),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 9000, Some(8192)),
        (
            "This endpoint's maximum context length is 128000 tokens. However, you requested about 130000 tokens (2000 of text input, 128000 in the output).",
            128_000,
            Some(126_000),
        ),
        ("something else", 10, None),
    ] {
        let told = Told::of_answer(400, message, None);
        assert_eq!(told.output_that_fits(asked), expected, "{message}");
    }
}
