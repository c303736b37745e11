//! The one way long work runs: off the interpreter, on a thread of its own,
//! while this thread watches for Ctrl-C and shows the progress.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::control::Control;
use crate::error::{Error, Result};

/// How often signals are looked for and progress is shown.
pub(super) const BEAT: Duration = Duration::from_millis(50);

/// Runs `work`, calling `progress(done, total, loss or None, recall or None)` about
/// every 50 ms if there is one. Ctrl-C, or an exception out of `progress`, stops the
/// work at its next tick and is raised here. A panic becomes a `RuntimeError`.
pub(super) fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Control) -> Result<T> + Send,
) -> PyResult<T> {
    let control = Control::new(0);
    let show = |py: Python<'_>| -> PyResult<()> {
        py.check_signals()?;
        if let Some(progress) = progress {
            let p = control.progress();
            progress.call1((p.done, p.total, p.loss, p.recall))?;
        }
        Ok(())
    };
    let (sender, mut receiver) = channel();
    thread::scope(|scope| {
        let control = &control;
        let work = move || sender.send(catch_unwind(AssertUnwindSafe(|| work(control))));
        thread::Builder::new()
            .spawn_scoped(scope, work)
            .map_err(|error| Error::Threads(format!("no thread to work on: {error}")))?;
        let mut interrupted = None;
        let result = loop {
            let receiver = &mut receiver;
            match py.detach(move || receiver.recv_timeout(BEAT)) {
                Ok(result) => break result,
                Err(RecvTimeoutError::Timeout) => {}
                Err(gone @ RecvTimeoutError::Disconnected) => break Err(Box::new(gone)),
            }
            if interrupted.is_none() {
                if let Err(error) = show(py) {
                    control.stop();
                    interrupted = Some(error);
                }
            }
        };
        match interrupted {
            Some(error) => Err(error),
            None => settle(result).and_then(|value| show(py).map(|()| value)),
        }
    })
}

/// Products of values with weights that are done before a person notices.
const BRIEF: usize = 1 << 24;

/// [`watched`], but for work of about `effort` products, if they are few, on this very
/// thread, where there is no progress and no Ctrl-C until it is done: a thread of its own
/// would only slow it down.
pub(super) fn brief_or_watched<T: Send>(
    py: Python<'_>,
    effort: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Control) -> Result<T> + Send,
) -> PyResult<T> {
    if effort > BRIEF {
        return watched(py, progress, work);
    }
    let control = Control::new(0);
    settle(py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&control)))))
}

/// Products that are done before another thread could have been given the interpreter and have given
/// it back: some tens of microseconds.
pub(super) const INSTANT: usize = 1 << 15;

/// Of more rows a product takes longer, as their preparation comes to it.
pub(super) const FEW_ROWS: usize = 16;

/// Runs `work` of at most [`INSTANT`] products and [`FEW_ROWS`] on this thread, which keeps the interpreter: where
/// several threads ask for little, each call would wait for the others twice otherwise. `work`
/// must not wait for a lock.
pub(super) fn attached<T>(work: impl FnOnce(&Control) -> Result<T>) -> PyResult<T> {
    let control = Control::new(0);
    settle(catch_unwind(AssertUnwindSafe(|| work(&control))))
}

fn settle<T>(outcome: std::thread::Result<Result<T>>) -> PyResult<T> {
    let panic = match outcome {
        Ok(result) => return Ok(result?),
        Err(panic) => panic,
    };
    let panic = match panic.downcast::<Error>() {
        Ok(error) => return Err((*error).into()),
        Err(panic) => panic,
    };
    let literal = || panic.downcast_ref::<&str>().copied();
    let what = panic.downcast_ref().map(String::as_str).or_else(literal);
    Err(PyRuntimeError::new_err(format!(
        "internal error in xmtree, please report it: {}",
        what.unwrap_or("unknown")
    )))
}
