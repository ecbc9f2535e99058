use serde::Deserialize;
use url::Url;

use super::value;

/// `[auth]`: who may ask. Keys live in the database (`antiphon keys new`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Auth {
    /// Whether a request without a key is served too. For a machine that nobody else can reach.
    pub open: bool,
    /// A header that names the user, believed only with keys marked as delegates. `None`: no such header.
    #[serde(deserialize_with = "value::filled")]
    pub trusted_user_header: Option<String>,
    /// `[auth.oidc]`: tokens of an identity provider are accepted too.
    pub oidc: Option<Oidc>,
}

/// `[auth.oidc]`: an identity provider whose tokens are accepted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oidc {
    /// The provider, as its tokens name it in `iss`.
    #[serde(deserialize_with = "value::http_url")]
    pub issuer: Url,
    /// What its tokens must name in `aud`.
    pub audience: String,
    /// Where its keys are. `None`: as the issuer's `/.well-known/openid-configuration` says.
    #[serde(default, deserialize_with = "value::filled_http_url")]
    pub jwks_url: Option<Url>,
    /// The claim that names the user.
    #[serde(default = "sub")]
    pub user_claim: String,
    /// The claim that lists the groups.
    #[serde(default = "groups")]
    pub group_claim: String,
    /// The claim that names the tenant. `None`: everybody is in the default tenant.
    #[serde(default, deserialize_with = "value::filled")]
    pub tenant_claim: Option<String>,
}

fn sub() -> String {
    "sub".to_owned()
}

fn groups() -> String {
    "groups".to_owned()
}

/// `[tenancy]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tenancy {
    /// Who reads, inside a tenant, what somebody else of it owns.
    pub share: Share,
    /// The group whose members may change and delete what others of their tenant own. `None`: only owners may.
    #[serde(deserialize_with = "value::filled")]
    pub admin_group: Option<String>,
}

impl Default for Tenancy {
    fn default() -> Self {
        Self { share: Share::default(), admin_group: Some("admins".to_owned()) }
    }
}

/// Who reads what somebody of a tenant owns.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// Everybody of the tenant.
    #[default]
    Tenant,
    /// Only the owner.
    Owner,
}
