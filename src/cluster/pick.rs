//! The choice of one backend among those that may be used: pure functions over a slice.

/// The usable place whose turn it is: places are counted from `turn`, unusable ones are passed over.
pub(super) fn round_robin(usable: &[bool], turn: usize) -> Option<usize> {
    let places = usable.len();
    (0..places).map(|step| (turn % places + step) % places).find(|at| usable[*at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round() {
        let usable = [true, true, true];
        let picks: Vec<_> = (0..6).map(|turn| round_robin(&usable, turn)).collect();
        assert_eq!(picks, [Some(0), Some(1), Some(2), Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn an_unusable_place_is_passed_over() {
        assert_eq!(round_robin(&[true, false, true], 1), Some(2));
        assert_eq!(round_robin(&[true, false, false], usize::MAX), Some(0));
    }

    #[test]
    fn nothing_usable_gives_nothing() {
        assert_eq!(round_robin(&[], 7), None);
        assert_eq!(round_robin(&[false, false], 7), None);
    }
}
