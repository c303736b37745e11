//! What there is to know of a tree.

use super::Tree;

/// One value per node, in breadth-first order from the root, so that every
/// parent stands before its children.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The node above, -1 at the root.
    pub parent: Vec<i32>,
    /// Left and right child, -1 at a leaf; two per node.
    pub children: Vec<i32>,
    /// Steps from the root.
    pub depth: Vec<u32>,
    /// Examples of the labels below, weighted.
    pub n_examples: Vec<f64>,
    /// Number of labels below, seen or not.
    pub n_labels: Vec<u32>,
    /// The label of a leaf; -1 at an internal node.
    pub label: Vec<i32>,
    /// Entropy of the labels below, in nats.
    pub label_entropy: Vec<f64>,
    /// Examples that the router learned from, weighted; 0 at a leaf.
    pub n_trained: Vec<f64>,
    /// Those of them that it sent towards their label, once it had learned them.
    pub n_won: Vec<f64>,
}

impl Tree {
    /// Collects what there is to know: O(K).
    pub fn report(&self) -> Report {
        let mut report = Report::default();
        // Place of each router among the nodes, and the next two children's.
        let mut place = Vec::with_capacity(self.records.len());
        let mut next = 1;
        for (at, node) in self.layout.nodes().enumerate() {
            let parent = node
                .up
                .step()
                .map_or(-1, |(router, _)| place[router as usize]);
            report.parent.push(parent);
            report.depth.push(node.depth);
            report.n_labels.push(node.places.len() as u32);
            report.n_examples.push(0.0);
            report.label_entropy.push(0.0);
            if node.places.len() == 1 {
                let label = self.layout.order()[node.places.start];
                report.children.extend([-1, -1]);
                report.label.push(label as i32);
                report.n_trained.push(0.0);
                report.n_won.push(0.0);
                report.n_examples[at] = self.examples[label as usize];
            } else {
                let record = self.records[place.len()];
                report.children.extend([next, next + 1]);
                report.label.push(-1);
                report.n_trained.push(record.trained);
                report.n_won.push(record.won);
                place.push(at as i32);
                next += 2;
            }
        }
        report.add_up();
        report
    }
}

impl Report {
    /// Examples and entropies of internal nodes, from their children's.
    fn add_up(&mut self) {
        for at in (0..self.parent.len()).rev() {
            let (left, right) = (self.children[2 * at], self.children[2 * at + 1]);
            if left < 0 {
                continue;
            }
            let sides = [left as usize, right as usize];
            let all: f64 = sides.iter().map(|&side| self.n_examples[side]).sum();
            self.n_examples[at] = all;
            // The entropy of the side, and what is left of the labels' once it is known.
            for side in sides {
                let share = self.n_examples[side] / all;
                if share > 0.0 {
                    self.label_entropy[at] += share * (self.label_entropy[side] - share.ln());
                }
            }
        }
    }
}
