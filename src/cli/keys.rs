use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, Subcommand};

/// `antiphon keys …`
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  antiphon keys new --name laptop                a key for yourself; it is shown this once
  antiphon keys new --tenant acme --user ada --group admins --expires 90d
  antiphon keys list --tenant acme
  antiphon keys rotate key_0192 --expires 90d    a new key with the same rights; the old one ends
  antiphon keys revoke key_0192")]
pub struct KeysArgs {
    /// Configuration file, instead of antiphon.toml in the working directory
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// What can be done with API keys.
#[derive(Clone, Debug, Subcommand)]
pub enum KeysCommand {
    /// Make a key and print it, once
    New(NewKey),
    /// List the keys, without their secrets
    List(ListKeys),
    /// End a key at once
    Revoke(RevokeKey),
    /// Make a key with the rights of another one, which ends
    Rotate(RotateKey),
}

/// `antiphon keys new`
#[derive(Args, Clone, Debug)]
pub struct NewKey {
    /// The tenant whose things the key sees
    #[arg(long, default_value = "default")]
    pub tenant: String,
    /// The user that the key stands for
    #[arg(long)]
    pub user: Option<String>,
    /// A group of that user; may be given several times
    #[arg(long = "group", value_name = "GROUP")]
    pub groups: Vec<String>,
    /// What the list calls the key
    #[arg(long)]
    pub name: Option<String>,
    /// How long it is valid, such as 12h, 90d or 1y; without it, until it is revoked
    #[arg(long, value_name = "TIME")]
    pub expires: Option<Lifetime>,
    /// Let the trusted user header say who asks
    #[arg(long)]
    pub delegate: bool,
}

/// `antiphon keys list`
#[derive(Args, Clone, Debug)]
pub struct ListKeys {
    /// Only the keys of this tenant
    #[arg(long)]
    pub tenant: Option<String>,
}

/// `antiphon keys revoke`
#[derive(Args, Clone, Debug)]
pub struct RevokeKey {
    /// The key's id, as `antiphon keys list` shows it
    pub id: String,
}

/// `antiphon keys rotate`
#[derive(Args, Clone, Debug)]
pub struct RotateKey {
    /// The key's id, as `antiphon keys list` shows it
    pub id: String,
    /// How long the new key is valid, such as 12h, 90d or 1y; without it, until it is revoked
    #[arg(long, value_name = "TIME")]
    pub expires: Option<Lifetime>,
}

/// How long a key is valid: a number and `h`, `d`, `w` or `y` (365 days).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lifetime(pub Duration);

impl FromStr for Lifetime {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const HELP: &str =
            "a number and h, d, w or y is needed, such as 12h, 90d or 1y; at most 100y";
        const LONGEST_HOURS: u64 = 100 * 365 * 24;
        let hours_each = match text.chars().next_back() {
            Some('h') => 1,
            Some('d') => 24,
            Some('w') => 7 * 24,
            Some('y') => 365 * 24,
            _ => return Err(HELP),
        };
        let number: u64 = text[..text.len() - 1].parse().map_err(|_| HELP)?;
        match number.checked_mul(hours_each) {
            Some(hours @ 1..=LONGEST_HOURS) => Ok(Self(Duration::from_hours(hours))),
            _ => Err(HELP),
        }
    }
}
