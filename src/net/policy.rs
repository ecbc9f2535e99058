//! Where a guarded request may go. Pure: names are resolved elsewhere and their addresses judged here.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use url::{Host, Url};

/// What kind of address this is, from harmless to never.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Zone {
    /// Reached over the internet.
    Public,
    /// Of a private, shared, documentation or otherwise special network.
    Private,
    /// This machine.
    Local,
    /// Link-local and the metadata services of clouds, multicast, broadcast, unspecified, reserved. Not even the allow list
    /// opens these.
    Never,
}

/// How far requests may go: the configured `net.policy`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Reach {
    /// Only the internet.
    #[default]
    Public,
    /// Private networks too.
    Private,
    /// Private networks and this machine too.
    Any,
}

impl Reach {
    /// How far a URL may go that a model chose: one step less than one that a person entered.
    #[must_use]
    pub fn for_model(self) -> Self {
        match self {
            Self::Public | Self::Private => Self::Public,
            Self::Any => Self::Private,
        }
    }

    pub(super) fn covers(self, zone: Zone) -> bool {
        zone <= match self {
            Self::Public => Zone::Public,
            Self::Private => Zone::Private,
            Self::Any => Zone::Local,
        }
    }
}

/// Which schemes are allowed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Schemes {
    /// `http` and `https`.
    #[default]
    Web,
    /// `https` alone, where tokens travel.
    HttpsOnly,
}

/// Why a request is not sent. The sentence may be shown to the client and to the model.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Denied {
    /// Another scheme, or `http` where only `https` may be.
    #[error("the URL's scheme `{0}` is not allowed")]
    Scheme(String),
    /// `user:password@`.
    #[error("the URL must not hold a user name or password")]
    Credentials,
    /// No host to go to.
    #[error("the URL has no host")]
    NoHost,
    /// A name that only leads to metadata or control services, or one that is not listed for this port.
    #[error("the host `{0}` is not allowed")]
    Name(String),
    /// An address out of reach, literally or behind a name.
    #[error("the host `{host}` leads to an address that is not allowed")]
    Address {
        /// As the URL names it. The address behind a name is not told: it would map the inner network.
        host: String,
    },
    /// The name has no address.
    #[error("the host `{0}` cannot be resolved")]
    Unresolved(String),
    /// More than the limit.
    #[error("there are more than {0} redirects")]
    Redirects(usize),
    /// A redirect to something that is no URL.
    #[error("the redirect leads to an invalid URL")]
    Location,
}

/// Names that are nothing but metadata and control services. An allow entry for the very name overrides this.
const NEVER_NAMES: [&str; 6] = [
    "metadata.google.internal",
    "metadata.gke.internal",
    "metadata.azure.com",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The rules of one guarded client.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// How far requests may go.
    pub reach: Reach,
    /// With which schemes.
    pub schemes: Schemes,
    /// What may be reached beyond that.
    pub allow: Vec<Allow>,
}

impl Policy {
    /// Judges what the URL itself says. A name's addresses are judged by [`Policy::check_addresses`] when it is connected to.
    pub fn check_url(&self, url: &Url) -> Result<(), Denied> {
        match (url.scheme(), self.schemes) {
            ("https", _) | ("http", Schemes::Web) => (),
            (scheme, _) => return Err(Denied::Scheme(scheme.to_owned())),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Denied::Credentials);
        }
        let port = url.port_or_known_default();
        match url.host().ok_or(Denied::NoHost)? {
            Host::Domain(name) if self.lists_name(name, port) => Ok(()),
            Host::Domain(name) if NEVER_NAMES.contains(&undotted(name)) => {
                Err(Denied::Name(name.to_owned()))
            }
            Host::Domain(_) => Ok(()),
            Host::Ipv4(address) => self.check_literal(address.into(), port),
            Host::Ipv6(address) => self.check_literal(address.into(), port),
        }
    }

    /// Whether an allow entry names this host on this port: then whatever it resolves to is allowed, [`Zone::Never`] apart.
    pub fn lists_name(&self, name: &str, port: Option<u16>) -> bool {
        self.allow.iter().any(|entry| {
            entry.is_for(port)
                && matches!(&entry.host, AllowHost::Name(listed) if listed == undotted(name))
        })
    }

    /// Judges the addresses of a name. One that is out of reach denies them all: a name that mixes them is an attack.
    pub fn check_addresses(
        &self,
        name: &str,
        addresses: &[IpAddr],
        listed: Listed,
    ) -> Result<(), Denied> {
        if addresses.is_empty() {
            return Err(Denied::Unresolved(name.to_owned()));
        }
        let fine = |address: &IpAddr| match listed {
            Listed::Yes => zone(*address) < Zone::Never,
            // The resolver is not told the port, so entries with a port do not count here.
            Listed::No => self.permits(*address, None),
        };
        if addresses.iter().all(fine) {
            Ok(())
        } else {
            Err(Denied::Address { host: name.to_owned() })
        }
    }

    fn check_literal(&self, address: IpAddr, port: Option<u16>) -> Result<(), Denied> {
        if self.permits(address, port) {
            Ok(())
        } else {
            Err(Denied::Address { host: address.to_string() })
        }
    }

    fn permits(&self, address: IpAddr, port: Option<u16>) -> bool {
        let zone = zone(address);
        self.reach.covers(zone)
            || zone < Zone::Never
                && self.allow.iter().any(|entry| entry.is_for(port) && entry.holds(address))
    }
}

/// Whether a name is on the allow list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Listed {
    /// For the port that is asked.
    Yes,
    /// Or for another port only.
    No,
}

/// One entry of `net.allow`: `host`, `host:port`, `ip`, `ip:port`, `[ipv6]:port` or `network/bits`.
///
/// An entry is compared with what the URL says. An address or network without a port also covers the names that resolve
/// to it; one with a port covers only URLs with that very address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Allow {
    host: AllowHost,
    port: Option<u16>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum AllowHost {
    Name(String),
    Network(IpAddr, u32),
}

impl Allow {
    fn is_for(&self, port: Option<u16>) -> bool {
        self.port.is_none() || self.port == port
    }

    fn holds(&self, address: IpAddr) -> bool {
        match (&self.host, address.to_canonical()) {
            (AllowHost::Network(IpAddr::V4(network), bits), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= *bits
            }
            (AllowHost::Network(IpAddr::V6(network), bits), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).leading_zeros() >= *bits
            }
            (AllowHost::Network(..) | AllowHost::Name(_), _) => false,
        }
    }
}

/// An entry that cannot be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a host, host:port, address, address:port or network/bits")]
pub struct AllowError(String);

impl FromStr for Allow {
    type Err = AllowError;

    fn from_str(entry: &str) -> Result<Self, AllowError> {
        Self::parse(entry.trim()).ok_or_else(|| AllowError(entry.to_owned()))
    }
}

impl Allow {
    fn parse(entry: &str) -> Option<Self> {
        if let Some((network, bits)) = entry.split_once('/') {
            let network: IpAddr = network.parse().ok()?;
            let most = if network.is_ipv4() { 32 } else { 128 };
            let bits = bits.parse().ok().filter(|bits| *bits <= most)?;
            return Some(Self { host: AllowHost::Network(network, bits), port: None });
        }
        if let Ok(address) = entry.parse::<IpAddr>() {
            return Some(Self { host: whole(address), port: None });
        }
        if let Ok(address) = entry.parse::<SocketAddr>() {
            return Some(Self { host: whole(address.ip()), port: Some(address.port()) });
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) if !entry.ends_with(']') => (host, Some(port.parse().ok()?)),
            _ => (entry, None),
        };
        let host = match Host::parse(host).ok()? {
            // A wildcard would be taken for a name that nothing has.
            Host::Domain(name) if undotted(&name).is_empty() || name.contains('*') => return None,
            Host::Domain(name) => AllowHost::Name(undotted(&name).to_owned()),
            Host::Ipv4(address) => whole(address.into()),
            Host::Ipv6(address) => whole(address.into()),
        };
        Some(Self { host, port })
    }
}

fn whole(address: IpAddr) -> AllowHost {
    match address.to_canonical() {
        address @ IpAddr::V4(_) => AllowHost::Network(address, 32),
        address @ IpAddr::V6(_) => AllowHost::Network(address, 128),
    }
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            AllowHost::Name(name) => f.write_str(name)?,
            AllowHost::Network(IpAddr::V4(address), 32) => write!(f, "{address}")?,
            AllowHost::Network(IpAddr::V6(address), 128) if self.port.is_some() => {
                write!(f, "[{address}]")?;
            }
            AllowHost::Network(IpAddr::V6(address), 128) => write!(f, "{address}")?,
            AllowHost::Network(address, bits) => write!(f, "{address}/{bits}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

fn undotted(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// The zone of an address. One that carries an IPv4 address is judged by that one too.
pub fn zone(address: IpAddr) -> Zone {
    match address {
        IpAddr::V4(address) => zone4(address),
        IpAddr::V6(address) => zone6(address),
    }
}

fn zone4(address: Ipv4Addr) -> Zone {
    match address.octets() {
        // Unspecified; link-local with most clouds' metadata; those of Alibaba and Oracle; multicast, reserved, broadcast.
        [0, 0, 0, 0]
        | [169, 254, ..]
        | [100, 100, 100, 200]
        | [192, 0, 0, 192]
        | [224..=255, ..] => Zone::Never,
        [127, ..] => Zone::Local,
        // This network; RFC 1918; shared; protocol assignments; documentation; benchmarks.
        [0 | 10, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        | [100, 64..=127, ..]
        | [192, 0, 0 | 2, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Zone::Private,
        _ => Zone::Public,
    }
}

fn zone6(address: Ipv6Addr) -> Zone {
    let embedded =
        |high: u16, low: u16| zone4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Zone::Local,
        // Unspecified; the metadata services of AWS and Google; link-local; multicast.
        [0, 0, 0, 0, 0, 0, 0, 0]
        | [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
        | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
        | [0xfe80..=0xfebf | 0xff00..=0xffff, ..] => Zone::Never,
        // Mapped IPv4, NAT64, 6to4: they stand for the IPv4 address.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => embedded(high, low),
        // Compatible IPv4, local NAT64.
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 1, .., high, low] => {
            embedded(high, low).max(Zone::Private)
        }
        // Teredo: server, and client with its bits turned over.
        [0x2001, 0, server, server_low, .., high, low] => {
            embedded(server, server_low).max(embedded(!high, !low)).max(Zone::Private)
        }
        // Protocol assignments, documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Zone::Private,
        // Global unicast; everything else is not given out.
        [0x2000..=0x3fff, ..] => Zone::Public,
        _ => Zone::Private,
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
