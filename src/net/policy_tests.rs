use pretty_assertions::assert_eq;

use super::*;

#[test]
fn every_address_has_a_zone() {
    for (expected, addresses) in [
        (
            Zone::Public,
            "8.8.8.8 1.0.0.1 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 192.0.1.1 198.17.0.1 198.20.0.1 223.255.255.255 \
             2606:4700:4700::1111 2001:200::1 ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808::1",
        ),
        (
            Zone::Private,
            "0.0.0.1 10.1.2.3 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255 192.0.0.1 192.0.2.1 198.18.0.1 \
             198.19.255.255 198.51.100.1 203.0.113.1 fc00::1 fd12::1 fec0::1 100::1 5f00::1 3fff::1 2001:db8::1 2001:1ff::1 \
             ::ffff:10.0.0.1 ::8.8.8.8 64:ff9b::a00:1 64:ff9b:1::808:808 2002:a00:1:: 2001:0:4136:e378:8000:63bf:3fff:fdd2 \
             4000::1",
        ),
        (
            Zone::Local,
            "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1::",
        ),
        (
            Zone::Never,
            "0.0.0.0 169.254.169.254 169.254.0.1 100.100.100.200 192.0.0.192 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 \
             :: fe80::1 febf::1 ff02::1 fd00:ec2::254 fd20:ce::254 ::ffff:169.254.169.254 ::169.254.169.254 \
             64:ff9b::a9fe:a9fe 64:ff9b:1::a9fe:a9fe 2002:a9fe:a9fe:: ::ffff:0.0.0.0 \
             2001:0:a9fe:a9fe:: 2001:0:808:808::5601:5601",
        ),
    ] {
        for address in addresses.split_whitespace() {
            assert_eq!(zone(address.parse().unwrap()), expected, "{address}");
        }
    }
}

fn policy(reach: Reach, allow: &[&str]) -> Policy {
    let allow = allow.iter().map(|entry| entry.parse().unwrap()).collect();
    Policy { reach, schemes: Schemes::Web, allow }
}

fn url_is_fine(policy: &Policy, url: &str) -> bool {
    policy.check_url(&url.parse().unwrap()).is_ok()
}

#[test]
fn entries_open_what_they_name() {
    for (entry, opened, closed) in [
        (
            "127.0.0.1",
            "http://127.0.0.1/ http://127.1:9000/ http://[::ffff:127.0.0.1]:1/",
            "http://127.0.0.2/ http://[::1]/",
        ),
        (
            "127.0.0.1:9000",
            "http://127.0.0.1:9000/ http://0x7f000001:9000/",
            "http://127.0.0.1/ http://127.0.0.1:9001/",
        ),
        ("127.0.0.1:443", "https://127.0.0.1/", "http://127.0.0.1/"),
        ("[::1]:9000", "http://[::1]:9000/", "http://[::1]/ http://127.0.0.1:9000/"),
        ("::1", "http://[::1]:9000/", "http://[::2]/"),
        ("10.1.0.0/16", "http://10.1.255.1:9/", "http://10.2.0.1/ http://[fd00::1]/"),
        ("fd12::/16", "http://[fd12:1::1]/", "http://[fd13::1]/ http://10.0.0.1/"),
        (
            "0.0.0.0/0",
            "http://10.0.0.1/ http://127.0.0.1/",
            "http://169.254.169.254/ http://0.0.0.0/ http://[::1]/",
        ),
        (
            "169.254.169.254",
            "http://8.8.8.8/",
            "http://169.254.169.254/ http://[::ffff:a9fe:a9fe]/",
        ),
        ("kubernetes.default:443", "https://kubernetes.default./", "http://kubernetes.default/"),
    ] {
        let policy = policy(Reach::Public, &[entry]);
        for url in opened.split_whitespace() {
            assert!(url_is_fine(&policy, url), "{entry} {url}");
        }
        for url in closed.split_whitespace() {
            assert!(!url_is_fine(&policy, url), "{entry} {url}");
        }
    }
}

#[test]
fn names_are_judged_by_all_their_addresses() {
    let policy =
        policy(Reach::Public, &["10.0.0.5", "10.0.0.6:80", "Intern.Example.:8080", "wiki.example"]);
    let judge = |name, listed, addresses: &[&str]| {
        let addresses: Vec<IpAddr> =
            addresses.iter().map(|address| address.parse().unwrap()).collect();
        policy.check_addresses(name, &addresses, listed).is_ok()
    };
    assert!(judge("a.example", Listed::No, &["8.8.8.8", "2606:4700::1"]));
    assert!(!judge("a.example", Listed::No, &["8.8.8.8", "10.0.0.1"]));
    assert!(!judge("a.example", Listed::No, &[]));
    assert!(judge("a.example", Listed::No, &["10.0.0.5"]));
    // The port is not known here, so this entry is of no use to a name.
    assert!(!judge("a.example", Listed::No, &["10.0.0.6"]));
    assert!(judge("wiki.example", Listed::Yes, &["10.9.9.9", "127.0.0.1"]));
    assert!(!judge("wiki.example", Listed::Yes, &["10.9.9.9", "169.254.169.254"]));
    for (name, port, expected) in [
        ("intern.example", Some(8080), true),
        ("intern.example.", Some(8080), true),
        ("intern.example", Some(80), false),
        ("sub.intern.example", Some(8080), false),
        ("wiki.example", Some(1), true),
        ("wiki.example", None, true),
    ] {
        assert_eq!(policy.lists_name(name, port), expected, "{name} {port:?}");
    }
}

#[test]
fn entries_are_read_and_written() {
    for (entry, written) in [
        ("127.0.0.1", "127.0.0.1"),
        (" 127.0.0.1:9000 ", "127.0.0.1:9000"),
        ("::1", "::1"),
        ("[::1]", "::1"),
        ("[::1]:80", "[::1]:80"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("fd00::/8", "fd00::/8"),
        ("Wiki.Example.", "wiki.example"),
        ("bücher.example:81", "xn--bcher-kva.example:81"),
        ("localhost:9000", "localhost:9000"),
    ] {
        assert_eq!(entry.parse::<Allow>().unwrap().to_string(), written);
    }
    for bad in [
        "",
        ".",
        ":80",
        "a b",
        "http://a.example",
        "a.example:",
        "a.example:99999",
        "10.0.0.0/33",
        "fd00::/129",
        "10.0.0/8",
        "a.example/8",
        "*",
    ] {
        let error = bad.parse::<Allow>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`{bad}` is not a host, host:port, address, address:port or network/bits")
        );
    }
}

#[test]
fn denials_say_why_and_do_not_tell_the_inner_network() {
    let policy = policy(Reach::Public, &[]);
    let denied = |url: &str| policy.check_url(&url.parse().unwrap()).unwrap_err().to_string();
    assert_eq!(denied("ftp://a.example/"), "the URL's scheme `ftp` is not allowed");
    assert_eq!(denied("http://u@a.example/"), "the URL must not hold a user name or password");
    assert_eq!(
        denied("http://127.1/"),
        "the host `127.0.0.1` leads to an address that is not allowed"
    );
    assert_eq!(
        denied("http://metadata.google.internal/"),
        "the host `metadata.google.internal` is not allowed"
    );
    let behind = policy
        .check_addresses("a.example", &["10.1.2.3".parse().unwrap()], Listed::No)
        .unwrap_err();
    assert_eq!(behind.to_string(), "the host `a.example` leads to an address that is not allowed");
}
