//! Orders of passes: what is kept, and for whom.

use std::sync::{Arc, Mutex, OnceLock};

use super::{KEPT, Order, WeightedOrder, inherit, lock, long, short};

fn orders() -> WeightedOrder {
    WeightedOrder::new(5, 0, (1..=100).map(f64::from).collect())
}

fn kept(orders: &WeightedOrder) -> Vec<u64> {
    lock(orders.kept.get(inherit))
        .iter()
        .map(|&(pass, _)| pass)
        .collect()
}

#[test]
fn wide_rows_are_the_narrow_ones() {
    let orders = orders();
    let races = orders.races(3);
    let narrow = short(races.clone());
    let wide = long(races);
    assert!(matches!(
        (&narrow, &wide),
        (Order::Short(_), Order::Long(_))
    ));
    let (mut one, mut other, mut filled) = ([0; 60], [0; 60], [0; 60]);
    narrow.copy(40, &mut one);
    wide.copy(40, &mut other);
    orders.fill(340, &mut filled);
    assert_eq!(one, other);
    assert_eq!(one, filled);
    assert_eq!(narrow.place(one[7]), Some(47));
    assert_eq!(wide.place(one[7]), Some(47));
    assert_eq!(wide.place(100), None);
}

#[test]
fn two_passes_are_kept_the_last_used() {
    let orders = orders();
    let mut row = [0];
    orders.prepare(0);
    orders.prepare(1);
    assert_eq!(kept(&orders), [1, 0]);
    let first = orders.slot(0);
    orders.fill(5, &mut row);
    assert_eq!(kept(&orders), [0, 1]);
    orders.prepare(7);
    assert_eq!(kept(&orders), [7, 0]);
    assert_eq!(kept(&orders).len(), KEPT);
    // Still the same order, not one made again.
    assert!(Arc::ptr_eq(&first, &orders.slot(0)));
}

#[test]
fn nothing_is_made_before_it_is_needed() {
    let orders = orders();
    assert!(kept(&orders).is_empty());
    let slot = orders.slot(2);
    assert!(slot.get().is_none());
    orders.prepare(2);
    assert!(slot.get().is_some());
}

#[test]
fn a_child_takes_over_what_is_complete() {
    let orders = orders();
    orders.prepare(0);
    let unfinished = (9, Arc::new(OnceLock::new()));
    let parent = orders.kept.get(inherit);
    lock(parent).push(unfinished);
    let child = inherit(parent);
    assert_eq!(
        lock(&child)
            .iter()
            .map(|&(pass, _)| pass)
            .collect::<Vec<_>>(),
        [0]
    );
    // Another thread of the parent was at it.
    let held = lock(parent);
    let child: Mutex<_> = inherit(parent);
    assert!(lock(&child).is_empty());
    drop(held);
}
