//! Stories of one key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::config::units::Rate;
use crate::config::{Key, KeyLimits};
use crate::keys::Digest;

fn per_minute(count: u64) -> Option<Rate> {
    Some(Rate { count, per: Duration::from_secs(60) })
}

fn account(limits: KeyLimits) -> Arc<Account> {
    let account = Account::new("team-a".into());
    account.limit_to(limits, Instant::now());
    account
}

#[test]
fn a_key_without_limits_is_let_in_and_told_nothing() {
    let (account, now) = (account(KeyLimits::default()), Instant::now());
    let mut permits: Vec<_> = (0..1_000).map(|_| account.enter(now).unwrap()).collect();
    for permit in &mut permits {
        permit.take(Metered::Requests, 1, now).unwrap();
        permit.take(Metered::Tokens, u64::MAX, now).unwrap();
        permit.note_early_cancel(now);
        assert_eq!(permit.settle(7, now), None);
    }
    assert_eq!((account.running(), account.standing(now)), (1_000, Standing::default()));
}

#[test]
fn a_place_is_free_again_when_its_permit_is_gone() {
    let (account, now) = (account(KeyLimits { concurrent: Some(2), ..KeyLimits::default() }), Instant::now());
    let (one, _two) = (account.enter(now).unwrap(), account.enter(now).unwrap());
    let denial = account.enter(now).unwrap_err();
    assert_eq!((denial.limit, denial.retry_after()), (Limit::Concurrent, 1));
    drop(one);
    let mut three = account.enter(now).unwrap();
    three.leave();
    assert_eq!(account.running(), 1);
    assert!(account.enter(now).is_ok());
}

#[test]
fn a_connection_counts_as_long_as_it_lives() {
    let limits = KeyLimits { connections: Some(1), ..KeyLimits::default() };
    let (account, now) = (account(limits), Instant::now());
    let first = account.connect(now).unwrap();
    assert!(first.is_of(&account));
    assert_eq!(account.connect(now).unwrap_err().limit, Limit::Connections);
    drop(first);
    assert!(account.connect(now).is_ok());
}

#[test]
fn who_gives_up_early_too_often_waits_until_there_is_another_to_give_up() {
    let limits = KeyLimits { early_cancels: per_minute(2), ..KeyLimits::default() };
    let (account, now) = (account(limits), Instant::now());
    let many: Vec<_> = (0..3).map(|_| account.enter(now).unwrap()).collect();
    many.iter().for_each(|permit| permit.note_early_cancel(now));
    let denial = account.enter(now).unwrap_err();
    assert_eq!((denial.limit, denial.wait), (Limit::EarlyCancels, Duration::from_secs(60)));
    // One beyond the budget, as it was let in before, and that one is owed.
    assert!(account.enter(now + Duration::from_secs(59)).is_err());
    let later = now + Duration::from_secs(60);
    assert!(account.enter(later).is_ok() && account.enter(later).is_ok(), "to be let in costs none");
}

#[test]
fn an_estimate_is_taken_first_and_settled_in_the_end() {
    let limits = KeyLimits { tokens: per_minute(600), ..KeyLimits::default() };
    let (account, now) = (account(limits), Instant::now());
    let remaining = || account.standing(now).tokens.unwrap().remaining;
    let mut permit = account.enter(now).unwrap();
    permit.take(Metered::Tokens, 500, now).unwrap();
    assert_eq!((permit.reserved(), remaining()), (500, 100));
    let denial = account.enter(now).unwrap().take(Metered::Tokens, 200, now).unwrap_err();
    assert_eq!((denial.limit, denial.retry_after()), (Limit::Tokens, 10));
    let rate = per_minute(600).unwrap();
    assert_eq!((permit.settle(30, now), remaining()), (Some((rate, 30)), 570), "nobody else knew of the 500");
    assert_eq!(permit.settle(30, now), None, "it is settled");

    let mut other = account.enter(now).unwrap();
    other.take(Metered::Tokens, 10, now).unwrap();
    assert_eq!((other.settle(1_160, now), remaining()), (Some((rate, 1_160)), 0));
    let denial = account.enter(now).unwrap().take(Metered::Tokens, 1, now).unwrap_err();
    assert_eq!(denial.wait, Duration::from_millis(59_100), "590 are owed, and one is wanted");
}

#[test]
fn what_is_never_settled_stays_taken() {
    let limits = KeyLimits { tokens: per_minute(600), ..KeyLimits::default() };
    let (account, now) = (account(limits), Instant::now());
    account.enter(now).unwrap().take(Metered::Tokens, 500, now).unwrap();
    assert_eq!(account.standing(now).tokens.unwrap().remaining, 100);
}

#[test]
fn an_account_lives_on_under_its_name_and_its_limits_are_those_in_force() {
    let now = Instant::now();
    let key = |name: &str, requests| {
        let limits = KeyLimits { requests, ..KeyLimits::default() };
        Arc::new(Key { name: name.into(), digest: Digest::of(name.as_bytes()), models: None, limits })
    };
    let first = Accounts::next(&[key("a", per_minute(60)), key("b", per_minute(60)), key("c", None)], None);
    first.come_into_force(now);
    let held = first.of("a").unwrap();
    assert!(first.of("c").is_none(), "nothing is kept of a key without limits");
    (0..50).for_each(|_| held.enter(now).unwrap().take(Metered::Requests, 1, now).unwrap());

    let second = Accounts::next(&[key("a", per_minute(600))], Some(&first));
    let same = second.of("a").unwrap();
    assert_eq!(same.standing(now).requests.unwrap().limit, 60, "not yet in force");
    second.come_into_force(now);
    let remaining = |now| same.standing(now).requests.unwrap().remaining;
    assert_eq!(remaining(now), 10, "a reload gives nothing back");
    assert_eq!(remaining(now + Duration::from_secs(1)), 20, "and the new rate fills it");
    assert!(second.of("b").is_none());
    let third = Accounts::next(&[key("b", per_minute(60))], Some(&second));
    assert!(third.of("b").is_some() && third.of("a").is_none());
}

/// The new rate fills from the moment of the reload, and not from that of the next request.
#[test]
fn a_limit_that_is_changed_while_it_is_used_up_fills_anew_at_once() {
    let (now, minute) = (Instant::now(), Duration::from_secs(60));
    for (before, after, earned) in [(6, 600, 300), (600, 60, 30)] {
        let account = Account::new("team-a".into());
        account.limit_to(KeyLimits { requests: per_minute(before), ..KeyLimits::default() }, now);
        account.enter(now).unwrap().take(Metered::Requests, before, now).unwrap();
        account.limit_to(KeyLimits { requests: per_minute(after), ..KeyLimits::default() }, now);
        // Nobody asks for half a minute.
        assert_eq!(
            account.standing(now + minute / 2).requests.unwrap().remaining,
            earned,
            "{before} to {after}"
        );
    }
}

#[test]
fn what_a_shared_bucket_says_is_believed_and_remembered() {
    let limits = KeyLimits { requests: per_minute(60), ..KeyLimits::default() };
    let (account, now) = (account(limits), Instant::now());
    let mut permit = account.enter(now).unwrap();
    let wanted = permit.wanted(Metered::Requests, 1, now).unwrap();
    assert_eq!((wanted.amount, wanted.left), (1, 60_000));
    let said =
        |is_granted, left, sequence| Shared { is_granted, left, wait: Duration::from_secs(3), sequence };
    permit.follow(Metered::Requests, wanted, said(true, 2_000, 1), now).unwrap();
    assert_eq!(account.standing(now).requests.unwrap().remaining, 2);
    let denial = permit.follow(Metered::Requests, wanted, said(false, 500, 2), now).unwrap_err();
    assert_eq!((denial.limit, denial.wait), (Limit::Requests, Duration::from_secs(3)));
    assert!(permit.take(Metered::Requests, 1, now).is_err(), "also when it cannot be asked");
    assert!(permit.wanted(Metered::Tokens, 1, now).is_none());
}

#[test]
fn a_shared_bucket_is_told_what_it_does_not_know() {
    let limits = KeyLimits { tokens: per_minute(600), ..KeyLimits::default() };
    let (account, now) = (account(limits), Instant::now());
    let mut permit = account.enter(now).unwrap();
    let wanted = permit.wanted(Metered::Tokens, 1_000, now).unwrap();
    assert_eq!(wanted.amount, 600);
    let said = Shared { is_granted: true, left: 0, wait: Duration::ZERO, sequence: 1 };
    permit.follow(Metered::Tokens, wanted, said, now).unwrap();
    assert_eq!(permit.settle(50, now), Some((per_minute(600).unwrap(), -550)));
    assert_eq!(account.standing(now).tokens.unwrap().remaining, 550);
}
