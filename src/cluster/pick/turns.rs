//! In turns, by weight, as nginx's smooth round robin does it.
//!
//! Each candidate saves up its weight at each turn; the one that has most is taken and pays what all have
//! saved up. So weights 5, 1, 1 give a a b a c a a and not a a a a a b c. The savings belong to the
//! backends, not to a counter: one that goes or comes disturbs nobody else's turn.

use super::Candidate;

/// The place whose turn it is, and the turn taken. `savings` are the candidates', in their order; their sum
/// stays the same.
pub fn take_turn(candidates: &[Candidate], savings: &mut [i64]) -> Option<usize> {
    let place = next_turn(candidates, savings)?;
    let mut all = 0;
    for (candidate, savings) in candidates.iter().zip(&mut *savings) {
        *savings = savings.saturating_add_unsigned(candidate.weight);
        all += candidate.weight;
    }
    savings[place] = savings[place].saturating_sub_unsigned(all);
    Some(place)
}

/// The place whose turn it would be: the first with the most.
pub fn next_turn(candidates: &[Candidate], savings: &[i64]) -> Option<usize> {
    debug_assert_eq!(candidates.len(), savings.len());
    let mut best: Option<(i64, usize)> = None;
    for (place, (candidate, savings)) in candidates.iter().zip(savings).enumerate() {
        let saved = savings.saturating_add_unsigned(candidate.weight);
        if best.is_none_or(|(most, _)| saved > most) {
            best = Some((saved, place));
        }
    }
    best.map(|(_, place)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(weights: &[u64], count: usize) -> Vec<usize> {
        let candidates: Vec<_> =
            weights.iter().enumerate().map(|(at, weight)| Candidate { at, weight: *weight }).collect();
        let mut savings = vec![0; weights.len()];
        (0..count).filter_map(|_| take_turn(&candidates, &mut savings)).collect()
    }

    #[test]
    fn equals_take_turns_in_order() {
        assert_eq!(turns(&[1, 1, 1], 6), [0, 1, 2, 0, 1, 2]);
    }

    /// The sequence of nginx's own change (52327e0627f4, 2012).
    #[test]
    fn the_heavy_one_is_spread_out() {
        assert_eq!(turns(&[5, 1, 1], 7), [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn nobody_has_no_turn() {
        assert!(turns(&[], 1).is_empty());
    }
}
