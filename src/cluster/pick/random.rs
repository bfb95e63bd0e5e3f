//! By chance, by weight.

use super::{Candidate, total};

/// A place drawn by weight; `None` of none.
pub fn random(candidates: &[Candidate], draw: u64) -> Option<usize> {
    at(candidates, point(total(candidates), draw), None)
}

/// The place whose share of the line of all weights holds `point`; the one to `skip` has no share.
pub(super) fn at(candidates: &[Candidate], mut point: u64, skip: Option<usize>) -> Option<usize> {
    for (place, candidate) in candidates.iter().enumerate() {
        if Some(place) == skip {
            continue;
        }
        match point.checked_sub(candidate.weight) {
            Some(rest) => point = rest,
            None => return Some(place),
        }
    }
    None
}

/// A draw as a point below `total`: by multiplication, which favours nobody as the remainder does.
pub(super) fn point(total: u64, draw: u64) -> u64 {
    let wide = u128::from(total) * u128::from(draw);
    (wide >> 64) as u64
}

/// Another draw from a draw, or from a key and an id: SplitMix64's finish (Steele, Lea, Flood: "Fast Splittable
/// Pseudorandom Number Generators", 2014), in which each bit of the input turns half of the output.
pub fn mix(draw: u64) -> u64 {
    let draw = draw.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let draw = (draw ^ (draw >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let draw = (draw ^ (draw >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    draw ^ (draw >> 31)
}
