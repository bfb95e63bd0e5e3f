//! The choices among backends, each against a naive twin.

use proptest::collection::vec;
use proptest::prelude::*;
use streamgate::cluster::pick::{
    Candidate, LATENCY_SWAY, Score, least_load, mix, next_turn, random, rendezvous, take_turn,
};

/// Weights of up to 12 candidates, in thousandths.
fn weights() -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![Just(1_000), 1..5_000u64, 1..8u64], 0..12)
}

fn candidates(weights: &[u64]) -> Vec<Candidate> {
    // Places in the cluster have gaps where backends are not usable.
    weights
        .iter()
        .enumerate()
        .map(|(place, weight)| Candidate { at: 3 * place + 1, weight: *weight })
        .collect()
}

/// Each weight as so many tickets in a hat.
fn tickets(weights: &[u64], skip: Option<usize>) -> Vec<usize> {
    let places = weights.iter().enumerate().filter(|(place, _)| Some(*place) != skip);
    places.flat_map(|(place, weight)| vec![place; usize::try_from(*weight).expect("small")]).collect()
}

fn drawn(tickets: &[usize], draw: u64) -> Option<usize> {
    let number = (draw as f64 / (u64::MAX as f64 + 1.0) * tickets.len() as f64) as usize;
    tickets.get(number).copied()
}

/// Away from the edges of a ticket, where the twin's doubles and whole numbers may differ.
fn draw() -> impl Strategy<Value = u64> {
    any::<u64>().prop_map(|draw| draw & !0xffff_ffff | 0x8000_0000)
}

fn score() -> impl Strategy<Value = Score> {
    let latency = prop_oneof![Just(0), 1..10_000_000u64];
    (1..1_000_000u64, 1..5_000u64, latency, 0..=1_000u64, any::<bool>())
        .prop_map(|(load, weight, latency, trust, troubled)| Score { load, weight, latency, trust, troubled })
}

/// How long the first one's work takes against the second one's, beside it.
fn naive_wait(score: &Score, other: &Score) -> f64 {
    let trust = score.trust.min(other.trust) as f64 / 1e3;
    let mean = ((score.latency + other.latency) / 2) as f64;
    let drawn = |latency: u64| latency as f64 * trust + mean * (1.0 - trust);
    let most = drawn(score.latency).max(drawn(other.latency));
    let latency = drawn(score.latency).max(most / LATENCY_SWAY as f64).max(1e-3);
    let load = if score.troubled { (score.load + 2_048) * 4 } else { score.load };
    load as f64 * latency / score.weight as f64
}

proptest! {
    #[test]
    fn a_turn_goes_to_who_has_saved_up_most(weights in weights(), turns in 0..50usize) {
        let candidates = candidates(&weights);
        let (mut savings, mut naive) = (vec![0; weights.len()], vec![0i128; weights.len()]);
        for _ in 0..turns {
            let expected = next_turn(&candidates, &savings);
            let taken = take_turn(&candidates, &mut savings);
            naive.iter_mut().zip(&weights).for_each(|(saved, weight)| *saved += i128::from(*weight));
            let most = naive.iter().max();
            let place = most.and_then(|most| naive.iter().position(|saved| saved == most));
            if let Some(place) = place {
                naive[place] -= weights.iter().map(|weight| i128::from(*weight)).sum::<i128>();
            }
            prop_assert_eq!((taken, expected), (place, place));
            prop_assert_eq!(savings.iter().sum::<i64>(), 0, "what one pays the others had saved up");
        }
    }

    /// After one whole round each had exactly its share, and at no time is anybody a whole turn behind.
    #[test]
    fn turns_are_fair(weights in vec(1..20u64, 1..8)) {
        let candidates = candidates(&weights);
        let total: u64 = weights.iter().sum();
        let (mut savings, mut had) = (vec![0; weights.len()], vec![0u64; weights.len()]);
        for turn in 1..=total {
            had[take_turn(&candidates, &mut savings).unwrap()] += 1;
            for (had, weight) in had.iter().zip(&weights) {
                prop_assert!((had * total).abs_diff(turn * weight) < total * weights.len() as u64);
            }
        }
        prop_assert_eq!(had, weights);
    }

    #[test]
    fn a_draw_by_weight_is_a_ticket_from_a_hat(weights in weights(), draw in draw()) {
        prop_assert_eq!(random(&candidates(&weights), draw), drawn(&tickets(&weights, None), draw));
    }

    #[test]
    fn the_less_loaded_of_two_tickets_wins(
        (weights, scores) in weights().prop_flat_map(|weights| {
            let scores = vec(score(), weights.len());
            (Just(weights), scores)
        }),
        draw in draw(),
    ) {
        let candidates = candidates(&weights);
        let chosen = least_load(&candidates, draw, |candidate| scores[(candidate.at - 1) / 3]);
        let first = drawn(&tickets(&weights, None), draw);
        let second = drawn(&tickets(&weights, first), mix(draw));
        let naive = match (first, second) {
            (Some(one), Some(two)) => {
                let waits = (naive_wait(&scores[one], &scores[two]), naive_wait(&scores[two], &scores[one]));
                // Where they are equal but for rounding either will do.
                let is_close = (waits.0 - waits.1).abs() <= 1e-5 * waits.0;
                if is_close && [Some(one), Some(two)].contains(&chosen) {
                    return Ok(());
                }
                Some(if waits.1 < waits.0 { two } else { one })
            }
            (first, _) => first,
        };
        prop_assert_eq!(chosen, naive);
    }

    #[test]
    fn nobody_beats_who_beats_him(one in score(), two in score()) {
        prop_assert!(!(one.beats(&two) && two.beats(&one)));
        prop_assert!(!one.beats(&one));
    }

    /// What is not known of one of them sways nothing.
    #[test]
    fn latency_without_trust_is_none(one in score(), two in score()) {
        let blind = |score: Score| Score { latency: 0, trust: 1_000, ..score };
        let untrusted = Score { trust: 0, ..one };
        prop_assert_eq!(untrusted.beats(&two), blind(one).beats(&blind(two)));
    }

    /// The highest bent number of those that may, and nothing moves but what has to.
    #[test]
    fn a_key_belongs_to_the_highest_number(weights in weights(), key in any::<u64>(), barred in any::<u16>()) {
        let candidates = candidates(&weights);
        let id = |candidate: &Candidate| mix(candidate.at as u64);
        let may = |candidate: &Candidate| barred >> (candidate.at % 16) & 1 == 0;
        let number = |candidate: &Candidate| {
            let unit = ((mix(key ^ id(candidate)) >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
            candidate.weight as f64 / -unit.ln()
        };
        let mut order: Vec<usize> = (0..weights.len()).filter(|place| may(&candidates[*place])).collect();
        order.sort_by(|one, two| number(&candidates[*two]).total_cmp(&number(&candidates[*one])));
        let chosen = rendezvous(&candidates, key, id, may);
        prop_assert_eq!(chosen, order.first().copied());
        // Without the chosen one the next in order has it; without any other one nothing changes.
        for gone in 0..weights.len() {
            let rest = rendezvous(&candidates, key, id, |candidate| {
                may(candidate) && candidate.at != candidates[gone].at
            });
            prop_assert_eq!(rest, order.iter().copied().find(|place| *place != gone));
        }
    }
}

/// Shares by weight, over many keys and many draws.
#[test]
fn shares_are_as_the_weights() {
    let candidates = candidates(&[1_000, 2_000, 3_000]);
    let mut counts = [[0u32; 3]; 2];
    for key in 0..60_000 {
        let by_hash = rendezvous(&candidates, mix(key), |candidate| mix(candidate.at as u64), |_| true);
        counts[0][by_hash.unwrap()] += 1;
        counts[1][random(&candidates, mix(key)).unwrap()] += 1;
    }
    for counts in counts {
        for (count, share) in counts.into_iter().zip([10_000, 20_000, 30_000u32]) {
            assert!(count.abs_diff(share) < share / 20, "{counts:?}");
        }
    }
}
