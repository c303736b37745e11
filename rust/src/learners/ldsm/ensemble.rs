//! What the model consists of.

use super::centroids::Centroids;
use super::one_against_some::OneAgainstSome;
use super::params::Params;
use super::predictor::SingleRows;
use super::tree::Tree;
use crate::data::Preparation;

/// LdSM.
#[derive(Debug, Clone)]
pub struct Ldsm {
    pub(super) params: Params,
    pub(super) n_classes: usize,
    /// Made from the rows of the first fit.
    pub(super) preparation: Option<Preparation>,
    pub(super) trees: Vec<Tree>,
    /// For the re-ranking, if there is to be any.
    pub(super) centroids: Option<Centroids>,
    /// One scorer for each label, if there are to be any.
    pub(super) scorers: Option<OneAgainstSome>,
    /// Made anew where the rest changes.
    pub(super) single_rows: SingleRows,
}
