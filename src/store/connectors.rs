//! MCP servers that a tenant set up before. Token and headers are sealed by whoever makes the row.

use sqlx::{PgExecutor, types::Json};
use time::OffsetDateTime;

use crate::protocol::Raw;

use super::{StoreError, Viewer, json::AsJson};

/// The constraint that refuses a second connector of the same label in a tenant.
pub const LABEL_KEY: &str = "connectors_label_key";

/// A row of `connectors`.
#[derive(Clone, Debug, PartialEq)]
pub struct Connector {
    /// `conn_…`
    pub id: String,
    /// What its tenant calls it.
    pub label: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// What is shown of it.
    pub definition: Raw,
    /// Sealed.
    pub secrets: String,
}

/// Writes a new connector. A label that the tenant has already is a conflict with [`LABEL_KEY`].
#[tracing::instrument(name = "db.connectors.insert", skip_all)]
pub async fn insert(
    db: impl PgExecutor<'_>,
    tenant_id: &str,
    owner: &str,
    new: &Connector,
) -> Result<(), StoreError> {
    sqlx::query!(
        "insert into connectors (id, tenant_id, owner, label, created_at, definition, secrets)
         values ($1, $2, $3, $4, $5, $6, $7)",
        new.id,
        tenant_id,
        owner,
        new.label,
        new.created_at,
        AsJson(&new.definition) as AsJson<&Raw>,
        new.secrets,
    )
    .execute(db)
    .await?;
    Ok(())
}

/// A connector as its viewer may see it.
#[tracing::instrument(name = "db.connectors.find", skip_all)]
pub async fn find(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    id: &str,
) -> Result<Option<Connector>, StoreError> {
    let row = sqlx::query_as!(
        Row,
        r#"select id, label, created_at, definition as "definition: Json<Raw>", secrets from connectors
           where id = $1 and tenant_id = $2 and ($3::text is null or owner = $3)"#,
        id,
        viewer.tenant_id,
        viewer.only_owner,
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(Connector::from))
}

/// The connector of this label, as its viewer may see it.
#[tracing::instrument(name = "db.connectors.find_by_label", skip_all)]
pub async fn find_by_label(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    label: &str,
) -> Result<Option<Connector>, StoreError> {
    let row = sqlx::query_as!(
        Row,
        r#"select id, label, created_at, definition as "definition: Json<Raw>", secrets from connectors
           where label = $1 and tenant_id = $2 and ($3::text is null or owner = $3)"#,
        label,
        viewer.tenant_id,
        viewer.only_owner,
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(Connector::from))
}

/// A page of the connectors that a viewer may see, from after the connector `after`.
#[tracing::instrument(name = "db.connectors.list", skip_all)]
pub async fn list(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    after: Option<&str>,
    descending: bool,
    limit: i64,
) -> Result<Vec<Connector>, StoreError> {
    let rows = sqlx::query_as!(
        Row,
        r#"select id, label, created_at, definition as "definition: Json<Raw>", secrets from connectors
           where tenant_id = $1 and ($2::text is null or owner = $2)
             and ($3::text is null
                  or (not $4 and (created_at, id) > (select created_at, id from connectors where id = $3 and tenant_id = $1))
                  or ($4 and (created_at, id) < (select created_at, id from connectors where id = $3 and tenant_id = $1)))
           order by case when $4 then created_at end desc, case when $4 then id end desc, created_at, id
           limit $5"#,
        viewer.tenant_id,
        viewer.only_owner,
        after,
        descending,
        limit,
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(Connector::from).collect())
}

/// Puts what `changed` says in the place of what was there before: `was`, its definition and its secrets. False when the viewer may not
/// change it, or somebody else has changed it meanwhile. Another connector's label is a conflict with [`LABEL_KEY`].
#[tracing::instrument(name = "db.connectors.update", skip_all)]
pub async fn update(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    was: &Connector,
    changed: &Connector,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "update connectors set label = $5, definition = $6, secrets = $7
         where id = $1 and tenant_id = $2 and ($3::text is null or owner = $3) and secrets = $4",
        changed.id,
        viewer.tenant_id,
        viewer.only_owner,
        was.secrets,
        changed.label,
        AsJson(&changed.definition) as AsJson<&Raw>,
        changed.secrets,
    )
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Deletes a connector. False when the viewer may not see it.
#[tracing::instrument(name = "db.connectors.delete", skip_all)]
pub async fn delete(
    db: impl PgExecutor<'_>,
    viewer: Viewer<'_>,
    id: &str,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "delete from connectors where id = $1 and tenant_id = $2 and ($3::text is null or owner = $3)",
        id,
        viewer.tenant_id,
        viewer.only_owner,
    )
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

struct Row {
    id: String,
    label: String,
    created_at: OffsetDateTime,
    definition: Json<Raw>,
    secrets: String,
}

impl From<Row> for Connector {
    fn from(Row { id, label, created_at, definition, secrets }: Row) -> Self {
        Self { id, label, created_at, definition: definition.0, secrets }
    }
}
