//! Names to addresses, judged before anybody connects to them.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::policy::{Denied, Listed, Policy};

/// A name that [`Guard`] always denies: where a connection is sent that must not be made.
pub(super) const NOWHERE: &str = "denied.invalid";

/// Where addresses come from.
#[derive(Clone, Debug)]
pub(super) enum Lookup {
    /// The system's resolver.
    System,
    /// A table, for tests.
    #[cfg(test)]
    Table(Arc<std::collections::HashMap<String, Vec<IpAddr>>>),
}

impl Lookup {
    async fn addresses(&self, name: &str) -> Vec<IpAddr> {
        match self {
            // A name that does not resolve and a resolver that fails look alike to those who ask.
            Self::System => tokio::net::lookup_host((name, 0))
                .await
                .map(|found| found.map(|address| address.ip()).collect())
                .unwrap_or_default(),
            #[cfg(test)]
            Self::Table(table) => {
                table.get(name.trim_end_matches('.')).cloned().unwrap_or_default()
            }
        }
    }
}

/// The resolver of a guarded client: gives only addresses that may be connected to.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    pub(super) policy: Arc<Policy>,
    pub(super) listed: Listed,
    pub(super) lookup: Lookup,
}

impl Guard {
    /// The addresses of `name`, all of them allowed.
    pub(super) async fn resolve_name(&self, name: &str) -> Result<Vec<IpAddr>, Denied> {
        if name == NOWHERE {
            return Err(Denied::Name(name.to_owned()));
        }
        let addresses = self.lookup.addresses(name).await;
        self.policy.check_addresses(name, &addresses, self.listed)?;
        Ok(addresses)
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let addresses = guard.resolve_name(name.as_str()).await?;
            Ok(Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}
