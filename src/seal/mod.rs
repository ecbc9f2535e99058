//! Sealed bytes: what clients carry for us (`encrypted_content`) and secrets at rest. AES-256-GCM with a random nonce.
//!
//! A blob says whose it is: [`MARK`], then base64url of key id, nonce, ciphertext and tag. It is bound to its [`Purpose`] and
//! its tenant, so that it opens nowhere else. One key is good for 2^32 blobs; rotation puts a new one before the old.

use std::{
    fmt, fs,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    digest::{SHA256, digest},
    error::Unspecified,
    rand,
};
use base64::{
    Engine as _, alphabet,
    engine::{
        DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::URL_SAFE_NO_PAD,
    },
};

/// How every blob of ours begins.
pub const MARK: &str = "antiphon1_";

const KEY_BYTES: usize = 32;
const KEY_ID_BYTES: usize = 4;
const HEADER_BYTES: usize = KEY_ID_BYTES + NONCE_LEN;

/// What a blob is for. One that was sealed for one purpose does not open for another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// `encrypted_content` of a reasoning item.
    Reasoning,
    /// `encrypted_content` of a compaction item.
    Compaction,
    /// Authorization and headers inside a queued job.
    Job,
    /// A credential kept in the database.
    Credential,
}

impl Purpose {
    /// Part of what is authenticated: a name that changes makes old blobs unreadable.
    fn name(self) -> &'static str {
        match self {
            Self::Reasoning => "reasoning",
            Self::Compaction => "compaction",
            Self::Job => "job",
            Self::Credential => "credential",
        }
    }
}

/// Keys that cannot be used. Never holds any part of a key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The list is empty.
    #[error(
        "there is no seal key; give at least one, 32 random bytes in base64 (`openssl rand -base64 32`)"
    )]
    None,
    /// One of them is malformed.
    #[error("seal key {number} is not 32 bytes in base64; make one with `openssl rand -base64 32`")]
    Malformed {
        /// Which, counted from 1.
        number: usize,
    },
    /// The key file can be neither read nor made.
    #[error("the seal key file {path} cannot be used: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system gives no random bytes.
    #[error("the system's random generator failed")]
    Random,
}

/// The system's random generator failed, so nothing was sealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the content could not be sealed: the system's random generator failed")]
pub struct SealError;

/// A blob of ours that does not open: changed, cut, of another tenant or purpose, or of a key that is gone.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the encrypted content could not be verified")]
pub struct OpenError;

/// Seals with the newest key and opens with any.
#[derive(Clone)]
pub struct Sealer {
    /// Newest first, never empty.
    keys: Arc<[Key]>,
}

struct Key {
    id: [u8; KEY_ID_BYTES],
    key: RandomizedNonceKey,
}

impl Sealer {
    /// Takes the keys, newest first, each 32 bytes in base64 of either alphabet.
    pub fn from_keys<K: AsRef<str>>(keys: &[K]) -> Result<Self, KeyError> {
        let keys: Vec<Key> = keys
            .iter()
            .enumerate()
            .map(|(at, key)| Key::parse(key.as_ref()).ok_or(KeyError::Malformed { number: at + 1 }))
            .collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(KeyError::None) } else { Ok(Self { keys: keys.into() }) }
    }

    /// Takes the keys in the file at `path`, one a line, and first makes the file (0600, one new key) where there is none.
    /// Two that start at once end with the same key. Blocks on the disk.
    pub fn generate_at(path: &Path) -> Result<Self, KeyError> {
        let failed = |source| KeyError::File { path: path.to_owned(), source };
        if !path.try_exists().map_err(failed)? {
            let mut key = [0; KEY_BYTES];
            rand::fill(&mut key).map_err(|Unspecified| KeyError::Random)?;
            create_once(path, &key).map_err(failed)?;
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        Self::from_keys(&lines)
    }

    /// Seals `plain` for this purpose and tenant.
    pub fn seal(&self, purpose: Purpose, tenant: &str, plain: &[u8]) -> Result<String, SealError> {
        let newest = &self.keys[0];
        let mut blob = Vec::with_capacity(HEADER_BYTES + plain.len() + AES_256_GCM.tag_len());
        blob.extend_from_slice(&newest.id);
        blob.extend_from_slice(&[0; NONCE_LEN]);
        blob.extend_from_slice(plain);
        let (nonce, tag) = newest
            .key
            .seal_in_place_separate_tag(
                bound_to(newest.id, purpose, tenant),
                &mut blob[HEADER_BYTES..],
            )
            .map_err(|Unspecified| SealError)?;
        blob[KEY_ID_BYTES..HEADER_BYTES].copy_from_slice(nonce.as_ref());
        blob.extend_from_slice(tag.as_ref());
        let mut text = String::from(MARK);
        URL_SAFE_NO_PAD.encode_string(blob, &mut text);
        Ok(text)
    }

    /// Opens a blob that was sealed for this purpose and tenant; `None` is for one that is not ours at all.
    pub fn open(
        &self,
        purpose: Purpose,
        tenant: &str,
        blob: &str,
    ) -> Result<Option<Vec<u8>>, OpenError> {
        let Some(text) = blob.strip_prefix(MARK) else { return Ok(None) };
        let blob = URL_SAFE_NO_PAD.decode(text).map_err(|_| OpenError)?;
        let (id, rest) = blob.split_first_chunk::<KEY_ID_BYTES>().ok_or(OpenError)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>().ok_or(OpenError)?;
        self.keys
            .iter()
            .filter(|key| key.id == *id)
            .find_map(|key| {
                let mut plain = sealed.to_vec();
                let nonce = Nonce::assume_unique_for_key(*nonce);
                let length = key
                    .key
                    .open_in_place(nonce, bound_to(*id, purpose, tenant), &mut plain)
                    .ok()?
                    .len();
                plain.truncate(length);
                Some(plain)
            })
            .map(Some)
            .ok_or(OpenError)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("keys", &self.keys.len()).finish()
    }
}

impl Key {
    fn parse(text: &str) -> Option<Self> {
        const CONFIG: GeneralPurposeConfig =
            GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        let text = text.trim();
        let bytes = GeneralPurpose::new(&alphabet::STANDARD, CONFIG)
            .decode(text)
            .or_else(|_| GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG).decode(text))
            .ok()?;
        // Refuses any other length than that of the algorithm's key.
        let key = RandomizedNonceKey::new(&AES_256_GCM, &bytes).ok()?;
        let hash = digest(&SHA256, &[b"antiphon seal key id".as_slice(), &bytes].concat());
        Some(Self { id: *hash.as_ref().first_chunk()?, key })
    }
}

/// What is authenticated beside the content. The name holds no NUL, so no two of them come out alike.
fn bound_to(id: [u8; KEY_ID_BYTES], purpose: Purpose, tenant: &str) -> Aad<Vec<u8>> {
    Aad::from([MARK.as_bytes(), &id, purpose.name().as_bytes(), b"\0", tenant.as_bytes()].concat())
}

/// Makes the file whole under another name and links it to `path`, unless somebody else was faster.
fn create_once(path: &Path, key: &[u8]) -> io::Result<()> {
    let mut noise = [0; 8];
    rand::fill(&mut noise).map_err(|Unspecified| io::Error::other("no random bytes"))?;
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{:016x}.tmp", u64::from_be_bytes(noise)));
    let draft = PathBuf::from(draft);
    let linked = write_private(&draft, key).and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    });
    let removed = match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    linked.and(removed)?;
    // The name must survive a power cut: blobs sealed with a lost key are lost too.
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder)?.sync_all()
}

fn write_private(path: &Path, key: &[u8]) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", base64::engine::general_purpose::STANDARD.encode(key))?;
    file.sync_all()
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
