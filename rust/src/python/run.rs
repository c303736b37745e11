//! Long work off the interpreter, on a thread of its own, while the calling thread watches for Ctrl-C
//! and shows the progress; models that threads share; pickles.

use std::mem;
use std::ops::Deref;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::control::Control;
use crate::error::{Error, Result};
use crate::file::Bundle;
use crate::model::Classifier;

/// How often signals are looked for and progress is shown.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

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

/// Products of values with weights that are done before a person notices.
const MAX_BRIEF_EFFORT: usize = 1 << 24;

/// [`watched`], but for work of about `effort` products, if they are few, on this very
/// thread, where there is no progress and no Ctrl-C until it is done: a thread of its own
/// would only slow it down.
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

/// Products that are done before another thread could have been given the interpreter and have given
/// it back: some tens of microseconds.
pub(super) const MAX_INSTANT_EFFORT: usize = 1 << 15;

/// Of more rows a product takes longer, as their preparation comes to it.
pub(super) const MAX_INSTANT_ROWS: usize = 16;

/// Runs `work` of at most [`MAX_INSTANT_EFFORT`] products and [`MAX_INSTANT_ROWS`] on this thread,
/// which keeps the interpreter: where several threads ask for little, each call would wait for the
/// others twice otherwise. `work` must not wait for a lock.
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

/// What `__reduce__` returns: the function that makes the object again, and its arguments.
pub(super) type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>,));

/// The bytes of a bundle, made while other threads of Python run.
pub(super) fn bundle_bytes(
    py: Python<'_>,
    to_bundle: impl FnOnce() -> Bundle + Send,
) -> PyResult<Bound<'_, PyBytes>> {
    let bytes = py.detach(|| to_bundle().to_bytes())?;
    Ok(PyBytes::new(py, &bytes))
}

/// What `read` makes of the bundle that [`bundle_bytes`] wrote.
pub(super) fn from_bytes<T: Send>(
    py: Python<'_>,
    bytes: &[u8],
    read: impl FnOnce(Bundle) -> Result<T> + Send,
) -> PyResult<T> {
    Ok(py.detach(|| read(Bundle::from_bytes(bytes)?))?)
}

/// `object` as `from_bytes` of its class and `bytes`.
pub(super) fn reduced<'py, T>(
    object: &Bound<'py, T>,
    bytes: Bound<'py, PyBytes>,
) -> PyResult<Reduced<'py>> {
    let class = object.as_any().get_type();
    Ok((class.getattr("from_bytes")?, (bytes,)))
}

pub(super) type Model = dyn Classifier;
/// What Python calls the classes; the core does not look at it.
pub(super) type Labels = Option<Arc<Py<PyAny>>>;

/// How often learning looks whether the readers are done.
const READER_POLL_INTERVAL: Duration = Duration::from_micros(50);

/// A model with its labels: both are read together and change together.
///
/// A reader takes a [`Share`], learning the model itself: readers wait for it, and it waits for
/// them, for [`POLL_INTERVAL`] at most. Where shares last longer it learns on a copy, so that nobody who
/// keeps one can stop it.
pub(super) struct SharedModel(Mutex<Held>);

/// Locked for a moment, and only by threads that hold the interpreter, as a thread that forks
/// does: so a forked process never finds it locked.
enum Held {
    Here(Share),
    /// And the labels from before.
    Learning(Arc<Learning>, Labels),
}

/// The model and its labels at one time.
#[derive(Clone)]
pub(super) struct Share {
    pub model: Arc<Model>,
    pub labels: Labels,
    /// Shared by all who have it for a while, and for whom learning waits.
    pub lease: Lease,
}

pub(super) type Lease = Arc<()>;

impl Deref for Share {
    type Target = Model;

    fn deref(&self) -> &Model {
        &*self.model
    }
}

impl SharedModel {
    pub fn new(model: Arc<Model>, labels: Labels) -> Self {
        Self(Mutex::new(Held::Here(Share {
            model,
            labels,
            lease: Lease::default(),
        })))
    }

    /// A share of the model, once nothing learns it.
    pub fn share(&self, py: Python<'_>) -> PyResult<Share> {
        let learning = match &*self.lock() {
            Held::Here(share) => return Ok(share.clone()),
            Held::Learning(learning, _) => learning.clone(),
        };
        // What it leaves is there for those who wait, even if more is learned at once.
        learning.wait(py)
    }

    /// The model, to learn, once nothing else learns it. Dropping it puts it back.
    pub fn take(&self, py: Python<'_>) -> PyResult<Taken<'_>> {
        let learning = Arc::new(Learning::new());
        loop {
            let mut held = self.lock();
            let other = match &mut *held {
                Held::Learning(other, _) => other.clone(),
                Held::Here(share) => {
                    let labels = share.labels.clone();
                    let taken = mem::replace(&mut *held, Held::Learning(learning.clone(), labels));
                    drop(held);
                    let Held::Here(share) = taken else {
                        unreachable!("it was here")
                    };
                    let taken = Taken {
                        from: self,
                        share,
                        learning,
                    };
                    taken.wait_for_readers(py);
                    return Ok(taken);
                }
            };
            drop(held);
            other.wait(py)?;
        }
    }

    /// The labels, which can be had while the model learns.
    pub fn labels(&self) -> Labels {
        match &*self.lock() {
            Held::Here(share) => share.labels.clone(),
            Held::Learning(_, labels) => labels.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        locked(&self.0)
    }
}

/// A model that learns. It is sound whatever happens: learning that panics leaves it so.
pub(super) struct Taken<'a> {
    from: &'a SharedModel,
    share: Share,
    learning: Arc<Learning>,
}

impl Taken<'_> {
    pub fn model(&self) -> &Model {
        &*self.share.model
    }

    /// The model alone: a copy where there are shares of it.
    pub fn own(&mut self) -> &mut Model {
        let model = &mut self.share.model;
        if Arc::get_mut(model).is_none() {
            *model = model.boxed_clone().into();
        }
        Arc::get_mut(model).expect("nothing shares a copy")
    }

    /// Replaces the labels.
    pub fn rename(&mut self, labels: Labels) {
        self.share.labels = labels;
    }

    fn wait_for_readers(&self, py: Python<'_>) {
        let is_read = || Arc::strong_count(&self.share.lease) > 1;
        if is_read() {
            py.detach(|| {
                let start = Instant::now();
                while is_read() && start.elapsed() < POLL_INTERVAL {
                    thread::sleep(READER_POLL_INTERVAL);
                }
            });
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.share.lease = Lease::default();
        let learning = mem::replace(&mut *self.from.lock(), Held::Here(self.share.clone()));
        self.learning.end(&self.share);
        drop(learning);
    }
}

/// Learning that others wait for.
struct Learning {
    process: u32,
    outcome: Mutex<Option<Share>>,
    end: Condvar,
}

impl Learning {
    fn new() -> Self {
        Self {
            process: process::id(),
            outcome: Mutex::new(None),
            end: Condvar::new(),
        }
    }

    /// Waits for the end; Ctrl-C ends the waiting.
    fn wait(&self, py: Python<'_>) -> PyResult<Share> {
        if self.process != process::id() {
            return Err(PyRuntimeError::new_err(
                "this process was forked while another thread taught the model, and has no whole \
                 copy of it: fit it again, load it from a file, or fork while nothing learns",
            ));
        }
        loop {
            let outcome = py.detach(|| {
                let outcome = locked(&self.outcome);
                let waited = self
                    .end
                    .wait_timeout_while(outcome, POLL_INTERVAL, |o| o.is_none());
                waited.unwrap_or_else(PoisonError::into_inner).0.clone()
            });
            match outcome {
                Some(share) => return Ok(share),
                None => py.check_signals()?,
            }
        }
    }

    fn end(&self, share: &Share) {
        *locked(&self.outcome) = Some(share.clone());
        self.end.notify_all();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while one is locked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
