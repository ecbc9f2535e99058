//! Reads the paths of a source file that lead out of its module: `crate::X`, `antiphon::X` and `super::…::X`, in `use` groups
//! at any depth and inline.

/// Every name at the root of the crate that `source`, the file of the module `within`, speaks of.
///
/// `crate` itself stands for the root as a whole (`use crate as x`), `*` for all that is in it.
pub(super) fn imports(within: &[String], source: &str) -> Vec<String> {
    let tokens = tokens(&code_of(source));
    let mut reader = Reader { tokens: &tokens, at: 0, found: Vec::new() };
    // Where we are: the module of the file, and the inline modules that are open around this token.
    let mut modules: Vec<String> = within.to_vec();
    let mut inline: Vec<usize> = Vec::new();
    let mut depth = 0;
    while let Some(token) = reader.peek(0) {
        match token {
            "mod" if reader.peek(2) == Some("{") => {
                modules.extend(reader.peek(1).map(str::to_owned));
                depth += 1;
                inline.push(depth);
                reader.at += 3;
            }
            "{" => {
                depth += 1;
                reader.at += 1;
            }
            "}" => {
                if inline.last() == Some(&depth) {
                    inline.pop();
                    modules.pop();
                }
                depth = depth.saturating_sub(1);
                reader.at += 1;
            }
            // A visibility: `pub(crate)`, `pub(super)`, `pub(in crate::turn)` import nothing.
            "pub" if reader.peek(1) == Some("(") => {
                while reader.next().is_some_and(|token| token != ")") {}
            }
            "use" => {
                reader.at += 1;
                reader.tree(&Place::At(modules.clone()), true);
            }
            _ => reader.tree(&Place::At(modules.clone()), false),
        }
    }
    reader.found
}

/// What a path stands for while it is read.
#[derive(Clone)]
enum Place {
    /// A module of this crate; empty is the root.
    At(Vec<String>),
    /// Something inside of a module, or something of another crate: where it goes on does not matter.
    Elsewhere,
}

struct Reader<'a> {
    tokens: &'a [String],
    at: usize,
    found: Vec<String>,
}

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> Option<&'a str> {
        self.tokens.get(self.at + ahead).map(String::as_str)
    }

    fn next(&mut self) -> Option<&'a str> {
        let token = self.peek(0)?;
        self.at += 1;
        Some(token)
    }

    /// Reads one path, or in a `use` one tree of them, that begins at `from`. Takes at least one token.
    fn tree(&mut self, from: &Place, is_use: bool) {
        let mut place = from.clone();
        let mut first = true;
        loop {
            let Some(token) = self.next() else { return };
            if token == "{" && is_use {
                self.group(&place);
                return;
            }
            place = match (token, place) {
                // A path that begins with `::` or another crate's name leads elsewhere.
                ("crate" | "antiphon", _) if first => Place::At(Vec::new()),
                ("super", Place::At(mut modules)) if !modules.is_empty() => {
                    modules.pop();
                    Place::At(modules)
                }
                ("self", place) if self.peek(0) == Some("::") => place,
                // Begun at a module and not upwards: it stays inside, or it is another crate's.
                (_, Place::At(modules)) if !modules.is_empty() => Place::Elsewhere,
                ("self", Place::At(_)) => {
                    self.found.push("crate".to_owned());
                    Place::Elsewhere
                }
                (name, Place::At(_)) => {
                    self.found.push(name.to_owned());
                    Place::Elsewhere
                }
                (_, Place::Elsewhere) => Place::Elsewhere,
            };
            first = false;
            if self.peek(0) == Some("::") {
                self.at += 1;
                continue;
            }
            // `use crate as x` and `use super as x` name the root itself.
            if matches!(&place, Place::At(modules) if modules.is_empty()) {
                self.found.push("crate".to_owned());
            }
            return;
        }
    }

    /// Reads the trees of a group, up to its closing brace.
    fn group(&mut self, from: &Place) {
        while let Some(token) = self.peek(0) {
            match token {
                "}" => {
                    self.at += 1;
                    return;
                }
                "," => self.at += 1,
                "as" => self.at += 2,
                _ => self.tree(from, true),
            }
        }
    }
}

/// The words of some code: names, `::`, and single other characters. `r#name` is `name`.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = code.trim_start();
    while let Some(c) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_name(c) {
            rest.find(|c| !is_name(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            c.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        match (token, after.strip_prefix('#')) {
            ("r", Some(name)) if name.starts_with(is_name) => rest = name,
            _ => {
                tokens.push(token.to_owned());
                rest = after.trim_start();
            }
        }
    }
    tokens
}

/// The source without comments, and with empty strings and characters.
pub(super) fn code_of(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) =
            raw_string(rest).filter(|_| !code.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        {
            length
        } else if c == '"' {
            quoted(rest, '"')
        } else if c == '\'' && is_character(rest) {
            quoted(rest, '\'')
        } else {
            code.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        code.push(' ');
        rest = &rest[skipped..];
    }
    code
}

/// The length of a block comment, nested ones included.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of a raw string such as `r#"…"#`, if one begins here.
fn raw_string(text: &str) -> Option<usize> {
    let start = ["br", "cr", "r"].into_iter().find_map(|prefix| text.strip_prefix(prefix))?;
    let hashes = start.len() - start.trim_start_matches('#').len();
    let inside = start[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(text.len() - inside.len() + length)
}

/// The length of a string or character that begins here and may hold escapes.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Whether a character begins here, and not a lifetime.
fn is_character(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    matches!((chars.next(), chars.next()), (Some('\\'), _) | (Some(_), Some('\'')))
}
