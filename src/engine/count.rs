//! How much of a model's window a request would take.

use crate::{
    protocol::{ApiError, CreateResponse, Item, Principal},
    text::tokens::TokenCounter,
    turn::{history, render::render, size},
};

use super::{Engine, prepare::plain};

impl Engine {
    /// Counts the tokens of what a model would be shown first for this request: instructions, history, input, tools and format, put
    /// together as for a real question.
    pub async fn count_input(
        &self,
        mut request: CreateResponse,
        principal: &Principal,
    ) -> Result<u64, ApiError> {
        let model = self.model_of(&request)?;
        let input = std::mem::take(&mut request.input);
        let input = self.complete_input(principal, input, "input").await?;
        let before = self.history(&request, principal, None).await?.items;
        let catalog = self.offer(&request, principal, "").await?.catalog;
        history::check(plain(&before).chain(plain(&input)), self.parts().rules.repair_history)?;
        // Loading a vocabulary and reading a long text are work for a thread of their own.
        let counted = self.parts().tasks.spawn_blocking(move || {
            let items: Vec<&Item> = plain(&before).chain(plain(&input)).collect();
            let messages = render(request.instructions.as_deref(), items.iter().copied(), &catalog);
            let mut counter = TokenCounter::for_model(&model);
            size::prompt_tokens(&messages, catalog.offered(), &request.text.format, &mut counter)
        });
        counted.await.map_err(|error| {
            tracing::error!(%error, "tokens could not be counted");
            ApiError::server()
        })
    }
}
