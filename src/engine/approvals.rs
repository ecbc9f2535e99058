//! Calls that wait for the client's consent: what it may be given for, and that it counts once.

use std::collections::{BTreeSet, HashSet};

use aws_lc_rs::digest;

use crate::{
    protocol::{
        ApiError, Item, Principal, SharedItem,
        hosted::{McpApprovalRequest, McpApprovalResponse, McpCall},
    },
    store::{
        StoreError,
        approvals::{self, Used},
    },
    tools::toolbox::Assembly,
    turn::HostedRef,
};

use super::Engine;

/// A call that the client approved.
#[derive(Debug)]
pub(super) struct Approved {
    pub(super) request_id: String,
    pub(super) tool: HostedRef,
    pub(super) arguments: String,
}

/// A consent that a request gives.
struct Given {
    /// Where it stands in the request.
    param: String,
    /// What it must have been asked for.
    digest: [u8; 32],
    call: Approved,
}

impl Engine {
    /// The calls that a request approves. The approvals are used up here, all of them or, when one is wrong, none. A refusal is for the
    /// model to read.
    pub(super) async fn approvals(
        &self,
        principal: &Principal,
        assembly: &Assembly,
        history: &[SharedItem],
        input: &[SharedItem],
    ) -> Result<Vec<Approved>, ApiError> {
        let executed: HashSet<&str> = history
            .iter()
            .chain(input)
            .filter_map(|item| match &**item {
                Item::McpCall(McpCall { approval_request_id: Some(id), .. }) => Some(&**id),
                _ => None,
            })
            .collect();
        // Clients that keep their own history say so in every request.
        let refused: BTreeSet<&str> = input
            .iter()
            .filter_map(|item| match &**item {
                Item::McpApprovalResponse(answer) if !answer.approve => {
                    Some(&*answer.approval_request_id)
                }
                _ => None,
            })
            .collect();
        let mut given = Vec::new();
        for (at, item) in input.iter().enumerate() {
            let Item::McpApprovalResponse(answer) = &**item else { continue };
            let McpApprovalResponse { approval_request_id: id, approve, .. } = answer;
            let param = format!("input[{at}].approval_request_id");
            let request = asked(id, history.iter().chain(input)).ok_or_else(|| {
                ApiError::invalid(
                    &*param,
                    format!(
                        "No approval request with id '{id}' found. Name the Response that asked in `previous_response_id`, or send its `mcp_approval_request` item along."
                    ),
                )
            })?;
            if !approve || executed.contains(&**id) {
                continue;
            }
            if refused.contains(&**id) {
                let why = format!("The approval '{id}' is given and refused in the same request.");
                return Err(ApiError::invalid(param, why).code("invalid_approval"));
            }
            let server = assembly.server(&request.server_label).ok_or_else(|| {
                ApiError::invalid(
                    "tools",
                    format!(
                        "The approved call belongs to the server `{}`, which `tools` does not name.",
                        request.server_label
                    ),
                )
            })?;
            let digest = self.bound(principal, server.digest(&request.name, &request.arguments));
            let tool =
                HostedRef { label: request.server_label.clone(), name: request.name.clone() };
            let arguments = request.arguments.clone();
            let call = Approved { request_id: id.clone(), tool, arguments };
            given.push(Given { param, digest, call });
        }
        if !given.is_empty() || !refused.is_empty() {
            self.use_up(principal, &given, &refused).await?;
        }
        Ok(given.into_iter().map(|given| given.call).collect())
    }

    /// What an approval is good for; where users of a tenant do not share, only for the one who was asked.
    pub(super) fn bound(&self, principal: &Principal, digest: [u8; 32]) -> [u8; 32] {
        if self.parts().rules.share_in_tenant {
            return digest;
        }
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(&digest);
        context.update(principal.user_id.as_bytes());
        let mut bound = [0; 32];
        bound.copy_from_slice(context.finish().as_ref());
        bound
    }

    /// Uses all of these up or, when one cannot be used, none. What was refused cannot be approved any more.
    async fn use_up(
        &self,
        principal: &Principal,
        given: &[Given],
        refused: &BTreeSet<&str>,
    ) -> Result<(), ApiError> {
        let mut given: Vec<&Given> = given.iter().collect();
        // In one order for all, so that no two requests wait for each other.
        given.sort_by_key(|given| &given.call.request_id);
        let (parts, tenant) = (self.parts(), &principal.tenant_id);
        let now = parts.clock.now();
        let mut transaction = parts.pool.begin().await.map_err(StoreError::from)?;
        for id in refused {
            approvals::refuse(&mut *transaction, tenant, id, now).await?;
        }
        for Given { param, digest, call: Approved { request_id: id, .. } } in given {
            let why = match approvals::use_once(&mut *transaction, tenant, id, digest, now).await? {
                Used::Now => continue,
                Used::Unknown => "this server did not ask for it, or too long ago",
                Used::ForOther => {
                    "it was asked for another server, tool or other arguments than it is given for now"
                }
                Used::Before => "it was refused or used already",
            };
            let message = format!("The approval '{id}' cannot be used: {why}.");
            return Err(ApiError::invalid(&**param, message).code("invalid_approval"));
        }
        transaction.commit().await.map_err(StoreError::from)?;
        Ok(())
    }
}

fn asked<'a>(
    id: &str,
    mut items: impl Iterator<Item = &'a SharedItem>,
) -> Option<&'a McpApprovalRequest> {
    items.find_map(|item| match &**item {
        Item::McpApprovalRequest(request) if request.id == id => Some(request),
        _ => None,
    })
}
