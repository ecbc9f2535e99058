//! The items of a request, made whole: references resolved, sealed reasoning opened, ids given.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use crate::{
    protocol::{
        ApiError, Extra, Item, ItemStatus, Part, Principal, Raw, SharedItem,
        content::ReasoningText, hosted::ModelView, item::Reasoning,
    },
    seal::Purpose,
    store,
    turn::{call::SEALED_DATA, reasoning::SealedReasoning},
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
            if let Some(id) = picture_left_out(&item)
                && let Some(found) = referenced.get(id)
            {
                whole.push(Arc::clone(found));
                continue;
            }
            let mut item = item;
            refuse_files(&item, &path)?;
            match &mut item {
                Item::Reasoning(reasoning) => self.open_reasoning(principal, reasoning, &path)?,
                Item::FunctionCall(call) => {
                    call.data = self.open_data(principal, &mut call.extra, &path)?;
                }
                Item::CustomToolCall(call) => {
                    call.data = self.open_data(principal, &mut call.extra, &path)?;
                }
                Item::McpCall(call) => {
                    call.view = self.open_view(principal, &mut call.extra, &path)?;
                }
                Item::WebSearchCall(call) | Item::ImageGenerationCall(call) => {
                    call.view = self.open_view(principal, &mut call.body, &path)?;
                }
                _ => (),
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

    /// Gives a new id to an item whose id the history, or the request itself, has already: lists are read by ids.
    pub(super) fn distinct(
        &self,
        mut input: Vec<SharedItem>,
        history: &[SharedItem],
    ) -> Vec<SharedItem> {
        let mut known: HashSet<String> = history.iter().map(|item| item.id().to_owned()).collect();
        for item in &mut input {
            if known.contains(item.id()) {
                let id = self.parts().ids.mint(item.id_prefix());
                Arc::make_mut(item).set_id(id);
            }
            known.insert(item.id().to_owned());
        }
        input
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
                item => picture_left_out(item),
            })
            .collect();
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let parts = self.parts();
        let found = store::items::find(&parts.pool, parts.rules.viewer(principal), &ids).await?;
        Ok(found.into_iter().collect())
    }

    /// Opens reasoning that we sealed.
    fn open_reasoning(
        &self,
        principal: &Principal,
        reasoning: &mut Reasoning,
        path: &impl Fn() -> String,
    ) -> Result<(), ApiError> {
        let Some(sealed) = &reasoning.encrypted_content else { return Ok(()) };
        let Some(opened) = self.open(principal, sealed, path)? else { return Ok(()) };
        let opened: SealedReasoning =
            serde_json::from_slice(&opened).map_err(|_| does_not_open(path))?;
        if reasoning.content.is_empty() && reasoning.summary.is_empty() && !opened.text.is_empty() {
            reasoning.content = vec![Part::ReasoningText(ReasoningText { text: opened.text })];
        }
        reasoning.data = opened.data;
        Ok(())
    }

    /// Opens what a backend wants back with its call.
    fn open_data(
        &self,
        principal: &Principal,
        extra: &mut Extra,
        path: &impl Fn() -> String,
    ) -> Result<Option<Raw>, ApiError> {
        let Some(serde_json::Value::String(sealed)) = extra.remove(SEALED_DATA) else {
            return Ok(None);
        };
        let Some(opened) = self.open(principal, &sealed, path)? else { return Ok(None) };
        let opened = String::from_utf8(opened).map_err(|_| does_not_open(path))?;
        Raw::parse(&opened).map(Some).map_err(|_| does_not_open(path))
    }

    /// Opens how the model sees a call that we answered.
    fn open_view(
        &self,
        principal: &Principal,
        extra: &mut Extra,
        path: &impl Fn() -> String,
    ) -> Result<Option<Box<ModelView>>, ApiError> {
        let opened = self.open_data(principal, extra, path)?;
        opened.map(|view| view.to().map_err(|_| does_not_open(path))).transpose()
    }

    /// Opens what we sealed. What another server sealed is skipped: nobody here can read it.
    fn open(
        &self,
        principal: &Principal,
        sealed: &str,
        path: &impl Fn() -> String,
    ) -> Result<Option<Vec<u8>>, ApiError> {
        let keys = &self.parts().sealer;
        let opened = keys
            .open(Purpose::Reasoning, &principal.tenant_id, sealed)
            .map_err(|_| does_not_open(path))?;
        if opened.is_none() {
            tracing::warn!("what another server sealed is not shown to the model");
        }
        Ok(opened)
    }
}

/// The id of a call whose picture a client leaves out, as it is too large to be sent around: the store has it.
fn picture_left_out(item: &Item) -> Option<&str> {
    match item {
        Item::ImageGenerationCall(call)
            if !call.id.is_empty() && call.body.get("result").is_none() =>
        {
            Some(&call.id)
        }
        _ => None,
    }
}

fn does_not_open(path: &impl Fn() -> String) -> ApiError {
    ApiError::invalid(
        format!("{}.encrypted_content", path()),
        "The encrypted content could not be verified: it was changed, belongs to someone else, or its key is gone. Leave the item out.",
    )
    .code("invalid_encrypted_content")
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
