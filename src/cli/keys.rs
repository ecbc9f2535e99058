use std::{io::Write, path::PathBuf, str::FromStr, time::Duration};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    app::Base,
    auth::keys::{self, Holder},
    clock::{Clock, Ids},
    config::{Environment, Sources},
    store::{self, keys::KeyRow},
    tasks::Tasks,
};

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

/// Does what was asked with the keys.
pub(super) async fn run(
    args: &KeysArgs,
    env: &Environment,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let config = Sources::new(env).file(args.config.as_deref()).load()?.config;
    let base = Base::open(&config, &Tasks::default()).await?;
    let done = command(&args.command, &base, out).await;
    base.close().await;
    done
}

async fn command(
    command: &KeysCommand,
    base: &Base,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    let clock = Clock::System;
    let ids = Ids::Random(clock.clone());
    match command {
        KeysCommand::New(new) => {
            let (key, row) = keys::make(new.holder()?, &ids, &clock);
            store::keys::insert(&base.pool, &row).await?;
            tell_new(&key, &row, out)
        }
        KeysCommand::List(list) => {
            let rows = match &list.tenant {
                Some(tenant) => store::keys::list(&base.pool, tenant).await?,
                None => store::keys::list_all(&base.pool).await?,
            };
            tell_list(&rows, clock.now(), out)
        }
        KeysCommand::Revoke(RevokeKey { id }) => {
            let old = find(base, id).await?;
            let revoked = store::keys::revoke(&base.pool, &old.tenant_id, id, clock.now()).await?;
            anyhow::ensure!(revoked, "the key {id} is revoked already");
            writeln!(
                out,
                "The key {id} is revoked. Servers that run notice it within 10 seconds."
            )?;
            Ok(())
        }
        KeysCommand::Rotate(RotateKey { id, expires }) => {
            let old = find(base, id).await?;
            let holder = Holder {
                tenant_id: old.tenant_id,
                user_id: old.user_id,
                groups: old.groups,
                name: old.name,
                delegate: old.delegate,
                lifetime: lifetime(*expires)?,
            };
            let (key, row) = keys::make(holder, &ids, &clock);
            let rotated = store::keys::rotate(&base.pool, id, &row, clock.now()).await?;
            anyhow::ensure!(
                rotated,
                "the key {id} is revoked already: make one with `antiphon keys new`"
            );
            tell_new(&key, &row, out)
        }
    }
}

impl NewKey {
    fn holder(&self) -> anyhow::Result<Holder> {
        let user_id = self.user.clone().unwrap_or_else(|| self.tenant.clone());
        Ok(Holder {
            tenant_id: self.tenant.clone(),
            name: self.name.clone().unwrap_or_else(|| user_id.clone()),
            user_id,
            groups: self.groups.clone(),
            delegate: self.delegate,
            lifetime: lifetime(self.expires)?,
        })
    }
}

fn lifetime(expires: Option<Lifetime>) -> anyhow::Result<Option<time::Duration>> {
    expires.map(|Lifetime(time)| time::Duration::try_from(time)).transpose().context("--expires")
}

async fn find(base: &Base, id: &str) -> anyhow::Result<KeyRow> {
    let rows = store::keys::list_all(&base.pool).await?;
    rows.into_iter()
        .find(|row| row.id == id)
        .with_context(|| format!("there is no key {id}: `antiphon keys list` shows them"))
}

/// The key is the last line, for scripts.
fn tell_new(key: &str, row: &KeyRow, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
    writeln!(
        out,
        "{} for {} in tenant {}, valid {}.",
        row.id,
        row.user_id,
        row.tenant_id,
        until(row)
    )?;
    writeln!(out, "This is the only time the key is shown:")?;
    writeln!(out, "{key}")?;
    Ok(())
}

fn tell_list(
    rows: &[KeyRow],
    now: OffsetDateTime,
    out: &mut (dyn Write + Send),
) -> anyhow::Result<()> {
    if rows.is_empty() {
        writeln!(out, "There are no keys; `antiphon keys new` makes one.")?;
    }
    for row in rows {
        let state = if row.is_valid_at(now) { until(row) } else { "ended".to_owned() };
        let KeyRow { id, prefix, tenant_id, user_id, name, .. } = row;
        writeln!(
            out,
            "{id}  {prefix}…  tenant={tenant_id} user={user_id} groups={} name={name}  {state}",
            row.groups.join(",")
        )?;
    }
    Ok(())
}

fn until(row: &KeyRow) -> String {
    let ends = [row.expires_at, row.revoked_at].into_iter().flatten().min();
    match ends.map(|at| at.format(&Rfc3339)) {
        Some(Ok(at)) => format!("until {at}"),
        _ => "until it is revoked".to_owned(),
    }
}
