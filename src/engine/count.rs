//! How much of a model's window a request would take.

use crate::{
    protocol::{ApiError, CreateResponse, Item, Principal, SharedItem},
    text::tokens::TokenCounter,
    tools::read_file::Previews,
    turn::{history, render::render, size},
};

use super::{
    Engine,
    prepare::{Offer, plain},
};

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
        let Offer { assembly, catalog } = self.offer(&request, principal, "").await?;
        history::check(plain(&before).chain(plain(&input)), self.parts().rules.repair_history)?;
        let previews = match &assembly.files {
            Some(files) => {
                let history: Vec<SharedItem> = before.iter().chain(&input).cloned().collect();
                files.previews(&history).await
            }
            None => Previews::default(),
        };
        // Loading a vocabulary and reading a long text are work for a thread of their own.
        let counted = self.parts().tasks.spawn_blocking(move || {
            let given = plain(&before).chain(plain(&input));
            let items: Vec<&Item> = given.map(|item| previews.of(item)).collect();
            let instructions = assembly.instructions(request.instructions.as_deref());
            let messages = render(instructions.as_deref(), items.iter().copied(), &catalog);
            let mut counter = TokenCounter::for_model(&model);
            size::prompt_tokens(&messages, catalog.offered(), &request.text.format, &mut counter)
        });
        counted.await.map_err(|error| {
            tracing::error!(%error, "tokens could not be counted");
            ApiError::server()
        })
    }
}
