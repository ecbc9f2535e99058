//! The upstream dies.

use serde_json::json;

use super::{Answered, question, rich, stored, stream};
use crate::support::{
    server::{PATIENCE, Setup, start_before, upstreams},
    upstream::{End, Framing, Upstream},
};

/// The ends of the frames, and twenty places anywhere.
fn places(frames: &[String]) -> Vec<usize> {
    let mut end = 0;
    let mut places = vec![0];
    places.extend(frames.iter().map(|frame| {
        end += frame.len();
        end
    }));
    let mut random = 7_usize;
    places.extend((0..20).map(|_| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % end
    }));
    places
}

#[tokio::test]
async fn it_dies_at_each_frame_and_anywhere() {
    let (answer, frames) = rich();
    // Once the model has said why it stopped, nothing is missing.
    let enough = frames[..frames.len() - 2].iter().map(String::len).sum::<usize>();
    let upstream = Upstream::start([]).await;
    let router = upstreams(vec![upstream.settings("u", &json!({}))], PATIENCE);
    let server = start_before(router, Setup::default()).await;
    let (mut asked, mut completed, mut told) = (0, 0, 0);
    for (framing, end) in
        [(Framing::Chunked, End::Cut), (Framing::Eof, End::Cut), (Framing::Chunked, End::Reset)]
    {
        for place in places(&frames) {
            upstream.push(answer.clone().first(place).ends(framing, end));
            asked += 1;
            let answered = stream(&server, &question()).await;
            let status = answered.status();
            if end == End::Cut {
                // The empty line after a frame may be missing.
                let whole = place + 2 >= enough;
                assert_eq!(status == "completed", whole, "{framing:?} at {place}: {status}");
            }
            completed += i64::from(status == "completed");
            match answered {
                Answered::Refused { status, .. } => assert_eq!(status, 502),
                Answered::Heard(heard) => {
                    told += 1;
                    let id = heard.response["id"].as_str().unwrap();
                    let (_, kept) = server.get(&format!("/v1/responses/{id}")).await;
                    assert_eq!(kept, heard.response, "{framing:?} at {place}");
                }
            }
        }
    }
    assert!(completed > 3 && told > completed);
    let expected = [("completed".to_owned(), completed), ("failed".to_owned(), asked - completed)];
    assert_eq!(stored(&server.pool).await, expected);
    assert_eq!(upstream.asked().len(), usize::try_from(asked).unwrap());
}

#[tokio::test]
async fn a_json_client_is_told_as_well() {
    let (answer, frames) = rich();
    let upstream = Upstream::start([]).await;
    let router = upstreams(vec![upstream.settings("u", &json!({}))], PATIENCE);
    let server = start_before(router, Setup::default()).await;
    for place in [0, 10, frames[0].len(), frames[..5].concat().len()] {
        upstream.push(answer.clone().first(place).ends(Framing::Chunked, End::Cut));
        let (status, body) = server.post("/v1/responses", question()).await;
        assert_eq!((status, &body["error"]["type"]), (502, &json!("server_error")), "{body}");
    }
    assert_eq!(stored(&server.pool).await, [("failed".to_owned(), 4)]);
}
