//! Readers of values that need more than their type says.

use std::{fmt, net::SocketAddr, time::Duration};

use globset::{GlobBuilder, GlobMatcher};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, IntoDeserializer},
};
use url::Url;

/// A pattern for model names: `*` any run, `?` one character, `[ab]`, `{a,b}`. `/` is a character like any other.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Glob(GlobMatcher);

impl Glob {
    /// Whether the whole of `name` fits.
    pub fn is_match(&self, name: &str) -> bool {
        self.0.is_match(name)
    }

    /// The pattern as it was written.
    pub fn pattern(&self) -> &str {
        self.0.glob().glob()
    }
}

impl TryFrom<String> for Glob {
    type Error = String;

    fn try_from(pattern: String) -> Result<Self, String> {
        let glob = GlobBuilder::new(&pattern).build();
        glob.map(|glob| Self(glob.compile_matcher())).map_err(|e| format!("not a pattern: {e}"))
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({:?})", self.pattern())
    }
}

/// A text, where the empty one says "not set".
pub(super) fn filled<'de, D: Deserializer<'de>, T: From<String>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(d)?;
    Ok((!text.is_empty()).then(|| T::from(text)))
}

/// One of the words of `T`, where the empty text says "not set".
pub(super) fn filled_word<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    d: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(d)?;
    if text.is_empty() {
        return Ok(None);
    }
    T::deserialize(IntoDeserializer::<D::Error>::into_deserializer(text)).map(Some)
}

/// An `http` or `https` address.
pub(super) fn http_url<'de, D: Deserializer<'de>>(d: D) -> Result<Url, D::Error> {
    parse_http_url(&String::deserialize(d)?).map_err(D::Error::custom)
}

/// An `http` or `https` address, where the empty text says "not set".
pub(super) fn filled_http_url<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Url>, D::Error> {
    let text = String::deserialize(d)?;
    if text.is_empty() {
        Ok(None)
    } else {
        parse_http_url(&text).map(Some).map_err(D::Error::custom)
    }
}

// The value itself stays out of these messages: an address may hold a password.
fn parse_http_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|e| {
        format!("not an address ({e}); it should look like \"http://127.0.0.1:8000/v1\"")
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        // It would show in every log line that names the address.
        return Err(
            "an address with a user or a password is not taken; keys are named by *_env keys"
                .to_owned(),
        );
    }
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => {
            Err(format!("an address that begins with http:// or https:// is needed, not {other}:"))
        }
    }
}

/// An address to listen on: `127.0.0.1:8090`, `[::]:8090`, `localhost:8090`.
pub(super) fn listen<'de, D: Deserializer<'de>>(d: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(d)?;
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text,
    };
    numeric.parse().map_err(|_| {
        D::Error::custom(format!(
            "`{numeric}` is not an IP address with a port; it should look like \"127.0.0.1:8090\" or \"0.0.0.0:8090\""
        ))
    })
}

/// A positive number of seconds.
pub(super) fn seconds<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
    duration(d, 1, "seconds")
}

/// A positive number of minutes.
pub(super) fn minutes<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
    duration(d, 60, "minutes")
}

/// A positive number of days.
pub(super) fn days<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
    duration(d, 24 * 3600, "days")
}

/// No time limit may be nothing or endless, so 1 up to a century.
fn duration<'de, D: Deserializer<'de>>(d: D, unit: u64, name: &str) -> Result<Duration, D::Error> {
    const CENTURY: u64 = 100 * 365 * 24 * 3600;
    let number = i64::deserialize(d)?;
    match u64::try_from(number).ok().and_then(|n| n.checked_mul(unit)) {
        Some(secs @ 1..=CENTURY) => Ok(Duration::from_secs(secs)),
        _ => Err(D::Error::custom(format!(
            "{number} {name} is out of range; the least is 1, the most {}",
            CENTURY / unit
        ))),
    }
}
