//! The tools of a run: their lists before the first Round, and their calls.

use std::sync::Arc;

use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::sync::mpsc;
use tracing::Instrument as _;

use crate::{
    protocol::{ApiError, Item, Numbered, Raw, SharedItem},
    telemetry::traceparent,
    tools::{
        Tool,
        registry::target,
        runner::{self, Heard},
        server::{Listed, ToolServer},
    },
    turn::{ApprovedCall, Catalog, HostedRef, HostedTarget, Next, Shape, ToolCall},
};

use super::{
    Engine,
    approvals::Approved,
    run::{Stop, Work, send},
};

impl Engine {
    /// Asks servers for their tools, offers all tools to the model, and begins the calls that the client approved.
    pub(super) async fn open_tools(
        &self,
        work: &mut Work,
        heard: &mpsc::Sender<Vec<Numbered>>,
    ) -> Result<Next, Stop> {
        if let Some(files) = &work.assembly.files {
            work.previews = files.previews(&work.context.history).await;
        }
        if !work.assembly.servers.is_empty() {
            let failed = self.list(work, heard).await?;
            let failed: Vec<&str> = failed.iter().map(String::as_str).collect();
            let (request, hosted) = (&work.request, work.assembly.registry.hosted());
            let catalog = Catalog::new(&request.tools, &request.tool_choice, hosted, &failed)
                .map_err(|(param, why)| Stop::Failed(ApiError::invalid(param, why)))?;
            work.turn.offer(catalog);
        }
        let approved = std::mem::take(&mut work.approved);
        let calls = approved
            .into_iter()
            .map(|Approved { request_id, tool, arguments }| ApprovedCall {
                request_id,
                target: work.assembly.registry.get(&tool).map_or_else(|| gone(tool), target),
                arguments,
            })
            .collect();
        Ok(work.turn.resume(calls))
    }

    /// Asks all servers at once, unless the chain has their list. Gives the labels of those that did not answer.
    async fn list(
        &self,
        work: &mut Work,
        heard: &mpsc::Sender<Vec<Numbered>>,
    ) -> Result<Vec<String>, Stop> {
        let servers = work.assembly.servers.clone();
        let mut known: Vec<Option<Vec<Arc<dyn Tool>>>> = Vec::new();
        for server in &servers {
            known.push(match listed_before(&work.context.history, &**server) {
                Some(list) => server.recall(&list).await,
                None => None,
            });
        }
        let mut asked = FuturesUnordered::new();
        for (at, server) in servers.iter().enumerate() {
            if known[at].is_none() {
                let list = work.turn.list_tools(server.label());
                let span = tracing::info_span!("list_tools", server = server.label());
                asked.push(async move { (at, list, server.list().instrument(span).await) });
            }
        }
        send(heard, &mut work.turn).await?;
        let mut failed = Vec::new();
        while let Some((at, list, answer)) = asked.next().await {
            let server = &servers[at];
            let shown = match answer {
                Ok(listed) => {
                    let (shown, tools): (Vec<Raw>, Vec<Arc<dyn Tool>>) =
                        listed.into_iter().map(|Listed { shown, tool }| (shown, tool)).unzip();
                    known[at] = Some(tools);
                    Ok(shown)
                }
                Err(why) => {
                    tracing::warn!(server = server.label(), %why, "tools could not be listed");
                    failed.push(server.label().to_owned());
                    Err(why)
                }
            };
            work.turn.listed(list, shown, server.definition().to_owned());
            send(heard, &mut work.turn).await?;
        }
        // In the order of the request, whoever answered first: names that clash depend on it.
        for tool in known.into_iter().flatten().flatten() {
            work.assembly.registry.add(tool);
        }
        Ok(failed)
    }

    /// Runs calls, and lets the client hear of each as soon as it has ended.
    pub(super) async fn run_tools(
        &self,
        work: &mut Work,
        calls: &[ToolCall],
        heard: &mpsc::Sender<Vec<Numbered>>,
    ) -> Result<Next, Stop> {
        let parts = self.parts();
        let span = tracing::info_span!("tools", count = calls.len());
        work.context.traceparent = traceparent(&span);
        let limits = &parts.rules.tool_limits;
        let registry = &work.assembly.registry;
        let mut running = runner::run(registry, calls, &work.context, limits, &parts.metrics);
        // Those that were answered without being run.
        send(heard, &mut work.turn).await?;
        while let Some(batch) = running.next().instrument(span.clone()).await {
            for news in batch {
                match news {
                    Heard::Picture(picture) => {
                        work.turn.partial_image(picture.slot, picture.index, picture.base64);
                    }
                    Heard::Outcome(outcome) => work.turn.settle(outcome),
                }
            }
            send(heard, &mut work.turn).await?;
        }
        Ok(work.turn.answered())
    }
}

/// The newest list of a server's tools that this history has under the same terms. A list that the client brought along says no terms.
fn listed_before(history: &[SharedItem], server: &dyn ToolServer) -> Option<Vec<Raw>> {
    history.iter().rev().find_map(|item| match &**item {
        Item::McpListTools(list) if list.server_label == server.label() && list.error.is_none() => {
            let same = list.definition.as_ref().is_none_or(|terms| terms == server.definition());
            Some(same.then(|| list.tools.clone()))
        }
        _ => None,
    })?
}

/// A tool that its server does not list any more: the call of it fails and says so.
fn gone(tool: HostedRef) -> HostedTarget {
    HostedTarget { tool, shape: Shape::Mcp, needs_approval: false, ends_loop: false }
}
