//! The items of a request, made whole: references resolved, sealed reasoning opened, ids given.

use std::{collections::HashMap, sync::Arc};

use crate::{
    protocol::{
        ApiError, Item, ItemStatus, Part, Principal, SharedItem, content::ReasoningText,
        item::Reasoning,
    },
    seal::Purpose,
    store,
    turn::reasoning::SealedReasoning,
};

use super::Engine;

impl Engine {
    /// Makes the items of a request whole. `param` is the field they came in.
    pub async fn complete_input(
        &self,
        principal: &Principal,
        items: Vec<Item>,
        param: &str,
    ) -> Result<Vec<SharedItem>, ApiError> {
        let referenced = self.referenced(principal, &items).await?;
        let mut whole = Vec::with_capacity(items.len());
        for (at, item) in items.into_iter().enumerate() {
            let path = || format!("{param}[{at}]");
            if let Item::ItemReference(reference) = &item {
                let found = referenced.get(&reference.id).ok_or_else(|| {
                    ApiError::invalid(
                        format!("{}.id", path()),
                        format!("Item with id '{}' not found.", reference.id),
                    )
                })?;
                whole.push(Arc::clone(found));
                continue;
            }
            let mut item = item;
            refuse_files(&item, &path)?;
            if let Item::Reasoning(reasoning) = &mut item {
                self.open_reasoning(principal, reasoning, &path)?;
            }
            if item.id().is_empty() {
                item.set_id(self.parts().ids.mint(item.id_prefix()));
            }
            let is_reasoning = matches!(item, Item::Reasoning(_));
            if let Some(status @ None) = item.status_mut()
                && !is_reasoning
            {
                *status = Some(ItemStatus::Completed);
            }
            whole.push(Arc::new(item));
        }
        Ok(whole)
    }

    async fn referenced(
        &self,
        principal: &Principal,
        items: &[Item],
    ) -> Result<HashMap<String, SharedItem>, ApiError> {
        let ids: Vec<&str> = items
            .iter()
            .filter_map(|item| match item {
                Item::ItemReference(reference) => Some(&*reference.id),
                _ => None,
            })
            .collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let parts = self.parts();
        let found = store::items::find(&parts.pool, parts.rules.viewer(principal), &ids).await?;
        Ok(found.into_iter().collect())
    }

    /// Opens reasoning that we sealed. What another server sealed is skipped: nobody here can read it.
    fn open_reasoning(
        &self,
        principal: &Principal,
        reasoning: &mut Reasoning,
        path: &impl Fn() -> String,
    ) -> Result<(), ApiError> {
        let Some(sealed) = &reasoning.encrypted_content else { return Ok(()) };
        let opened = self.parts().sealer.open(Purpose::Reasoning, &principal.tenant_id, sealed);
        let invalid = || {
            ApiError::invalid(
                format!("{}.encrypted_content", path()),
                "The encrypted content could not be verified: it was changed, belongs to someone else, or its key is gone. Leave the item out.",
            )
            .code("invalid_encrypted_content")
        };
        let Some(opened) = opened.map_err(|_| invalid())? else {
            tracing::warn!("reasoning that another server sealed is not shown to the model");
            return Ok(());
        };
        let opened: SealedReasoning = serde_json::from_slice(&opened).map_err(|_| invalid())?;
        if reasoning.content.is_empty() && reasoning.summary.is_empty() && !opened.text.is_empty() {
            reasoning.content = vec![Part::ReasoningText(ReasoningText { text: opened.text })];
        }
        reasoning.data = opened.data;
        Ok(())
    }
}

/// Files by id need a file store, which this server does not have yet.
fn refuse_files(item: &Item, path: &impl Fn() -> String) -> Result<(), ApiError> {
    let Item::Message(message) = item else { return Ok(()) };
    for (at, part) in message.content.iter().enumerate() {
        let id = match part {
            Part::InputImage(image) if image.image_url.is_none() => image.file_id.as_deref(),
            Part::InputFile(file) if file.file_data.is_none() && file.file_url.is_none() => {
                file.file_id.as_deref()
            }
            _ => None,
        };
        if id.is_some() {
            return Err(ApiError::invalid(
                format!("{}.content[{at}].file_id", path()),
                "Files by id are not supported by this server. Send the content itself: `image_url` or `file_data` with a data URL.",
            )
            .code("unsupported_value"));
        }
    }
    Ok(())
}
