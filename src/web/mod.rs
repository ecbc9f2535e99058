//! SHELL: the web for models: providers that search it, and readers that turn a page into text.
//!
//! - [`SearchProvider`] is one provider's search API, [`search()`] asks one of them several queries at once.
//! - [`PageReader`] turns pages into Markdown: [`OwnReader`] fetches them itself, the others ask a provider. [`Pages`] is what a tool uses:
//!   a provider first if there is one, our own reader for what it could not read.
//! - [`window`] cuts pages to what a model can take and finds text in them; it is pure.
//!
//! **Invariants:** a key goes nowhere but to its provider: not into errors, logs or the `Debug` form. Whatever fails fails alone, with a
//! sentence: one query, one page. Every answer is read up to a limit, and everything has a time limit. What a page or a provider says is
//! data of strangers: nothing here follows it. Items, citations and what a tool looks like are not known here.

mod api;
mod countries;
mod domains;
mod error;
mod merge;
mod pages;
mod providers;
mod query;
mod readers;
mod search;
pub mod window;
mod wiring;

pub use self::{
    api::Access,
    domains::Domain,
    error::{Fault, ReadError, SearchError},
    pages::{MOST_PAGES, Page, PageReader, Pages},
    providers::{Brave, Exa, GooglePse, Searxng, Serper, Tavily},
    query::{ContextSize, Query, Recency, UserLocation},
    readers::{ExaReader, Firecrawl, OwnReader, OwnReaderSettings, SerperReader, TavilyReader},
    search::{Found, Hit, SearchFailed, SearchOutcome, SearchProvider, search},
    wiring::{Parts, Web, WebError, from_config},
};
