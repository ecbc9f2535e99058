use std::fmt;

use serde::Deserialize;

/// A value that must not leak: it can be neither serialised nor printed, and shows as `[secret]` in debug output.
#[derive(Clone, Deserialize)]
#[serde(from = "String")]
pub struct Secret(Box<str>);

impl Secret {
    /// The value, for the one place that needs it. Never put it into an error, a log line or a span.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(value: String) -> Self {
        Self(value.into_boxed_str())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use super::*;

    /// Tells at compile time whether `T` can be written out: an inherent constant is found before a trait's.
    struct Probe<T>(PhantomData<T>);

    trait Cannot {
        const SERIALISE: bool = false;
        const DISPLAY: bool = false;
    }
    impl<T> Cannot for Probe<T> {}

    struct ProbeDisplay<T>(PhantomData<T>);
    impl<T> Cannot for ProbeDisplay<T> {}

    impl<T: serde::Serialize> Probe<T> {
        const SERIALISE: bool = true;
    }
    impl<T: fmt::Display> ProbeDisplay<T> {
        const DISPLAY: bool = true;
    }

    #[test]
    fn a_secret_cannot_be_written_out() {
        const { assert!(Probe::<String>::SERIALISE, "the probe sees what can be serialised") };
        const { assert!(ProbeDisplay::<String>::DISPLAY, "the probe sees what can be displayed") };
        const { assert!(!Probe::<Secret>::SERIALISE) };
        const { assert!(!ProbeDisplay::<Secret>::DISPLAY) };
        let secret = Secret::from("hunter2".to_owned());
        assert_eq!(format!("{:?}", Some(&secret)), "Some([secret])");
        assert_eq!(secret.expose(), "hunter2");
    }
}
