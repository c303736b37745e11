//! The learners, a folder each.

pub mod gamble;
pub mod label_tree;
pub mod ldsm;
pub mod lomtree;
pub mod oaa;
pub mod recall_tree;
