//! Long work without the interpreter, on its own thread, while the calling thread checks for Ctrl-C
//! and shows progress. Also models that threads share, and pickling.

use std::ops::Deref;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

use crate::control::Control;
use crate::error::{Error, Result};
use crate::file::Bundle;
use crate::model::Classifier;

/// Time between two checks for signals, when progress is shown too.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` and calls `progress(done, total, loss or None, recall or None)` about every 50 ms.
/// Ctrl-C, or an exception of `progress`, stops the work at its next tick and is raised here. A panic
/// becomes a `RuntimeError`.
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
            .map_err(|error| Error::Threads(format!("cannot start a thread: {error}")))?;
        let mut interrupted = None;
        let result = loop {
            let receiver = &mut receiver;
            match py.detach(move || receiver.recv_timeout(POLL_INTERVAL)) {
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

/// Products of values and weights that take less time than a user notices.
const MAX_BRIEF_EFFORT: usize = 1 << 24;

/// Runs work of about `effort` products. Short work runs on the calling thread, without progress or
/// Ctrl-C, because starting a thread would take longer than the work; other work is [`watched`].
pub(super) fn brief_or_watched<T: Send>(
    py: Python<'_>,
    effort: usize,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Control) -> Result<T> + Send,
) -> PyResult<T> {
    if effort > MAX_BRIEF_EFFORT {
        return watched(py, progress, work);
    }
    py.detach(|| attached(work))
}

/// Products that take some tens of microseconds: less than releasing the interpreter to another
/// thread and getting it back.
pub(super) const MAX_INSTANT_EFFORT: usize = 1 << 15;

/// Rows up to which [`MAX_INSTANT_EFFORT`] holds. With more rows their preparation takes longer than
/// the products.
pub(super) const MAX_INSTANT_ROWS: usize = 16;

/// Runs `work` of at most [`MAX_INSTANT_EFFORT`] products and [`MAX_INSTANT_ROWS`] rows on this
/// thread, without releasing the interpreter. Otherwise, if several threads make short calls, each
/// call would wait twice for the other threads. `work` must not wait for a lock.
pub(super) fn attached<T>(work: impl FnOnce(&Control) -> Result<T>) -> PyResult<T> {
    let control = Control::new(0);
    settle(catch_unwind(AssertUnwindSafe(|| work(&control))))
}

fn settle<T>(outcome: std::thread::Result<Result<T>>) -> PyResult<T> {
    let panic = match outcome {
        Ok(result) => return Ok(result?),
        Err(panic) => panic,
    };
    let literal = || panic.downcast_ref::<&str>().copied();
    let what = panic.downcast_ref().map(String::as_str).or_else(literal);
    Err(PyRuntimeError::new_err(format!(
        "internal error in xmtree, please report it: {}",
        what.unwrap_or("unknown")
    )))
}

/// The result of `__reduce__`: the function that recreates the object, and its arguments.
pub(super) type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>,));

/// Pickles `object` as a call of `from_bytes` of its class with the bytes of its bundle.
pub(super) fn reduce<'py, T>(
    object: &Bound<'py, T>,
    to_bundle: impl FnOnce() -> Bundle + Send,
) -> PyResult<Reduced<'py>> {
    let (py, class) = (object.py(), object.as_any().get_type());
    let bytes = py.detach(|| to_bundle().to_bytes())?;
    Ok((class.getattr("from_bytes")?, (PyBytes::new(py, &bytes),)))
}

/// Waits while `is_pending` returns true, but no longer than [`POLL_INTERVAL`]. Other threads of
/// Python run meanwhile.
fn wait_while(py: Python<'_>, is_pending: impl Fn() -> bool + Send + Sync) {
    /// First pause. Later ones are a part of the time waited so far, so long waits cost little.
    const PAUSE: Duration = Duration::from_micros(50);
    py.detach(|| {
        let start = Instant::now();
        while is_pending() && start.elapsed() < POLL_INTERVAL {
            thread::sleep(PAUSE.max(start.elapsed() / 8));
        }
    });
}

pub(super) type Model = dyn Classifier;
/// The classes as Python knows them; the core does not look at them.
pub(super) type Labels = Option<Arc<Py<PyAny>>>;

/// A model with its labels, which are read together and change together.
///
/// A reader takes a [`Share`], a learner the model itself. Readers wait until learning ends. A
/// learner waits for readers, but at most [`POLL_INTERVAL`]: after that it learns on a copy, so a
/// share that is kept cannot block learning.
pub(super) struct SharedModel(Mutex<Held>);

/// The mutex is locked only briefly, and only by threads that are attached to the interpreter. A
/// thread forks when no other one runs attached, so a forked process never finds the mutex locked;
/// without the global lock Python stops the others first.
enum Held {
    Here(Share),
    /// A thread learns. The labels are those before it.
    Learning(Arc<Learning>, Labels),
}

/// The state of a model at one time.
#[derive(Clone)]
pub(super) struct Share {
    pub model: Arc<Model>,
    pub labels: Labels,
    /// The parameters as a dictionary, once a caller has asked for them.
    pub params: Arc<PyOnceLock<Py<PyAny>>>,
    /// Held by every reader that learning waits for.
    pub lease: Lease,
}

pub(super) type Lease = Arc<()>;

impl From<Arc<Model>> for Share {
    fn from(model: Arc<Model>) -> Self {
        Self {
            model,
            labels: None,
            params: Arc::new(PyOnceLock::new()),
            lease: Lease::default(),
        }
    }
}

impl Deref for Share {
    type Target = Model;

    fn deref(&self) -> &Model {
        &*self.model
    }
}

impl SharedModel {
    /// A model that starts from `share`. Learning does not wait for the readers of `share`.
    pub fn new(share: Share) -> Self {
        Self(Mutex::new(Held::Here(Share {
            lease: Lease::default(),
            ..share
        })))
    }

    /// Returns a share of the model, after learning has ended.
    pub fn share(&self, py: Python<'_>) -> PyResult<Share> {
        let learning = match &*self.lock() {
            Held::Here(share) => return Ok(share.clone()),
            Held::Learning(learning, _) => learning.clone(),
        };
        // The result is kept for those who wait, even if another thread starts learning at once.
        learning.wait(py)
    }

    /// Takes the model to learn, after other learning has ended. Dropping the result returns it.
    pub fn take(&self, py: Python<'_>) -> PyResult<Taken<'_>> {
        let learning = Arc::new(Learning {
            process: process::id(),
            outcome: OnceLock::new(),
        });
        loop {
            let mut held = self.lock();
            let other = match &*held {
                Held::Learning(other, _) => other.clone(),
                Held::Here(share) => {
                    let share = share.clone();
                    *held = Held::Learning(learning.clone(), share.labels.clone());
                    drop(held);
                    let lease = &share.lease;
                    if Arc::strong_count(lease) > 1 {
                        wait_while(py, || Arc::strong_count(lease) > 1);
                    }
                    return Ok(Taken {
                        from: self,
                        share,
                        learning,
                    });
                }
            };
            drop(held);
            other.wait(py)?;
        }
    }

    /// Returns the labels. Does not wait for learning.
    pub fn labels(&self) -> Labels {
        match &*self.lock() {
            Held::Here(share) => share.labels.clone(),
            Held::Learning(_, labels) => labels.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // No code panics while it holds the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A model that learns. A panic leaves it valid, so it is always returned.
pub(super) struct Taken<'a> {
    from: &'a SharedModel,
    pub share: Share,
    learning: Arc<Learning>,
}

impl Taken<'_> {
    pub fn model(&self) -> &Model {
        &*self.share.model
    }

    /// Returns the model to change; a copy if others share it.
    pub fn own(&mut self) -> &mut Model {
        let model = &mut self.share.model;
        if Arc::get_mut(model).is_none() {
            *model = model.boxed_clone().into();
        }
        Arc::get_mut(model).expect("nothing shares a copy")
    }

    /// Replaces parameters that do not affect what was learned.
    pub fn set_params(&mut self, params_json: &str) -> Result<()> {
        self.own().set_params(params_json)?;
        self.share.params = Arc::new(PyOnceLock::new());
        Ok(())
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.share.lease = Lease::default();
        *self.from.lock() = Held::Here(self.share.clone());
        // It has never been set: only this object sets it.
        let _ = self.learning.outcome.set(self.share.clone());
    }
}

/// One thread's learning, and its outcome for the threads that wait for it.
struct Learning {
    process: u32,
    outcome: OnceLock<Share>,
}

impl Learning {
    /// Waits for the outcome. Ctrl-C ends the wait.
    fn wait(&self, py: Python<'_>) -> PyResult<Share> {
        if self.process != process::id() {
            return Err(PyRuntimeError::new_err(
                "the model is incomplete: another thread was training it when this process was \
                 forked; fit it again, load it from a file, or fork while no thread trains it",
            ));
        }
        loop {
            wait_while(py, || self.outcome.get().is_none());
            match self.outcome.get() {
                Some(share) => return Ok(share.clone()),
                None => py.check_signals()?,
            }
        }
    }
}
