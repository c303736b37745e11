//! When the members of a model are frozen.
//!
//! Freezing takes as long as the model is large, and learning undoes it. After `fit`, and from a
//! file, the first prediction freezes. In a stream the first rows after an update are predicted by
//! the members as they are, with the same answers to the bit, until they have cost what freezing
//! costs: then more are to be expected, and whatever comes, freezing has at most doubled the time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use crate::error::Result;

/// The members of a model as prediction uses them, once it was worth making that.
#[derive(Debug)]
pub(super) struct Frozen<F> {
    members: OnceLock<Vec<F>>,
    /// Products of the predictions so far by members that were not frozen.
    walked: AtomicUsize,
}

impl<F> Default for Frozen<F> {
    fn default() -> Self {
        Self {
            members: OnceLock::new(),
            walked: AtomicUsize::new(0),
        }
    }
}

/// A copy is made to learn on, which makes what is frozen useless.
impl<F> Clone for Frozen<F> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<F> Frozen<F> {
    /// That of a model which is not expected to learn on, after `fit` or from a file: it is due at
    /// the first prediction.
    pub fn due_at_once() -> Self {
        Self {
            members: OnceLock::new(),
            walked: AtomicUsize::new(usize::MAX),
        }
    }

    /// Whether they are there.
    pub fn is_made(&self) -> bool {
        self.members.get().is_some()
    }

    /// Whether they should be, for predictions of `effort` products, to make which takes
    /// `freeze_effort`.
    pub fn is_due(&self, effort: usize, freeze_effort: usize) -> bool {
        let walked = self.walked.load(Ordering::Relaxed);
        walked.saturating_add(effort) >= freeze_effort
    }

    /// The frozen members for predictions of `effort` products, made by `freeze` if they are
    /// [due](Self::is_due); none where the members will do as they are.
    pub fn get(
        &self,
        effort: usize,
        freeze_effort: usize,
        freeze: impl FnOnce() -> Result<Vec<F>>,
    ) -> Result<Option<&[F]>> {
        if let Some(members) = self.members.get() {
            return Ok(Some(members));
        }
        if !self.is_due(effort, freeze_effort) {
            // At most that of freezing, so that nothing overflows.
            self.walked.fetch_add(effort, Ordering::Relaxed);
            return Ok(None);
        }
        let members = freeze()?;
        // Another thread may have been faster, with the same outcome.
        Ok(Some(self.members.get_or_init(|| members)))
    }
}
