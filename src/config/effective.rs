//! What `antiphon config check` prints.

use std::fmt::Write as _;

use toml::{Table, Value};

use super::{DEFAULT_TOML, Loaded, Offered, offered};

const MASK: &str = "[secret]";

/// All settings as TOML, defaults filled in, with a head that says who set what and which tools there are. Secrets are masked.
pub fn effective(loaded: &Loaded) -> String {
    let mut out = String::new();
    match &loaded.file {
        Some(path) => _ = writeln!(out, "# File: {}", path.display()),
        None => out.push_str("# File: none (no antiphon.toml here, and no --config)\n"),
    }
    for (key, origin) in &loaded.set {
        _ = writeln!(out, "# {key}: {origin}");
    }
    let present = |is_there: bool| if is_there { "set" } else { "not set" };
    _ = writeln!(
        out,
        "# ANTIPHON_BOOTSTRAP_KEY: {}",
        present(loaded.config.bootstrap_key.is_some())
    );
    _ = writeln!(out, "# ANTIPHON_SEAL_KEYS: {}", present(!loaded.config.seal_keys.is_empty()));

    let Offered { there, missing } = offered(&loaded.config);
    _ = writeln!(out, "# Tools: {}", there.join(", "));
    if !missing.is_empty() {
        _ = writeln!(out, "# Not set up: {}", missing.join(", "));
    }

    // A test holds the default file to `Config::default`, so it always parses.
    let mut table: Table = DEFAULT_TOML.parse().unwrap_or_default();
    lay_over(&mut table, loaded.table.clone());
    for (key, value) in &mut table {
        mask(key, value);
    }
    _ = write!(out, "\n{table}");
    out
}

fn lay_over(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => lay_over(base, over),
            (_, value) => _ = base.insert(key, value),
        }
    }
}

/// Hides the address of the database and all values of `headers` and `env`. No other key takes a secret.
fn mask(key: &str, value: &mut Value) {
    match value {
        Value::Table(table) if key == "headers" || key == "env" => {
            for (_, value) in table {
                *value = MASK.into();
            }
        }
        Value::Table(table) => {
            for (key, value) in table {
                mask(key, value);
            }
        }
        Value::Array(entries) => {
            for value in entries {
                mask(key, value);
            }
        }
        Value::String(text) if key == "database_url" && !text.is_empty() => MASK.clone_into(text),
        Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_) => {}
    }
}
