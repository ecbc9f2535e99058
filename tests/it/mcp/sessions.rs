//! Who shares a session with whom, and when it ends.

use std::sync::Arc;

use antiphon::mcp::{Endpoint, Limits, McpError, Scope, Stats};
use axum::{http::StatusCode, response::IntoResponse as _};
use futures::future::join_all;
use pretty_assertions::assert_eq;
use tokio::sync::{Notify, Semaphore};

use super::{
    Bench, bench, bench_with, endpoint, endpoint_as, limits,
    mock::{good, mock, stateless},
    scope,
};

async fn ping(bench: &Bench, endpoint: &Endpoint, chain: &str) -> String {
    bench.text(endpoint, chain, "ping", "{}").await
}

#[tokio::test]
async fn a_server_with_sessions_gets_one_for_each_chain() {
    let (bench, server) = (bench(), mock(good).await);
    let endpoint = endpoint(&server.url);
    for chain in ["a", "b", "a", "b", "a"] {
        assert_eq!(ping(&bench, &endpoint, chain).await, "pong");
    }
    assert_eq!(server.sessions("POST tools/call"), ["s1", "s2", "s1", "s2", "s1"]);
    assert_eq!(server.count("POST initialize"), 2);
    assert_eq!(bench.pool.stats(), Stats { open: 2, opening: 0, opened: 2 });
    let call = server.seen().into_iter().find(|asked| asked.method == "tools/call").unwrap();
    assert_eq!(call.headers["authorization"], "Bearer tok_SECRET");
    assert_eq!(call.headers["mcp-protocol-version"], "2025-06-18");
    assert_eq!(call.headers["accept"], "application/json, text/event-stream");
    bench.pool.close_chain("t", "a").await;
    assert_eq!(server.sessions("DELETE"), ["s1"]);
    bench.pool.close_chain("other", "b").await;
    assert_eq!(server.count("DELETE"), 1);
    bench.end().await;
    assert_eq!(server.sessions("DELETE"), ["s1", "s2"]);
}

#[tokio::test]
async fn a_server_without_sessions_is_shared_by_one_user_with_one_set_of_headers() {
    let (bench, server) = (bench(), stateless(good).await);
    let mine = endpoint(&server.url);
    for chain in ["a", "b", "c"] {
        assert_eq!(ping(&bench, &mine, chain).await, "pong");
    }
    assert_eq!(server.count("POST initialize"), 1);
    ping(&bench, &endpoint_as(&server.url, "another_token"), "a").await;
    assert_eq!(server.count("POST initialize"), 2);
    for (tenant, user) in [("t", "other"), ("other", "u")] {
        let scope = Scope { tenant: tenant.to_owned(), user: user.to_owned(), ..scope("a") };
        bench.pool.list_tools(&mine, &scope).await.unwrap();
    }
    assert_eq!(server.count("POST initialize"), 4);
    bench.end().await;
    // There is nothing to tell it.
    assert_eq!(server.count("DELETE"), 0);
}

#[tokio::test]
async fn who_comes_at_the_same_time_waits_for_the_same_handshake() {
    for sessions in [true, false] {
        let gate = Arc::new(Semaphore::new(0));
        let held = gate.clone();
        let rule = move |asked: super::mock::Asked| {
            let held = held.clone();
            async move {
                if asked.method == "initialize" {
                    held.acquire().await.unwrap().forget();
                }
                None
            }
        };
        let server = if sessions { mock(rule).await } else { stateless(rule).await };
        let (bench, endpoint) = (bench(), endpoint(&server.url));
        let calls = async {
            let calls = (0..40).map(|n| {
                let (bench, endpoint) = (&bench, &endpoint);
                async move { ping(bench, endpoint, &format!("chain {}", n % 4)).await }
            });
            join_all(calls).await
        };
        let open = async {
            server.until("POST initialize", 1).await;
            // Nobody else has come to the door meanwhile.
            assert_eq!(server.log(), ["POST initialize"]);
            gate.add_permits(100);
        };
        let (answers, ()) = tokio::join!(calls, open);
        assert!(answers.iter().all(|answer| answer == "pong"), "{answers:?}");
        let expected = if sessions { 4 } else { 1 };
        assert_eq!(server.count("POST initialize"), expected);
        assert_eq!(bench.pool.stats().open, expected);
        bench.end().await;
    }
}

#[tokio::test]
async fn a_failed_handshake_fails_who_waits_and_nobody_after() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let server = mock(move |asked| {
        let held = held.clone();
        async move {
            if asked.method == "initialize" && asked.nth == 1 {
                held.acquire().await.unwrap().forget();
                return Some(StatusCode::INTERNAL_SERVER_ERROR.into_response());
            }
            None
        }
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    let both = async { tokio::join!(ping(&bench, &endpoint, "a"), ping(&bench, &endpoint, "b")) };
    let fail = async {
        server.until("POST initialize", 1).await;
        gate.add_permits(1);
    };
    let ((a, b), ()) = tokio::join!(both, fail);
    assert_eq!((&*a, &*b), ("error: the MCP server answered with HTTP status 500", &*a));
    assert_eq!(server.count("POST initialize"), 1);
    assert_eq!(ping(&bench, &endpoint, "a").await, "pong");
    bench.end().await;
}

#[tokio::test]
async fn a_dropped_session_is_renewed_once_and_the_call_repeated_once() {
    let server = mock(async |asked| {
        (asked.method == "tools/call" && asked.nth == 1)
            .then(|| (StatusCode::NOT_FOUND, "session not found").into_response())
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    assert_eq!(ping(&bench, &endpoint, "a").await, "pong");
    assert_eq!(server.sessions("POST tools/call"), ["s1", "s2"]);
    assert_eq!(bench.pool.stats().open, 1);
    bench.end().await;

    let server = mock(async |asked| {
        (asked.method == "tools/call").then(|| StatusCode::NOT_FOUND.into_response())
    })
    .await;
    let (bench, endpoint) = (super::bench(), super::endpoint(&server.url));
    let error = bench.call(&endpoint, "a", "ping", "{}").await.unwrap_err();
    assert_eq!(error, McpError::SessionLost);
    assert_eq!(server.count("POST tools/call"), 2);
    assert_eq!(server.count("POST initialize"), 2);
    bench.end().await;
}

#[tokio::test]
async fn without_a_session_a_404_is_only_a_404() {
    let server = stateless(async |asked| {
        (asked.method == "tools/call").then(|| StatusCode::NOT_FOUND.into_response())
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    let error = bench.call(&endpoint, "a", "ping", "{}").await.unwrap_err();
    assert_eq!(error, McpError::Http(404));
    assert_eq!(server.count("POST tools/call"), 1);
    bench.end().await;
}

#[tokio::test]
async fn dropping_a_call_tells_the_server_and_keeps_the_session() {
    let server = mock(async |asked| {
        if asked.method == "tools/call" && asked.params["name"] == "hang" {
            std::future::pending::<()>().await;
        }
        None
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    let call = bench.text(&endpoint, "a", "hang", "{}");
    tokio::select! {
        answer = call => panic!("{answer}"),
        () = server.until("POST tools/call", 1) => (),
    }
    server.until("POST notifications/cancelled", 1).await;
    let seen = server.seen();
    let hung = seen.iter().find(|asked| asked.method == "tools/call").unwrap();
    let told = seen.iter().find(|asked| asked.method == "notifications/cancelled").unwrap();
    assert_eq!(told.params["requestId"], hung.id);
    assert_eq!(told.session.as_deref(), Some("s1"));
    assert_eq!(ping(&bench, &endpoint, "a").await, "pong");
    assert_eq!(server.count("POST initialize"), 1);
    bench.end().await;
}

#[tokio::test]
async fn who_gives_up_waiting_for_a_handshake_leaves_no_session_behind() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let server = mock(move |asked| {
        let held = held.clone();
        async move {
            if asked.method == "initialize" {
                held.acquire().await.unwrap().forget();
            }
            None
        }
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    tokio::select! {
        answer = ping(&bench, &endpoint, "a") => panic!("{answer}"),
        () = server.until("POST initialize", 1) => (),
    }
    gate.add_permits(1);
    bench.end().await;
    assert_eq!(server.sessions("DELETE"), ["s1"]);
}

#[tokio::test]
async fn idle_sessions_are_closed_and_used_ones_are_not() {
    let release = Arc::new(Notify::new());
    let held = release.clone();
    let server = mock(move |asked| {
        let held = held.clone();
        async move {
            if asked.params["name"] == "slow" {
                held.notified().await;
            }
            None
        }
    })
    .await;
    let (bench, endpoint) = (bench(), endpoint(&server.url));
    ping(&bench, &endpoint, "idle").await;
    let slow = bench.text(&endpoint, "busy", "slow", "{}");
    let rest = async {
        server.until("POST tools/call", 2).await;
        bench.clock.advance(limits().idle.try_into().unwrap());
        bench.pool.sweep().await;
        assert_eq!(server.sessions("DELETE"), ["s1"]);
        assert_eq!(bench.pool.stats().open, 1);
        release.notify_one();
    };
    let (answer, ()) = tokio::join!(slow, rest);
    assert_eq!(answer, "pong");
    bench.pool.sweep().await;
    assert_eq!(bench.pool.stats().open, 1, "it was used just now");
    bench.end().await;
}

#[tokio::test]
async fn too_many_sessions_push_out_the_oldest_idle_one() {
    let (server, bench) = (mock(good).await, bench_with(Limits { sessions: 2, ..limits() }));
    let endpoint = endpoint(&server.url);
    for chain in ["a", "b", "a", "c"] {
        bench.clock.advance(time::Duration::SECOND);
        assert_eq!(ping(&bench, &endpoint, chain).await, "pong");
    }
    server.until("DELETE", 1).await;
    assert_eq!(server.sessions("DELETE"), ["s2"]);
    assert_eq!(bench.pool.stats().open, 2);
    bench.end().await;
}

#[tokio::test]
async fn calls_to_one_server_queue_and_none_is_lost() {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    let server = stateless(move |asked| {
        let held = held.clone();
        async move {
            if asked.method == "tools/call" {
                held.acquire().await.unwrap().forget();
            }
            None
        }
    })
    .await;
    let (bench, endpoint) = (bench_with(Limits { parallel: 3, ..limits() }), endpoint(&server.url));
    let calls = join_all((0..10).map(|_| ping(&bench, &endpoint, "a")));
    let watch = async {
        server.until("POST tools/call", 3).await;
        for done in 1..=7 {
            assert_eq!(server.count("POST tools/call"), 2 + done);
            gate.add_permits(1);
            server.until("POST tools/call", 3 + done).await;
        }
        gate.add_permits(3);
    };
    let (answers, ()) = tokio::join!(calls, watch);
    assert_eq!(answers, ["pong"; 10]);
    bench.end().await;
}

#[tokio::test]
async fn after_the_end_there_are_no_sessions() {
    let (bench, server) = (bench(), mock(good).await);
    let endpoint = endpoint(&server.url);
    bench.pool.shutdown().await;
    let error = bench.call(&endpoint, "a", "ping", "{}").await.unwrap_err();
    assert_eq!((error, server.log()), (McpError::Closed, Vec::new()));
    bench.end().await;
}

#[tokio::test]
async fn many_chains_share_what_may_be_shared_and_leave_nothing() {
    let (keeping, sharing) = (mock(good).await, stateless(good).await);
    let (bench, a, b) = (bench(), endpoint(&keeping.url), endpoint(&sharing.url));
    let all = (0..200).map(|n| {
        let (bench, a, b) = (&bench, &a, &b);
        async move {
            let chain = format!("chain {n}");
            tokio::join!(ping(bench, a, &chain), ping(bench, b, &chain))
        }
    });
    let answers = join_all(all).await;
    assert!(answers.iter().all(|(a, b)| a == "pong" && b == "pong"), "{answers:?}");
    assert_eq!(keeping.count("POST initialize"), 200);
    assert_eq!(sharing.count("POST initialize"), 1);
    let mut sessions = keeping.sessions("POST tools/call");
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 200, "no two chains met in one session");
    assert_eq!(bench.pool.stats(), Stats { open: 201, opening: 0, opened: 201 });
    bench.end().await;
    assert_eq!(keeping.count("DELETE"), 200);
}
