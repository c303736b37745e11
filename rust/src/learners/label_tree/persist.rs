//! A tree as named arrays, with everything needed to go on learning.

use super::learner::Record;
use super::{LabelTree, Layout, Params, Tree};
use crate::classifier::checks::is_possible;
use crate::data::Preparation;
use crate::error::Result;
use crate::file::{Bundle, Persist};
use crate::linear::Regressors;

impl Persist for LabelTree {
    const KIND: &'static str = "label_tree";

    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(Self::KIND);
        bundle.put_meta("params", &self.params);
        bundle.put_meta("n_classes", &self.n_classes);
        bundle.put_meta("n_features", &self.n_features);
        bundle.put_meta("has_tree", &self.tree.is_some());
        if let Some(tree) = &self.tree {
            bundle.nest("tree", tree.to_bundle());
        }
        bundle
    }

    fn from_bundle(mut bundle: Bundle) -> Result<Self> {
        let params: Params = bundle.take_meta("params")?;
        let params = params.check().map_err(|error| bundle.damaged(error))?;
        let n_classes: usize = bundle.take_meta("n_classes")?;
        let n_features: usize = bundle.take_meta("n_features")?;
        if !is_possible(n_classes) {
            return Err(bundle.damaged(format_args!("{n_classes} classes")));
        }
        let mut tree = None;
        if bundle.take_meta("has_tree")? {
            let inner = bundle.unnest("tree")?;
            inner.expect_kind(TREE)?;
            tree = Some(Tree::from_bundle(inner, &params, n_classes)?);
        }
        Ok(Self::from_parts(params, n_classes, n_features, tree))
    }
}

/// Kind of the tree inside.
const TREE: &str = "label_tree.tree";

impl Tree {
    fn to_bundle(&self) -> Bundle {
        let mut bundle = Bundle::new(TREE);
        bundle.put_meta("preparation", &self.preparation);
        bundle.put_meta("streaming", &self.streaming);
        bundle.put_meta("progress", &self.progress);
        bundle.nest("regressors", self.regressors.to_bundle());
        bundle.put("order", self.layout.order());
        bundle.put("examples", self.examples.clone());
        let records = |of: fn(&Record) -> f64| self.records.iter().map(of).collect::<Vec<f64>>();
        bundle.put("trained", records(|record| record.trained));
        bundle.put("won", records(|record| record.won));
        bundle
    }

    fn from_bundle(mut bundle: Bundle, params: &Params, n_classes: usize) -> Result<Self> {
        let preparation: Preparation = bundle.take_meta("preparation")?;
        if !preparation.is_sound() {
            return Err(bundle.damaged("the preparation of examples is inconsistent"));
        }
        let order: Vec<u32> = bundle.take_exactly("order", n_classes)?;
        let mut stands = vec![false; n_classes];
        for &label in &order {
            match stands.get_mut(label as usize) {
                Some(stands) if !*stands => *stands = true,
                _ => return Err(bundle.damaged("a label is out of range or stands twice")),
            }
        }
        let regressors = Regressors::unpack(bundle.unnest("regressors")?)?;
        let examples: Vec<f64> = bundle.take_exactly("examples", n_classes)?;
        let trained: Vec<f64> = bundle.take_exactly("trained", n_classes - 1)?;
        let won: Vec<f64> = bundle.take_exactly("won", n_classes - 1)?;
        let is_count = |n: &f64| n.is_finite() && *n >= 0.0;
        if ![&examples, &trained, &won]
            .into_iter()
            .flatten()
            .all(is_count)
        {
            return Err(bundle.damaged("a number of examples is negative or not finite"));
        }
        let mut tree = Tree::new(params, preparation, Layout::new(order));
        if !regressors.same_kind(&tree.regressors) || regressors.len() != tree.regressors.len() {
            return Err(bundle.damaged("the regressors do not fit the parameters"));
        }
        tree.streaming = bundle.take_meta("streaming")?;
        tree.progress = bundle.take_meta("progress")?;
        tree.regressors = regressors;
        tree.examples = examples;
        let records = trained.into_iter().zip(won);
        tree.records = records
            .map(|(trained, won)| Record { trained, won })
            .collect();
        Ok(tree)
    }
}
