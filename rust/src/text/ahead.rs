//! Reading ahead on a thread of its own, in constant memory.

use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use crate::control::Control;
use crate::error::{Error, Result};

/// How often a waiting taker looks at its stop flag.
const BEAT: Duration = Duration::from_millis(50);

/// An item, the end (`None`), or the error that ended it.
type Message<T, E> = std::result::Result<Option<T>, E>;

/// Where the thread puts its items.
pub(super) type Sender<T, E> = SyncSender<Message<T, E>>;

/// Items in the order in which a thread makes them.
#[derive(Debug)]
pub(super) struct ReadAhead<T, E> {
    /// `None` once the end, or an error, was handed out.
    messages: Option<Receiver<Message<T, E>>>,
}

impl<T: Send + 'static, E: Send + 'static> ReadAhead<T, E> {
    /// Starts `work`, whose items may wait, `waiting` at a time, to be taken. The thread
    /// ends by itself when the work does, or when this is dropped and it next has something
    /// to hand over; nobody waits for it, because it may hang on a pipe. An error where the
    /// system starts no thread.
    pub fn start(
        waiting: usize,
        work: impl FnOnce(&Sender<T, E>) -> std::result::Result<(), E> + Send + 'static,
    ) -> Result<Self> {
        let (sender, receiver) = sync_channel(waiting);
        let read = move || {
            let last = work(&sender);
            // That nobody receives any more is the ordinary signal to stop.
            let _ = sender.send(last.map(|()| None));
        };
        thread::Builder::new()
            .spawn(read)
            .map_err(|error| Error::Threads(format!("no thread to read the file: {error}")))?;
        Ok(Self {
            messages: Some(receiver),
        })
    }

    /// A single item that is there already: no thread is started.
    pub fn ready(item: T) -> Self {
        let (sender, receiver) = sync_channel(2);
        for message in [Some(item), None] {
            // There is space for both, and the receiver is here.
            let _ = sender.send(Ok(message));
        }
        Self {
            messages: Some(receiver),
        }
    }

    /// The next item, `None` after the last; gives up waiting when `control` says so, and
    /// can then be asked again. After an error of the thread there is no more.
    pub fn next(&mut self, control: &Control) -> Result<Message<T, E>> {
        let Some(messages) = &self.messages else {
            return Ok(Ok(None));
        };
        let message = loop {
            control.check()?;
            match messages.recv_timeout(BEAT) {
                Ok(message) => break message,
                Err(RecvTimeoutError::Timeout) => {}
                // Only a panic closes the channel without a last word. It must
                // not pass for the end of the file.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::data("the thread that reads the file has died"))
                }
            }
        };
        if !matches!(message, Ok(Some(_))) {
            self.messages = None;
        }
        Ok(message)
    }
}
