//! The examples that an online learner is handed at a time.

use super::Mistakes;
use crate::control::Control;
use crate::data::{Batch, Preparation};
use crate::error::Result;
use crate::linear::PathExample;

/// Examples to be learned in their order, and what is kept beside the learner meanwhile.
#[derive(Debug)]
pub struct Learning<'a> {
    /// The examples.
    pub batch: &'a Batch<'a>,
    /// Which of them, in which order.
    pub order: &'a [u32],
    /// The share of a pass that each of them is: 1/N in `fit`; 0 in a stream, where no pass ends
    /// and means and deviations follow the examples.
    pub clock: f64,
    /// How they are read.
    pub preparation: &'a mut Preparation,
    /// Counts those answered wrongly before they were learned.
    pub progress: &'a mut Mistakes,
    /// Threads; what is learned does not depend on them.
    pub n_threads: usize,
    /// Takes the class answered for each row before it was learned, where it is wanted.
    pub predicted: Option<&'a mut [i32]>,
    /// Progress and interruption.
    pub control: &'a Control,
}

impl Learning<'_> {
    /// Whether the examples are a stream.
    pub fn is_stream(&self) -> bool {
        self.clock == 0.0
    }

    /// Hands the examples to `learn` one after the other, with label and importance. It returns
    /// whether the answer was right before.
    pub fn one_by_one(
        &mut self,
        mut learn: impl FnMut(&mut PathExample, u32, f32) -> bool,
    ) -> Result<()> {
        let labels = self.batch.labels();
        let is_stream = self.is_stream();
        let mut example = PathExample::default();
        for chunk in self.order.chunks(Control::CHUNK) {
            for &row in chunk {
                let row = row as usize;
                if is_stream {
                    example.observe_and_read(self.preparation, &self.batch.rows, row);
                } else {
                    example.read(self.preparation, &self.batch.rows, row);
                }
                let importance = self.batch.weight(row);
                let was_right = learn(&mut example, labels[row], importance);
                self.progress.count(!was_right, importance);
            }
            self.report(chunk.len())?;
        }
        Ok(())
    }

    /// Reports `n` more examples learned and the progressive loss; an error where the work is to
    /// stop.
    pub fn report(&self, n: usize) -> Result<()> {
        if let Some(loss) = self.progress.loss() {
            self.control.set_loss(loss);
        }
        self.control.tick(n)
    }
}
