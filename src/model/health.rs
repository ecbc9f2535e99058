//! Whether an upstream can be reached, learnt in passing.

use std::sync::{Mutex, PoisonError};

use time::{Duration, OffsetDateTime};

use crate::clock::Clock;

/// So many failures to connect in a row, and others are asked first for a while.
const MISSES: u32 = 3;
/// The first time of being spared; it doubles up to [`LONGEST`].
const FIRST: Duration = Duration::seconds(5);
const LONGEST: Duration = Duration::seconds(60);

/// Whether an upstream can be reached.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    misses: u32,
    spared_until: Option<OffsetDateTime>,
}

impl Health {
    /// It answered, whatever it said.
    pub(crate) fn reached(&self) {
        *self.state() = State::default();
    }

    /// It could not be reached.
    pub(crate) fn missed(&self, clock: &Clock) {
        let mut state = self.state();
        state.misses = state.misses.saturating_add(1);
        if let Some(over) = state.misses.checked_sub(MISSES) {
            let spared = (FIRST * 2_i32.saturating_pow(over.min(8))).min(LONGEST);
            state.spared_until = Some(clock.now() + spared);
        }
    }

    /// Whether it is to be asked only when no other can be.
    pub(crate) fn is_spared(&self, clock: &Clock) -> bool {
        self.state().spared_until.is_some_and(|until| clock.now() < until)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_misses_spare_it_for_a_while_and_an_answer_ends_that() {
        let clock = Clock::fixed(0);
        let health = Health::default();
        health.missed(&clock);
        health.missed(&clock);
        assert!(!health.is_spared(&clock));
        health.missed(&clock);
        assert!(health.is_spared(&clock));
        clock.advance(Duration::seconds(5));
        assert!(!health.is_spared(&clock));
        health.missed(&clock);
        clock.advance(Duration::seconds(9));
        assert!(health.is_spared(&clock), "the second time is longer");
        health.reached();
        assert!(!health.is_spared(&clock));
    }
}
