//! The one way long work runs: off the interpreter, on a thread of its own,
//! while this thread watches for Ctrl-C and shows the progress.

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::control::Control;
use crate::error::Result;

/// How often signals are looked for and progress is shown.
const BEAT: Duration = Duration::from_millis(50);

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
    let bell = Bell::default();
    std::thread::scope(|scope| {
        let (control, bell) = (&control, &bell);
        let worker = scope.spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work(control)));
            bell.ring();
            result
        });
        let mut interrupted = None;
        while !py.detach(|| bell.rung_within(BEAT)) {
            if interrupted.is_none() {
                if let Err(error) = show(py) {
                    control.stop();
                    interrupted = Some(error);
                }
            }
        }
        let result = py.detach(|| worker.join().unwrap_or_else(Err));
        match interrupted {
            Some(error) => Err(error),
            None => settle(result).and_then(|value| show(py).map(|()| value)),
        }
    })
}

/// Runs short work off the interpreter on this very thread: no progress, no
/// Ctrl-C until it is done. For work of milliseconds.
fn brief<T: Send>(py: Python<'_>, work: impl FnOnce(&Control) -> Result<T> + Send) -> PyResult<T> {
    let control = Control::new(0);
    settle(py.detach(|| catch_unwind(AssertUnwindSafe(|| work(&control)))))
}

/// Products of values with weights that are done before a person notices.
const BRIEF: usize = 1 << 24;

/// [`brief`] for work of about `effort` products if they are few: a thread of
/// their own would only slow them down.
pub(super) fn brief_or_watched<T: Send>(
    py: Python<'_>,
    effort: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Control) -> Result<T> + Send,
) -> PyResult<T> {
    if effort <= BRIEF {
        brief(py, work)
    } else {
        watched(py, progress, work)
    }
}

/// Rung once, when the work is over.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    fn rung_within(&self, time: Duration) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let (rung, _) = self
            .changed
            .wait_timeout_while(rung, time, |rung| !*rung)
            .unwrap_or_else(PoisonError::into_inner);
        *rung
    }
}

fn settle<T>(outcome: std::result::Result<Result<T>, Box<dyn Any + Send>>) -> PyResult<T> {
    match outcome {
        Ok(result) => Ok(result?),
        Err(panic) => {
            let what = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown");
            Err(PyRuntimeError::new_err(format!(
                "internal error in xmtree, please report it: {what}"
            )))
        }
    }
}
