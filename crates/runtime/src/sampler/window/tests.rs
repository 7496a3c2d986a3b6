//! Shares of a window: every position once, equal steps, order kept under any number of ranks and workers.

use super::{LoaderPart, POSITIONS, RankPart, RankPolicy, Step, WindowError, window_end};
use crate::error::Error;

fn parts(window: (u64, u64), delivered: u64, ranks: u64, policy: RankPolicy) -> Vec<RankPart> {
    (0..ranks)
        .map(|rank| RankPart::new(window, delivered, rank, ranks, policy).unwrap())
        .collect()
}

/// Steps of all ranks in the order of time: step 0 of each rank, step 1 of each, ...
fn in_time(parts: &[RankPart]) -> Vec<Step> {
    (0..parts[0].steps())
        .flat_map(|t| parts.iter().map(move |part| part.step(t).unwrap()))
        .collect()
}

#[test]
fn a_window_ends_within_the_stream() {
    assert_eq!(window_end(0, 0), Ok(0));
    assert_eq!(window_end(5, 7), Ok(12));
    assert_eq!(window_end(POSITIONS - 1, 1), Ok(POSITIONS));
    assert_eq!(window_end(0, POSITIONS), Ok(POSITIONS));
    let past = [
        (POSITIONS - 1, 2),
        (POSITIONS, 1),
        (u64::MAX, 1),
        (u64::MAX, u64::MAX),
    ];
    for (start, len) in past {
        assert_eq!(
            window_end(start, len),
            Err(WindowError::PastEnd { start, len })
        );
    }
    let error = Error::from(WindowError::PastEnd {
        start: 7,
        len: u64::MAX,
    });
    assert!(
        matches!(
            error,
            Error::Argument {
                argument: "epoch_len",
                ..
            }
        ),
        "{error:?}"
    );
}

#[test]
fn ranks_cover_what_is_left_in_order() {
    for len in 1..40 {
        for ranks in 1..=len.min(9) {
            for delivered in 0..=len {
                let left = len - delivered;
                let fresh: Vec<u64> = (1000 + delivered..1000 + len).collect();

                let padded = parts((1000, len), delivered, ranks, RankPolicy::Pad);
                assert!(
                    padded
                        .iter()
                        .all(|part| part.steps() == left.div_ceil(ranks))
                );
                let steps = in_time(&padded);
                let (own, padding) = steps.split_at(fresh.len());
                assert!(own.iter().all(|step| !step.padding));
                assert_eq!(
                    own.iter().map(|step| step.position).collect::<Vec<_>>(),
                    fresh
                );
                for (i, step) in padding.iter().enumerate() {
                    assert_eq!(
                        *step,
                        Step {
                            position: 1000 + i as u64,
                            padding: true
                        }
                    );
                }
                assert_eq!(padded[0].delivered_after(u64::MAX), len);
                assert_eq!(padded[0].dropped(), 0);

                let cut = parts((1000, len), delivered, ranks, RankPolicy::Drop);
                let steps: Vec<u64> = in_time(&cut).iter().map(|step| step.position).collect();
                assert_eq!(steps, fresh[..steps.len()]);
                assert_eq!(steps.len() as u64, left / ranks * ranks);
                assert_eq!(cut[0].dropped(), left % ranks);

                let even = RankPart::new((1000, len), delivered, 0, ranks, RankPolicy::Error);
                match even {
                    Ok(part) => assert_eq!((part.steps() * ranks, part.dropped()), (left, 0)),
                    Err(error) => {
                        assert_eq!(error, WindowError::Uneven { left, ranks });
                        assert_ne!(left % ranks, 0);
                    }
                }
            }
        }
    }
}

/// Delivered by 4 ranks, then 2, then 3: nothing twice, nothing left out.
#[test]
fn the_number_of_ranks_may_change() {
    let window = (50, 101);
    let mut delivered = 0;
    let mut seen: Vec<Step> = Vec::new();
    for (ranks, steps) in [(4, 5), (2, 11), (3, u64::MAX)] {
        let parts = parts(window, delivered, ranks, RankPolicy::Pad);
        let all = in_time(&parts);
        let taken = steps.min(parts[0].steps()) * ranks;
        seen.extend(
            all.iter()
                .take(usize::try_from(taken).unwrap())
                .filter(|step| !step.padding),
        );
        delivered = parts[0].delivered_after(steps);
    }
    assert_eq!(delivered, 101);
    let positions: Vec<u64> = seen.iter().map(|step| step.position).collect();
    assert_eq!(positions, (50..151).collect::<Vec<_>>());
}

#[test]
fn at_the_end_of_the_stream() {
    let part = RankPart::new((0, POSITIONS), POSITIONS - 1, 2, 3, RankPolicy::Pad).unwrap();
    assert_eq!(
        part.step(0),
        Some(Step {
            position: 1,
            padding: true
        })
    );
    assert_eq!(part.step(1), None);
    let ranks = POSITIONS;
    let part = RankPart::new((0, POSITIONS), 1, ranks - 1, ranks, RankPolicy::Pad).unwrap();
    assert_eq!(
        part.step(0),
        Some(Step {
            position: 0,
            padding: true
        })
    );
}

#[test]
fn wrong_shares_are_refused() {
    let new = |window, delivered, rank, ranks| {
        RankPart::new(window, delivered, rank, ranks, RankPolicy::Pad).unwrap_err()
    };
    assert_eq!(
        new((0, 9), 0, 0, 0),
        WindowError::Rank { rank: 0, ranks: 0 }
    );
    assert_eq!(
        new((0, 9), 0, 3, 3),
        WindowError::Rank { rank: 3, ranks: 3 }
    );
    assert_eq!(
        new((0, 9), 10, 0, 3),
        WindowError::Delivered {
            delivered: 10,
            len: 9
        }
    );
    let end = WindowError::PastEnd {
        start: POSITIONS,
        len: 9,
    };
    assert_eq!(new((POSITIONS, 9), 0, 0, 3), end);
    for rank in 0..3 {
        assert_eq!(
            new((0, 2), 0, rank, 3),
            WindowError::TooShort { len: 2, ranks: 3 }
        );
    }
    assert_eq!(
        LoaderPart::new(2, 2, 1),
        Err(WindowError::Worker {
            worker: 2,
            workers: 2
        })
    );
    assert_eq!(
        LoaderPart::new(0, 0, 1),
        Err(WindowError::Worker {
            worker: 0,
            workers: 0
        })
    );
    assert_eq!(LoaderPart::new(0, 2, 0), Err(WindowError::EmptyBatch));
}

/// A loader asks its workers for a batch each, in turn: merged so, the steps come in the rank's order.
#[test]
fn workers_merge_to_the_order_of_the_rank() {
    for steps in 0..50 {
        for workers in 1..6 {
            for batch in 1..8 {
                let parts: Vec<LoaderPart> = (0..workers)
                    .map(|worker| LoaderPart::new(worker, workers, batch).unwrap())
                    .collect();
                let mut queues: Vec<Vec<u64>> = parts
                    .iter()
                    .map(|part| {
                        (0..part.count(steps))
                            .map(|n| part.step(n).unwrap())
                            .collect()
                    })
                    .collect();
                for (part, queue) in parts.iter().zip(&queues) {
                    let taken: Vec<u64> = (0..steps).filter(|&step| part.takes(step)).collect();
                    assert_eq!(*queue, taken);
                }
                let mut merged = Vec::new();
                while merged.len() as u64 != steps {
                    for queue in &mut queues {
                        let size = queue.len().min(usize::try_from(batch).unwrap());
                        merged.extend(queue.drain(..size));
                    }
                }
                assert_eq!(merged, (0..steps).collect::<Vec<_>>());
            }
        }
    }
    assert_eq!(LoaderPart::new(1, 2, 3).unwrap().step(u64::MAX), None);
}

#[test]
fn policies_by_name() {
    for policy in [RankPolicy::Pad, RankPolicy::Drop, RankPolicy::Error] {
        assert_eq!(RankPolicy::from_name(policy.name()), Some(policy));
    }
    assert_eq!(RankPolicy::from_name("Pad"), None);
}
