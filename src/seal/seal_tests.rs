use std::{os::unix::fs::PermissionsExt as _, sync::Barrier, thread};

use base64::engine::general_purpose::STANDARD;
use pretty_assertions::assert_eq;

use super::*;

fn key(fill: u8) -> String {
    STANDARD.encode([fill; 32])
}

fn sealer(fills: &[u8]) -> Sealer {
    Sealer::from_keys(&fills.iter().map(|fill| key(*fill)).collect::<Vec<_>>()).unwrap()
}

#[test]
fn what_is_sealed_opens() {
    let sealer = sealer(&[1]);
    for plain in [b"".as_slice(), b"thought", &[0xff; 10_000]] {
        let blob = sealer.seal(Purpose::Reasoning, "acme", plain).unwrap();
        assert!(blob.starts_with(MARK));
        assert!(blob.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_'));
        assert_eq!(sealer.open(Purpose::Reasoning, "acme", &blob), Ok(Some(plain.to_vec())));
    }
    let twice = || sealer.seal(Purpose::Reasoning, "acme", b"thought").unwrap();
    assert_ne!(twice(), twice());
}

#[test]
fn it_opens_for_nobody_else() {
    let sealer = sealer(&[1]);
    let blob = sealer.seal(Purpose::Reasoning, "acme", b"thought").unwrap();
    assert_eq!(sealer.open(Purpose::Reasoning, "other", &blob), Err(OpenError));
    assert_eq!(sealer.open(Purpose::Reasoning, "", &blob), Err(OpenError));
    for purpose in [Purpose::Compaction, Purpose::Job, Purpose::Credential] {
        assert_eq!(sealer.open(purpose, "acme", &blob), Err(OpenError), "{purpose:?}");
    }
}

#[test]
fn keys_rotate() {
    let old = sealer(&[1]).seal(Purpose::Compaction, "acme", b"summary").unwrap();
    let both = sealer(&[2, 1]);
    let new = both.seal(Purpose::Compaction, "acme", b"summary").unwrap();
    for blob in [&old, &new] {
        assert_eq!(both.open(Purpose::Compaction, "acme", blob), Ok(Some(b"summary".to_vec())));
    }
    // The new one seals, and the old one is gone once it is left out.
    let only_new = sealer(&[2]);
    assert_eq!(only_new.open(Purpose::Compaction, "acme", &new), Ok(Some(b"summary".to_vec())));
    assert_eq!(only_new.open(Purpose::Compaction, "acme", &old), Err(OpenError));
}

#[test]
fn every_changed_or_missing_character_is_noticed() {
    let sealer = sealer(&[1]);
    let blob = sealer.seal(Purpose::Reasoning, "acme", b"thought").unwrap();
    for at in MARK.len()..blob.len() {
        for other in ['A', 'B', '_', '=', ' ', '\u{e9}'] {
            let mut changed: Vec<char> = blob.chars().collect();
            if std::mem::replace(&mut changed[at], other) != other {
                let changed: String = changed.into_iter().collect();
                assert_eq!(
                    sealer.open(Purpose::Reasoning, "acme", &changed),
                    Err(OpenError),
                    "{at} {other}"
                );
            }
        }
        assert_eq!(
            sealer.open(Purpose::Reasoning, "acme", &blob[..at]),
            Err(OpenError),
            "cut at {at}"
        );
    }
    assert_eq!(sealer.open(Purpose::Reasoning, "acme", &format!("{blob}A")), Err(OpenError));
}

#[test]
fn what_is_not_ours_is_told_apart() {
    let sealer = sealer(&[1]);
    for foreign in
        ["", "gAAAAABmZm9yZWlnbg==", "antiphon", "Antiphon1_AAAA", " antiphon1_AAAA", "\u{e9}"]
    {
        assert_eq!(sealer.open(Purpose::Reasoning, "acme", foreign), Ok(None), "{foreign}");
    }
}

#[test]
fn keys_are_checked_and_never_told() {
    assert!(matches!(Sealer::from_keys::<&str>(&[]), Err(KeyError::None)));
    let short = STANDARD.encode([7; 31]);
    for bad in ["", "not base64!", &short, &STANDARD.encode([7; 33])] {
        let error = Sealer::from_keys(&[key(1).as_str(), bad]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "seal key 2 is not 32 bytes in base64; make one with `openssl rand -base64 32`"
        );
    }
    // Either alphabet, with or without padding, is the same key.
    let blob = sealer(&[0xfb]).seal(Purpose::Job, "acme", b"x").unwrap();
    for same in [
        key(0xfb),
        key(0xfb).replace('+', "-").replace('/', "_"),
        key(0xfb).replace('=', "") + "\n",
    ] {
        let sealer = Sealer::from_keys(&[same]).unwrap();
        assert_eq!(sealer.open(Purpose::Job, "acme", &blob), Ok(Some(b"x".to_vec())));
    }
    assert_eq!(format!("{:?}", sealer(&[1, 2])), "Sealer { keys: 2 }");
}

/// A folder of its own, gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("antiphon-seal-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn all_that_start_at_once_share_one_key() {
    let folder = Folder::new("race");
    let path = folder.0.join("seal.key");
    let gate = Barrier::new(8);
    let sealers: Vec<Sealer> = thread::scope(|scope| {
        let start = || {
            gate.wait();
            Sealer::generate_at(&path).unwrap()
        };
        let started: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let blob = sealers[0].seal(Purpose::Credential, "acme", b"secret").unwrap();
    let later = Sealer::generate_at(&path).unwrap();
    for sealer in sealers.iter().chain([&later]) {
        assert_eq!(sealer.open(Purpose::Credential, "acme", &blob), Ok(Some(b"secret".to_vec())));
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let left: Vec<_> =
        fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["seal.key"]);
}

#[test]
fn the_key_file_can_hold_several_and_is_named_when_it_is_of_no_use() {
    let folder = Folder::new("file");
    let path = folder.0.join("seal.key");
    fs::write(&path, format!("{}\n\n{}\n", key(2), key(1))).unwrap();
    let old = sealer(&[1]).seal(Purpose::Job, "acme", b"x").unwrap();
    assert_eq!(
        Sealer::generate_at(&path).unwrap().open(Purpose::Job, "acme", &old),
        Ok(Some(b"x".to_vec()))
    );

    fs::write(&path, "\n").unwrap();
    assert!(matches!(Sealer::generate_at(&path), Err(KeyError::None)));
    let nowhere = folder.0.join("absent").join("seal.key");
    let error = Sealer::generate_at(&nowhere).unwrap_err().to_string();
    assert!(error.contains("absent/seal.key"), "{error}");
}
