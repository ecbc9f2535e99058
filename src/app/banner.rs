//! What is told once at start: address, database, upstreams, keys, tools, and what is missing.

use std::fmt::Write as _;

use tokio::net::TcpListener;

use crate::config::{Config, Offered, offered, unused};

use super::{Base, Models};

pub(super) fn text(
    listener: &TcpListener,
    config: &Config,
    base: &Base,
    models: &Models,
    guarded: bool,
) -> String {
    let address = listener.local_addr().unwrap_or(config.listen);
    let auth = if guarded {
        "API keys are required"
    } else if config.auth.oidc.is_some() {
        "tokens of the identity provider are required"
    } else {
        "off: nobody needs a key"
    };
    let mut text =
        format!("antiphon {} listens on http://{address}/v1\n", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(text, "  database   {}", base.description());
    for (at, line) in models.description.iter().enumerate() {
        let label = if at == 0 { "models" } else { "" };
        let _ = writeln!(text, "  {label:<10} {line}");
    }
    let _ = writeln!(text, "  keys       {auth}");
    let Offered { there, missing } = offered(config);
    let _ = writeln!(text, "  tools      {}", there.join(", "));
    if !missing.is_empty() {
        let _ = writeln!(text, "  not set up {}", missing.join(", "));
    }
    for line in models.missing.iter().chain(&unused(config)) {
        let _ = writeln!(text, "  missing    {line}");
    }
    let key = if guarded { " -H 'Authorization: Bearer KEY'" } else { "" };
    let _ = write!(
        text,
        "  try        curl http://{address}/v1/responses{key} -H 'Content-Type: application/json' -d '{{\"model\":\"{}\",\"input\":\"Hello\"}}'",
        models.example
    );
    text
}
