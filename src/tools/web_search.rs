//! `web_search`: several queries at once, each call with the results of its own.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::{
    protocol::{
        Extra, Include,
        hosted_tool::{self, WebSearchTool},
    },
    turn::{Shape, ToolFailure, ToolOutput},
    web::{ContextSize, Domain, Hit, Query, UserLocation, Web, search},
};

use super::{Call, Spec, Tool, ToolError, open_url::Snippets};

/// How long a search may take, all its queries together.
const LONGEST_SEARCH: Duration = Duration::from_mins(1);
/// Queries of one call at most.
const MOST_QUERIES: usize = 10;

/// Searches the web.
pub(super) struct WebSearch {
    spec: Spec,
    web: Web,
    terms: Terms,
    snippets: Arc<Snippets>,
}

/// What a request says of its searches.
#[derive(Clone, Default)]
struct Terms {
    allowed: Vec<Domain>,
    blocked: Vec<Domain>,
    location: Option<UserLocation>,
    size: ContextSize,
}

impl WebSearch {
    /// A search under the terms of this request. The error is a field of the tool and a sentence.
    pub(super) fn new(
        web: Web,
        asked: &WebSearchTool,
        snippets: Arc<Snippets>,
    ) -> Result<Self, (String, String)> {
        let parameters = json!({
            "type": "object",
            "properties": {
                "queries": {
                    "type": "array",
                    "items": { "type": "string" },
                    "minItems": 1,
                    "maxItems": MOST_QUERIES,
                    "description": "What to search for. Several queries are searched at once.",
                },
            },
            "required": ["queries"],
            "additionalProperties": false,
        });
        let spec = Spec {
            shape: Shape::Web,
            aliases: &[("query", "queries"), ("q", "queries"), ("search_query", "queries")],
            is_citable: true,
            batched_over: Some("queries"),
            time_limit: LONGEST_SEARCH,
            ..Spec::own(
                "web_search",
                "Web search",
                "Searches the web. Returns titles, addresses and passages of pages.",
                &parameters,
            )
        };
        Ok(Self { spec, web, terms: Terms::of(asked)?, snippets })
    }

    /// The queries of a call, cleaned; those that are empty are left out.
    fn queries(&self, call: &Call<'_>) -> Vec<Query> {
        let written = call.arguments.get("queries").and_then(Value::as_array);
        written
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter_map(|text| Query::new(text, self.web.results))
            .map(|query| Query {
                allowed_domains: self.terms.allowed.clone(),
                blocked_domains: self.terms.blocked.clone(),
                location: self.terms.location.clone(),
                context_size: self.terms.size,
                ..query
            })
            .collect()
    }

    async fn search(&self, calls: Vec<Call<'_>>) -> Vec<Result<ToolOutput, ToolError>> {
        let Some(provider) = &self.web.search else {
            return calls
                .iter()
                .map(|_| Err(ToolError::told("There is no web search here.")))
                .collect();
        };
        // Each query is asked once, whoever wrote it.
        let mut asked: Vec<Query> = Vec::new();
        let mut places: Vec<Vec<usize>> = Vec::new();
        for call in &calls {
            let mut own = Vec::new();
            for query in self.queries(call) {
                let place = asked.iter().position(|known| known.text == query.text);
                own.push(place.unwrap_or(asked.len()));
                if place.is_none() {
                    asked.push(query);
                }
            }
            places.push(own);
        }
        let found = search(&**provider, &asked, self.terms.size.most_hits()).await;
        calls
            .iter()
            .zip(places)
            .map(|(call, own)| {
                let texts: Vec<&str> = own.iter().map(|place| &*asked[*place].text).collect();
                if texts.is_empty() {
                    return Err(failure(
                        r#"The queries are empty. A right example: {"queries":["weather in Oslo"]}"#.to_owned(),
                        &texts,
                    ));
                }
                let outcome = found.as_ref().map_err(|error| {
                    failure(format!("The web search failed: {error}."), &texts)
                })?;
                let failed: Vec<String> = outcome
                    .failed
                    .iter()
                    .filter(|(place, _)| own.contains(place))
                    .map(|(place, error)| format!("The query `{}` failed: {error}.", asked[*place].text))
                    .collect();
                let hits: Vec<&Hit> = outcome.hits_of(|place| own.contains(&place)).collect();
                if hits.is_empty() && failed.len() == texts.len() {
                    return Err(failure(failed.join("\n"), &texts));
                }
                self.snippets.keep(&hits);
                Ok(ToolOutput { fields: fields(call, &texts, &hits), ..ToolOutput::text(shown(&hits, &failed)) })
            })
            .collect()
    }
}

impl Tool for WebSearch {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let mut outputs = self.search(vec![call]).await;
            outputs
                .pop()
                .unwrap_or_else(|| Err(anyhow::anyhow!("a search without a result").into()))
        })
    }

    fn run_batch<'a>(
        &'a self,
        calls: Vec<Call<'a>>,
    ) -> BoxFuture<'a, Vec<Result<ToolOutput, ToolError>>> {
        Box::pin(self.search(calls))
    }
}

impl Terms {
    fn of(asked: &WebSearchTool) -> Result<Self, (String, String)> {
        let domains = |name: &str, list: Option<&Vec<String>>| {
            let mut read = Vec::new();
            for (at, text) in list.into_iter().flatten().enumerate() {
                let domain = text.parse().map_err(|error: String| {
                    (format!("filters.{name}[{at}]"), format!("{error}."))
                })?;
                read.push(domain);
            }
            Ok::<Vec<Domain>, (String, String)>(read)
        };
        let filters = asked.filters.as_ref();
        Ok(Self {
            allowed: domains("allowed_domains", filters.and_then(|f| f.allowed_domains.as_ref()))?,
            blocked: domains("blocked_domains", filters.and_then(|f| f.blocked_domains.as_ref()))?,
            location: asked.user_location.as_ref().map(|place| UserLocation {
                country: place.country.clone(),
                region: place.region.clone(),
                city: place.city.clone(),
                timezone: place.timezone.clone(),
            }),
            size: match asked.search_context_size {
                hosted_tool::ContextSize::Low => ContextSize::Low,
                hosted_tool::ContextSize::Medium => ContextSize::Medium,
                hosted_tool::ContextSize::High => ContextSize::High,
            },
        })
    }
}

/// The results for the model.
fn shown(hits: &[&Hit], failed: &[String]) -> String {
    let mut text = String::new();
    for hit in hits {
        let Hit { url, title, snippet, author, published } = hit;
        let title = if title.is_empty() { url.as_str() } else { title };
        // Writing into a `String` cannot fail.
        let _ = write!(text, "## {title}\n{url}\n");
        for (word, value) in [("Author", author), ("Published", published)] {
            if let Some(value) = value {
                let _ = writeln!(text, "{word}: {value}");
            }
        }
        if !snippet.is_empty() {
            let _ = writeln!(text, "{snippet}");
        }
        text.push('\n');
    }
    if hits.is_empty() {
        text.push_str("Nothing was found.\n");
    }
    text.push_str(&failed.join("\n"));
    text.trim_end().to_owned()
}

/// The fields of the item.
fn fields(call: &Call<'_>, queries: &[&str], hits: &[&Hit]) -> Extra {
    let include = &call.context.include;
    let mut action = action(queries);
    if include.contains(&Include::WebSearchSources) {
        let sources: Vec<Value> =
            hits.iter().map(|hit| json!({ "type": "url", "url": hit.url })).collect();
        action["sources"] = sources.into();
    }
    let mut fields = Extra::new();
    fields.insert("action", action);
    if include.contains(&Include::WebSearchResults) {
        let results: Vec<Value> = hits
            .iter()
            .map(|hit| json!({ "type": "text_result", "url": hit.url, "title": hit.title, "snippet": hit.snippet }))
            .collect();
        fields.insert("results", results.into());
    }
    fields
}

fn action(queries: &[&str]) -> Value {
    json!({ "type": "search", "query": queries.first().copied().unwrap_or_default(), "queries": queries })
}

fn failure(told: String, queries: &[&str]) -> ToolError {
    let mut fields = Extra::new();
    fields.insert("action", action(queries));
    ToolError::ForModel(ToolFailure { fields, ..ToolFailure::new(told) })
}
