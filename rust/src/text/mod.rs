//! Text files of sparse examples: svmlight and the format of the Extreme
//! Classification Repository (XMC), plain or compressed.
//!
//! ```text
//! file or stdin -> [thread: decompress, cut at line ends] -> blocks
//!     -> parse into a Table -> whole file   (load_svmlight, load_xmc)
//!     -> [thread: parse]  -> batches        (Stream)
//!     -> formats that Python parses         (LineBlocks)
//! ```
//!
//! All channels are bounded, so a stream needs the memory of a few blocks
//! (1 MiB of text each) and a few batches, whatever the file's size. Nothing
//! here trusts the file: a header's counts are compared, never allocated, and
//! whatever bytes come, the outcome is a table or an error that names the line.

mod cursor;
mod reader;
mod source;
mod svmlight;
mod table;
mod xmc;

pub use reader::{load_svmlight, load_xmc, scan_svmlight, Stream};
pub use source::{LineBlocks, ReadAhead, Source};
pub use svmlight::{Layout, SvmlightOptions};
pub use table::{Batch, Table};
pub use xmc::save_xmc;
