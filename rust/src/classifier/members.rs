//! The members of an ensemble: made, trained side by side, told apart by their seeds.

use rayon::prelude::*;

use super::{Member, Mistakes, OnlineLearner, Start};
use crate::error::Result;
use crate::threads::with_threads;

/// Members that have learned nothing.
pub(super) fn new_members<L: OnlineLearner>(
    params: &L::Params,
    start: &Start<'_>,
) -> Result<Vec<Member<L>>> {
    // Not copies of one: memory that is still zero costs nothing.
    (0..L::n_members(params))
        .map(|_| {
            Ok(Member {
                preparation: start.preparation.clone(),
                progress: Mistakes::default(),
                learner: L::new(params, start)?,
            })
        })
        .collect()
}

/// Runs `work` over the members; each is finished or stopped when this returns. A single
/// one has all threads to itself.
pub(super) fn each_member<L: OnlineLearner>(
    members: &mut [Member<L>],
    n_threads: usize,
    work: impl Fn(usize, &mut Member<L>, usize) -> Result<()> + Sync,
) -> Result<Vec<Result<()>>> {
    if let [member] = members {
        return Ok(vec![work(0, member, n_threads)]);
    }
    with_threads(n_threads.min(members.len()), |parallel| {
        if parallel {
            let members = members.par_iter_mut().enumerate();
            members
                .map(|(number, member)| work(number, member, 1))
                .collect()
        } else {
            let members = members.iter_mut().enumerate();
            members
                .map(|(number, member)| work(number, member, 1))
                .collect()
        }
    })
}

/// Members differ by their seeds; neighbouring seeds of the user's must not give neighbouring
/// ensembles the same members.
pub fn seed_of(seed: u64, number: usize) -> u64 {
    seed.wrapping_add((number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Leaves out members that were stopped before they had seen half as much as the one that has
/// seen most: they would only vote for the few labels they know.
pub(super) fn leave_out_stragglers<L>(members: &mut Vec<Member<L>>, finished: &[bool]) {
    let seen = |member: &Member<L>| member.progress.examples;
    let most = members.iter().map(seen).max().unwrap_or(0);
    let mut finished = finished.iter();
    members.retain(|member| *finished.next().unwrap_or(&true) || 2 * seen(member) >= most);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Preparation, Rows, Scaling, Values};

    /// Each is learned by a thread of its own.
    #[test]
    fn members_share_no_cache_line() {
        assert_eq!(align_of::<Member<u8>>(), 128);
        assert_eq!(size_of::<Member<u8>>() % 128, 0);
    }

    #[test]
    fn members_that_had_hardly_begun_are_left_out() {
        let rows = Rows::dense(Values::F32(&[0.0]), 1, 1).unwrap();
        let member = |examples| Member {
            preparation: Preparation::new(Scaling::None, None, &rows).unwrap(),
            progress: Mistakes {
                examples,
                ..Mistakes::default()
            },
            learner: (),
        };
        let mut members = [100, 20, 70, 20].map(member).to_vec();
        leave_out_stragglers(&mut members, &[false, false, false, true]);
        let seen: Vec<u64> = members
            .iter()
            .map(|member| member.progress.examples)
            .collect();
        assert_eq!(seen, [100, 70, 20]);
    }
}
