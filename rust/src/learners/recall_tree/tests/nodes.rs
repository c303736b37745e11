//! Nodes after every example, compared with a naive recount.

use super::super::labels::recall_bound;
use super::super::learner::RoutedExample;
use super::*;

/// The expected state of a node: the count of every label, in order.
#[derive(Debug, Clone, Default)]
struct Recount {
    list: Vec<(LocalId, f64)>,
    parent_recalled: f64,
}

impl Recount {
    fn top(&self, n: usize) -> &[(LocalId, f64)] {
        &self.list[..self.list.len().min(n)]
    }

    fn total(&self) -> f64 {
        self.list.iter().map(|&(_, count)| count).sum()
    }

    fn bound(&self, params: &Params) -> f32 {
        let most = params.candidates(N_CLASSES, uniform_bits(N_CLASSES));
        let mass = self.top(most).iter().map(|&(_, count)| count).sum();
        recall_bound(mass, self.total(), params.bern_hyper, params.recall_bound)
    }

    /// Moves a label whose count has grown behind those of equal counts.
    fn add(&mut self, label: LocalId, weight: f64) {
        let known = self.list.iter().position(|&(other, _)| other == label);
        let mut at = known.unwrap_or_else(|| {
            self.list.push((label, 0.0));
            self.list.len() - 1
        });
        self.list[at].1 += weight;
        while at > 0 && self.list[at - 1].1 < self.list[at].1 {
            self.list.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// The expected state of all nodes, derived from the totals that grow.
#[derive(Debug, Default)]
struct Watch {
    nodes: Vec<Recount>,
}

impl Watch {
    /// Halves the counts at the numbers of labels where the tree does. Called when a label is new.
    fn age(&mut self, n_labels: usize, params: &Params) {
        let most = params.candidates(N_CLASSES, uniform_bits(N_CLASSES));
        if !params.paper_tree && n_labels > most && [2, 3, 4, 6, 7, 8, 11].contains(&n_labels) {
            for node in &mut self.nodes {
                node.list.iter_mut().for_each(|(_, count)| *count /= 2.0);
                node.parent_recalled /= 2.0;
            }
        }
    }

    /// Updates the expected counts. Called after each example.
    fn follow(
        &mut self,
        tree: &RoutingTree,
        label: LocalId,
        weight: f64,
        params: &Params,
    ) -> Result<(), TestCaseError> {
        self.nodes.resize(tree.nodes.len(), Recount::default());
        let most = params.candidates(N_CLASSES, uniform_bits(N_CLASSES));
        let mut path = Vec::new();
        let mut counted = Vec::new();
        for at in 0..self.nodes.len() {
            let grown = tree.nodes[at].counts.total != self.nodes[at].total();
            if grown {
                tree.path_to(NodeId(at as u32), &mut path);
                counted.push(path.clone());
            }
        }
        // The nodes that counted the example form one path from the root, without gaps.
        counted.sort_by_key(Vec::len);
        for (depth, path) in counted.iter().enumerate() {
            prop_assert_eq!(path.len(), depth + 1);
            prop_assert!(depth == 0 || path.starts_with(&counted[depth - 1]));
        }
        prop_assert!(!counted.is_empty());
        self.check_descent(&counted[counted.len() - 1], tree, params)?;
        let mut known_above = false;
        for path in &counted {
            let recount = &mut self.nodes[path[path.len() - 1].at()];
            if known_above {
                recount.parent_recalled += weight;
            }
            known_above = recount.top(most).iter().any(|&(other, _)| other == label);
            recount.add(label, weight);
        }
        Ok(())
    }

    /// Checks that a path goes on as long as the stop rule allows, by the counts before it. It ends
    /// at the last level, at a node that no example has passed, or at a blocked child.
    fn check_descent(
        &self,
        path: &[NodeId],
        tree: &RoutingTree,
        params: &Params,
    ) -> Result<(), TestCaseError> {
        let stops = |pair: &[NodeId]| {
            let (parent, child) = (&self.nodes[pair[0].at()], &self.nodes[pair[1].at()]);
            let recall_of_parent = match (params.bern_hyper, params.paper_tree) {
                (0.0, is_paper) => return !is_paper && child.list.is_empty(),
                (_, false) => (child.parent_recalled / child.total()) as f32,
                (_, true) => parent.bound(params),
            };
            child.list.is_empty() || recall_of_parent >= child.bound(params)
        };
        let pairs: Vec<&[NodeId]> = path.windows(2).collect();
        let Some((last, earlier)) = pairs.split_last() else {
            prop_assert_eq!(tree.max_depth, 0);
            return Ok(());
        };
        prop_assert!(
            !earlier.iter().any(|pair| stops(pair)),
            "the path goes on after a stop"
        );
        let goes_on = tree.node(path[path.len() - 1]).has_children();
        prop_assert!(stops(last) || !goes_on, "the path ends before a stop");
        Ok(())
    }

    fn check(&self, tree: &RoutingTree, params: &Params) -> Result<(), TestCaseError> {
        let most = params.candidates(N_CLASSES, uniform_bits(N_CLASSES));
        let (mut path, mut routers) = (Vec::new(), BTreeSet::new());
        let mut children = 0;
        for (at, (node, recount)) in tree.nodes.iter().zip(&self.nodes).enumerate() {
            let (id, counts) = (NodeId(at as u32), &node.counts);
            let total = recount.total();
            prop_assert_eq!(counts.total, total);
            let all: f64 = counts.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(counts.total, all);
            prop_assert_eq!(counts.n_labels(), recount.list.len());
            for &(label, count) in &recount.list {
                prop_assert_eq!(counts.get(label), count);
            }
            let (labels, kept): (Vec<LocalId>, Vec<f64>) =
                recount.top(most).iter().copied().unzip();
            prop_assert_eq!(counts.candidates(), labels);
            prop_assert_eq!(&counts.top_counts, &kept);
            prop_assert_eq!(counts.mass, kept.iter().sum::<f64>());
            let plain = |&(_, c): &(LocalId, f64)| -c / total * (c / total).ln();
            let entropy: f64 = recount.list.iter().map(plain).sum();
            prop_assert!(
                (node.entropy - entropy).abs() < 1e-9,
                "{} {entropy}",
                node.entropy
            );
            let f = counts.mass / total;
            let h = params.bern_hyper;
            let worst = match params.recall_bound {
                RecallBound::Vw => 15.0 / 18f64.sqrt(),
                RecallBound::Paper => 1.0,
            };
            let bound = f - (h * f * (1.0 - f) / total).sqrt() - h * worst / total;
            let bound = if bound > 0.0 { bound } else { 0.0 };
            prop_assert!(
                (f64::from(node.bound) - bound).abs() < 1e-5,
                "{} {bound}",
                node.bound
            );
            prop_assert_eq!(node.parent_recalled, recount.parent_recalled);
            prop_assert!(node.parent_recalled <= total);

            tree.path_to(id, &mut path);
            prop_assert_eq!(path[0], RoutingTree::ROOT);
            prop_assert_eq!(path[path.len() - 1], id);
            let depth = path.len() - 1;
            prop_assert!(depth <= params.depth(uniform_bits(N_CLASSES)) as usize);
            if let Some(&parent) = path.len().checked_sub(2).map(|above| &path[above]) {
                let parent = tree.node(parent);
                prop_assert!(parent.has_children());
                prop_assert!(parent.children().contains(&id));
            }
            if node.has_children() {
                prop_assert!(depth < params.depth(uniform_bits(N_CLASSES)) as usize);
                // The stop rule lets no example pass a node without counts.
                prop_assert!(params.bern_hyper == 0.0 || total > 0.0);
                children += 2;
                let below = node.children().map(|child| tree.node(child).counts.total);
                let below: f64 = below.iter().sum();
                prop_assert!(total >= below);
                prop_assert!(node.trained > 0.0);
                let router = node.router();
                prop_assert!((router as usize) < tree.routers.len());
                prop_assert!(routers.insert(router), "router {router} has two nodes");
            } else {
                prop_assert_eq!(node.trained, 0.0);
            }
        }
        prop_assert_eq!(tree.nodes.len(), children + 1);
        prop_assert_eq!(routers.len(), tree.routers.len());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nodes_equal_a_recount_after_every_example(params in routings(), stream in streams(200)) {
        let (mut learner, mut progress) = (new_tree(&params, &stream), Mistakes::default());
        let mut watch = Watch::default();
        let batch = stream.batch();
        for i in batch.present() {
            let before = learner.1.label_index.len();
            learn(&mut learner, &mut progress, &batch, &[i]);
            let n_labels = learner.1.label_index.len();
            if n_labels > before {
                watch.age(n_labels, &params);
            }
            let (i, weight) = (i as usize, stream.weight(i as usize));
            let label = LocalId(learner.1.label_index.insert(stream.labels[i]));
            watch.follow(&learner.1.tree, label, weight, &params)?;
            watch.check(&learner.1.tree, &params)?;
        }
    }

    #[test]
    fn a_router_learns_from_all_examples_that_pass(stream in streams(200)) {
        let params = Params { paper_tree: true, ..params() };
        let mut learner = new_tree(&params, &stream);
        let batch = stream.batch();
        learn(&mut learner, &mut Mistakes::default(), &batch, &batch.present());
        let learner = learner.1;
        let root = learner.tree.node(RoutingTree::ROOT);
        prop_assert_eq!(root.trained, root.counts.total);
        // An example that stops at a node is counted at the blocked child, but does not train it.
        for node in &learner.tree.nodes {
            prop_assert!(node.trained <= node.counts.total);
        }
    }

    /// F candidates at most learn, each once, whatever the example has changed.
    #[test]
    fn at_most_f_candidates_learn(params in routings(), stream in streams(150)) {
        let (mut preparation, mut learner) = new_tree(&params, &stream);
        let most = params.candidates(N_CLASSES, uniform_bits(N_CLASSES));
        let mut example = RoutedExample::default();
        let batch = stream.batch();
        for i in batch.present() {
            let i = i as usize;
            example.x.read(&mut preparation, &batch.rows, i, false);
            example.y = LocalId(learner.label_index.insert(stream.labels[i]));
            example.weight = batch.weight(i);
            example.clock += 1;
            learner.tree.routers.prepare(&mut example.x, example.weight);
            learner.tree.learn(&mut example);
            for candidates in [&example.candidates, &example.updated_candidates] {
                prop_assert!(candidates.len() <= most);
                let distinct: BTreeSet<LocalId> = candidates.iter().copied().collect();
                prop_assert_eq!(distinct.len(), candidates.len());
            }
        }
    }
}
