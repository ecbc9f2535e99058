//! Time and ids. The only owner of both: everything else takes a [`Clock`] or [`Ids`], so that a test can fix them.

use std::{
    fmt::Write as _,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use time::{Duration, OffsetDateTime};
use tokio::time::{Instant, Sleep};

/// What time it is.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The system's time.
    System,
    /// A time that stands still until it is moved.
    Fixed(Arc<Mutex<OffsetDateTime>>),
}

impl Clock {
    /// A clock that stands at `unix` seconds.
    pub fn fixed(unix: i64) -> Self {
        let at = OffsetDateTime::from_unix_timestamp(unix).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        Self::Fixed(Arc::new(Mutex::new(at)))
    }

    /// The time now, in UTC.
    pub fn now(&self) -> OffsetDateTime {
        match self {
            #[expect(clippy::disallowed_methods, reason = "this is the owner of time")]
            Self::System => OffsetDateTime::now_utc(),
            Self::Fixed(at) => *at.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// The time now in whole seconds since 1970, as the API writes it.
    pub fn unix(&self) -> i64 {
        self.now().unix_timestamp()
    }

    /// Moves a fixed clock on; the system's clock does not listen.
    pub fn advance(&self, by: Duration) {
        if let Self::Fixed(at) = self {
            *at.lock().unwrap_or_else(PoisonError::into_inner) += by;
        }
    }
}

/// Limits one wait after another, as [`tokio::time::timeout`] does one. Setting a timer for each piece of a stream, only to take it back,
/// costs more than the piece: this one stands until it rings, and is moved only then.
#[derive(Debug)]
pub struct Patience {
    timer: Pin<Box<Sleep>>,
}

impl Patience {
    /// For waits of about this length.
    pub fn new(usual: std::time::Duration) -> Self {
        Self { timer: Box::pin(tokio::time::sleep(usual)) }
    }

    /// Waits for `future`; `None` when it took longer than `limit`.
    pub async fn wait<F: Future>(
        &mut self,
        limit: std::time::Duration,
        future: F,
    ) -> Option<F::Output> {
        let mut future = pin!(future);
        let due = Instant::now() + limit;
        if due < self.timer.deadline() {
            self.timer.as_mut().reset(due);
        }
        loop {
            tokio::select! {
                biased;
                output = &mut future => return Some(output),
                () = &mut self.timer => (),
            }
            if due <= Instant::now() {
                return None;
            }
            self.timer.as_mut().reset(due);
        }
    }
}

/// Where new ids come from: `prefix_` and 32 lower-case hex digits.
#[derive(Clone, Debug)]
pub enum Ids {
    /// 48 bits of time in milliseconds, so that new rows lie together, then 80 random bits.
    Random(Clock),
    /// Counts from a seed: the same ids in each run of a test.
    Seeded(Arc<AtomicU64>),
}

impl Ids {
    /// Ids that count up from `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(Arc::new(AtomicU64::new(seed)))
    }

    /// A new id such as `resp_0192…`.
    pub fn mint(&self, prefix: &str) -> String {
        let mut id = String::with_capacity(prefix.len() + 33);
        id.push_str(prefix);
        id.push('_');
        let _ = match self {
            Self::Random(clock) => {
                let millis = clock.now().unix_timestamp_nanos() / 1_000_000;
                let noise = u128::from_be_bytes(random::<16>()) & ((1 << 80) - 1);
                write!(id, "{:012x}{noise:020x}", millis & 0xffff_ffff_ffff)
            }
            Self::Seeded(next) => write!(id, "{:032x}", next.fetch_add(1, Ordering::Relaxed)),
        };
        id
    }

    /// A number that spreads waits, so that those who failed together do not come again together; seeded ids count.
    pub fn number(&self) -> u32 {
        match self {
            Self::Random(_) => u32::from_be_bytes(random::<4>()),
            Self::Seeded(next) => {
                u32::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(u32::MAX)
            }
        }
    }

    /// A secret of 32 random bytes in hex; seeded ids give a predictable one.
    pub fn secret(&self) -> String {
        let bytes = match self {
            Self::Random(_) => random::<32>(),
            Self::Seeded(next) => {
                let mut bytes = [0; 32];
                bytes[..8].copy_from_slice(&next.fetch_add(1, Ordering::Relaxed).to_be_bytes());
                bytes
            }
        };
        bytes.iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// Random bytes from the system.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // The system's generator fails only where there is no entropy device at all; ids then still differ by time.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_shape_and_differ() {
        let ids = Ids::Random(Clock::fixed(1_700_000_000));
        let (a, b) = (ids.mint("resp"), ids.mint("resp"));
        assert_ne!(a, b);
        for id in [a, b, Ids::seeded(7).mint("resp")] {
            let hex = id.strip_prefix("resp_").unwrap();
            assert_eq!(hex.len(), 32, "{id}");
            assert!(hex.bytes().all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_its_own_limit() {
        let seconds = std::time::Duration::from_secs;
        let sleep = |length| async move {
            tokio::time::sleep(seconds(length)).await;
            length
        };
        let mut patience = Patience::new(seconds(10));
        let begun = Instant::now();
        for (limit, length, heard, ends) in [
            (10, 9, Some(9), 9),
            (10, 9, Some(9), 18),
            (10, 11, None, 28),
            (10, 1, Some(1), 29),
            (2, 3, None, 31),
            (30, 29, Some(29), 60),
            (0, 1, None, 60),
            (10, 11, None, 70),
        ] {
            assert_eq!(
                patience.wait(seconds(limit), sleep(length)).await,
                heard,
                "{limit} {length}"
            );
            assert_eq!(begun.elapsed().as_secs(), ends, "{limit} {length}");
        }
        assert_eq!(patience.wait(seconds(0), async { 1 }).await, Some(1));
    }

    #[test]
    fn a_fixed_clock_moves_only_when_told() {
        let clock = Clock::fixed(10);
        assert_eq!(clock.unix(), 10);
        clock.advance(Duration::seconds(5));
        assert_eq!(clock.unix(), 15);
    }
}
