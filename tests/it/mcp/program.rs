//! Programs of the operator's.

use std::{collections::BTreeMap, time::Duration};

use antiphon::mcp::{Command, Endpoint, Limits, McpError};
use pretty_assertions::assert_eq;

use super::{bench, bench_with, limits};

/// A server in shell. `env` tells its environment, `pid` who it is, `crash` ends it, `flood` writes without end.
const SERVER: &str = r#"
echo "a line that is no message"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  text() { say "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
  case $line in
    *'"initialize"'*) say '{"protocolVersion":"2025-06-18"}' ;;
    *'"tools/list"'*) say '{"tools":[{"name":"env"},{"name":"pid"}]}' ;;
    *'"name":"env"'*) text "$(env | grep -v -e ^_= -e ^PWD= -e ^SHLVL= -e ^OLDPWD= | sort | tr '\n' ' ')" ;;
    *'"name":"pid"'*) text "$$" ;;
    *'"name":"crash"'*) exit 3 ;;
    *'"name":"flood"'*) while :; do printf '{xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'; done ;;
    *'"name":"child"'*) sleep 1000 & text "$!" ;;
  esac
done
"#;

fn program(script: &str) -> Endpoint {
    let env = BTreeMap::from([
        ("PATH".to_owned(), "/usr/bin:/bin".to_owned().into()),
        ("KEY".to_owned(), "value".to_owned().into()),
    ]);
    let args = vec!["-c".to_owned(), script.to_owned()];
    Endpoint::command(Command { program: "sh".to_owned(), args, env, dir: None })
}

fn lives(pid: &str) -> bool {
    // A zombie that nobody has reaped yet is dead.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim().starts_with('Z'))
}

async fn dies(pid: &str) {
    for _ in 0..500 {
        if !lives(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{pid} is left");
}

#[tokio::test]
async fn a_program_serves_one_chain_with_the_environment_it_is_given() {
    let (bench, server) = (bench(), program(SERVER));
    assert_eq!(bench.names(&server, "a").await, ["env", "pid"]);
    assert_eq!(bench.text(&server, "a", "env", "{}").await, "KEY=value PATH=/usr/bin:/bin ");
    let (a, again) =
        (bench.text(&server, "a", "pid", "{}").await, bench.text(&server, "a", "pid", "{}").await);
    let b = bench.text(&server, "b", "pid", "{}").await;
    assert_eq!(a, again);
    assert_ne!(a, b);
    assert!(lives(&a) && lives(&b));
    let child = bench.text(&server, "a", "child", "{}").await;
    bench.pool.close_chain("t", "a").await;
    dies(&a).await;
    dies(&child).await;
    assert!(lives(&b));
    bench.end().await;
    dies(&b).await;
}

#[tokio::test]
async fn a_program_that_ends_in_a_call_is_started_again_for_the_next() {
    let (bench, server) = (bench(), program(SERVER));
    let first = bench.text(&server, "a", "pid", "{}").await;
    assert_eq!(bench.call(&server, "a", "crash", "{}").await, Err(McpError::Ended));
    let second = bench.text(&server, "a", "pid", "{}").await;
    assert!(first != second && lives(&second), "{first} {second}");
    assert_eq!(bench.call(&server, "a", "flood", "{}").await, Err(McpError::TooLarge(1 << 20)));
    assert!(lives(&bench.text(&server, "a", "pid", "{}").await));
    bench.end().await;
    dies(&second).await;
}

#[tokio::test]
async fn what_cannot_be_started_or_says_nothing_is_an_error() {
    let short = Duration::from_secs(1);
    let bench = bench_with(Limits { answer: short, ..limits() });
    let nothing = Endpoint::command(Command {
        program: "/nowhere/to/be/found".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        dir: None,
    });
    assert_eq!(bench.call(&nothing, "a", "x", "{}").await, Err(McpError::NotStarted));
    assert_eq!(bench.call(&program("exit 1"), "a", "x", "{}").await, Err(McpError::Ended));
    assert_eq!(bench.call(&program("sleep 1000"), "a", "x", "{}").await, Err(McpError::Timeout(1)));
    bench.end().await;
}
