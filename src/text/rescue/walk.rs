//! Goes through a text once and reads the call markup in it.

use std::ops::Range;

use memchr::memchr3;

use super::{
    Strangers, Tools, WrittenCall,
    closing::{Closer, Step},
    fence::{self, Fences},
    json, marked,
    objects::{Found, json_at},
    opening::{Form, Forms, Opener, Opening, opening},
    xml,
};

/// What a text holds.
#[derive(Debug, Default)]
pub(super) struct Harvest {
    /// Calls in JSON, marked ones included.
    pub(super) json: Vec<WrittenCall>,
    /// Calls in tags.
    pub(super) xml: Vec<WrittenCall>,
    /// JSON that names nobody.
    pub(super) nameless: Vec<Range<usize>>,
}

/// The calls in marked-up text.
pub(super) fn marked(
    text: &str,
    forms: Forms,
    tools: &Tools,
    strangers: Strangers,
) -> Vec<WrittenCall> {
    let mut walk = Walk::new(text, forms, tools, strangers);
    walk.go(/* json */ false);
    let Harvest { mut json, mut xml, .. } = walk.harvest;
    json.append(&mut xml);
    json.sort_by_key(|call| call.span.start);
    json
}

/// Everything in a text that may be a call.
pub(super) fn everything(text: &str, tools: &Tools) -> Harvest {
    let mut walk = Walk::new(text, Forms::ALL, tools, Strangers::Drop);
    walk.go(/* json */ true);
    walk.harvest
}

struct Walk<'a> {
    text: &'a str,
    /// Where it is, and where the text ends for it.
    at: usize,
    end: usize,
    forms: Forms,
    tools: &'a Tools,
    strangers: Strangers,
    fences: Fences,
    /// Openers whose end was looked for in vain: there is none further on either.
    endless: Vec<&'static Opener>,
    harvest: Harvest,
}

impl<'a> Walk<'a> {
    fn new(text: &'a str, forms: Forms, tools: &'a Tools, strangers: Strangers) -> Self {
        let Range { start, end } = fence::whole(text);
        let mut fences = Fences::default();
        if start > 0 {
            fences.skip_to(start);
        }
        Self {
            text,
            at: start,
            end,
            forms,
            tools,
            strangers,
            fences,
            endless: Vec::new(),
            harvest: Harvest::default(),
        }
    }

    fn go(&mut self, json: bool) {
        while let Some(skipped) =
            memchr3(b'<', b'[', b'{', &self.text.as_bytes()[self.at..self.end])
        {
            self.at += skipped;
            let rest = &self.text[self.at..self.end];
            let is_json = rest.starts_with('{');
            if is_json && !json {
                self.at += 1;
                continue;
            }
            // In a fence, or between backticks, it shows how a call looks.
            let is_quoted = self.text[..self.at].ends_with('`');
            if is_json {
                if self.fences.are_around(self.text, self.at) {
                    self.at += 1;
                } else {
                    self.json(is_quoted);
                }
                continue;
            }
            match opening(rest, self.forms) {
                Opening::Yes(opener)
                    if opener.form != Form::Harmony
                        && !self.endless.iter().any(|endless| std::ptr::eq(*endless, opener))
                        && !self.fences.are_around(self.text, self.at) =>
                {
                    self.block(opener, is_quoted);
                }
                _ => self.at += 1,
            }
        }
    }

    fn json(&mut self, is_quoted: bool) {
        match json_at(&self.text[..self.end], self.at) {
            Found::Whole(end) if is_quoted => self.at = end,
            Found::Whole(end) => {
                self.value(self.at..end);
                self.at = end;
            }
            Found::Broken { parts, resume } => {
                for part in parts {
                    self.value(part);
                }
                self.at = resume;
            }
        }
    }

    fn value(&mut self, span: Range<usize>) {
        match json::named(&self.text[span.clone()], self.tools, self.strangers) {
            Some(calls) => {
                self.harvest.json.extend(calls.into_iter().map(|made| made.at(span.clone())));
            }
            None => self.harvest.nameless.push(span),
        }
    }

    fn block(&mut self, opener: &'static Opener, is_quoted: bool) {
        let start = self.at;
        let (end, is_whole) = block_end(&self.text[..self.end], start, opener);
        let block = &self.text[start..end];
        let calls = match opener.form {
            Form::Qwen | Form::Function => xml::functions(block, self.tools, self.strangers),
            Form::Glm => xml::pairs(block, self.tools, self.strangers),
            Form::FunctionCalls | Form::Invoke => xml::invokes(block, self.tools, self.strangers),
            Form::Tagged | Form::PythonTag => marked::objects(block, self.tools, self.strangers),
            Form::Kimi => marked::kimi(block, self.tools, self.strangers),
            Form::DeepSeek => marked::deepseek(block, self.tools, self.strangers),
            Form::Mistral => marked::mistral(block, self.tools, self.strangers),
            Form::Line => marked::line(block, self.tools, self.strangers),
            Form::Harmony => Vec::new(),
        };
        if !is_whole && calls.is_empty() {
            self.endless.push(opener);
            self.at += opener.text.len();
            return;
        }
        self.fences.skip_to(end);
        self.at = end;
        if is_quoted {
            return;
        }
        let in_tags = matches!(
            opener.form,
            Form::Qwen | Form::Function | Form::Glm | Form::FunctionCalls | Form::Invoke
        );
        let into = if in_tags { &mut self.harvest.xml } else { &mut self.harvest.json };
        into.extend(calls.into_iter().map(|made| made.at(start..end)));
    }
}

/// Where the markup that begins at `start` ends, and whether it does or the text breaks off.
fn block_end(text: &str, start: usize, opener: &'static Opener) -> (usize, bool) {
    let mut closer = Closer::new(opener);
    let mut at = start + opener.text.len();
    while at < text.len() {
        match closer.step(&text[at..]) {
            Step::More(read) => at += read,
            Step::End(read) => return (at + read, true),
            Step::Wait => break,
        }
    }
    (text.len(), closer.may_end())
}
