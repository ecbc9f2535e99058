use super::*;

const URL: Option<&str> = Some("https://a.org/dir/page");

#[test]
fn an_article_is_found_and_the_rest_left_out() {
    let paragraph = "The committee met again on Tuesday, and after long talks, which went on into the night, agreed on all points. ".repeat(8);
    let html = format!(
        r#"<html><head><title>News</title><meta property="article:published_time" content="2024-03-01T10:00:00Z"></head><body>
        <nav><a href="/home">Home</a></nav><div class="sidebar ads">Buy now</div>
        <article><h1>Agreement</h1><p>{paragraph}</p><p>See <a href="more?id=7&x=1">the minutes</a> of it.</p>
        <ul><li>first</li><li>second</li></ul><table><tr><th>k</th><th>v</th></tr><tr><td>one</td><td>two</td></tr></table></article>
        <footer>Imprint</footer><script>track()</script></body></html>"#
    );
    let page = parse(&html, URL);
    assert_eq!(page.title.as_deref(), Some("News"));
    assert_eq!(page.published.as_deref(), Some("2024-03-01T10:00:00Z"));
    assert!(page.text.contains("[the minutes](https://a.org/dir/more?id=7&x=1)"), "{}", page.text);
    for gone in ["Home", "Buy now", "Imprint", "track"] {
        assert!(!page.text.contains(gone), "{gone} in {}", page.text);
    }
}

#[test]
fn a_page_without_article_is_read_whole() {
    let link = |i| format!("<li><a href='/p?id={i}'>Item number {i}</a></li>");
    let links = (0..200).map(link).collect::<Vec<_>>().concat();
    let page = parse(&format!("<title> List </title><ul>{links}</ul><script>x</script>"), URL);
    assert_eq!(page.title.as_deref(), Some("List"));
    assert!(page.text.contains("[Item number 0](https://a.org/p?id=0)"), "{}", &page.text[..200]);
    assert!(page.text.contains("[Item number 199](https://a.org/p?id=199)"));
}

#[test]
fn words_are_not_glued() {
    let html = "<p>one</p><p>two</p><div>three</div><div>four<br>five</div>six\nseven<ul><li>eight</li><li>nine</li></ul>\
                <table><tr><td>ten</td><td>eleven</td></tr></table><h2>twelve</h2>thirteen";
    let text = parse(html, None).text;
    let words: Vec<&str> =
        text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty()).collect();
    assert_eq!(
        words,
        [
            "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
            "eleven", "twelve", "thirteen"
        ],
        "{text}"
    );
}

#[test]
fn odd_pages_are_no_trouble() {
    for (html, expected) in [
        ("", ""),
        ("plain words", "plain words"),
        ("<p>unclosed <b>bold", "unclosed **bold**"),
        ("<script>only()</script>", ""),
        ("<a href='http://['>broken link</a>", "[broken link](http://[)"),
    ] {
        assert_eq!(parse(html, URL).text, expected, "{html}");
    }
    assert_eq!(parse("<p>text</p>", Some("not a url")).text, "text");
}

#[test]
fn a_deep_page_is_read_in_time() {
    let html = format!("{}in the deep {}<p>after", "<div>".repeat(2000), "</div>".repeat(2000));
    assert_eq!(parse(&html, URL).text, "in the deep\n\nafter");
    for (html, expected) in [("", 1), ("<p>x", 3), ("<p>x<b>y</b>z<i>", 4)] {
        // html, and head and body in it, are always there.
        assert_eq!(depth(&Document::from(html)), expected, "{html}");
    }
}

#[test]
fn links_are_relative_to_what_the_page_says() {
    let html = "<base href='/other/'><p>See <a href='x?a=1&amp;b=2'>this</a> and <a href='#part'>that</a>.</p>";
    let text = parse(html, URL).text;
    assert!(text.contains("[this](https://a.org/other/x?a=1&b=2)"), "{text}");
}
