//! Models that can be stored.

use std::path::Path;

use super::bundle::Bundle;
use crate::error::Result;

/// A model that can be stored and restored. Restoring must check everything the
/// model relies on later (lengths, indices in range): a checksum keeps out
/// accidents, not a file that somebody made up.
pub trait LegacyPersist: Sized {
    /// Name of the learner in its files. It never changes.
    const KIND: &'static str;

    /// Takes the model apart.
    fn to_bundle(&self) -> Bundle;

    /// Puts it together again. The kind has been checked.
    fn from_bundle(bundle: Bundle) -> Result<Self>;

    /// [`from_bundle`](Self::from_bundle) after a check of the kind.
    fn unpack(bundle: Bundle) -> Result<Self> {
        bundle.expect_kind(Self::KIND)?;
        Self::from_bundle(bundle)
    }

    /// The bytes of the model's file.
    fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_bundle().to_bytes()
    }

    /// The model from the bytes of its file.
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::unpack(Bundle::from_bytes(bytes)?)
    }

    /// Writes the model's file, whole or not at all.
    fn save(&self, path: &Path) -> Result<()> {
        self.to_bundle().write(path)
    }

    /// Reads the model's file.
    fn load(path: &Path) -> Result<Self> {
        Self::unpack(Bundle::read(path)?)
    }
}
