#!/usr/bin/env bash
# What a reader of the README tries first, with curl alone. usage: ANTIPHON_BASE_URL=http://127.0.0.1:8090/v1 tests/clients/smoke.sh
set -uo pipefail
base=${ANTIPHON_BASE_URL:?names a scripted antiphon}
model=${ANTIPHON_MODEL:-scripted}
passed=0 failed=0
headers=$(mktemp)
trap 'rm -f "$headers"' EXIT

# ask METHOD PATH [BODY]: sets $status and $body.
ask() {
  local answer
  answer=$(curl -sS -m 30 -X "$1" "$base$2" -H "authorization: Bearer ${ANTIPHON_API_KEY:-none}" -H 'content-type: application/json' \
    -D "$headers" -w '\n%{http_code}' ${3:+--data "$3"})
  status=${answer##*$'\n'} body=${answer%$'\n'*}
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

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
