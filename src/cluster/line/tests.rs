//! Turns against a naive picture of the same queue: slots with owners, and a list of who waits.

use super::*;

fn kind(lane: u64) -> Kind {
    Kind { lane, generation: 1, picky: false }
}

/// A line with waiters, none of whom has found anything.
fn waiting(kinds: &[Kind]) -> (Line<u32>, Vec<Ticket>) {
    let mut line = Line::default();
    let mut tickets = Vec::new();
    for (n, kind) in (0..).zip(kinds) {
        let ticket = line.join(*kind, usize::MAX).unwrap();
        tickets.push(ticket);
        let mut looking = Some(n);
        while let Some(n) = looking {
            let ticket = tickets[n as usize];
            if !line.has_turn(ticket, || n) {
                break;
            }
            let Refused::Wait(next) = line.refused(ticket) else { panic!("nothing was freed") };
            assert!(!line.has_turn(ticket, || n));
            looking = next;
        }
    }
    (line, tickets)
}

#[test]
fn the_first_in_a_lane_is_the_first_served() {
    let (mut line, tickets) = waiting(&[kind(0); 3]);
    for n in 0..3 {
        assert_eq!(line.slot_freed(), Some(n));
        assert!(line.has_turn(tickets[n as usize], || n));
        assert_eq!(line.took(tickets[n as usize]), None);
    }
    assert_eq!(line.len(), 0);
}

#[test]
fn lanes_are_served_in_rotation() {
    let (mut line, _) = waiting(&[kind(7), kind(7), kind(7), kind(8), kind(8), kind(9)]);
    let served: Vec<_> = (0..6).map(|_| line.slot_freed()).collect();
    assert_eq!(served, [0, 3, 5, 1, 4, 2].map(Some));
}

#[test]
fn no_more_wait_than_may() {
    let mut line = Line::<u32>::default();
    let first = line.join(kind(0), 1).unwrap();
    assert_eq!(line.join(kind(0), 1), None);
    line.left(first);
    assert!(line.join(kind(0), 1).is_some());
    assert_eq!(Line::<u32>::default().join(kind(0), 0), None);
}

#[test]
fn a_lane_leaves_room_for_others() {
    let mut line = Line::<u32>::default();
    let mut join =
        |lane: u64, times: usize| (0..times).filter(|_| line.join(kind(lane), 12).is_some()).count();
    assert_eq!((join(7, 100), join(8, 100), join(9, 100)), (6, 3, 2));
    assert_eq!((join(7, 1), join(10, 100), join(11, 1)), (0, 1, 0), "the line is full in the end");
    let mut line = Line::<u32>::default();
    assert_eq!((0..100).filter(|_| line.join(kind(EVERYBODY), 12).is_some()).count(), 12);
    let mut small = Line::<u32>::default();
    assert!(small.join(kind(7), 1).is_some(), "one place is for whoever comes first");
}

#[test]
fn who_leaves_with_the_turn_passes_it_on() {
    let (mut line, tickets) = waiting(&[kind(0), kind(0)]);
    assert_eq!(line.slot_freed(), Some(0));
    assert_eq!(line.left(tickets[0]), Some(1));
    assert_eq!(line.left(tickets[1]), None);
}

#[test]
fn who_leaves_without_it_changes_nothing() {
    let (mut line, tickets) = waiting(&[kind(0), kind(0), kind(0)]);
    assert_eq!(line.left(tickets[1]), None);
    assert_eq!((line.slot_freed(), line.slot_freed()), (Some(0), Some(2)));
}

#[test]
fn what_is_freed_while_all_have_turns_is_for_who_comes_next() {
    let (mut line, tickets) = waiting(&[kind(0)]);
    assert_eq!((line.slot_freed(), line.slot_freed()), (Some(0), None));
    let late = line.join(kind(0), usize::MAX).unwrap();
    assert!(!line.has_turn(late, || 9), "the first one is still looking");
    assert_eq!(line.took(tickets[0]), Some(9));
}

#[test]
fn what_is_freed_during_a_look_is_looked_for_again() {
    let mut line = Line::<u32>::default();
    let ticket = line.join(kind(0), usize::MAX).unwrap();
    assert!(line.has_turn(ticket, || 0));
    assert_eq!(line.slot_freed(), None);
    assert_eq!(line.refused(ticket), Refused::Again);
    assert_eq!(line.refused(ticket), Refused::Wait(None));
}

#[test]
fn who_finds_nothing_for_itself_passes_the_turn_to_those_who_might() {
    let picky = Kind { picky: true, ..kind(0) };
    let (mut line, tickets) = waiting(&[picky, picky, kind(0)]);
    assert_eq!(line.slot_freed(), Some(0));
    assert!(line.has_turn(tickets[0], || 0));
    assert_eq!(line.refused(tickets[0]), Refused::Wait(Some(1)));
    assert!(line.has_turn(tickets[1], || 1));
    assert_eq!(line.refused(tickets[1]), Refused::Wait(Some(2)));
    assert!(line.has_turn(tickets[2], || 2));
    assert_eq!(line.took(tickets[2]), None);
}

#[test]
fn an_older_configuration_does_not_hold_up_a_newer_one() {
    let newer = Kind { generation: 2, ..kind(0) };
    let (mut line, tickets) = waiting(&[kind(0), kind(0), newer]);
    assert_eq!(line.slot_freed(), Some(0));
    assert!(line.has_turn(tickets[0], || 0));
    assert_eq!(line.refused(tickets[0]), Refused::Wait(Some(2)), "the second sees what the first sees");
}

#[test]
fn who_comes_while_another_looks_has_a_look_as_well() {
    let newer = Kind { generation: 2, ..kind(0) };
    let (mut line, tickets) = waiting(&[kind(0)]);
    assert_eq!(line.slot_freed(), Some(0));
    let late: Vec<_> = (8..10).map(|n| (line.join(newer, usize::MAX).unwrap(), n)).collect();
    assert!(late.iter().all(|(ticket, n)| !line.has_turn(*ticket, || *n)));
    assert_eq!(line.took(tickets[0]), Some(8));
    assert!(line.has_turn(late[0].0, || 8));
    assert_eq!(line.took(late[0].0), Some(9));
}

#[test]
fn a_nudge_lets_one_after_the_other_look_until_one_finds_nothing() {
    let (mut line, tickets) = waiting(&[kind(0); 4]);
    assert_eq!(line.nudge(), Some(0));
    assert!(line.has_turn(tickets[0], || 0));
    assert_eq!(line.took(tickets[0]), Some(1));
    assert!(line.has_turn(tickets[1], || 1));
    assert_eq!(line.refused(tickets[1]), Refused::Wait(None));
    assert!(!line.has_turn(tickets[1], || 1) && !line.has_turn(tickets[2], || 2));
    assert_eq!(line.slot_freed(), Some(1), "and keeps its place");
    assert_eq!(Line::<u32>::default().nudge(), None);
}

#[test]
fn nobody_who_comes_overtakes_but_past_those_who_want_something_else() {
    let (line, _) = waiting(&[kind(0)]);
    assert!(line.is_crowded(1));
    assert!(!line.is_crowded(2), "another configuration may have other backends");
    let (mut line, _) = waiting(&[Kind { picky: true, ..kind(0) }]);
    assert!(!line.is_crowded(1));
    line.slot_freed();
    assert!(line.is_crowded(1), "one is looking");
}
