//! How a Response is committed: everything that its end changes, in one transaction.

use std::sync::atomic::Ordering;

use crate::{
    protocol::{ApiError, Item, Response, SharedItem, Status},
    store::{
        StoreError, approvals, conversations, idempotency, items,
        responses::{self, NewResponse},
    },
};

use super::{Engine, lease, run::Work};

impl Engine {
    /// Commits a Response that has ended.
    pub(super) async fn commit(&self, work: &Work, response: &Response) -> Result<(), ApiError> {
        let history = if work.carried { History::Carried } else { History::InStore };
        let written = match self.write(work, response, history).await {
            Err(Refusal::Store(StoreError::Unavailable(error)))
                if !matches!(error, sqlx::Error::PoolTimedOut) =>
            {
                tracing::warn!(response = %response.id, %error, "committing again");
                self.write_again(work, response, history).await
            }
            // Deleted while this was written: what the model was shown of it is kept here.
            Err(Refusal::Store(error)) if error.is_conflict(responses::PREVIOUS_KEY) => {
                self.write(work, response, History::Carried).await
            }
            written => written,
        };
        if let Err(Refusal::Store(StoreError::Unavailable(_))) = &written {
            self.doubtful.store(true, Ordering::Relaxed);
        }
        written.map_err(|error| match error {
            Refusal::LeaseLost => lease::locked(),
            Refusal::ConversationGone => {
                lease::absent(work.request.conversation.as_deref().unwrap_or_default())
            }
            Refusal::Store(error) => error.into(),
        })
    }

    /// Commits over another connection, unless the lost one did it before it was lost.
    async fn write_again(
        &self,
        work: &Work,
        response: &Response,
        history: History,
    ) -> Result<(), Refusal> {
        let parts = self.parts();
        let viewer = parts.rules.viewer(&work.principal);
        if responses::find(&parts.pool, viewer, &response.id).await?.is_some() {
            return Ok(());
        }
        self.write(work, response, history).await
    }

    async fn write(
        &self,
        work: &Work,
        response: &Response,
        history: History,
    ) -> Result<(), Refusal> {
        let pool = &self.parts().pool;
        let tenant_id = &*work.principal.tenant_id;
        let succeeded = matches!(response.status, Status::Completed | Status::Incomplete);
        let conversation = work.request.conversation.as_deref();
        let whole: Vec<SharedItem>;
        let (input, parent) = match history {
            History::InStore => (&work.input, response.settings.previous_response_id.as_deref()),
            History::Carried => {
                whole = work.history.iter().chain(&work.input).cloned().collect();
                (&whole, None)
            }
        };
        let new = NewResponse {
            tenant_id,
            owner: &work.principal.user_id,
            response,
            parent,
            input,
            in_conversation: succeeded,
        };
        let approvals = self.approvals_of(work, response);
        if conversation.is_none() && work.idempotency.is_none() && approvals.is_empty() {
            if work.request.store {
                responses::insert(pool, &new).await?;
            }
            return Ok(());
        }
        let mut transaction = pool.begin().await.map_err(StoreError::from)?;
        if let Some(id) = conversation {
            let still_ours = conversations::unlock(&mut *transaction, id, &response.id).await?;
            if !still_ours && succeeded {
                let viewer = self.parts().rules.viewer(&work.principal);
                return Err(match conversations::find(&mut *transaction, viewer, id).await? {
                    Some(_) => Refusal::LeaseLost,
                    None => Refusal::ConversationGone,
                });
            }
        }
        if work.request.store {
            responses::insert(&mut *transaction, &new).await?;
        } else if let Some(id) = conversation
            && succeeded
        {
            items::append(&mut *transaction, id, tenant_id, &work.input).await?;
            items::append(&mut *transaction, id, tenant_id, &response.output).await?;
        }
        for (id, digest) in &approvals {
            let now = self.parts().clock.now();
            approvals::insert(&mut *transaction, tenant_id, id, digest, now).await?;
        }
        if let Some(key) = &work.idempotency {
            idempotency::finish(&mut *transaction, tenant_id, &key.key, response).await?;
        }
        transaction.commit().await.map_err(StoreError::from)?;
        Ok(())
    }
}

impl Engine {
    /// The calls of a Response that wait for the client's consent, and what it is good for.
    fn approvals_of<'a>(&self, work: &Work, response: &'a Response) -> Vec<(&'a str, [u8; 32])> {
        let asked = response.output.iter().filter_map(|item| match &**item {
            Item::McpApprovalRequest(request) => Some(request),
            _ => None,
        });
        // Without its server nobody could have asked.
        asked
            .filter_map(|request| {
                let server = work.assembly.server(&request.server_label)?;
                let digest = server.digest(&request.name, &request.arguments);
                Some((&*request.id, self.bound(&work.principal, digest)))
            })
            .collect()
    }
}

/// Where the items before the request's own are.
#[derive(Clone, Copy)]
enum History {
    /// With the ancestors, in the store.
    InStore,
    /// Nowhere else: they become part of the input, so that what is stored can be gone on from.
    Carried,
}

/// Why nothing was written.
enum Refusal {
    /// The conversation was deleted meanwhile.
    ConversationGone,
    /// The conversation's lock ran out, and another Response may have written into it.
    LeaseLost,
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
