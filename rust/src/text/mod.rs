//! Text files of sparse examples, plain or compressed: svmlight and the format of the Extreme
//! Classification Repository (XMC). Also [counts of words](ngrams) in texts.
//!
//! ```text
//! file or stdin -> [thread: decompress, cut at line ends] -> blocks
//!     -> parse into a Table -> whole file   (load)
//!     -> [thread: parse]  -> batches        (stream)
//!     -> formats that Python parses         (LineBlocks)
//! ```
//!
//! All channels are bounded, so a stream needs the memory of a few blocks (1 MiB of text each) and
//! a few batches, whatever the size of the file. The file is not trusted: the counts of a header
//! are compared, never allocated, and any bytes give a table or an error that names the line.

mod cursor;
pub mod ngrams;
mod reader;
mod source;
mod svmlight;
mod table;
mod xmc;

pub use reader::{load, scan_svmlight, stream};
pub use source::{LineBlocks, ReadAhead, Source};
pub use svmlight::{Layout, Svmlight, SvmlightOptions};
pub use table::{Batch, Table};
pub use xmc::{save_xmc, Xmc};
