//! Web pages to Markdown.

use dom_query::Document;
use dom_smoothie::{Article, Config, Readability, TextMode};
use url::Url;

use super::Parsed;

/// What is no text, or not of this page.
const NOISE: &str = "script, style, noscript, template, svg, iframe, object, canvas, head, nav, footer, form, dialog, [hidden], [aria-hidden=true]";
/// An article shorter than this, in characters, is taken only when it is a good part of the page: lists and indexes have no article, and
/// what is found of them is a scrap.
const SURE_ARTICLE: usize = 2000;
/// That part: one in so many.
const GOOD_PART: usize = 4;

/// The text of a page: its article, else all that can be read on it.
pub(super) fn parse(html: &str, url: Option<&str>) -> Parsed {
    let whole = whole(html, url);
    let Some(article) = article(html, url) else { return whole };
    let text = article.text_content.trim();
    let length = text.chars().count();
    let is_worth_it = length >= SURE_ARTICLE || length * GOOD_PART >= whole.text.chars().count();
    Parsed {
        title: Some(article.title).filter(|title| !title.is_empty()).or(whole.title),
        text: if is_worth_it { text.to_owned() } else { whole.text },
        published: article.published_time.or(article.modified_time),
        truncated: false,
    }
}

fn article(html: &str, url: Option<&str>) -> Option<Article> {
    let config = || Config { text_mode: TextMode::Markdown, ..Config::default() };
    let mut reader = Readability::new(html, url, Some(config()))
        .or_else(|_| Readability::new(html, None, Some(config())))
        .ok()?;
    reader.parse().ok()
}

fn whole(html: &str, url: Option<&str>) -> Parsed {
    let page = Document::from(html);
    let title = page.select("title").first().text().trim().to_owned();
    page.select(NOISE).remove();
    if let Some(base) = url.and_then(|url| Url::parse(url).ok()) {
        for link in page.select("a[href]").iter() {
            let href = link.attr("href").and_then(|href| base.join(&href).ok());
            if let Some(href) = href {
                link.set_attr("href", href.as_str());
            }
        }
    }
    let text = page.md(None).trim().to_owned();
    Parsed {
        title: Some(title).filter(|title| !title.is_empty()),
        text,
        published: None,
        truncated: false,
    }
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
