//! `open_url`: pages as text, around what a search showed of them, or where they have a text.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use url::Url;

use crate::{
    protocol::Extra,
    turn::{Shape, ToolFailure, ToolOutput},
    web::{
        Hit, MOST_PAGES, Page, Pages, ReadError,
        window::{around, find, shares},
    },
};

use super::{Call, Spec, Tool, ToolError};

/// How long all pages of a Round may take.
const LONGEST_READ: Duration = Duration::from_mins(2);
/// The most of one page, in characters.
const LONGEST_PAGE: usize = 15_000;
/// The most of all pages of a Round, in characters.
const LONGEST_TOTAL: usize = 150_000;

/// Opens pages.
pub(super) struct OpenUrl {
    spec: Spec,
    pages: Pages,
    snippets: Arc<Snippets>,
}

/// What searches of this Response showed of pages: a page is cut around that.
#[derive(Default)]
pub(super) struct Snippets {
    by_url: Mutex<HashMap<Url, String>>,
}

/// What a call asks for.
struct Wanted {
    urls: Vec<String>,
    pattern: Option<String>,
}

impl Snippets {
    pub(super) fn keep(&self, hits: &[&Hit]) {
        let mut known = self.by_url.lock().unwrap_or_else(PoisonError::into_inner);
        for hit in hits.iter().filter(|hit| !hit.snippet.is_empty()) {
            known.insert(hit.url.clone(), hit.snippet.clone());
        }
    }

    fn of(&self, address: &str) -> Option<String> {
        let url = Url::parse(address.trim()).ok()?;
        self.by_url.lock().unwrap_or_else(PoisonError::into_inner).get(&url).cloned()
    }
}

impl OpenUrl {
    pub(super) fn new(pages: Pages, snippets: Arc<Snippets>) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "urls": {
                    "type": "array",
                    "items": { "type": "string" },
                    "minItems": 1,
                    "description": format!("Addresses of the pages, {MOST_PAGES} at most."),
                },
                "find": {
                    "type": "string",
                    "description": "Show only the places where the pages have this text.",
                },
            },
            "required": ["urls"],
            "additionalProperties": false,
        });
        let spec = Spec {
            shape: Shape::Web,
            aliases: &[("url", "urls"), ("link", "urls"), ("links", "urls"), ("pattern", "find")],
            is_citable: true,
            batched_over: Some("urls"),
            time_limit: LONGEST_READ,
            ..Spec::own(
                "open_url",
                "Open pages",
                "Opens pages of the web and returns their text.",
                &parameters,
            )
        };
        Self { spec, pages, snippets }
    }

    async fn open(&self, calls: Vec<Call<'_>>) -> Vec<Result<ToolOutput, ToolError>> {
        let wanted: Vec<Wanted> = calls.iter().map(Wanted::of).collect();
        let mut addresses: Vec<&str> = Vec::new();
        for url in wanted.iter().flat_map(|wanted| &wanted.urls) {
            if !addresses.contains(&&**url) {
                addresses.push(url);
            }
        }
        let mut read = HashMap::new();
        for some in addresses.chunks(MOST_PAGES) {
            let pages = self.pages.read(some).await;
            read.extend(some.iter().copied().zip(pages));
        }
        let lengths: Vec<usize> = addresses
            .iter()
            .map(|address| match &read[address] {
                Ok(page) => page.text.chars().count().min(LONGEST_PAGE),
                Err(_) => 0,
            })
            .collect();
        let rooms: HashMap<&str, usize> =
            addresses.iter().copied().zip(shares(&lengths, LONGEST_TOTAL)).collect();
        wanted.iter().map(|wanted| self.output(wanted, &read, &rooms)).collect()
    }

    fn output(
        &self,
        wanted: &Wanted,
        read: &HashMap<&str, Result<Page, ReadError>>,
        rooms: &HashMap<&str, usize>,
    ) -> Result<ToolOutput, ToolError> {
        let fields = wanted.fields();
        if wanted.urls.is_empty() {
            return Err(ToolError::told(
                r#"There is no address. A right example: {"urls":["https://example.com/"]}"#,
            ));
        }
        let mut text = String::new();
        let mut opened = 0;
        for (at, url) in wanted.urls.iter().enumerate() {
            if wanted.urls[..at].contains(url) {
                continue;
            }
            match read.get(&**url) {
                // More than are opened in one call: the model may ask again.
                _ if at >= MOST_PAGES => {
                    let _ = writeln!(text, "{url} {}\n", ReadError::Surplus { limit: MOST_PAGES });
                }
                Some(Ok(page)) => {
                    opened += 1;
                    let room = rooms.get(&**url).copied().unwrap_or(LONGEST_PAGE);
                    self.show(&mut text, url, page, wanted.pattern.as_deref(), room);
                }
                Some(Err(error)) => {
                    let _ = writeln!(text, "{url} {error}\n");
                }
                None => (),
            }
        }
        text.truncate(text.trim_end().len());
        if opened == 0 {
            return Err(ToolError::ForModel(ToolFailure { fields, ..ToolFailure::new(text) }));
        }
        Ok(ToolOutput { fields, ..ToolOutput::text(text) })
    }

    /// Writes what is shown of a page.
    fn show(
        &self,
        text: &mut String,
        asked: &str,
        page: &Page,
        pattern: Option<&str>,
        room: usize,
    ) {
        let title = page.title.as_deref().unwrap_or(asked);
        // Writing into a `String` cannot fail.
        let _ = write!(text, "# {title}\n{}\n", page.url);
        if let Some(published) = &page.published {
            let _ = writeln!(text, "Published: {published}");
        }
        if let Some(pattern) = pattern {
            let found = find(&page.text, pattern);
            let _ = writeln!(text, "`{pattern}` stands here {} times.", found.total);
            for place in &found.shown {
                let _ = writeln!(text, "At character {}: {}", place.at, place.excerpt);
            }
        } else {
            let snippet = self.snippets.of(asked);
            text.push_str(&around(&page.text, snippet.as_deref(), room));
            text.push('\n');
        }
        if page.truncated {
            text.push_str("[The page is longer than can be read.]\n");
        }
        text.push('\n');
    }
}

impl Tool for OpenUrl {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let mut outputs = self.open(vec![call]).await;
            outputs.pop().unwrap_or_else(|| Err(anyhow::anyhow!("pages without a result").into()))
        })
    }

    fn run_batch<'a>(
        &'a self,
        calls: Vec<Call<'a>>,
    ) -> BoxFuture<'a, Vec<Result<ToolOutput, ToolError>>> {
        Box::pin(self.open(calls))
    }
}

impl Wanted {
    fn of(call: &Call<'_>) -> Self {
        let urls = call.arguments.get("urls").and_then(Value::as_array).into_iter().flatten();
        let urls = urls.filter_map(Value::as_str).map(str::trim).filter(|url| !url.is_empty());
        let pattern = call.arguments.get("find").and_then(Value::as_str);
        Self {
            urls: urls.map(str::to_owned).collect(),
            pattern: pattern.filter(|text| !text.trim().is_empty()).map(str::to_owned),
        }
    }

    /// The fields of the item. The API's action has one address; the others follow in a field of ours.
    fn fields(&self) -> Extra {
        let url = self.urls.first().cloned().unwrap_or_default();
        let mut action = match &self.pattern {
            Some(pattern) => json!({ "type": "find_in_page", "url": url, "pattern": pattern }),
            None => json!({ "type": "open_page", "url": url }),
        };
        if self.urls.len() > 1 {
            action["urls"] = json!(self.urls);
        }
        let mut fields = Extra::new();
        fields.insert("action", action);
        fields
    }
}
