use std::sync::Arc;

use futures::{SinkExt as _, channel::mpsc, future::join};

use super::*;

type Wire = mpsc::UnboundedSender<Result<String, McpError>>;

fn mux() -> (Mux, Wire) {
    let (wire, messages) = mpsc::unbounded();
    (Mux::new(messages.boxed()), wire)
}

fn answer(id: u64) -> String {
    format!(r#"{{"id":{id},"result":{id}}}"#)
}

async fn ask(mux: &Mux, id: u64) -> String {
    match mux.ask(id, Vec::new(), async |_| Ok(())).await {
        Ok(result) => result.json().to_owned(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn answers_find_their_askers_in_any_order() {
    let (mux, mut wire) = mux();
    let (mut a, mut b) = (Box::pin(ask(&mux, 1)), Box::pin(ask(&mux, 2)));
    assert!((&mut a).now_or_never().is_none() && (&mut b).now_or_never().is_none());
    for id in [2, 9, 1] {
        wire.send(Ok(answer(id))).await.unwrap();
    }
    assert_eq!(join(a, b).await, ("1".to_owned(), "2".to_owned()));
    assert!(mux.waiting().askers.is_empty());
}

#[tokio::test]
async fn another_reads_on_when_the_reader_goes() {
    let (mux, mut wire) = mux();
    let mut first = Box::pin(ask(&mux, 1));
    let mut second = Box::pin(ask(&mux, 2));
    assert!((&mut first).now_or_never().is_none());
    assert!((&mut second).now_or_never().is_none());
    drop(first);
    wire.send(Ok(answer(1))).await.unwrap();
    wire.send(Ok(answer(2))).await.unwrap();
    assert_eq!(second.await, "2");
    assert!(mux.waiting().askers.is_empty());
}

#[tokio::test]
async fn the_end_is_told_to_all_and_stays() {
    for (last, expected) in [
        (None, McpError::Ended),
        (Some(Err(McpError::TooLarge(7))), McpError::TooLarge(7)),
        (Some(Ok("{".to_owned())), McpError::Invalid(String::new())),
    ] {
        let (mux, mut wire) = mux();
        assert!(!mux.is_over());
        let (mut a, mut b) = (Box::pin(ask(&mux, 1)), Box::pin(ask(&mux, 2)));
        assert!((&mut a).now_or_never().is_none() && (&mut b).now_or_never().is_none());
        if let Some(last) = last {
            wire.send(last).await.unwrap();
        }
        drop(wire);
        let (a, b) = join(a, b).await;
        assert_eq!(a, b);
        assert!(a.starts_with(expected.to_string().trim_end()), "{a}");
        assert!(mux.is_over());
        assert_eq!(ask(&mux, 3).await, McpError::Ended.to_string());
    }
}

#[tokio::test]
async fn an_end_while_nobody_waits_is_seen() {
    let (mux, mut wire) = mux();
    wire.send(Ok(r#"{"method":"notifications/message"}"#.to_owned())).await.unwrap();
    assert!(!mux.is_over());
    drop(wire);
    assert!(mux.is_over());
}

#[tokio::test]
async fn looking_for_the_end_does_not_read_without_end() {
    let note = || Some((Ok(r#"{"method":"x"}"#.to_owned()), ()));
    let endless = Mux::new(futures::stream::unfold((), move |()| async move { note() }).boxed());
    assert!(!endless.is_over());
}

#[tokio::test]
async fn questions_of_the_server_are_answered_on_the_way() {
    let (mux, mut wire) = mux();
    wire.send(Ok(r#"{"id":5,"method":"ping"}"#.to_owned())).await.unwrap();
    wire.send(Ok(answer(1))).await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let send = |message: Vec<u8>| {
        seen.lock().unwrap().push(String::from_utf8(message).unwrap());
        async { Ok(()) }
    };
    let result = mux.ask(1, b"question".to_vec(), send).await.unwrap();
    assert_eq!(result.json(), "1");
    assert_eq!(*seen.lock().unwrap(), ["question", r#"{"jsonrpc":"2.0","id":5,"result":{}}"#]);
}

#[tokio::test]
async fn closing_ends_who_waits() {
    let (mux, _wire) = mux();
    mux.close().await;
    assert_eq!(ask(&mux, 1).await, McpError::Ended.to_string());
    assert!(mux.is_over());
}
