//! Files that are replaced whole or not at all.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

/// A file written in the place of another, which stays until this one is safely on
/// the disk. Dropped before it is finished it leaves nothing behind; a process that is killed
/// leaves a file `.xmtree-*.tmp`.
pub(crate) struct Replacement {
    /// What is to be written to.
    pub file: File,
    /// Where the file is until it is finished, and where then; none for a pipe or a device, which
    /// cannot be replaced, only written to.
    names: Option<(TempPath, PathBuf)>,
}

impl Replacement {
    pub fn begin(path: &Path) -> io::Result<Self> {
        let target = followed(path)?;
        let standing = fs::metadata(&target).ok();
        if standing.as_ref().is_some_and(|file| !file.is_file()) {
            // A directory fails here with the system's own words.
            let file = OpenOptions::new().write(true).open(&target)?;
            return Ok(Self { file, names: None });
        }
        // Made here, like any new file: tempfile's are private, and its errors lack the number.
        let random = RandomState::new().build_hasher().finish();
        let name = format!(".xmtree-{random:016x}.tmp");
        let temporary = directory_of(&target).join(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary)?;
        let temporary = TempPath::try_from_path(temporary)?;
        if let Some(standing) = standing {
            file.set_permissions(standing.permissions())?;
        }
        let names = Some((temporary, target));
        Ok(Self { file, names })
    }

    pub fn finish(self) -> io::Result<()> {
        let Some((temporary, target)) = self.names else {
            return Ok(());
        };
        self.file.sync_all()?;
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
    const MAX_LINKS: usize = 40;
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(link) => target = directory_of(&target).join(link),
            Err(_) => return Ok(target),
        }
    }
    // Links in a circle: the system's own words.
    fs::canonicalize(path)
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
    fn a_file_is_replaced_whole_and_an_unfinished_one_leaves_nothing() {
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
    fn errors_have_the_numbers_of_the_system() {
        let directory = tempfile::tempdir().unwrap();
        let failed = Replacement::begin(&directory.path().join("none").join("model"));
        let error = failed.err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.raw_os_error().is_some());
    }
}
