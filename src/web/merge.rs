//! The results of several queries as one list. Pure.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt::Write as _,
};

use url::Url;

use super::search::{Found, Hit};

/// Takes one result of each query in turn, the best first, until `most` are there. A page that several queries found stands once, where it
/// came first, and knows all of its queries.
pub(super) fn interleave(results: Vec<(usize, Vec<Hit>)>, most: usize) -> Vec<Found> {
    let longest = results.iter().map(|(_, hits)| hits.len()).max().unwrap_or_default();
    let mut queues: Vec<_> =
        results.into_iter().map(|(query, hits)| (query, hits.into_iter())).collect();
    let mut found: Vec<Found> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for _ in 0..longest {
        for (query, hits) in &mut queues {
            let Some(hit) = hits.next() else { continue };
            match places.entry(identity(&hit.url)) {
                Entry::Occupied(place) => {
                    let known: &mut Found = &mut found[*place.get()];
                    if !known.queries.contains(query) {
                        known.queries.push(*query);
                    }
                    known.hit.fill_from(hit);
                }
                // Full: later results only tell that their query found what is there already.
                Entry::Vacant(_) if found.len() == most => {}
                Entry::Vacant(place) => {
                    place.insert(found.len());
                    found.push(Found { hit, queries: vec![*query] });
                }
            }
        }
    }
    found
}

/// What two URLs of the same page have in common: no scheme, `www.`, default port, fragment, trailing slash, or parameter that only counts
/// visitors. Other parameters stay, for they often choose the page. Only for comparing.
pub(super) fn identity(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix("www.").unwrap_or(host).trim_end_matches('.');
    let mut identity = host.to_owned();
    if let Some(port) = url.port() {
        _ = write!(identity, ":{port}");
    }
    identity.push_str(url.path().trim_end_matches('/'));
    let mut separator = '?';
    for part in url
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|part| !part.is_empty() && !is_tracking(part))
    {
        identity.push(separator);
        identity.push_str(part);
        separator = '&';
    }
    // A page that is made by a script names itself so.
    if let Some(fragment) = url.fragment().filter(|fragment| fragment.starts_with(['!', '/'])) {
        identity.push('#');
        identity.push_str(fragment);
    }
    identity
}

fn is_tracking(part: &str) -> bool {
    let name = part.split('=').next().unwrap_or_default();
    name.starts_with("utm_")
        || matches!(name, "gclid" | "fbclid" | "msclkid" | "dclid" | "mc_cid" | "mc_eid")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(url: &str) -> Hit {
        Hit { title: url.to_owned(), ..Hit::new(Url::parse(&format!("https://{url}")).unwrap()) }
    }

    fn merged(results: &[&[&str]], most: usize) -> Vec<(String, Vec<usize>)> {
        let results = results
            .iter()
            .enumerate()
            .map(|(i, urls)| (i, urls.iter().map(|url| hit(url)).collect()));
        interleave(results.collect(), most)
            .into_iter()
            .map(|found| (found.hit.title, found.queries))
            .collect()
    }

    fn expected(found: &[(&str, &[usize])]) -> Vec<(String, Vec<usize>)> {
        found.iter().map(|(url, queries)| ((*url).to_owned(), queries.to_vec())).collect()
    }

    #[test]
    fn queries_take_turns() {
        assert_eq!(
            merged(&[&["a1", "a2", "a3"], &["b1"], &["c1", "c2"]], 9),
            expected(&[
                ("a1", &[0]),
                ("b1", &[1]),
                ("c1", &[2]),
                ("a2", &[0]),
                ("c2", &[2]),
                ("a3", &[0])
            ])
        );
        assert_eq!(
            merged(&[&["a1", "a2"], &["b1", "b2"]], 3),
            expected(&[("a1", &[0]), ("b1", &[1]), ("a2", &[0])])
        );
        assert_eq!(merged(&[&[], &[]], 3), expected(&[]));
        assert_eq!(merged(&[], 3), expected(&[]));
        assert_eq!(merged(&[&["a1"]], 0), expected(&[]));
    }

    #[test]
    fn a_round_of_duplicates_does_not_end_it() {
        assert_eq!(
            merged(&[&["x", "y", "a"], &["x", "y", "b"]], 9),
            expected(&[("x", &[0, 1]), ("y", &[0, 1]), ("a", &[0]), ("b", &[1])])
        );
    }

    #[test]
    fn a_full_list_still_learns_who_found_what() {
        assert_eq!(
            merged(&[&["x", "a"], &["y", "x"]], 2),
            expected(&[("x", &[0, 1]), ("y", &[1])])
        );
    }

    #[test]
    fn a_page_has_one_identity() {
        let same = |a: &str, b: &str| {
            identity(&Url::parse(a).unwrap()) == identity(&Url::parse(b).unwrap())
        };
        for (a, b, expected) in [
            ("http://a.org", "https://www.a.org/", true),
            ("https://a.org/x/", "https://A.org/x#part", true),
            ("https://a.org/x?utm_source=b&id=1", "https://a.org/x?id=1&gclid=2", true),
            ("https://a.org:443/x", "https://a.org/x", true),
            ("https://a.org/watch?v=1", "https://a.org/watch?v=2", false),
            ("https://a.org/x?id=1", "https://a.org/x", false),
            ("https://a.org/X", "https://a.org/x", false),
            ("https://a.org:8443/x", "https://a.org/x", false),
            ("https://a.org/#!/x", "https://a.org/#!/y", false),
        ] {
            assert_eq!(same(a, b), expected, "{a} {b}");
        }
    }
}
