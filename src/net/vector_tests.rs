//! The guard against the shared vectors, as their README says which values are right.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use reqwest::StatusCode;
use serde_json::Value;
use url::{Host, Url};

use crate::text::vectors::{report, vectors};

use super::{
    client::next_hop,
    policy::{Denied, Listed, Policy, Reach, Schemes, Zone, zone},
    resolve::{Guard, Lookup},
};

fn cases(section: &str) -> Vec<Value> {
    vectors("ssrf.json", section)
}

fn reach(level: &str) -> Reach {
    match level {
        "validate_all" | "validate_llm" => Reach::Public,
        "allow_private_network" => Reach::Private,
        "disabled" => Reach::Any,
        other => panic!("level {other}"),
    }
}

fn table(dns: &Value) -> Lookup {
    let addresses = |found: &Value| -> Vec<IpAddr> {
        found
            .as_array()
            .into_iter()
            .flatten()
            .map(|address| address.as_str().unwrap().parse().unwrap())
            .collect()
    };
    let table: HashMap<_, _> = dns
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, found)| {
            (
                Host::parse(name).unwrap().to_string().trim_end_matches('.').to_owned(),
                addresses(found),
            )
        })
        .collect();
    Lookup::Table(Arc::new(table))
}

/// What the guard does before it connects.
async fn judge(url: &Url, policy: Policy, dns: &Value) -> Result<(), Denied> {
    policy.check_url(url)?;
    if let Some(Host::Domain(name)) = url.host() {
        let guard = Guard { policy: Arc::new(policy), listed: Listed::No, lookup: table(dns) };
        guard.resolve_name(name).await?;
    }
    Ok(())
}

#[test]
fn levels_reach_as_far_as_they_should() {
    let zones = [Zone::Public, Zone::Private, Zone::Local, Zone::Never];
    for case in cases("policy") {
        let reach = reach(case["level"].as_str().unwrap());
        let reached = |reach: Reach| zones.map(|zone| reach.covers(zone));
        let flag = |name: &str| case["mcp_oauth"][name].as_bool().unwrap();
        let (private, local) =
            (flag("allow_private_network"), !flag("block_loopback_and_link_local"));
        assert_eq!(reached(reach), [true, private, local, false], "{case}");
        assert!(!local || flag("block_link_local_only"), "{case}");
        let private = case["open_url_private_allowed"].as_bool().unwrap();
        assert_eq!(reached(reach.for_model()), [true, private, false, false], "{case}");
    }
}

#[tokio::test]
async fn urls_are_judged() {
    let (mut asserted, mut informative, mut wrong) = (0, 0, Vec::new());
    for case in cases("cases") {
        for (mode, levels) in case["expected"].as_object().unwrap() {
            for (level, expected) in levels.as_object().unwrap() {
                let recommended = &case["recommended"][mode][level];
                if !recommended.is_array() && case.get("onyx_quirk").is_some() {
                    informative += 1;
                    continue;
                }
                let expected = if recommended.is_array() { recommended } else { expected };
                let reach = if mode == "mcp" { reach(level) } else { reach(level).for_model() };
                let schemes =
                    if case["https_only"] == true { Schemes::HttpsOnly } else { Schemes::Web };
                let allowed = match Url::parse(case["url"].as_str().unwrap()) {
                    Err(_) => false,
                    Ok(url) => {
                        judge(&url, Policy { reach, schemes, allow: Vec::new() }, &case["dns"])
                            .await
                            .is_ok()
                    }
                };
                asserted += 1;
                if allowed != (expected[0] == "allow") {
                    wrong.push(format!(
                        "{} {mode} {level}: {expected}, allowed: {allowed}",
                        case["id"]
                    ));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(asserted > 100, "{asserted} asserted");
    report("ssrf.json", "cases", asserted, informative);
}

/// Networks that the original takes for public, and the rules that go with the vectors do not.
fn is_known_hole(address: IpAddr) -> bool {
    let holes = [("fec0::", 10), ("5f00::", 16), ("3fff::", 20), ("64:ff9b::", 96), ("::", 96)];
    let IpAddr::V6(address) = address else { return false };
    holes.iter().any(|(network, bits)| {
        let network: Ipv6Addr = network.parse().unwrap();
        (network.to_bits() ^ address.to_bits()).leading_zeros() >= *bits
    })
}

#[test]
fn addresses_are_in_their_zones() {
    let (mut asserted, mut informative) = (0, 0);
    for case in cases("ips") {
        let parsed = case["ip"].as_str().unwrap().parse::<IpAddr>();
        let found = parsed.as_ref().map_or(Zone::Never, |address| zone(*address));
        if case["private_or_reserved"] == true {
            assert_ne!(found, Zone::Public, "{case}");
        } else if parsed.is_ok_and(is_known_hole) {
            informative += 1;
            continue;
        } else {
            assert_eq!(found, Zone::Public, "{case}");
        }
        for (class, expected) in [
            ("loopback", Zone::Local),
            ("unspecified", Zone::Never),
            ("link_local", Zone::Never),
            ("multicast", Zone::Never),
        ] {
            if case["classes"][class] == true {
                assert_eq!(found, expected, "{case}");
            }
        }
        asserted += 1;
    }
    assert!(asserted > 20, "{asserted} asserted");
    report("ssrf.json", "ips", asserted, informative);
}

#[tokio::test]
async fn redirects_are_judged_hop_by_hop() {
    let (mut asserted, mut informative) = (0, 0);
    for case in cases("redirects") {
        let right =
            if case["recommended"].is_object() { &case["recommended"] } else { &case["expected"] };
        // A quirk that only changes how the request is sent leaves the result right: those with one hop.
        if case.get("onyx_quirk").is_some()
            && case["recommended"].is_null()
            && !case["locations"].as_array().unwrap().is_empty()
        {
            informative += 1;
            continue;
        }
        let reach = if case["private_allowed"] == true { Reach::Private } else { Reach::Public };
        let policy = Policy { reach, ..Policy::default() };
        let mut requests = Vec::new();
        let mut locations = case["locations"].as_array().unwrap().iter();
        let mut next = Some(Url::parse(case["start"].as_str().unwrap()).unwrap());
        let mut result = Ok(());
        while let (Some(url), Ok(())) = (next.take(), &result) {
            result = if requests.len() > 10 {
                Err(Denied::Redirects(10))
            } else {
                judge(&url, policy.clone(), &case["dns"]).await
            };
            if result.is_ok() {
                requests.push(url.to_string());
                if let Some(location) = locations.next() {
                    let location = location.as_str().map(str::as_bytes);
                    next = next_hop(&url, StatusCode::FOUND, location).unwrap();
                }
            }
        }
        let hops: Vec<&str> = right["requests"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hop| hop["url"].as_str().unwrap())
            .collect();
        assert_eq!(requests, hops, "{}", case["id"]);
        assert_eq!(result.is_ok(), right["result"][0] == "allow", "{}: {result:?}", case["id"]);
        asserted += 1;
    }
    assert!(asserted > 5, "{asserted} asserted");
    report("ssrf.json", "redirects", asserted, informative);
}
