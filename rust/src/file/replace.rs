//! Atomic replacement of files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempPath};

/// A new file that replaces another one when it is finished. If it is dropped before, it leaves
/// nothing behind; a killed process leaves a file `.xmtree-*.tmp`.
pub(crate) struct Replacement {
    /// The new file.
    pub file: File,
    /// Temporary and final path; None for a pipe or device, which is written to directly.
    paths: Option<(TempPath, PathBuf)>,
}

impl Replacement {
    /// Creates a temporary file next to `path`. A link at `path` stays, and its target is replaced.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let target = match fs::canonicalize(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
            target => target?,
        };
        let existing = fs::metadata(&target).ok();
        if existing.as_ref().is_some_and(|file| !file.is_file()) {
            // For a directory, this returns the system's error.
            let file = OpenOptions::new().write(true).open(&target)?;
            return Ok(Self { file, paths: None });
        }
        // Opened here, because tempfile's own files are private and its errors have no number.
        let new_file = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        let mut builder = Builder::new();
        let builder = builder.prefix(".xmtree-").suffix(".tmp");
        let (file, temporary) = builder
            .make_in(directory_of(&target), new_file)?
            .into_parts();
        if let Some(existing) = existing {
            file.set_permissions(existing.permissions())?;
        }
        let paths = Some((temporary, target));
        Ok(Self { file, paths })
    }

    /// Moves the file to its final path, once it is on the disk.
    pub fn finish(self) -> io::Result<()> {
        let Some((temporary, target)) = self.paths else {
            return Ok(());
        };
        self.file.sync_all()?;
        temporary.persist(&target).map_err(|failed| failed.error)?;
        // The directory entry must reach the disk too, which some file systems do not support.
        #[cfg(unix)]
        let _ = File::open(directory_of(&target)).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

fn directory_of(path: &Path) -> &Path {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn unfinished_files_leave_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("model");
        for text in ["first", "second"] {
            let mut replacement = Replacement::begin(&target).unwrap();
            replacement.file.write_all(text.as_bytes()).unwrap();
            replacement.finish().unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), text);
        }
        drop(Replacement::begin(&target).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(&target).unwrap(), "second");
    }

    #[test]
    fn errors_have_the_number_of_the_system() {
        let directory = tempfile::tempdir().unwrap();
        let failed = Replacement::begin(&directory.path().join("none").join("model"));
        let error = failed.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.raw_os_error().is_some());
    }
}
