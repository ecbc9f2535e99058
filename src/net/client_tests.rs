use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use axum::{
    Router,
    extract::{Request as Asked, State},
    response::IntoResponse,
};
use pretty_assertions::assert_eq;

use super::*;
use crate::{net::policy::Reach, tasks::Tasks};

/// What a server was asked: one line per request, with the headers we care for.
type Seen = Arc<Mutex<Vec<String>>>;

/// A server on loopback. `/to/STATUS/URL` redirects, `/gzip` answers compressed, `/big` is 100 bytes, `/slow` never ends.
async fn server() -> (u16, Seen, Tasks) {
    let (seen, tasks) = (Seen::default(), Tasks::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().fallback(answer).with_state(seen.clone());
    tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (port, seen, tasks)
}

async fn answer(State(seen): State<Seen>, asked: Asked) -> axum::response::Response {
    let headers = ["accept-encoding", "authorization", "content-type", "x-key", "accept"];
    let headers: String = headers
        .iter()
        .filter_map(|name| {
            Some(format!(" {name}={}", asked.headers().get(*name)?.to_str().unwrap()))
        })
        .collect();
    let line = format!("{} {}{headers}", asked.method(), asked.uri());
    let (parts, body) = asked.into_parts();
    let body = axum::body::to_bytes(body, 1000).await.unwrap();
    let line = format!("{line} {}", String::from_utf8_lossy(&body));
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(line.trim_end().to_owned());
    let path = parts.uri.path();
    if let Some((status, to)) = path.strip_prefix("/to/").and_then(|rest| rest.split_once('/')) {
        let status = StatusCode::from_bytes(status.as_bytes()).unwrap();
        return (status, [("location", to.to_owned())]).into_response();
    }
    match path {
        // "hello", gzipped.
        "/gzip" => {
            let body =
                b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\x07\0\x86\xa6\x106\x05\0\0\0"
                    .as_slice();
            ([("content-encoding", "gzip")], body).into_response()
        }
        "/big" => "x".repeat(100).into_response(),
        "/pieces" => axum::body::Body::from_stream(futures::stream::iter(
            ["x"; 100].map(Ok::<_, std::io::Error>),
        ))
        .into_response(),
        "/slow" => {
            axum::body::Body::from_stream(futures::stream::pending::<std::io::Result<Bytes>>())
                .into_response()
        }
        _ => "ok".into_response(),
    }
}

fn client(reach: Reach, allow: &[String]) -> Client {
    let lo: IpAddr = "127.0.0.1".parse().unwrap();
    let names = HashMap::from([
        ("front.test".to_owned(), vec![lo]),
        ("other.test".to_owned(), vec![lo]),
        ("rebind.test".to_owned(), vec![lo]),
        ("mixed.test".to_owned(), vec!["8.8.8.8".parse().unwrap(), lo]),
    ]);
    let allow = allow.iter().map(|entry| entry.parse().unwrap()).collect();
    let mut settings = GuardedSettings::new(Policy { reach, allow, ..Policy::default() });
    settings.read_timeout = Duration::from_millis(200);
    guarded_with(settings, &Lookup::Table(Arc::new(names))).unwrap()
}

fn get(url: &str) -> Request {
    Request::new(Method::GET, url.parse().unwrap())
}

#[tokio::test]
async fn nothing_out_of_reach_is_ever_connected_to() {
    let (port, seen, _tasks) = server().await;
    let client = client(Reach::Public, &[format!("front.test:{port}")]);
    let secret = format!(
        "http://127.0.0.1:{port}/ http://127.1:{port}/ http://0x7f000001:{port}/ http://2130706433:{port}/ \
         http://0177.0.0.1:{port}/ http://0.0.0.0:{port}/ http://[::1]:{port}/ http://[::ffff:127.0.0.1]:{port}/ \
         http://rebind.test:{port}/ http://rebind.test.:{port}/ http://mixed.test:{port}/ http://user@front.test:{port}/ \
         http://front.test:1/ http://unknown.test:{port}/ file:///etc/passwd ftp://front.test:{port}/"
    );
    for url in secret.split_whitespace() {
        let denied = client.execute(get(url)).await;
        assert!(matches!(denied, Err(NetError::Denied(_))), "{url}: {denied:?}");
    }
    assert_eq!(seen.lock().unwrap().len(), 0);
    // Nor by a redirect, which is asked for and not followed.
    for url in secret.split_whitespace() {
        let denied = client.execute(get(&format!("http://front.test:{port}/to/302/{url}"))).await;
        assert!(matches!(denied, Err(NetError::Denied(_))), "redirect to {url}: {denied:?}");
    }
    assert_eq!(
        seen.lock().unwrap().iter().filter(|line| !line.starts_with("GET /to/302/")).count(),
        0
    );
}

#[tokio::test]
async fn the_bare_clients_are_guarded_too() {
    let (port, seen, _tasks) = server().await;
    let client = client(Reach::Public, &[format!("front.test:{port}")]);
    let front: Url = format!("http://front.test:{port}/").parse().unwrap();
    let public: Url = "https://example.com/".parse().unwrap();
    for (bare, may) in [(client.raw(&front).unwrap(), true), (client.raw(&public).unwrap(), false)]
    {
        assert_eq!(bare.get(front.clone()).send().await.is_ok(), may);
        for url in [
            format!("http://127.0.0.1:{port}/"),
            format!("https://[::1]:{port}/"),
            format!("http://rebind.test:{port}/"),
        ] {
            let error = NetError::from(bare.get(&url).send().await.unwrap_err());
            assert!(matches!(error, NetError::Denied(_)), "{url}: {error:?}");
        }
    }
    assert_eq!(*seen.lock().unwrap(), ["GET / accept-encoding=gzip accept=*/*"]);
}

#[tokio::test]
async fn what_is_listed_is_reached() {
    let (port, _seen, _tasks) = server().await;
    for (reach, entry, url) in [
        (Reach::Public, format!("127.0.0.1:{port}"), format!("http://127.0.0.1:{port}/")),
        (Reach::Public, "127.0.0.0/8".to_owned(), format!("http://rebind.test:{port}/")),
        (Reach::Public, "FRONT.test".to_owned(), format!("http://front.test.:{port}/")),
        (Reach::Any, "unused.test".to_owned(), format!("http://rebind.test:{port}/")),
    ] {
        let answer = client(reach, &[entry]).execute(get(&url)).await.unwrap();
        assert_eq!(read_limited(answer, 2).await.unwrap(), "ok", "{url}");
    }
}

#[tokio::test]
async fn redirects_keep_what_the_next_origin_may_know() {
    let (port, seen, _tasks) = server().await;
    let client = client(Reach::Public, &["front.test".to_owned(), "other.test".to_owned()]);
    let request = |path: &str| {
        let mut request =
            Request::new(Method::POST, format!("http://front.test:{port}{path}").parse().unwrap());
        for (name, value) in [
            ("authorization", "Bearer s"),
            ("x-key", "s"),
            ("content-type", "text/plain"),
            ("accept", "a/b"),
        ] {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        *request.body_mut() = Some("body".into());
        request
    };
    let other = format!("http://other.test:{port}/x");
    for path in [
        "/to/307//same".to_owned(),
        "/to/302//same".to_owned(),
        format!("/to/307/{other}"),
        format!("/to/303/{other}"),
    ] {
        assert!(client.execute(request(&path)).await.unwrap().status().is_success());
    }
    let all = "authorization=Bearer s content-type=text/plain x-key=s accept=a/b body";
    assert_eq!(
        *seen.lock().unwrap(),
        [
            format!("POST /to/307//same accept-encoding=gzip {all}"),
            format!("POST /same accept-encoding=gzip {all}"),
            format!("POST /to/302//same accept-encoding=gzip {all}"),
            "GET /same accept-encoding=gzip authorization=Bearer s x-key=s accept=a/b".to_owned(),
            format!("POST /to/307/{other} accept-encoding=gzip {all}"),
            "POST /x accept-encoding=gzip content-type=text/plain accept=a/b body".to_owned(),
            format!("POST /to/303/{other} accept-encoding=gzip {all}"),
            "GET /x accept-encoding=gzip accept=a/b".to_owned(),
        ]
    );
}

#[tokio::test]
async fn redirects_end() {
    let (port, seen, _tasks) = server().await;
    let client = client(Reach::Public, &["front.test".to_owned()]);
    let front = format!("http://front.test:{port}");
    // A path that redirects to itself.
    let error = client.execute(get(&format!("{front}/to/302/./"))).await;
    assert!(matches!(error, Err(NetError::Denied(Denied::Redirects(10)))), "{error:?}");
    assert_eq!(seen.lock().unwrap().len(), 11);
    // Answers that are no redirect for us.
    for path in ["/to/304//x", "/to/200//x"] {
        assert!(client.execute(get(&format!("{front}{path}"))).await.is_ok());
    }
    let mut stream = Request::new(Method::POST, format!("{front}/to/307//x").parse().unwrap());
    *stream.body_mut() =
        Some(Body::wrap_stream(futures::stream::iter([Ok::<_, std::io::Error>("x")])));
    assert_eq!(client.execute(stream).await.unwrap().status(), 307);
}

#[tokio::test]
async fn bodies_are_limited_and_waited_for_in_vain() {
    let (port, _seen, _tasks) = server().await;
    let client = client(Reach::Any, &[]);
    let ask = async |path: &str| {
        client.execute(get(&format!("http://127.0.0.1:{port}{path}"))).await.unwrap()
    };
    for path in ["/big", "/pieces"] {
        assert_eq!(read_limited(ask(path).await, 100).await.unwrap().len(), 100);
        let error = read_limited(ask(path).await, 99).await.unwrap_err();
        assert_eq!(error.to_string(), "the answer is larger than 99 bytes");
    }
    assert_eq!(read_limited(ask("/gzip").await, 5).await.unwrap(), "hello");
    assert!(matches!(
        read_limited(ask("/gzip").await, 4).await,
        Err(NetError::TooLarge { limit: 4 })
    ));
    let error = read_limited(ask("/slow").await, 1).await.unwrap_err();
    assert_eq!(error.to_string(), "the server at `127.0.0.1` did not answer in time");
}

#[tokio::test]
async fn a_trusted_client_goes_where_it_is_told_and_understands_gzip() {
    let (port, seen, _tasks) = server().await;
    let client = trusted(TrustedSettings::default()).unwrap();
    let answer = client.get(format!("http://127.0.0.1:{port}/gzip")).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "hello");
    assert_eq!(*seen.lock().unwrap(), ["GET /gzip accept-encoding=identity accept=*/*"]);

    let proxy = Some(format!("http://127.0.0.1:{port}").parse().unwrap());
    let client = trusted(TrustedSettings { proxy, ..TrustedSettings::default() }).unwrap();
    assert_eq!(client.get("http://model.invalid/v1").send().await.unwrap().status(), 200);
    assert_eq!(
        seen.lock().unwrap()[1],
        "GET http://model.invalid/v1 accept-encoding=identity accept=*/*"
    );
}
