//! From a request to a Turn that may begin: history, tools, what takes effect. Everything that can be refused is refused here.

use std::sync::Arc;

use crate::{
    protocol::{
        ApiError, CreateResponse, Include, Principal, Raw, Settings, SharedItem,
        item::Item,
        response::{ConversationRef, Truncation},
    },
    seal::Purpose,
    store,
    tools::{
        self,
        read_file::Previews,
        toolbox::{Asker, Assembly},
    },
    turn::{Catalog, Rules, Sealing, Turn, history},
};

use super::{
    Engine, Run,
    idempotency::Key,
    lease::{Lease, absent},
    run::Work,
};

/// A request, and who asks.
#[derive(Debug)]
pub struct Asked {
    /// The request.
    pub request: CreateResponse,
    /// Who asks.
    pub principal: Principal,
    /// The key by which the same request runs once.
    pub idempotency: Option<Key>,
    /// What this connection remembers of a Response that is not stored.
    pub remembered: Option<Remembered>,
}

/// A Response that only a connection remembers, with its whole history.
#[derive(Clone, Debug)]
pub struct Remembered {
    /// Its id.
    pub response_id: String,
    /// The first Response of its chain.
    pub chain_id: String,
    /// The items of its chain, its own output last.
    pub items: Vec<SharedItem>,
    /// Whether the store has it too.
    pub stored: bool,
}

/// What became of a request.
pub enum Started {
    /// It runs.
    Run(Box<Run>),
    /// The same request has run before; this is its Response.
    Replayed(Raw),
}

/// What came before a request.
#[derive(Default)]
pub(super) struct Chain {
    /// The first Response of the chain.
    root: Option<String>,
    pub(super) items: Vec<SharedItem>,
}

/// The tools that a request offers.
pub(super) struct Offer {
    pub(super) assembly: Assembly,
    pub(super) catalog: Catalog,
}

impl Engine {
    /// Prepares a Response and gives its run, which does nothing until it is polled.
    pub async fn start(&self, asked: Asked) -> Result<Started, ApiError> {
        let parts = self.parts();
        let response_id = parts.ids.mint("resp");
        let Asked { request, principal, idempotency, remembered } = asked;
        refuse_later(&request)?;
        self.check_database().await?;
        if let Some(key) = &idempotency
            && let Some(body) = key.claim(self, &principal, &response_id).await?
        {
            return Ok(Started::Replayed(body));
        }
        let prepared = self.prepare(request, &principal, remembered, &response_id).await;
        match prepared {
            Ok(mut work) => {
                work.idempotency = idempotency;
                work.principal = principal;
                Ok(Started::Run(Box::new(Run::new(self.clone(), work))))
            }
            Err(error) => {
                if let Some(key) = idempotency {
                    key.release(self, &principal, &response_id).await;
                }
                Err(error)
            }
        }
    }

    async fn prepare(
        &self,
        request: CreateResponse,
        principal: &Principal,
        remembered: Option<Remembered>,
        response_id: &str,
    ) -> Result<Work, ApiError> {
        let parts = self.parts();
        let rules = &parts.rules;
        let model = self.model_of(&request)?;
        if !request.unknown.is_empty() {
            let some = &request.unknown[..request.unknown.len().min(8)];
            tracing::info!(
                count = request.unknown.len(),
                ?some,
                "unknown request fields are not used"
            );
        }
        let mut request = request;
        let input = std::mem::take(&mut request.input);
        let input = self.complete_input(principal, input, "input").await?;
        let lease = match &request.conversation {
            Some(id) => Some(Lease::take(self, principal, id, response_id).await?),
            None => None,
        };
        // What the store has too is read there: it may have been deleted since.
        let remembered = remembered.filter(|remembered| {
            !remembered.stored
                && request.previous_response_id.as_ref() == Some(&remembered.response_id)
        });
        let carried = remembered.is_some();
        let Chain { root, items: before } = self.history(&request, principal, remembered).await?;
        let chain_id =
            request.conversation.clone().or(root).unwrap_or_else(|| response_id.to_owned());
        let Offer { assembly, catalog } = self.offer(&request, principal, &chain_id).await?;
        let input = self.distinct(input, &before);
        let used_call_ids =
            history::check(before.iter().chain(&input).map(|item| &**item), rules.repair_history)?;

        let facts = parts.model.facts(&model).await;
        let sealed = request.include.contains(&Include::ReasoningEncryptedContent);
        let turn_rules = Rules {
            open_responses: rules.open_responses,
            think: facts.think,
            reading: facts.reading,
            logprobs: request.include.contains(&Include::OutputTextLogprobs),
            seal: sealed.then(|| self.sealing(principal)),
            seal_data: (!request.store).then(|| self.sealing(principal)),
            max_rounds: rules.max_rounds,
            used_call_ids,
        };
        let settings = Arc::new(settings(&request, &model));
        let approved = self.approvals(principal, &assembly, &before, &input).await?;
        let history: Arc<[SharedItem]> = before.iter().chain(&input).cloned().collect();
        let turn =
            Turn::begin(response_id, parts.clock.unix(), settings, Arc::new(catalog), turn_rules);
        let include = Arc::new(request.include.clone());
        let is_stored = request.store;
        Ok(Work {
            turn,
            model,
            request,
            history: before,
            carried,
            input,
            lease,
            principal: principal.clone(),
            idempotency: None,
            assembly,
            previews: Previews::default(),
            approved,
            context: tools::Context {
                principal: principal.clone(),
                response_id: response_id.to_owned(),
                chain_id,
                is_stored,
                include,
                history,
                traceparent: None,
            },
        })
    }

    /// The tools that a request offers, as far as they are known before servers are asked.
    pub(super) async fn offer(
        &self,
        request: &CreateResponse,
        principal: &Principal,
        chain_id: &str,
    ) -> Result<Offer, ApiError> {
        let parts = self.parts();
        let viewer = parts.rules.viewer(principal);
        let asker = Asker { principal, viewer, chain_id };
        let assembly = parts.tools.assemble(request, asker).await?;
        let absent: Vec<&str> = assembly.servers.iter().map(|server| server.label()).collect();
        let hosted = assembly.registry.hosted();
        let catalog = Catalog::new(&request.tools, &request.tool_choice, hosted, &absent)
            .map_err(|(param, why)| ApiError::invalid(param, why))?;
        Ok(Offer { assembly, catalog })
    }

    /// The model that a request asks.
    pub(super) fn model_of(&self, request: &CreateResponse) -> Result<String, ApiError> {
        request.model.clone().or_else(|| self.parts().rules.default_model.clone()).ok_or_else(|| {
            ApiError::invalid(
                "model",
                "Missing required parameter: `model`. `GET /v1/models` lists the models of this server.",
            )
            .code("missing_required_parameter")
        })
    }

    /// The items before the request's own.
    pub(super) async fn history(
        &self,
        request: &CreateResponse,
        principal: &Principal,
        remembered: Option<Remembered>,
    ) -> Result<Chain, ApiError> {
        let parts = self.parts();
        if let Some(id) = &request.previous_response_id {
            if let Some(Remembered { chain_id, items, .. }) = remembered {
                return Ok(Chain { root: Some(chain_id), items });
            }
            let viewer = parts.rules.viewer(principal);
            let chain = store::responses::chain(&parts.pool, viewer, id).await?;
            let chain = chain.ok_or_else(|| previous_absent(id))?;
            return Ok(Chain { root: Some(chain.root), items: chain.items });
        }
        if let Some(id) = &request.conversation {
            let viewer = parts.rules.viewer(principal);
            if store::conversations::find(&parts.pool, viewer, id).await?.is_none() {
                return Err(absent(id));
            }
            let items = store::items::history(&parts.pool, id, &principal.tenant_id).await?;
            return Ok(Chain { root: None, items });
        }
        Ok(Chain::default())
    }

    fn sealing(&self, principal: &Principal) -> Sealing {
        let sealer = Arc::clone(&self.parts().sealer);
        let tenant_id = principal.tenant_id.clone();
        Arc::new(move |text| {
            sealer.seal(Purpose::Reasoning, &tenant_id, text.as_bytes()).unwrap_or_default()
        })
    }
}

/// No such Response to go on from, or not theirs.
fn previous_absent(id: &str) -> ApiError {
    ApiError::invalid(
        "previous_response_id",
        format!("Previous response with id '{id}' not found."),
    )
    .code("previous_response_not_found")
}

/// Known things that change the answer and that this version cannot do: never ignored in silence.
fn refuse_later(request: &CreateResponse) -> Result<(), ApiError> {
    let refusal =
        |param: &str, what: &str| Err(ApiError::invalid(param, what).code("unsupported_parameter"));
    if request.background {
        return refusal(
            "background",
            "Background responses are not supported by this version. Leave `background` out and read the stream.",
        );
    }
    if request.context_management.is_some() {
        return refusal(
            "context_management",
            "Compaction is not supported by this version. Leave `context_management` out.",
        );
    }
    if request.truncation == Truncation::Auto {
        return refusal(
            "truncation",
            "`truncation: \"auto\"` is not supported by this version. Use `disabled`, and shorten the input yourself when it does not fit.",
        );
    }
    Ok(())
}

/// What a request asked for, with the defaults that take effect.
fn settings(request: &CreateResponse, model: &str) -> Settings {
    Settings {
        model: model.to_owned(),
        previous_response_id: request.previous_response_id.clone(),
        conversation: request.conversation.clone().map(|id| ConversationRef { id }),
        instructions: request.instructions.clone(),
        tools: request.tools.clone(),
        tool_choice: request.tool_choice.clone(),
        parallel_tool_calls: request.parallel_tool_calls.unwrap_or(true),
        max_tool_calls: request.max_tool_calls,
        max_output_tokens: request.max_output_tokens,
        text: request.text.clone(),
        reasoning: request.reasoning.clone(),
        truncation: request.truncation,
        temperature: request.temperature.unwrap_or(1.0),
        top_p: request.top_p.unwrap_or(1.0),
        presence_penalty: request.presence_penalty.unwrap_or(0.0),
        frequency_penalty: request.frequency_penalty.unwrap_or(0.0),
        top_logprobs: request.top_logprobs.unwrap_or(0),
        store: request.store,
        background: request.background,
        service_tier: "default".to_owned(),
        metadata: request.metadata.clone(),
        safety_identifier: request.safety_identifier.clone(),
        prompt_cache_key: request.prompt_cache_key.clone(),
        user: request.user.clone(),
    }
}

/// The items without their sharing, for who only reads.
pub(super) fn plain(items: &[SharedItem]) -> impl Iterator<Item = &Item> + Clone {
    items.iter().map(|item| &**item)
}
