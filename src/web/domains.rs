//! Which domains results may come from.

use std::{fmt, str::FromStr};

use url::{Host, Url};

/// A domain such as `example.com`, which stands for itself and everything below it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Domain(String);

impl Domain {
    /// Whether this URL's host is this domain or below it.
    pub fn holds(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        host.strip_suffix(self.0.as_str())
            .is_some_and(|above| above.is_empty() || above.ends_with('.'))
    }

    /// The domain in lower case, international names as `xn--`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Domain {
    type Err = String;

    /// Reads `example.com`, and tolerates what people write instead: `https://example.com/path`, `*.example.com`, `.example.com`, `site:example.com`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a domain such as \"example.com\"");
        let trimmed = text.trim();
        let after_site = trimmed.strip_prefix("site:").unwrap_or(trimmed);
        let after_scheme = after_site.split_once("://").map_or(after_site, |(_, rest)| rest);
        let host = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.strip_prefix("*.").unwrap_or(host).trim_start_matches('.');
        let host = host
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|c| c.is_ascii_digit()))
            .map_or(host, |(host, _)| host);
        match Host::parse(host).map_err(|_| wrong())? {
            Host::Domain(name) if name.contains('*') => Err(wrong()),
            host => match host.to_string().trim_end_matches('.') {
                "" => Err(wrong()),
                name => Ok(Self(name.to_owned())),
            },
        }
    }
}

/// Whether a result may come from there.
pub(super) fn admits(allowed: &[Domain], blocked: &[Domain], url: &Url) -> bool {
    (allowed.is_empty() || allowed.iter().any(|domain| domain.holds(url)))
        && !blocked.iter().any(|domain| domain.holds(url))
}

/// The text with `site:` operators for these domains, as Google and its kin read them, in at most so many characters. What does not fit is
/// left out: results are checked anyway, so fewer are found, but no wrong ones.
pub(super) fn with_operators(
    text: &str,
    allowed: &[Domain],
    blocked: &[Domain],
    characters: usize,
) -> String {
    let mut out = text.to_owned();
    let mut left = characters.saturating_sub(text.chars().count());
    let mut sites = String::new();
    for domain in allowed {
        let more =
            if sites.is_empty() { format!("site:{domain}") } else { format!(" OR site:{domain}") };
        // A space and two parentheses come around them.
        if sites.len() + more.len() + 3 > left {
            tracing::warn!(
                allowed = allowed.len(),
                "more domains are allowed than fit into the query"
            );
            break;
        }
        sites.push_str(&more);
    }
    if !sites.is_empty() {
        let group = if sites.contains(' ') { format!(" ({sites})") } else { format!(" {sites}") };
        left -= group.len();
        out.push_str(&group);
    }
    for domain in blocked {
        let more = format!(" -site:{domain}");
        if more.len() > left {
            tracing::warn!(
                blocked = blocked.len(),
                "more domains are blocked than fit into the query"
            );
            break;
        }
        left -= more.len();
        out.push_str(&more);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(text: &str) -> Domain {
        text.parse().unwrap()
    }

    #[test]
    fn domains_are_read_as_people_write_them() {
        for (text, expected) in [
            ("example.com", Some("example.com")),
            ("https://Example.com/a?b#c", Some("example.com")),
            ("*.example.com", Some("example.com")),
            (" .example.com. ", Some("example.com")),
            ("example.com:8080", Some("example.com")),
            ("site:example.com", Some("example.com")),
            ("bücher.example", Some("xn--bcher-kva.example")),
            ("127.0.0.1", Some("127.0.0.1")),
            ("", None),
            ("a b", None),
            ("*", None),
            ("https://", None),
        ] {
            assert_eq!(
                text.parse::<Domain>().ok().as_ref().map(Domain::as_str),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn a_domain_holds_itself_and_what_is_below() {
        for (url, expected) in [
            ("https://example.com/a", true),
            ("https://docs.example.com", true),
            ("https://EXAMPLE.com.", true),
            ("https://notexample.com", false),
            ("https://example.com.evil.org", false),
            ("https://example.org/example.com", false),
            ("data:example.com", false),
        ] {
            assert_eq!(domain("example.com").holds(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn blocked_wins_over_allowed() {
        let (allowed, blocked) = (vec![domain("a.org")], vec![domain("x.a.org")]);
        let admitted = |url: &str| admits(&allowed, &blocked, &Url::parse(url).unwrap());
        assert!(admitted("http://a.org") && admitted("http://y.a.org"));
        assert!(!admitted("http://x.a.org") && !admitted("http://b.org"));
        assert!(admits(&[], &blocked, &Url::parse("http://b.org").unwrap()));
    }

    #[test]
    fn operators_are_added_as_far_as_they_fit() {
        let (a, b) = (domain("a.org"), domain("b.org"));
        for (allowed, blocked, most, expected) in [
            (vec![], vec![], 99, "q"),
            (vec![a.clone()], vec![], 99, "q site:a.org"),
            (vec![a.clone(), b.clone()], vec![], 99, "q (site:a.org OR site:b.org)"),
            (vec![a.clone(), b.clone()], vec![], 20, "q site:a.org"),
            (vec![], vec![a.clone(), b.clone()], 99, "q -site:a.org -site:b.org"),
            (vec![a.clone()], vec![b.clone()], 24, "q site:a.org -site:b.org"),
            (vec![a.clone()], vec![b.clone()], 23, "q site:a.org"),
            (vec![a], vec![b], 1, "q"),
        ] {
            let found = with_operators("q", &allowed, &blocked, most);
            assert_eq!(found, expected);
            assert!(found.len() <= most);
        }
    }
}
