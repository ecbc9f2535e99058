//! Servers that a tenant keeps in the database.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::{
    config::Secret,
    protocol::{ApiError, ErrorKind, Raw},
    seal::Purpose,
    store::{self, StoreError, Viewer, connectors::Connector},
};

use super::{
    super::{
        Allowed, Approval, Endpoint, McpTool, Transport, Wrong,
        headers::Given,
        request::{Access, Object, access, label},
    },
    Connectors, Server, merged, narrowed,
};

/// A connector as it is shown.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    id: String,
    object: &'static str,
    created_at: i64,
    server_label: String,
    #[serde(flatten)]
    definition: Definition,
}

impl Shown {
    /// `conn_…`
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// What is kept and shown of a connector.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Definition {
    server_url: String,
    server_description: Option<String>,
    allowed_tools: Option<Raw>,
    require_approval: Raw,
    has_authorization: bool,
    /// Names only.
    headers: Vec<String>,
}

/// What is sealed of a connector. The only place where these are written out.
#[derive(Default, Deserialize, Serialize)]
struct Sealed {
    authorization: Option<String>,
    headers: Vec<(String, String)>,
}

impl Connectors {
    /// Sets up a connector: `server_label`, `server_url`, and what an `mcp` tool may say besides.
    pub async fn create(
        &self,
        tenant_id: &str,
        owner: &str,
        body: &str,
    ) -> Result<Shown, ApiError> {
        let raw = object(body)?;
        let fields = known(&raw)?;
        let label = self.label(&fields)?;
        let (definition, sealed) = self.read(&fields, &label, None)?;
        let parts = &self.inner;
        let row = Connector {
            id: parts.ids.mint("conn"),
            label,
            created_at: parts.clock.now(),
            definition: Raw::of(&definition),
            secrets: self.seal(tenant_id, &sealed)?,
        };
        match store::connectors::insert(&parts.pool, tenant_id, owner, &row).await {
            Err(error) if error.is_conflict(store::connectors::LABEL_KEY) => Err(taken(&row.label)),
            done => {
                done?;
                shown(row)
            }
        }
    }

    /// Changes what the body names; a token or headers that it does not name stay. `None`: `viewer` may not change this one, or there is none.
    pub async fn update(
        &self,
        viewer: Viewer<'_>,
        id: &str,
        body: &str,
    ) -> Result<Option<Shown>, ApiError> {
        let raw = object(body)?;
        let fields = known(&raw)?;
        let pool = &self.inner.pool;
        // Again when somebody else was faster.
        for _ in 0..3 {
            let Some(was) = store::connectors::find(pool, viewer, id).await? else {
                return Ok(None);
            };
            let label =
                if fields.has("server_label") { self.label(&fields)? } else { was.label.clone() };
            let before = (definition(&was)?, self.open(viewer.tenant_id, &was)?);
            let (definition, sealed) = self.read(&fields, &label, Some(before))?;
            let row = Connector {
                label,
                definition: Raw::of(&definition),
                secrets: self.seal(viewer.tenant_id, &sealed)?,
                ..was.clone()
            };
            match store::connectors::update(pool, viewer, &was, &row).await {
                Ok(true) => return shown(row).map(Some),
                Ok(false) => (),
                Err(error) if error.is_conflict(store::connectors::LABEL_KEY) => {
                    return Err(taken(&row.label));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(ApiError::new(
            ErrorKind::Conflict,
            "The connector is being changed by somebody else; look at it and try again.",
        ))
    }

    /// A connector.
    pub async fn find(&self, viewer: Viewer<'_>, id: &str) -> Result<Option<Shown>, ApiError> {
        let found = store::connectors::find(&self.inner.pool, viewer, id).await?;
        found.map(shown).transpose()
    }

    /// A page of connectors, from after the connector `after`.
    pub async fn list(
        &self,
        viewer: Viewer<'_>,
        after: Option<&str>,
        descending: bool,
        limit: i64,
    ) -> Result<Vec<Shown>, ApiError> {
        let pool = &self.inner.pool;
        let rows = store::connectors::list(pool, viewer, after, descending, limit).await?;
        rows.into_iter().map(shown).collect()
    }

    /// Deletes a connector. False when `viewer` may not, or there is none.
    pub async fn delete(&self, viewer: Viewer<'_>, id: &str) -> Result<bool, StoreError> {
        store::connectors::delete(&self.inner.pool, viewer, id).await
    }

    fn label(&self, fields: &Object<'_>) -> Result<String, ApiError> {
        let label = label(fields).map_err(|wrong| wrong.into_error(""))?;
        match self.configured(&label) {
            Some(_) => Err(taken(&label)),
            None => Ok(label),
        }
    }

    /// What a body says, over what was there before.
    fn read(
        &self,
        fields: &Object<'_>,
        label: &str,
        before: Option<(Definition, Sealed)>,
    ) -> Result<(Definition, Sealed), ApiError> {
        let read = || {
            let Access { url, authorization, headers } = access(fields)?;
            let allowed = fields
                .rule("allowed_tools", |raw, at| Allowed::parse(raw, at).map(|_| raw.clone()))?;
            let approval = fields.rule("require_approval", |raw, at| {
                Approval::parse(raw, at).map(|_| raw.clone())
            })?;
            let description = fields.text("server_description")?;
            let (before, secrets) = before.map_or((None, Sealed::default()), |(a, b)| (Some(a), b));
            let server_url = match (&url, &before) {
                (Some(url), _) => {
                    self.check_url(url, label, "server_url")?;
                    url.to_string()
                }
                (None, Some(before)) => before.server_url.clone(),
                (None, None) => {
                    return Err(Wrong::at("server_url", "the server's address is needed"));
                }
            };
            let sealed = Sealed {
                authorization: if fields.mentions("authorization") {
                    authorization.map(|token| token.expose().to_owned())
                } else {
                    secrets.authorization
                },
                headers: if fields.mentions("headers") {
                    headers
                        .into_iter()
                        .map(|(name, value)| (name, value.expose().to_owned()))
                        .collect()
                } else {
                    secrets.headers
                },
            };
            let keep = |name: &str| before.as_ref().filter(|_| !fields.mentions(name));
            let definition = Definition {
                server_url,
                server_description: description
                    .or_else(|| keep("server_description")?.server_description.clone()),
                allowed_tools: allowed.or_else(|| keep("allowed_tools")?.allowed_tools.clone()),
                require_approval: approval
                    .or_else(|| Some(keep("require_approval")?.require_approval.clone()))
                    .unwrap_or_else(|| Raw::of(&"always")),
                has_authorization: sealed.authorization.is_some(),
                headers: sealed.headers.iter().map(|(name, _)| name.clone()).collect(),
            };
            Ok((definition, sealed))
        };
        read().map_err(|wrong: Wrong| wrong.into_error(""))
    }

    /// The server behind a tenant's connector.
    pub(super) fn server(
        &self,
        tenant_id: &str,
        found: &Connector,
        tool: McpTool,
        place: &str,
    ) -> Result<Server, ApiError> {
        let Definition { server_url, server_description, allowed_tools, require_approval, .. } =
            definition(found)?;
        let Sealed { authorization, headers } = self.open(tenant_id, found)?;
        let headers: Vec<Given> =
            headers.into_iter().map(|(name, value)| (name, Secret::from(value))).collect();
        let headers = merged(&tool, &headers, authorization.map(Secret::from).as_ref());
        let broken = |wrong: Wrong| {
            tracing::error!(connector = %found.id, %wrong, "a connector's row cannot be read");
            ApiError::server()
        };
        let url: Result<Url, _> = server_url.parse();
        let url = url.map_err(|_| broken(Wrong::at("server_url", "it is no address")))?;
        // The policy may have become stricter since.
        self.check_url(&url, &found.label, "server_url")
            .map_err(|wrong| wrong.into_error(place))?;
        let allowed = allowed_tools
            .map(|raw| Allowed::parse(&raw, "allowed_tools"))
            .transpose()
            .map_err(broken)?
            .unwrap_or_default();
        let approval = Approval::parse(&require_approval, "require_approval").map_err(broken)?;
        Ok(narrowed(
            tool,
            Endpoint::http(url, Transport::Auto, headers),
            server_description,
            allowed,
            approval,
        ))
    }

    fn seal(&self, tenant_id: &str, sealed: &Sealed) -> Result<String, ApiError> {
        let plain = serde_json::to_vec(sealed).unwrap_or_default();
        self.inner.sealer.seal(Purpose::Credential, tenant_id, &plain).map_err(|error| {
            tracing::error!(%error, "a connector's secrets cannot be sealed");
            ApiError::server()
        })
    }

    fn open(&self, tenant_id: &str, row: &Connector) -> Result<Sealed, ApiError> {
        let opened = self.inner.sealer.open(Purpose::Credential, tenant_id, &row.secrets);
        let sealed = opened.ok().flatten().and_then(|plain| serde_json::from_slice(&plain).ok());
        sealed.ok_or_else(|| {
            tracing::error!(connector = %row.id, "a connector's secrets do not open: is its seal key gone?");
            ApiError::new(
                ErrorKind::Server,
                format!(
                    "The credentials of connector `{}` cannot be read with the server's seal keys. Delete it and set it up again.",
                    row.label
                ),
            )
        })
    }
}

fn object(body: &str) -> Result<Raw, ApiError> {
    Raw::parse(body).map_err(|error| {
        ApiError::new(
            ErrorKind::InvalidRequest,
            format!("The body is not a JSON object as expected here: {error}."),
        )
        .code("invalid_json")
    })
}

/// The fields of a body. One that means nothing here is refused: whoever misspells a rule must not believe that it holds.
fn known(raw: &Raw) -> Result<Object<'_>, ApiError> {
    const KNOWN: [&str; 7] = [
        "server_label",
        "server_url",
        "server_description",
        "authorization",
        "headers",
        "allowed_tools",
        "require_approval",
    ];
    let fields = Object::parse(raw).map_err(|wrong| wrong.into_error(""))?;
    let unknown = fields.names().find(|name| !KNOWN.contains(name)).map(str::to_owned);
    match unknown {
        None => Ok(fields),
        Some(unknown) => Err(ApiError::invalid(
            unknown.clone(),
            format!("Unknown parameter: `{unknown}`. There may be {}.", KNOWN.join(", ")),
        )
        .code("unknown_parameter")),
    }
}

fn taken(label: &str) -> ApiError {
    ApiError::invalid(
        "server_label",
        format!("A connector is called `{label}` already; choose another label."),
    )
}

fn definition(row: &Connector) -> Result<Definition, ApiError> {
    row.definition.to().map_err(|error| {
        tracing::error!(connector = %row.id, %error, "a connector's row cannot be read");
        ApiError::server()
    })
}

fn shown(row: Connector) -> Result<Shown, ApiError> {
    let definition = definition(&row)?;
    Ok(Shown {
        id: row.id,
        object: "connector",
        created_at: row.created_at.unix_timestamp(),
        server_label: row.label,
        definition,
    })
}
