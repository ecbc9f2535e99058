//! How a Response is committed: everything that its end changes, in one transaction.

use std::sync::atomic::Ordering;

use crate::{
    protocol::{ApiError, Response, SharedItem, Status},
    store::{
        StoreError, conversations, idempotency, items,
        responses::{self, NewResponse},
    },
};

use super::{Engine, lease, prepare::previous_absent, run::Work};

impl Engine {
    /// Commits a Response that has ended.
    pub(super) async fn commit(&self, work: &Work, response: &Response) -> Result<(), ApiError> {
        let written = match self.write(work, response).await {
            Err(Refusal::Store(StoreError::Unavailable(error)))
                if !matches!(error, sqlx::Error::PoolTimedOut) =>
            {
                tracing::warn!(response = %response.id, %error, "committing again");
                self.write_again(work, response).await
            }
            written => written,
        };
        if let Err(Refusal::Store(StoreError::Unavailable(_))) = &written {
            self.doubtful.store(true, Ordering::Relaxed);
        }
        written.map_err(|error| match error {
            Refusal::LeaseLost => lease::locked(),
            Refusal::Store(error) if error.is_conflict(responses::PREVIOUS_KEY) => {
                previous_absent(work.request.previous_response_id.as_deref().unwrap_or_default())
            }
            Refusal::Store(error) => error.into(),
        })
    }

    /// Commits over another connection, unless the lost one did it before it was lost.
    async fn write_again(&self, work: &Work, response: &Response) -> Result<(), Refusal> {
        let parts = self.parts();
        let viewer = parts.rules.viewer(&work.principal);
        if responses::find(&parts.pool, viewer, &response.id).await?.is_some() {
            return Ok(());
        }
        self.write(work, response).await
    }

    async fn write(&self, work: &Work, response: &Response) -> Result<(), Refusal> {
        let pool = &self.parts().pool;
        let tenant_id = &*work.principal.tenant_id;
        let succeeded = matches!(response.status, Status::Completed | Status::Incomplete);
        let conversation = work.request.conversation.as_deref();
        // A history that the store does not have becomes part of the input, so that what is stored can be gone on from.
        let whole: Vec<SharedItem>;
        let (input, parent) = if work.carried {
            whole = work.history.iter().chain(&work.input).cloned().collect();
            (&whole, None)
        } else {
            (&work.input, response.settings.previous_response_id.as_deref())
        };
        let new = NewResponse {
            tenant_id,
            owner: &work.principal.user_id,
            response,
            parent,
            input,
            in_conversation: succeeded,
        };
        if conversation.is_none() && work.idempotency.is_none() {
            if work.request.store {
                responses::insert(pool, &new).await?;
            }
            return Ok(());
        }
        let mut transaction = pool.begin().await.map_err(StoreError::from)?;
        if let Some(id) = conversation {
            let still_ours = conversations::unlock(&mut *transaction, id, &response.id).await?;
            if !still_ours && succeeded {
                return Err(Refusal::LeaseLost);
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
        if let Some(key) = &work.idempotency {
            idempotency::finish(&mut *transaction, tenant_id, &key.key, response).await?;
        }
        transaction.commit().await.map_err(StoreError::from)?;
        Ok(())
    }
}

/// Why nothing was written.
enum Refusal {
    /// The conversation's lock ran out, and another Response may have written into it.
    LeaseLost,
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
