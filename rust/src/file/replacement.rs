//! Files that are replaced whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

/// A file written in the place of another, which stays until this one is safely on
/// the disk. Dropped before it is finished it leaves nothing behind.
pub(crate) struct Replacement {
    /// What is to be written to.
    pub file: File,
    /// Where the file is until it is finished and where then; none for a pipe or a
    /// device, which cannot be replaced, only written to.
    places: Option<(TempPath, PathBuf)>,
}

impl Replacement {
    pub fn begin(path: &Path) -> io::Result<Self> {
        // A link stays a link: what it points to is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let standing = fs::metadata(&target).ok();
        if standing.as_ref().is_some_and(|file| !file.is_file()) {
            // A directory fails here with the system's own words.
            let file = OpenOptions::new().write(true).open(&target)?;
            return Ok(Self { file, places: None });
        }
        // Made like any new file, instead of in tempfile's private mode.
        let make = |path: &Path| OpenOptions::new().write(true).create_new(true).open(path);
        let (file, temporary) = tempfile::Builder::new()
            .prefix(".xmtree-")
            .suffix(".tmp")
            .make_in(directory_of(&target), make)?
            .into_parts();
        if let Some(standing) = standing {
            file.set_permissions(standing.permissions())?;
        }
        Ok(Self {
            file,
            places: Some((temporary, target)),
        })
    }

    pub fn finish(self) -> io::Result<()> {
        if let Some((temporary, target)) = self.places {
            self.file.sync_all()?;
            temporary.persist(&target).map_err(|failed| failed.error)?;
            // The new name must reach the disk too; some file systems cannot be asked.
            #[cfg(unix)]
            let _ = File::open(directory_of(&target)).and_then(|directory| directory.sync_all());
        }
        Ok(())
    }
}

fn directory_of(path: &Path) -> &Path {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
