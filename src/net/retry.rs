//! When to try again. The waiting, and whether to try at all, are the caller's.

use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use time::OffsetDateTime;

use crate::clock::Clock;

/// How long the server asks us to wait: `retry-after-ms`, else `Retry-After` in seconds or as a date. A date that has passed
/// is no wait; what cannot be read is as if it were not there.
pub fn retry_after(headers: &HeaderMap, clock: &Clock) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number =
        |text: &str, unit: f64| Duration::try_from_secs_f64(text.parse::<f64>().ok()? / unit).ok();
    if let Some(wait) = text("retry-after-ms").and_then(|text| number(text, 1000.0)) {
        return Some(wait);
    }
    let text = text(RETRY_AFTER.as_str())?;
    number(text, 1.0).or_else(|| {
        let until = OffsetDateTime::from(httpdate::parse_http_date(text).ok()?);
        Some((until - clock.now()).try_into().unwrap_or_default())
    })
}

/// Waits that double from attempt to attempt, with full jitter so that those who failed together do not return together.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The longest first wait.
    pub first: Duration,
    /// The longest wait at all.
    pub most: Duration,
}

impl Backoff {
    /// How long to wait after failed attempt number `attempt`, counted from 0, with a random number from 0 to `u32::MAX`.
    pub fn wait(&self, attempt: u32, random: u32) -> Duration {
        let longest = self.first.saturating_mul(2_u32.saturating_pow(attempt)).min(self.most);
        longest.mul_f64(f64::from(random) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    /// 1994-11-06 08:49:37, the date in every HTTP standard.
    const NOW: i64 = 784_111_777;

    #[test]
    fn servers_are_understood() {
        let millis = Duration::from_millis;
        for (headers, expected) in [
            (&[][..], None),
            (&[("retry-after", "2")], Some(millis(2000))),
            (&[("retry-after", " 0 ")], Some(millis(0))),
            (&[("retry-after", "1.5")], Some(millis(1500))),
            (&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], Some(millis(30_000))),
            (&[("retry-after", "Sunday, 06-Nov-94 08:50:07 GMT")], Some(millis(30_000))),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:07 GMT")], Some(millis(0))),
            (&[("retry-after-ms", "250"), ("retry-after", "2")], Some(millis(250))),
            (&[("retry-after-ms", "soon"), ("retry-after", "2")], Some(millis(2000))),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "nan")], None),
            (&[("retry-after", "inf")], None),
            (&[("retry-after", "1e300")], None),
            (&[("retry-after", "")], None),
        ] {
            let map = headers.iter().map(|(name, value)| {
                (reqwest::header::HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            assert_eq!(retry_after(&map.collect(), &Clock::fixed(NOW)), expected, "{headers:?}");
        }
    }

    #[test]
    fn waits_double_up_to_the_most_and_are_spread() {
        let backoff = Backoff { first: Duration::from_millis(500), most: Duration::from_secs(8) };
        let longest = [0, 1, 2, 3, 4, 5, 40, u32::MAX]
            .map(|attempt| backoff.wait(attempt, u32::MAX).as_millis());
        assert_eq!(longest, [500, 1000, 2000, 4000, 8000, 8000, 8000, 8000]);
        assert_eq!(backoff.wait(3, 0), Duration::ZERO);
        assert!((1999..=2000).contains(&backoff.wait(3, u32::MAX / 2).as_millis()));
    }
}
