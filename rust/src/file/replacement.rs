//! Files that are replaced whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::{Builder, TempPath};

const PREFIX: &str = ".xmtree-";
const SUFFIX: &str = ".tmp";

/// A temporary file that nobody has written to for so long is one of a process that was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A file written in the place of another, which stays until this one is safely on
/// the disk. Dropped before it is finished it leaves nothing behind.
pub(crate) struct Replacement {
    /// What is to be written to.
    pub file: File,
    state: State,
}

/// Where the file is until it is finished, and where then.
enum State {
    /// It is a pipe or a device, which cannot be replaced, only written to.
    InPlace,
    /// It has no name: nothing is left of it even when the process is killed.
    Unnamed(PathBuf),
    Named(TempPath, PathBuf),
}

impl Replacement {
    pub fn begin(path: &Path) -> io::Result<Self> {
        let target = followed(path)?;
        let standing = fs::metadata(&target).ok();
        if standing.as_ref().is_some_and(|file| !file.is_file()) {
            // A directory fails here with the system's own words.
            let file = OpenOptions::new().write(true).open(&target)?;
            let state = State::InPlace;
            return Ok(Self { file, state });
        }
        let (file, state) = if let Some(file) = unnamed::create(directory_of(&target)) {
            (file, State::Unnamed(target))
        } else {
            remove_abandoned(directory_of(&target));
            // Made like any new file, instead of in tempfile's private mode.
            let make = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
            let (file, temporary) = with_temporary_name(&target, make)?;
            (file, State::Named(temporary, target))
        };
        if let Some(standing) = standing {
            file.set_permissions(standing.permissions())?;
        }
        Ok(Self { file, state })
    }

    pub fn finish(self) -> io::Result<()> {
        let (temporary, target) = match self.state {
            State::InPlace => return Ok(()),
            State::Named(temporary, target) => {
                self.file.sync_all()?;
                (temporary, target)
            }
            State::Unnamed(target) => {
                self.file.sync_all()?;
                // The system gives a file a name, but not one that is in use.
                let link = |path: &Path| unnamed::link(&self.file, path);
                let ((), temporary) = with_temporary_name(&target, link)?;
                (temporary, target)
            }
        };
        temporary.persist(&target).map_err(|failed| failed.error)?;
        // The new name must reach the disk too; some file systems cannot be asked.
        #[cfg(unix)]
        let _ = File::open(directory_of(&target)).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

/// What stands, or will stand, at `path`: a link stays a link, also one to a file that is not there
/// yet, and what it points to is replaced.
fn followed(path: &Path) -> io::Result<PathBuf> {
    /// Linux follows as many.
    const MOST_LINKS: usize = 40;
    let error = match fs::canonicalize(path) {
        Ok(target) => return Ok(target),
        Err(error) => error,
    };
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            Ok(link) => target = directory_of(&target).join(link),
            Err(_) => return Ok(target),
        }
    }
    Err(error)
}

/// What `make` makes at a new path beside `target`; an error is the system's, with its number.
fn with_temporary_name<T>(
    target: &Path,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(T, TempPath)> {
    let mut code = None;
    let make = |path: &Path| make(path).inspect_err(|error| code = error.raw_os_error());
    let made = Builder::new()
        .prefix(PREFIX)
        .suffix(SUFFIX)
        .make_in(directory_of(target), make);
    match (made, code) {
        (Ok(made), _) => Ok(made.into_parts()),
        (Err(_), Some(code)) => Err(io::Error::from_raw_os_error(code)),
        (Err(error), None) => Err(error),
    }
}

/// Removes temporary files that processes which were killed have left. What cannot be looked at or
/// removed stays.
fn remove_abandoned(directory: &Path) {
    let is_ours = |name: &str| name.starts_with(PREFIX) && name.ends_with(SUFFIX);
    let Some(before) = SystemTime::now().checked_sub(ABANDONED) else {
        return;
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_old = || entry.metadata()?.modified().map(|time| time < before);
        if entry.file_name().to_str().is_some_and(is_ours) && is_old().unwrap_or(false) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn directory_of(path: &Path) -> &Path {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Files without a name.
#[cfg(target_os = "linux")]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use rustix::fs::{linkat, open, AtFlags, Mode, OFlags, CWD};

    /// Where the system shows a process its open files.
    const OPEN_FILES: &str = "/proc/self/fd";

    /// None where the file system has no such files, or they could not be given a name.
    pub fn create(directory: &Path) -> Option<File> {
        if !Path::new(OPEN_FILES).is_dir() {
            return None;
        }
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        open(directory, flags, mode).ok().map(File::from)
    }

    pub fn link(file: &File, path: &Path) -> io::Result<()> {
        let opened = format!("{OPEN_FILES}/{}", file.as_raw_fd());
        Ok(linkat(CWD, opened, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub fn create(_directory: &Path) -> Option<File> {
        None
    }

    pub fn link(_file: &File, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// A file in `directory`, last written to `age` ago.
    fn file_of_age(directory: &Path, name: &str, age: Duration) {
        let file = File::create(directory.join(name)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn what_killed_processes_left_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (old, new) = (2 * ABANDONED, ABANDONED / 2);
        file_of_age(directory.path(), ".xmtree-a.tmp", old);
        file_of_age(directory.path(), ".xmtree-b.tmp", new);
        file_of_age(directory.path(), "c.tmp", old);
        file_of_age(directory.path(), ".xmtree-d", old);
        remove_abandoned(directory.path());
        assert_eq!(
            names(directory.path()),
            [".xmtree-b.tmp", ".xmtree-d", "c.tmp"]
        );
    }

    #[test]
    fn a_file_is_replaced_by_one_with_and_one_without_a_name() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("model");
        for text in ["first", "second"] {
            let mut replacement = Replacement::begin(&target).unwrap();
            replacement.file.write_all(text.as_bytes()).unwrap();
            replacement.finish().unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), text);
        }
        let make = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        let (mut file, temporary) = with_temporary_name(&target, make).unwrap();
        file.write_all(b"third").unwrap();
        let state = State::Named(temporary, target.clone());
        Replacement { file, state }.finish().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "third");
        assert_eq!(names(directory.path()), ["model"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_seen_of_a_file_before_it_is_finished() {
        let directory = tempfile::tempdir().unwrap();
        let mut replacement = Replacement::begin(&directory.path().join("model")).unwrap();
        if matches!(replacement.state, State::Unnamed(_)) {
            replacement.file.write_all(b"half of it").unwrap();
            assert!(names(directory.path()).is_empty());
        }
    }

    #[test]
    fn errors_have_the_numbers_of_the_system() {
        let directory = tempfile::tempdir().unwrap();
        let failed = Replacement::begin(&directory.path().join("none").join("model"));
        let error = failed.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.raw_os_error().is_some());
    }
}
