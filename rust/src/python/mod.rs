//! The binding: converts arguments, leaves the interpreter while the core
//! works, maps errors. No algorithm lives here.

mod arrays;
mod errors;
mod model_io;
mod run;

use pyo3::prelude::*;

/// The compiled half of `xmtree`; private, wrapped by the Python package.
#[pymodule]
#[pyo3(name = "_core")]
mod core {
    #[pymodule_export]
    use super::errors::{ModelFileError, UnsortedIndicesError};
    #[pymodule_export]
    use super::model_io::{load_estimator, save_estimator};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
