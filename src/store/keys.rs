//! API keys. What is stored is a hash; the key itself is shown once, by whoever made it.

use sqlx::{PgExecutor, PgPool};
use time::OffsetDateTime;

use super::StoreError;

/// The constraint that refuses a second key with the same hash.
pub const HASH_KEY: &str = "api_keys_hash_key";

/// A row of `api_keys`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRow {
    /// `key_…`
    pub id: String,
    /// Whose rows this key sees.
    pub tenant_id: String,
    /// The user it stands for.
    pub user_id: String,
    /// The groups of that user.
    pub groups: Vec<String>,
    /// What its owner calls it.
    pub name: String,
    /// Digest of the key.
    pub hash: Vec<u8>,
    /// The first 8 characters of the key, for lists.
    pub prefix: String,
    /// Whether it may speak for other users (`auth.trusted_user_header`).
    pub delegate: bool,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// From when on it is no longer valid.
    pub expires_at: Option<OffsetDateTime>,
    /// From when on it is revoked; a rotation may set a time to come.
    pub revoked_at: Option<OffsetDateTime>,
}

impl KeyRow {
    /// Whether the key opens the door at that time.
    pub fn is_valid_at(&self, now: OffsetDateTime) -> bool {
        let over = |end: Option<OffsetDateTime>| end.is_some_and(|end| end <= now);
        !over(self.expires_at) && !over(self.revoked_at)
    }
}

/// Writes a new key. A hash that is there already is a conflict with [`HASH_KEY`].
#[tracing::instrument(name = "db.keys.insert", skip_all)]
pub async fn insert(db: impl PgExecutor<'_>, key: &KeyRow) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into api_keys (id, tenant_id, user_id, groups, name, hash, prefix, delegate, created_at, expires_at, revoked_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
        key.id,
        key.tenant_id,
        key.user_id,
        &key.groups,
        key.name,
        key.hash,
        key.prefix,
        key.delegate,
        key.created_at,
        key.expires_at,
        key.revoked_at,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// The key with this hash, valid or not. The one query without a tenant: the key is what tells the tenant.
#[tracing::instrument(name = "db.keys.find_by_hash", skip_all)]
pub async fn find_by_hash(
    db: impl PgExecutor<'_>,
    hash: &[u8],
) -> Result<Option<KeyRow>, StoreError> {
    let row = sqlx::query_as!(
        KeyRow,
        "select id, tenant_id, user_id, groups, name, hash, prefix, delegate, created_at, expires_at, revoked_at
         from api_keys where hash = $1",
        hash,
    )
    .fetch_optional(db)
    .await?;
    Ok(row)
}

/// All keys of a tenant, oldest first, the revoked ones too.
#[tracing::instrument(name = "db.keys.list", skip_all)]
pub async fn list(db: impl PgExecutor<'_>, tenant_id: &str) -> Result<Vec<KeyRow>, StoreError> {
    let rows = sqlx::query_as!(
        KeyRow,
        "select id, tenant_id, user_id, groups, name, hash, prefix, delegate, created_at, expires_at, revoked_at
         from api_keys where tenant_id = $1 order by created_at, id",
        tenant_id,
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}

/// Revokes a key from `at` on. False when the tenant has no such key, or it is revoked by then already.
#[tracing::instrument(name = "db.keys.revoke", skip_all)]
pub async fn revoke(
    db: impl PgExecutor<'_>,
    tenant_id: &str,
    id: &str,
    at: OffsetDateTime,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "update api_keys set revoked_at = $3
         where tenant_id = $1 and id = $2 and (revoked_at is null or revoked_at > $3)",
        tenant_id,
        id,
        at,
    )
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Puts `new` in the place of the key `old` of the same tenant, which is revoked from `at` on: both or nothing. False, and no new
/// key, when there is no such key to replace.
#[tracing::instrument(name = "db.keys.rotate", skip_all)]
pub async fn rotate(
    db: &PgPool,
    old: &str,
    new: &KeyRow,
    at: OffsetDateTime,
) -> Result<bool, StoreError> {
    let mut transaction = db.begin().await?;
    let revoked = revoke(&mut *transaction, &new.tenant_id, old, at).await?;
    if revoked {
        insert(&mut *transaction, new).await?;
        transaction.commit().await?;
    }
    Ok(revoked)
}

/// Whether there is any key.
#[tracing::instrument(name = "db.keys.any", skip_all)]
pub async fn any(db: impl PgExecutor<'_>) -> Result<bool, StoreError> {
    let any = sqlx::query_scalar!(r#"select exists (select from api_keys) as "any!""#)
        .fetch_one(db)
        .await?;
    Ok(any)
}

/// All keys of all tenants, for the operator's command line.
#[tracing::instrument(name = "db.keys.list_all", skip_all)]
pub async fn list_all(db: impl PgExecutor<'_>) -> Result<Vec<KeyRow>, StoreError> {
    let rows = sqlx::query_as!(
        KeyRow,
        "select id, tenant_id, user_id, groups, name, hash, prefix, delegate, created_at, expires_at, revoked_at
         from api_keys order by tenant_id, created_at, id",
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}
