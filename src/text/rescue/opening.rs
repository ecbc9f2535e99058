//! What call markup begins with.

use super::CallGrammar;

/// A kind of call markup.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u16)]
pub(in crate::text) enum Form {
    /// `<tool_call>` with JSON in it.
    Tagged = 1,
    /// `<tool_call>` with `<function=…>` in it.
    Qwen = 1 << 1,
    /// `<tool_call>` with a name and argument pairs in it.
    Glm = 1 << 2,
    /// `<function=…>` by itself, with parameters or JSON in it.
    Function = 1 << 3,
    /// `<function_calls>`, or another wrapper around `<invoke>`.
    FunctionCalls = 1 << 4,
    /// `<invoke name="…">` by itself.
    Invoke = 1 << 5,
    /// Kimi's sections and calls.
    Kimi = 1 << 6,
    /// `[TOOL_CALLS]`
    Mistral = 1 << 7,
    /// `<|python_tag|>`
    PythonTag = 1 << 8,
    /// `[Tool Call] name=… id=… args={…}`
    Line = 1 << 9,
    /// The channels of harmony, which are no block: they go on to the end.
    Harmony = 1 << 10,
    /// DeepSeek's sections, up to its version 3.1.
    DeepSeek = 1 << 11,
}

/// Which kinds are looked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::text) struct Forms(u16);

impl Forms {
    pub(in crate::text) const NONE: Self = Self(0);
    pub(in crate::text) const ALL: Self = Self((1 << 12) - 1);

    /// The kinds of a grammar. Those of one family are mistaken for each other by whoever sets up a server, and by models.
    pub(in crate::text) fn of(grammar: CallGrammar) -> Self {
        let forms: &[Form] = match grammar {
            CallGrammar::None | CallGrammar::BareJson => &[],
            CallGrammar::Hermes => &[Form::Tagged, Form::Qwen],
            CallGrammar::QwenXml => &[Form::Tagged, Form::Qwen, Form::Function],
            CallGrammar::Harmony => &[Form::Harmony],
            CallGrammar::Kimi => &[Form::Kimi],
            CallGrammar::Glm => &[Form::Tagged, Form::Glm],
            CallGrammar::Mistral => &[Form::Mistral],
            CallGrammar::Llama => &[Form::PythonTag, Form::Function],
        };
        Self(forms.iter().fold(0, |all, form| all | *form as u16))
    }

    pub(in crate::text) fn has(self, form: Form) -> bool {
        self.0 & form as u16 != 0
    }

    pub(in crate::text) fn is_empty(self) -> bool {
        self == Self::NONE
    }
}

/// Markup that begins a call.
#[derive(Debug)]
pub(in crate::text) struct Opener {
    pub(in crate::text) text: &'static str,
    pub(in crate::text) form: Form,
    /// What may end it.
    pub(in crate::text) close: &'static [&'static str],
}

impl Opener {
    /// Whether it begins a channel, which goes on to the end of the text.
    pub(in crate::text) fn is_channel(&self) -> bool {
        self.form == Form::Harmony
    }

    /// Whether it is a tag that has a wrapper as a rule.
    pub(in crate::text) fn is_bare_tag(&self) -> bool {
        self.form == Form::Invoke
    }
}

/// All of them; each begins with `<` or `[`.
static OPENERS: [Opener; 23] = {
    const fn opener(form: Form, text: &'static str, close: &'static [&'static str]) -> Opener {
        Opener { text, form, close }
    }
    [
        opener(Form::Tagged, "<tool_call>", &["</tool_call>"]),
        // Granite and Phi, Nemotron, Command R.
        opener(Form::Tagged, "<|tool_call|>", &["<|/tool_call|>"]),
        opener(Form::Tagged, "<TOOLCALL>", &["</TOOLCALL>"]),
        opener(Form::Tagged, "<|START_ACTION|>", &["<|END_ACTION|>"]),
        opener(Form::Qwen, "<tool_call>", &["</tool_call>"]),
        opener(Form::Glm, "<tool_call>", &["</tool_call>"]),
        opener(Form::Function, "<function=", &["</function>"]),
        opener(Form::FunctionCalls, "<function_calls", &["</function_calls>"]),
        // DeepSeek 3.2.
        opener(Form::FunctionCalls, "<｜DSML｜function_calls", &["</｜DSML｜function_calls>"]),
        opener(Form::FunctionCalls, "<minimax:tool_call", &["</minimax:tool_call>"]),
        opener(Form::Invoke, "<invoke", &["</invoke>"]),
        opener(Form::Invoke, "<｜DSML｜invoke", &["</｜DSML｜invoke>"]),
        opener(
            Form::Kimi,
            "<|tool_calls_section_begin|>",
            &["<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
        ),
        opener(
            Form::Kimi,
            "<|tool_call_section_begin|>",
            &["<|tool_call_section_end|>", "<|tool_calls_section_end|>"],
        ),
        opener(Form::Kimi, "<|tool_call_begin|>", &["<|tool_call_end|>"]),
        opener(Form::DeepSeek, "<｜tool▁calls▁begin｜>", &["<｜tool▁calls▁end｜>"]),
        opener(Form::Mistral, "[TOOL_CALLS]", &[]),
        opener(Form::PythonTag, "<|python_tag|>", &["<|eom_id|>", "<|eot_id|>"]),
        opener(Form::Line, "[Tool Call]", &[]),
        opener(Form::Harmony, "<|channel|>", &[]),
        opener(Form::Harmony, "<|start|>assistant", &[]),
        opener(Form::Harmony, "<|start|>functions.", &[]),
        opener(Form::Harmony, "<|constrain|>", &[]),
    ]
};

/// No beginning is longer: what has not been told by then is text.
const LONGEST: usize = 256;

/// Whether a text begins with call markup.
#[derive(Clone, Copy, Debug)]
pub(in crate::text) enum Opening {
    /// It does not.
    No,
    /// What follows will tell.
    Maybe,
    /// It does.
    Yes(&'static Opener),
}

/// Whether `text` begins with markup of these kinds.
pub(in crate::text) fn opening(text: &str, forms: Forms) -> Opening {
    let mut maybe = false;
    for opener in OPENERS.iter().filter(|opener| forms.has(opener.form)) {
        let begun = match lead(text, opener.text) {
            Lead::Whole(rest) => body_begins(opener, rest),
            Lead::Part => None,
            Lead::No => Some(false),
        };
        match begun {
            Some(true) => return Opening::Yes(opener),
            Some(false) => (),
            None => maybe = true,
        }
    }
    if maybe && text.len() <= LONGEST { Opening::Maybe } else { Opening::No }
}

/// How a text begins with another.
pub(super) enum Lead<'a> {
    No,
    /// The text ends before the other does.
    Part,
    /// With what follows.
    Whole(&'a str),
}

/// Compares the beginning of `text`; in tags the case of ASCII letters does not matter.
pub(super) fn lead<'a>(text: &'a str, with: &str) -> Lead<'a> {
    let (text_bytes, with) = (text.as_bytes(), with.as_bytes());
    let both = text_bytes.len().min(with.len());
    let same = if with.starts_with(b"<") {
        text_bytes[..both].eq_ignore_ascii_case(&with[..both])
    } else {
        text_bytes[..both] == with[..both]
    };
    if !same {
        return Lead::No;
    }
    // The end of a literal, and so of its match, is the end of a character.
    text.get(with.len()..).map_or(Lead::Part, Lead::Whole)
}

/// Whether what follows an opener is what must follow it.
fn body_begins(opener: &Opener, rest: &str) -> Option<bool> {
    let told = |found: Lead<'_>| match found {
        Lead::No => Some(false),
        Lead::Part => None,
        Lead::Whole(_) => Some(true),
    };
    let begins = |with: &str| told(lead(rest.trim_start(), with));
    match opener.form {
        Form::Tagged => rest.trim_start().chars().next().map(|c| matches!(c, '{' | '[')),
        Form::Qwen => begins("<function="),
        Form::Glm => {
            let name = rest.trim_start();
            let after = name.trim_start_matches(is_name_char);
            if after.len() == name.len() {
                return if name.is_empty() { None } else { Some(false) };
            }
            let after = after.trim_start();
            if after.is_empty() {
                return None;
            }
            match (told(lead(after, "<arg_key>")), told(lead(after, "</tool_call>"))) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (None, _) | (_, None) => None,
                (Some(false), Some(false)) => Some(false),
            }
        }
        Form::Function => {
            let after = rest.trim_start_matches(is_name_char);
            let next = after.chars().next();
            next.map(|c| c == '>' && after.len() < rest.len())
        }
        Form::FunctionCalls => rest.chars().next().map(|c| c == '>' || c.is_ascii_whitespace()),
        Form::Invoke => rest.chars().next().map(|c| c.is_ascii_whitespace()),
        Form::Line => {
            let after = rest.trim_start();
            if after.len() == rest.len() && !rest.is_empty() {
                return Some(false);
            }
            begins("name=")
        }
        Form::Kimi | Form::DeepSeek | Form::Mistral | Form::PythonTag | Form::Harmony => Some(true),
    }
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')
}
