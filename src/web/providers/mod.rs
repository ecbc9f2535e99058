//! The search providers, one file for each API. What their results have in common is checked in [`search`](super::search()).

mod brave;
mod exa;
mod google;
mod searxng;
mod serper;
mod tavily;

pub use self::{
    brave::Brave, exa::Exa, google::GooglePse, searxng::Searxng, serper::Serper, tavily::Tavily,
};
