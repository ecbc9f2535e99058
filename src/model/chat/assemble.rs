//! Puts calls together from the pieces of a stream, for every way in which backends number and name them.
//!
//! A piece belongs to a call by its index, else by its id, else it goes on with the last one. Backends that number all calls 0, or
//! give no ids, are seen through by three signs: another id, another name, or more text after arguments that are whole.

use crate::{
    protocol::Raw,
    text::{
        json_scan::{JsonScan, JsonState},
        repair::{HalfJoiner, WireText},
    },
    turn::Delta,
};

/// What one chunk says of a call. Empty texts are absent.
#[derive(Debug, Default)]
pub(super) struct Fragment<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) arguments: Option<WireText<'a>>,
    pub(super) data: Option<Raw>,
}

/// The calls of one Round.
#[derive(Debug)]
pub(super) struct Assembly {
    /// The names that were offered.
    names: Vec<String>,
    calls: Vec<Call>,
    /// The call that the last piece belonged to.
    last: Option<usize>,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    /// Its name was told.
    begun: bool,
    /// All arguments; what was not told yet is from `told` on.
    arguments: String,
    told: usize,
    joiner: HalfJoiner,
    scan: JsonScan,
    data: Option<Raw>,
}

impl Assembly {
    /// For a Round in which tools of these names were offered.
    pub(super) fn new(names: Vec<String>) -> Self {
        Self { names, calls: Vec::new(), last: None }
    }

    /// Whether any call was seen.
    pub(super) fn any(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The pieces of one chunk. Several without numbers are several calls.
    pub(super) fn push(&mut self, mut fragments: Vec<Fragment<'_>>, out: &mut Vec<Delta>) {
        if fragments.len() > 1 && fragments.iter().all(|fragment| fragment.index.is_none()) {
            for (index, fragment) in (0..).zip(&mut fragments) {
                fragment.index = Some(index);
            }
        }
        for fragment in fragments {
            let at = self.call_of(&fragment);
            if self.last.is_some_and(|last| last != at) {
                // The one before has its name whole: another call has begun.
                self.begin_all_but(at, out);
            }
            self.last = Some(at);
            self.add(at, fragment, out);
        }
    }

    /// The Round has ended: names that might have grown are whole. False when a call has no name at all.
    pub(super) fn finish(&mut self, out: &mut Vec<Delta>) -> bool {
        for at in 0..self.calls.len() {
            let call = &mut self.calls[at];
            if let Some(rest) = call.joiner.finish() {
                call.arguments.push_str(rest);
            }
            call.begin(at, out);
        }
        self.calls.iter().all(|call| call.begun)
    }

    /// Finds the call that a piece belongs to, or makes it.
    fn call_of(&mut self, fragment: &Fragment<'_>) -> usize {
        let found = match (fragment.id, fragment.index) {
            (Some(id), index) => self.by_id(id, index, fragment),
            (None, Some(index)) => self.by_index(index).filter(|at| self.goes_on(*at, fragment)),
            (None, None) => self.last.filter(|at| self.goes_on(*at, fragment)),
        };
        found.unwrap_or_else(|| {
            self.calls.push(Call {
                index: fragment.index,
                id: fragment.id.map(str::to_owned),
                ..Call::default()
            });
            self.calls.len() - 1
        })
    }

    fn by_id(&mut self, id: &str, index: Option<u64>, fragment: &Fragment<'_>) -> Option<usize> {
        let same_id = self.calls.iter().rposition(|call| call.id.as_deref() == Some(id));
        if let Some(at) = same_id {
            let renumbered = index.is_some() && self.calls[at].index != index;
            // Two calls may share an id; one call may be given a new number with each piece.
            let another =
                if renumbered { fragment.name.is_some() } else { !self.goes_on(at, fragment) };
            return (!another).then_some(at);
        }
        let at = match index {
            Some(index) => self.by_index(index)?,
            None => self.last?,
        };
        let call = &mut self.calls[at];
        if call.id.is_none()
            && index.is_some()
            && fragment.name.is_none_or(|name| name == call.name)
            && !call.whole()
        {
            // The id comes late.
            call.id = Some(id.to_owned());
            return Some(at);
        }
        // A new id is a new call, unless the piece has no name and the arguments are not whole: then ids are minted per piece.
        (fragment.name.is_none() && !call.whole()).then_some(at)
    }

    fn by_index(&self, index: u64) -> Option<usize> {
        self.calls.iter().rposition(|call| call.index == Some(index))
    }

    /// Whether a piece without a sign of its own goes on with this call.
    fn goes_on(&self, at: usize, fragment: &Fragment<'_>) -> bool {
        let call = &self.calls[at];
        let Some(name) = fragment.name else { return true };
        if name == call.name {
            // Repeated with each piece; after whole arguments it is the next call of the same tool.
            let more = fragment.arguments.as_ref().is_some_and(|arguments| !arguments.is_empty());
            return !(call.whole() && more);
        }
        !call.begun && (self.grows(&call.name, name) || !self.is_offered(&call.name))
    }

    /// Whether the name may go on so: as a whole that grows, or by a piece.
    fn grows(&self, so_far: &str, name: &str) -> bool {
        name.starts_with(so_far) || self.begins_offered(&format!("{so_far}{name}"))
    }

    fn begins_offered(&self, name: &str) -> bool {
        self.names.iter().any(|offered| offered.starts_with(name))
    }

    fn is_offered(&self, name: &str) -> bool {
        self.names.iter().any(|offered| offered == name)
    }

    fn add(&mut self, at: usize, fragment: Fragment<'_>, out: &mut Vec<Delta>) {
        if let Some(name) = fragment.name
            && !self.calls[at].begun
            && self.calls[at].name != name
        {
            let joined = format!("{}{name}", self.calls[at].name);
            let cumulative =
                name.starts_with(&self.calls[at].name) && !self.begins_offered(&joined);
            self.calls[at].name = if cumulative { name.to_owned() } else { joined };
        }
        let call = &mut self.calls[at];
        if let Some(arguments) = fragment.arguments {
            let piece = call.joiner.push(arguments);
            // Some backends repeat the whole arguments in their last chunk.
            if !(call.whole() && fragment.name.is_none() && *piece == call.arguments) {
                call.scan.push(&piece);
                call.arguments.push_str(&piece);
            }
        }
        if let Some(data) = fragment.data {
            call.data = Some(data);
        }
        let name = &call.name;
        let may_grow =
            self.names.iter().any(|offered| offered != name && offered.starts_with(name.as_str()));
        let known = self.names.iter().any(|offered| offered == name) && !may_grow;
        if call.begun || known || !call.arguments.is_empty() {
            call.begin(at, out);
        }
    }

    fn begin_all_but(&mut self, but: usize, out: &mut Vec<Delta>) {
        for (at, call) in self.calls.iter_mut().enumerate() {
            if at != but {
                call.begin(at, out);
            }
        }
    }
}

impl Call {
    /// Whether its arguments are a whole JSON value.
    fn whole(&self) -> bool {
        self.scan.state() == JsonState::Complete
    }

    /// Tells the name, then whatever was not told yet.
    fn begin(&mut self, at: usize, out: &mut Vec<Delta>) {
        let position = u32::try_from(at).unwrap_or(u32::MAX);
        if !self.begun {
            if self.name.is_empty() {
                return;
            }
            self.begun = true;
            out.push(Delta::Call { position, id: self.id.clone(), name: self.name.clone() });
        }
        if self.told < self.arguments.len() {
            out.push(Delta::Arguments { position, piece: self.arguments[self.told..].to_owned() });
            self.told = self.arguments.len();
        }
        if let Some(data) = self.data.take() {
            out.push(Delta::CallData { position, data });
        }
    }
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
