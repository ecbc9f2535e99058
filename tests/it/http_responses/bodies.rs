//! A whole answer, as JSON and as the bytes of a stream.

use insta::assert_snapshot;
use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{create, id};
use crate::support::{
    model::{Round, Script, call, say, stop, text, usage},
    server::start,
    stream::{Listener, streaming},
};

fn pretty(body: &Value) -> String {
    serde_json::to_string_pretty(body).unwrap()
}

#[tokio::test]
async fn as_json() {
    let server = start(Script::new([text("Hello!")])).await;
    let response = create(&server, json!({ "model": "m", "input": "Hi" })).await;
    assert_snapshot!(pretty(&response), @r#"
    {
      "id": "resp_00000000000000000000000000000002",
      "object": "response",
      "created_at": 1772366400,
      "completed_at": 1772366400,
      "status": "completed",
      "error": null,
      "incomplete_details": null,
      "output": [
        {
          "type": "message",
          "id": "msg_000000000000000000000000000000020000",
          "status": "completed",
          "role": "assistant",
          "content": [
            {
              "type": "output_text",
              "text": "Hello!",
              "annotations": [],
              "logprobs": []
            }
          ]
        }
      ],
      "usage": {
        "input_tokens": 5,
        "input_tokens_details": {
          "cached_tokens": 0,
          "cache_write_tokens": 0
        },
        "output_tokens": 2,
        "output_tokens_details": {
          "reasoning_tokens": 0
        },
        "total_tokens": 7
      },
      "model": "m",
      "previous_response_id": null,
      "conversation": null,
      "instructions": null,
      "tools": [],
      "tool_choice": "auto",
      "parallel_tool_calls": true,
      "max_tool_calls": null,
      "max_output_tokens": null,
      "text": {
        "format": {
          "type": "text"
        }
      },
      "reasoning": null,
      "truncation": "disabled",
      "temperature": 1.0,
      "top_p": 1.0,
      "presence_penalty": 0.0,
      "frequency_penalty": 0.0,
      "top_logprobs": 0,
      "store": true,
      "background": false,
      "service_tier": "default",
      "metadata": {},
      "safety_identifier": null,
      "prompt_cache_key": null
    }
    "#);
    assert_eq!(server.get(&format!("/v1/responses/{}", id(&response))).await, (200, response));
}

#[tokio::test]
async fn with_everything_asked_for() {
    let server = start(Script::new([call("call_1", "weather", "{\"city\":\"Paris\"}")])).await;
    let body = json!({
        "model": "m",
        "instructions": "Be short.",
        "input": [{ "role": "user", "content": [{ "type": "input_text", "text": "Weather?" }] }],
        "tools": [{ "type": "function", "name": "weather", "parameters": { "type": "object", "properties": { "city": { "type": "string" } } } }],
        "tool_choice": { "type": "function", "name": "weather" },
        "parallel_tool_calls": false,
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 100,
        "max_tool_calls": 3,
        "reasoning": { "effort": "low" },
        "text": { "format": { "type": "json_object" }, "verbosity": "low" },
        "metadata": { "a": "b" },
        "user": "u",
        "unknown_field": { "x": 1 },
    });
    let response = create(&server, body).await;
    assert_snapshot!(pretty(&response), @r#"
    {
      "id": "resp_00000000000000000000000000000002",
      "object": "response",
      "created_at": 1772366400,
      "completed_at": 1772366400,
      "status": "completed",
      "error": null,
      "incomplete_details": null,
      "output": [
        {
          "type": "function_call",
          "id": "fc_000000000000000000000000000000020000",
          "status": "completed",
          "call_id": "call_1",
          "name": "weather",
          "arguments": "{\"city\":\"Paris\"}"
        }
      ],
      "usage": {
        "input_tokens": 5,
        "input_tokens_details": {
          "cached_tokens": 0,
          "cache_write_tokens": 0
        },
        "output_tokens": 2,
        "output_tokens_details": {
          "reasoning_tokens": 0
        },
        "total_tokens": 7
      },
      "model": "m",
      "previous_response_id": null,
      "conversation": null,
      "instructions": "Be short.",
      "tools": [
        {
          "type": "function",
          "name": "weather",
          "description": null,
          "parameters": {
            "type": "object",
            "properties": {
              "city": {
                "type": "string"
              }
            }
          },
          "strict": false
        }
      ],
      "tool_choice": {
        "type": "function",
        "name": "weather"
      },
      "parallel_tool_calls": false,
      "max_tool_calls": 3,
      "max_output_tokens": 100,
      "text": {
        "format": {
          "type": "json_object"
        },
        "verbosity": "low"
      },
      "reasoning": {
        "effort": "low",
        "summary": null
      },
      "truncation": "disabled",
      "temperature": 0.5,
      "top_p": 0.9,
      "presence_penalty": 0.0,
      "frequency_penalty": 0.0,
      "top_logprobs": 0,
      "store": true,
      "background": false,
      "service_tier": "default",
      "metadata": {
        "a": "b"
      },
      "safety_identifier": null,
      "prompt_cache_key": null,
      "user": "u"
    }
    "#);
    assert_eq!(server.get(&format!("/v1/responses/{}", id(&response))).await, (200, response));
}

#[tokio::test]
async fn as_a_stream() {
    let script = Script::new([
        Round::Play(vec![say("Hel"), say("lo!"), usage(), stop()]),
        Round::Play(vec![say("Hel"), say("lo!"), usage(), stop()]),
    ]);
    let server = start(script).await;
    let body = json!({ "model": "m", "input": "Hi" });
    let answer = server.request("POST", "/v1/responses").json(&streaming(&body)).send().await;
    let answer = answer.unwrap();
    let header = |name: &str| answer.headers()[name].to_str().unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(header("content-type"), "text/event-stream; charset=utf-8");
    assert_eq!(header("cache-control"), "no-cache");
    assert_eq!(header("x-accel-buffering"), "no");
    let bytes = answer.text().await.unwrap();
    assert!(bytes.starts_with("event: ") && bytes.ends_with("\n\ndata: [DONE]\n\n"));
    assert_snapshot!(bytes, @r#"
    event: response.created
    data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_00000000000000000000000000000002","object":"response","created_at":1772366400,"completed_at":null,"status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null,"model":"m","previous_response_id":null,"conversation":null,"instructions":null,"tools":[],"tool_choice":"auto","parallel_tool_calls":true,"max_tool_calls":null,"max_output_tokens":null,"text":{"format":{"type":"text"}},"reasoning":null,"truncation":"disabled","temperature":1.0,"top_p":1.0,"presence_penalty":0.0,"frequency_penalty":0.0,"top_logprobs":0,"store":true,"background":false,"service_tier":"default","metadata":{},"safety_identifier":null,"prompt_cache_key":null}}

    event: response.in_progress
    data: {"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_00000000000000000000000000000002","object":"response","created_at":1772366400,"completed_at":null,"status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null,"model":"m","previous_response_id":null,"conversation":null,"instructions":null,"tools":[],"tool_choice":"auto","parallel_tool_calls":true,"max_tool_calls":null,"max_output_tokens":null,"text":{"format":{"type":"text"}},"reasoning":null,"truncation":"disabled","temperature":1.0,"top_p":1.0,"presence_penalty":0.0,"frequency_penalty":0.0,"top_logprobs":0,"store":true,"background":false,"service_tier":"default","metadata":{},"safety_identifier":null,"prompt_cache_key":null}}

    event: response.output_item.added
    data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"type":"message","id":"msg_000000000000000000000000000000020000","status":"in_progress","role":"assistant","content":[]}}

    event: response.content_part.added
    data: {"type":"response.content_part.added","sequence_number":3,"item_id":"msg_000000000000000000000000000000020000","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}

    event: response.output_text.delta
    data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_000000000000000000000000000000020000","output_index":0,"content_index":0,"delta":"Hel","logprobs":[]}

    event: response.output_text.delta
    data: {"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_000000000000000000000000000000020000","output_index":0,"content_index":0,"delta":"lo!","logprobs":[]}

    event: response.output_text.done
    data: {"type":"response.output_text.done","sequence_number":6,"item_id":"msg_000000000000000000000000000000020000","output_index":0,"content_index":0,"text":"Hello!","logprobs":[]}

    event: response.content_part.done
    data: {"type":"response.content_part.done","sequence_number":7,"item_id":"msg_000000000000000000000000000000020000","output_index":0,"content_index":0,"part":{"type":"output_text","text":"Hello!","annotations":[],"logprobs":[]}}

    event: response.output_item.done
    data: {"type":"response.output_item.done","sequence_number":8,"output_index":0,"item":{"type":"message","id":"msg_000000000000000000000000000000020000","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello!","annotations":[],"logprobs":[]}]}}

    event: response.completed
    data: {"type":"response.completed","sequence_number":9,"response":{"id":"resp_00000000000000000000000000000002","object":"response","created_at":1772366400,"completed_at":1772366400,"status":"completed","error":null,"incomplete_details":null,"output":[{"type":"message","id":"msg_000000000000000000000000000000020000","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello!","annotations":[],"logprobs":[]}]}],"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":7},"model":"m","previous_response_id":null,"conversation":null,"instructions":null,"tools":[],"tool_choice":"auto","parallel_tool_calls":true,"max_tool_calls":null,"max_output_tokens":null,"text":{"format":{"type":"text"}},"reasoning":null,"truncation":"disabled","temperature":1.0,"top_p":1.0,"presence_penalty":0.0,"frequency_penalty":0.0,"top_logprobs":0,"store":true,"background":false,"service_tier":"default","metadata":{},"safety_identifier":null,"prompt_cache_key":null}}

    data: [DONE]
    "#);

    let heard = Listener::open(&server, &body).await.whole().await;
    let kept = server.get(&format!("/v1/responses/{}", id(&heard.response))).await;
    assert_eq!(kept, (200, heard.response));
}

#[tokio::test]
async fn all_three_are_the_same() {
    let script = || [call("call_1", "weather", "{\"city\":\"Paris\"}")];
    let body = json!({ "model": "m", "input": "Weather?", "tools": [{ "type": "function", "name": "weather" }] });
    let (one, other) = (start(Script::new(script())).await, start(Script::new(script())).await);
    let whole = create(&one, body.clone()).await;
    let heard = Listener::open(&other, &body).await.whole().await;
    assert_eq!(heard.response, whole);
}
