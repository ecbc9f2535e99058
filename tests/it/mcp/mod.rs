//! The pool of MCP sessions against servers: real ones in process, and one that does what no server should.

mod hostile;
pub(crate) mod mock;
mod program;
mod python;
pub(crate) mod real;
mod sessions;
mod transports;

use std::time::Duration;

use antiphon::{
    clock::Clock,
    config::Secret,
    mcp::{Call, CallResult, Endpoint, Limits, McpError, Pool, Scope, Transport, headers},
    net::{Policy, Reach},
    protocol::Raw,
    tasks::Tasks,
};

use crate::support::server::NOW;

/// A pool for one test, with its clock and tasks.
struct Bench {
    pool: Pool,
    clock: Clock,
    tasks: Tasks,
}

fn bench() -> Bench {
    bench_with(limits())
}

fn bench_with(limits: Limits) -> Bench {
    let (clock, tasks) = (Clock::fixed(NOW), Tasks::default());
    let policy = Policy { reach: Reach::Any, ..Policy::default() };
    let pool = Pool::new(policy, Vec::new(), clock.clone(), tasks.clone(), limits).unwrap();
    Bench { pool, clock, tasks }
}

/// Limits that no test runs into by chance.
fn limits() -> Limits {
    Limits { body: 1 << 20, ..Limits::default() }
}

fn scope(chain: &str) -> Scope {
    Scope { tenant: "t".to_owned(), user: "u".to_owned(), chain: chain.to_owned() }
}

fn endpoint(url: &str) -> Endpoint {
    endpoint_as(url, "tok_SECRET")
}

fn endpoint_as(url: &str, token: &str) -> Endpoint {
    let token = Secret::from(token.to_owned());
    let headers = headers::merge(&[], &[], Some(&token)).headers;
    Endpoint::http(url.parse().unwrap(), Transport::Auto, headers)
}

impl Bench {
    async fn call(
        &self,
        endpoint: &Endpoint,
        chain: &str,
        name: &str,
        arguments: &str,
    ) -> Result<CallResult, McpError> {
        let arguments = Raw::parse(arguments).unwrap();
        let call = Call { name, arguments: &arguments, limit: None };
        self.pool.call_tool(endpoint, &scope(chain), call).await
    }

    /// The text of a call's result, or its error.
    async fn text(&self, endpoint: &Endpoint, chain: &str, name: &str, arguments: &str) -> String {
        match self.call(endpoint, chain, name, arguments).await {
            Ok(result) => result.text(),
            Err(error) => format!("error: {error}"),
        }
    }

    async fn names(&self, endpoint: &Endpoint, chain: &str) -> Vec<String> {
        let list = self.pool.list_tools(endpoint, &scope(chain)).await.unwrap();
        list.tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// Closes everything; nothing may be left.
    async fn end(self) {
        self.pool.shutdown().await;
        let stats = self.pool.stats();
        assert_eq!((stats.open, stats.opening), (0, 0));
        assert!(self.tasks.stop(Duration::from_secs(10)).await, "a task is left");
    }
}
