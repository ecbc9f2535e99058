#!/usr/bin/env bash
# What a reader of the README tries first, with curl alone. usage: ANTIPHON_BASE_URL=http://127.0.0.1:8090/v1 tests/clients/smoke.sh
# With SMOKE_BODIES, a folder, every answer is kept there for bodies.py.
set -uo pipefail
base=${ANTIPHON_BASE_URL:?names a scripted antiphon}
model=${ANTIPHON_MODEL:-scripted}
passed=0 failed=0 asked=0
headers=$(mktemp)
trap 'rm -f "$headers"' EXIT

# ask METHOD PATH [BODY]: sets $status and $body.
ask() {
  local answer
  answer=$(curl -sS -m 30 -X "$1" "$base$2" -H "authorization: Bearer ${ANTIPHON_API_KEY:-none}" -H 'content-type: application/json' \
    -D "$headers" -w '\n%{http_code}' ${3:+--data "$3"})
  status=${answer##*$'\n'} body=${answer%$'\n'*}
  asked=$((asked + 1))
  [ -z "${SMOKE_BODIES:-}" ] || printf '%s %s %s\n%s\n' "$1" "$2" "$status" "$body" >"$SMOKE_BODIES/$(printf %03d "$asked")"
}
# check NAME CONDITION...: counts, and shows what came when the condition does not hold.
check() {
  local name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED %s\n  status %s\n  %s\n' "$name" "$status" "${body:0:600}" >&2
  fi
}
holds() { [[ $body == *"$1"* ]]; }
is() { [[ $status == "$1" ]]; }
field() { python3 -c 'import functools, json, sys; print(functools.reduce(lambda o, k: o[int(k) if k.isdigit() else k], sys.argv[1].split("."), json.load(sys.stdin)))' "$1" <<<"$body" 2>/dev/null; }
# field_is PATH VALUE
field_is() { [[ $(field "$1") == "$2" ]]; }
ends_with_done() { [[ $body == *$'\n\ndata: [DONE]' || $body == *$'\n\ndata: [DONE]\n' || $body == *$'\n\ndata: [DONE]\n\n' ]]; }
# Each event's line names the type that its data carries, in the same order.
lines_match() {
  python3 -c '
import json, sys
event = None
for line in sys.stdin.read().split("\n"):
    if line.startswith("event: "):
        event = line[7:]
    elif line.startswith("data: {") and json.loads(line[6:])["type"] != event:
        sys.exit(1)
' <<<"$body"
}
header_is() { grep -qi "^$1: *$2" "$headers"; }

ask POST /responses "{\"model\":\"$model\",\"input\":\"Say hello.\"}"
check 'a JSON answer is 200' is 200
check 'a JSON answer says what the script says' holds 'Hello from the script.'
check 'a JSON answer is completed' field_is status completed
id=$(field id)

ask GET "/responses/$id"
check 'a response can be fetched' is 200
check 'the fetched response is the same' field_is id "$id"
ask GET "/responses/$id/input_items"
check 'its input items can be listed' field_is data.0.content.0.text 'Say hello.'

ask POST /responses "{\"model\":\"$model\",\"input\":\"Tell a story.\",\"stream\":true}"
check 'a stream is 200' is 200
check 'a stream is an event stream' header_is content-type text/event-stream
check 'a stream is not stored on the way' header_is cache-control no-cache
check 'a stream begins with created' [ "${body%%$'\n'*}" = 'event: response.created' ]
check 'a stream has the terminal event' holds 'event: response.completed'
check 'a stream ends with [DONE]' ends_with_done
check 'event lines and types agree' lines_match

weather='"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]'
ask POST /responses "{\"model\":\"$model\",\"input\":\"What is the weather in Oslo?\",$weather}"
check 'a function is called' field_is output.0.name get_weather
first=$(field id) call=$(field output.0.call_id)
ask POST /responses "{\"model\":\"$model\",\"previous_response_id\":\"$first\",$weather,\"input\":[{\"type\":\"function_call_output\",\"call_id\":\"$call\",\"output\":\"rain, 7 degrees\"}]}"
check 'its output goes on by id' field_is output.0.content.0.text 'It rains in Oslo at 7 degrees.'
check 'the answer names what it goes on from' field_is previous_response_id "$first"
ask GET "/responses/$(field id)/input_items?limit=1&order=asc"
check 'a page of one has more behind it' field_is has_more True
ask POST /responses "{\"model\":\"$model\",\"input\":\"What is the weather in Oslo and Rome?\",\"stream\":true,$weather}"
check 'a stream has calls' holds 'event: response.function_call_arguments.done'
ask POST /responses "{\"model\":\"$model\",\"input\":\"Think it over.\",\"stream\":true}"
check 'a stream has raw reasoning' holds 'event: response.reasoning_text.delta'
ask POST /responses "{\"model\":\"$model\",\"input\":\"Think it over.\",\"stream\":true,\"reasoning\":{\"summary\":\"auto\"}}"
check 'a stream has a summary when asked' holds 'event: response.reasoning_summary_text.delta'
ask POST /responses "{\"model\":\"$model\",\"input\":\"Run out of tokens.\"}"
check 'an answer can be incomplete' field_is incomplete_details.reason max_output_tokens
ask POST /responses "{\"model\":\"$model\",\"input\":\"Break off.\",\"stream\":true}"
check 'a stream that breaks says so' holds 'event: response.failed'
ask POST /responses "{\"model\":\"$model\",\"input\":\"Be refused.\"}"
check 'a refusal of the model keeps its status' is 429

ask GET /models
check 'the models can be listed' field_is object list
ask GET "/models/$model"
check 'a model can be looked up' field_is id "$model"
ask GET /models/nobody
check 'a model that is not there is 404' is 404

ask POST /responses/input_tokens "{\"model\":\"$model\",\"input\":\"Say hello.\"}"
check 'tokens can be counted' field_is object response.input_tokens

ask POST /conversations '{"metadata":{"topic":"hello"},"items":[{"role":"user","content":"I am Ada."}]}'
check 'a conversation can be made' field_is object conversation
talk=$(field id)
ask POST /responses "{\"model\":\"$model\",\"input\":\"Say hello.\",\"conversation\":\"$talk\"}"
check 'a response can be part of it' field_is conversation.id "$talk"
ask GET "/conversations/$talk/items?order=asc"
check 'what was said is in it' field_is data.2.content.0.text 'Hello from the script.'
item=$(field data.0.id)
ask GET "/conversations/$talk/items/$item"
check 'an item of it can be fetched' field_is content.0.text 'I am Ada.'
ask DELETE "/conversations/$talk/items/$item"
check 'an item of it can be deleted' field_is id "$talk"
ask POST "/conversations/$talk/items" '{"items":[{"role":"user","content":"Bye."}]}'
check 'an item can be added' field_is data.0.content.0.text 'Bye.'
ask POST "/conversations/$talk" '{"metadata":{"topic":"bye"}}'
check 'its metadata can be changed' field_is metadata.topic bye
ask GET "/conversations/$talk"
check 'the change is kept' field_is metadata.topic bye
ask DELETE "/conversations/$talk"
check 'a conversation can be deleted' field_is object conversation.deleted
ask GET "/conversations/$talk"
check 'a deleted conversation is 404' is 404

ask DELETE "/responses/$id"
check 'a response can be deleted' field_is deleted True
ask GET "/responses/$id"
check 'a deleted response is 404' is 404
check 'a 404 has the error envelope' field_is error.type invalid_request_error
ask GET /nowhere
check 'an unknown path is 404' is 404
check 'an unknown path has the error envelope' field_is error.type invalid_request_error

ask POST /responses "{\"model\":\"$model\",\"input\":\"Say hello.\",\"temperature\":\"hot\"}"
check 'a wrong type is 400' is 400
check 'a wrong type names the parameter' field_is error.param temperature
ask POST /responses "{\"model\":\"$model\",\"input\":"
check 'broken JSON is 400' is 400
check 'broken JSON has the error envelope' field_is error.type invalid_request_error
ask POST /responses "{\"model\":\"$model\",\"input\":\"Say hello.\",\"previous_response_id\":\"$id\"}"
check 'going on from nothing is 400' field_is error.code previous_response_not_found
for odd in a%00b %ff; do
  ask GET "/responses/$odd"
  check "an address that is no text ($odd) is 400" is 400
  check "an address that is no text ($odd) has the error envelope" field_is error.type invalid_request_error
done
ask PUT /responses '{}'
check 'a method that is not there is 405' is 405

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
