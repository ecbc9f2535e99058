//! `[net]` of the configuration as rules for the two classes of address.

use url::Url;

use super::policy::{Allow, AllowError, Policy, Reach};
use crate::config::{Net, NetPolicy};

/// Where requests may go, by who named the address.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// Addresses that the operator, a tenant or a request names: MCP servers, OpenAPI tools, search and page providers.
    pub named: Policy,
    /// Addresses that a model chooses or that stand in content: pages, links, images, files.
    pub found: Policy,
}

impl Policies {
    /// The rules that `[net]` asks for. Fails with the entry of `net.allow` that cannot be read.
    pub fn new(net: &Net) -> Result<Self, AllowError> {
        let reach = match net.policy {
            NetPolicy::Public => Reach::Public,
            NetPolicy::Private => Reach::Private,
            NetPolicy::Off => Reach::Any,
        };
        let allow =
            net.allow.iter().map(|entry| entry.parse()).collect::<Result<Vec<Allow>, _>>()?;
        Ok(Self {
            named: Policy { reach, allow: allow.clone(), ..Policy::default() },
            found: Policy { reach: reach.for_model(), allow, ..Policy::default() },
        })
    }
}

impl Policy {
    /// These rules, with the host and port of an address that the operator has written into the configuration open as well.
    #[must_use]
    pub fn with_configured(mut self, url: &Url) -> Self {
        let place = url.host_str().zip(url.port_or_known_default());
        self.allow
            .extend(place.and_then(|(host, port)| format!("{host}:{port}").parse::<Allow>().ok()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policies(policy: NetPolicy, allow: &[&str]) -> Policies {
        let allow = allow.iter().map(|entry| (*entry).to_owned()).collect();
        Policies::new(&Net { policy, allow }).unwrap()
    }

    fn allows(policy: &Policy, url: &str) -> bool {
        policy.check_url(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn each_policy_opens_what_it_says() {
        let urls =
            ["http://192.0.43.8", "http://10.0.0.5", "http://127.0.0.1", "http://169.254.169.254"];
        for (policy, named, found) in [
            (NetPolicy::Public, [true, false, false, false], [true, false, false, false]),
            (NetPolicy::Private, [true, true, false, false], [true, false, false, false]),
            (NetPolicy::Off, [true, true, true, false], [true, true, false, false]),
        ] {
            let policies = policies(policy, &[]);
            assert_eq!(urls.map(|url| allows(&policies.named, url)), named, "{policy:?}");
            assert_eq!(urls.map(|url| allows(&policies.found, url)), found, "{policy:?}");
        }
    }

    #[test]
    fn the_allow_list_opens_both_classes() {
        let policies =
            policies(NetPolicy::Public, &["127.0.0.1:9000", "10.1.0.0/16", "169.254.169.254"]);
        for policy in [&policies.named, &policies.found] {
            assert!(allows(policy, "http://127.0.0.1:9000/x") && allows(policy, "http://10.1.2.3"));
            assert!(!allows(policy, "http://127.0.0.1:9001") && !allows(policy, "http://10.2.0.1"));
            assert!(!allows(policy, "http://169.254.169.254"), "not even the list opens this");
        }
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_named() {
        let net = Net { policy: NetPolicy::Public, allow: vec!["10.0.0.0/99".to_owned()] };
        let error = Policies::new(&net).unwrap_err().to_string();
        assert!(error.starts_with("`10.0.0.0/99` is not"), "{error}");
    }

    #[test]
    fn a_configured_address_is_open_on_its_port() {
        for (configured, open, closed) in [
            ("http://127.0.0.1:8888/searx", "http://127.0.0.1:8888/x", "http://127.0.0.1:8889"),
            ("http://[::1]:8888", "http://[::1]:8888/x", "http://[::1]"),
            ("https://10.0.0.5", "https://10.0.0.5/x", "http://10.0.0.5"),
        ] {
            let policy = Policy::default().with_configured(&Url::parse(configured).unwrap());
            assert!(allows(&policy, open) && !allows(&policy, closed), "{configured}");
        }
        let policy = Policy::default().with_configured(&Url::parse("http://searx.lan/").unwrap());
        assert!(
            policy.lists_name("searx.lan", Some(80)) && !policy.lists_name("searx.lan", Some(81))
        );
    }
}
