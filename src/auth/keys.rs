//! API keys: how they look and how they are made. Only their digests are stored.

use time::{Duration, OffsetDateTime};

use crate::{
    clock::{Clock, Ids},
    store::keys::KeyRow,
};

/// What is stored of a key: its SHA-256. Keys have 256 random bits, so a slow hash would add nothing.
pub type Digest = [u8; 32];

/// The digest of a key.
pub fn digest(key: &str) -> Digest {
    let mut digest = [0; 32];
    digest.copy_from_slice(
        aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, key.as_bytes()).as_ref(),
    );
    digest
}

/// For whom a key is made.
#[derive(Clone, Debug)]
pub struct Holder {
    /// Whose rows it sees.
    pub tenant_id: String,
    /// The user it stands for.
    pub user_id: String,
    /// The groups of that user.
    pub groups: Vec<String>,
    /// What its owner calls it.
    pub name: String,
    /// Whether it may speak for other users.
    pub delegate: bool,
    /// How long it is valid; without, until it is revoked.
    pub lifetime: Option<Duration>,
}

/// Makes a new key. The key itself is shown once and never again.
pub fn make(holder: Holder, ids: &Ids, clock: &Clock) -> (String, KeyRow) {
    let key = format!("ak_{}", ids.secret());
    let row = row(&key, holder, ids, clock.now());
    (key, row)
}

/// The row of a key that was given, such as `ANTIPHON_BOOTSTRAP_KEY`.
pub fn row(key: &str, holder: Holder, ids: &Ids, now: OffsetDateTime) -> KeyRow {
    KeyRow {
        id: ids.mint("key"),
        tenant_id: holder.tenant_id,
        user_id: holder.user_id,
        groups: holder.groups,
        name: holder.name,
        hash: digest(key).to_vec(),
        prefix: key.chars().take(8).collect(),
        delegate: holder.delegate,
        created_at: now,
        expires_at: holder.lifetime.map(|lifetime| now + lifetime),
        revoked_at: None,
    }
}
