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

/// Pages that are nested deeper have no article: finding one takes time with the square of the depth.
const DEEPEST: usize = 256;

/// The text of a page: its article, else all that can be read on it.
pub(super) fn parse(html: &str, url: Option<&str>) -> Parsed {
    let page = Document::from(html);
    let is_deep = depth(&page) > DEEPEST;
    let whole = whole(&page, url);
    let Some(article) = (!is_deep).then(|| article(html, url)).flatten() else { return whole };
    let text = article.text_content.trim();
    let length = text.chars().count();
    let is_worth_it = length >= SURE_ARTICLE || length * GOOD_PART >= whole.text.chars().count();
    Parsed {
        title: Some(article.title).filter(|title| !title.is_empty()).or(whole.title),
        text: if is_worth_it { with_plain_links(text) } else { whole.text },
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

fn whole(page: &Document, url: Option<&str>) -> Parsed {
    let title = page.select("title").first().text().trim().to_owned();
    let base = page.select("base[href]").first().attr("href");
    page.select(NOISE).remove();
    if let Some(url) = url.and_then(|url| Url::parse(url).ok()) {
        let base = base.and_then(|base| url.join(&base).ok()).unwrap_or(url);
        for link in &page.select("a[href]") {
            let href = link.attr("href").and_then(|href| base.join(&href).ok());
            if let Some(href) = href {
                link.set_attr("href", href.as_str());
            }
        }
    }
    Parsed {
        title: Some(title).filter(|title| !title.is_empty()),
        text: with_plain_links(page.md(None).trim()),
        published: None,
        truncated: false,
    }
}

/// How deep the page is nested.
fn depth(page: &Document) -> usize {
    let (mut deepest, mut depth) = (0, 0_usize);
    let mut next = page.root().first_child();
    while let Some(node) = next {
        deepest = deepest.max(depth);
        if let Some(child) = node.first_child() {
            depth += 1;
            next = Some(child);
            continue;
        }
        // Upwards until there is a sibling.
        let mut at = Some(node);
        next = None;
        while let Some(node) = at {
            if let Some(sibling) = node.next_sibling() {
                next = Some(sibling);
                break;
            }
            at = node.parent();
            depth = depth.saturating_sub(1);
        }
    }
    deepest
}

/// The Markdown with the addresses of links as they are: as HTML they are not what has to be opened.
fn with_plain_links(markdown: &str) -> String {
    let mut parts = markdown.split("](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| c == ')' || c.is_whitespace()).unwrap_or(part.len());
        out.push_str("](");
        out.push_str(&part[..end].replace("&amp;", "&"));
        out.push_str(&part[end..]);
    }
    out
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
