//! Calls that wait for the client's consent: what it may be given for, and that it counts once.

use std::collections::HashSet;

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
        let refused: HashSet<&str> = input
            .iter()
            .filter_map(|item| match &**item {
                Item::McpApprovalResponse(answer) if !answer.approve => {
                    Some(&*answer.approval_request_id)
                }
                _ => None,
            })
            .collect();
        let mut approved = Vec::new();
        let mut transaction = None;
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
            if executed.contains(&**id) {
                continue;
            }
            if *approve && refused.contains(&**id) {
                return Err(ApiError::invalid(
                    param,
                    format!("The approval '{id}' is given and refused in the same request."),
                )
                .code("invalid_approval"));
            }
            let parts = self.parts();
            let now = parts.clock.now();
            let db = match &mut transaction {
                Some(begun) => begun,
                none => none.insert(parts.pool.begin().await.map_err(StoreError::from)?),
            };
            if !approve {
                // What was refused cannot be approved any more. Clients that keep their own history say so in every request.
                approvals::refuse(&mut **db, &principal.tenant_id, id, now).await?;
                continue;
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
            let digest = server.digest(&request.name, &request.arguments);
            let used =
                approvals::use_once(&mut **db, &principal.tenant_id, id, &digest, now).await?;
            let why = match used {
                Used::Now => {
                    approved.push(Approved {
                        request_id: id.clone(),
                        tool: HostedRef {
                            label: request.server_label.clone(),
                            name: request.name.clone(),
                        },
                        arguments: request.arguments.clone(),
                    });
                    continue;
                }
                Used::Unknown => "this server did not ask for it, or too long ago",
                Used::ForOther => {
                    "it was asked for another server, tool or other arguments than it is given for now"
                }
                Used::Before => "it was refused or used already",
            };
            return Err(ApiError::invalid(
                param,
                format!("The approval '{id}' cannot be used: {why}."),
            )
            .code("invalid_approval"));
        }
        if let Some(transaction) = transaction {
            transaction.commit().await.map_err(StoreError::from)?;
        }
        Ok(approved)
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
