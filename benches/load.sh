#!/usr/bin/env bash
# What antiphon costs per request: a model that answers at once, a private Postgres in a temporary folder, and clients that
# ask as fast as they are answered. Everything stays on 127.0.0.1. A run with a wrong answer is void and fails.
#   benches/load.sh                     PROFILE=release|dist  BIN=antiphon-to-measure  REQUESTS=4000  SECONDS_MAX=20
#                                       ONLY="JSON, stored"  OUT=load.json
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${PROFILE:-dist}
target=${CARGO_TARGET_DIR:-target}
work=$(mktemp -d)
# The private Postgres of root runs under another user, who must be able to walk to its folder.
chmod 755 "$work"
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap finish EXIT

if [ -z "${BIN:-}" ]; then
  cargo build --quiet --profile "$profile" --bin antiphon
  BIN=$target/$profile/antiphon
fi
rustc --edition 2024 -O -A unknown_lints benches/load.rs -o "$work/load"

"$work/load" upstream >"$work/upstream" &
pids+=($!)
until [ -s "$work/upstream" ]; do sleep 0.05; done
upstream=$(cat "$work/upstream")
: >"$work/banner"
cat >"$work/antiphon.toml" <<TOML
listen = "127.0.0.1:0"
data_dir = "$work/data"
[log]
filter = "warn"
[[upstreams]]
name = "canned"
base_url = "http://127.0.0.1:$upstream/v1"
dialect = "generic"
TOML
env -u DATABASE_URL -u RUST_LOG "$BIN" serve --config "$work/antiphon.toml" >"$work/banner" 2>"$work/log" &
antiphon=$!
pids+=("$antiphon")
until port=$(sed -n 's|.*listens on http://127.0.0.1:\([0-9]*\)/.*|\1|p' "$work/banner") && [ -n "$port" ]; do
  kill -0 "$antiphon" || { cat "$work/log" >&2; exit 1; }
  sleep 0.05
done
# What a start still does in the background is not the cost of a request.
sleep 1

label="$(git describe --always --dirty), $(basename "$(dirname "$(realpath "$BIN")")"), $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
echo "$label"
"$work/load" measure upstream="$upstream" antiphon="$port" pid="$antiphon" ticks="$(getconf CLK_TCK)" \
  requests="${REQUESTS:-4000}" seconds="${SECONDS_MAX:-20}" only="${ONLY:-}" label="$label" json="${OUT:-$target/load.json}" \
  || { cat "$work/log" >&2; exit 1; }
# A server that complained meanwhile was not at its best.
[ ! -s "$work/log" ] || { echo "the log of antiphon:" >&2; head -20 "$work/log" >&2; }
