//! Which request is asked how: as a stream, at once, given up, or read slowly. Pure.
//!
//! The one hard idea: the lots are a fixed permutation of every hundred requests, so that shares are exact in each
//! hundred, spread evenly over it, and the same in two runs that are compared.

use std::str::FromStr;

/// Prime to 100: its multiples meet every remainder once, and neighbours are far apart.
const STRIDE: u64 = 37;

/// How one request is asked, and its answer read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// A stream, read to its end.
    Stream,
    /// An answer in one piece.
    Unary,
    /// A stream that the client leaves at this token.
    Cancel {
        /// Tokens that are read.
        at: u64,
    },
    /// A stream that is read at this rate.
    Slow {
        /// Bytes a second, framing and all.
        rate: u32,
    },
}

/// Shares of all requests in percent; the rest are streams that are read to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shares {
    pub(super) unary: Percent,
    pub(super) cancel: Option<Of>,
    pub(super) slow: Option<Of>,
}

/// From 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Percent(pub(super) u8);

/// A share with what happens to it: `PERCENT@NUMBER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Of {
    pub(super) share: Percent,
    /// At least 1.
    pub(super) number: u32,
}

impl Shares {
    /// Whether there are no more than a hundred percent.
    pub(super) fn fit(&self) -> bool {
        let of = |share: Option<Of>| share.map_or(0, |of| u32::from(of.share.0));
        u32::from(self.unary.0) + of(self.cancel) + of(self.slow) <= 100
    }

    /// How the request with this number, counted from 0, is asked.
    pub(super) fn manner(&self, number: u64) -> Manner {
        let mut lot = number.wrapping_mul(STRIDE) % 100;
        let mut is_in = |share: Percent| {
            let inside = lot < u64::from(share.0);
            lot = lot.wrapping_sub(u64::from(share.0));
            inside
        };
        match self {
            _ if is_in(self.unary) => Manner::Unary,
            Self { cancel: Some(of), .. } if is_in(of.share) => Manner::Cancel { at: of.number.into() },
            Self { slow: Some(of), .. } if is_in(of.share) => Manner::Slow { rate: of.number },
            _ => Manner::Stream,
        }
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
        number
            .filter(|number| *number <= 100)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is no share from 0 to 100"))
    }
}

impl FromStr for Of {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (share, number) =
            text.split_once('@').ok_or_else(|| format!("`{text}` has no @, as 20@5 has it"))?;
        let parsed = number.parse().ok().filter(|number| *number > 0);
        let number = parsed.ok_or_else(|| format!("`{number}` is no whole number above 0"))?;
        Ok(Self { share: share.parse()?, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(unary: u8, cancel: &str, slow: &str) -> Shares {
        Shares { unary: Percent(unary), cancel: cancel.parse().ok(), slow: slow.parse().ok() }
    }

    #[test]
    fn shares_are_exact_in_every_hundred() {
        let shares = shares(20, "10@5", "3@900");
        let count = |from: u64, wanted: Manner| {
            (from..from + 100).filter(|number| shares.manner(*number) == wanted).count()
        };
        for from in [0, 7, 1_000_000] {
            assert_eq!(count(from, Manner::Unary), 20);
            assert_eq!(count(from, Manner::Cancel { at: 5 }), 10);
            assert_eq!(count(from, Manner::Slow { rate: 900 }), 3);
            assert_eq!(count(from, Manner::Stream), 67);
        }
    }

    #[test]
    fn few_requests_have_their_share_too() {
        let shares = shares(0, "10@5", "");
        for from in [0, 30, 70] {
            let cancelled =
                (from..from + 10).filter(|number| shares.manner(*number) != Manner::Stream).count();
            assert_eq!(cancelled, 1, "from {from}");
        }
        assert!((0..100).all(|number| Shares::default().manner(number) == Manner::Stream));
    }

    #[test]
    fn shares_are_read_as_people_write_them() {
        assert_eq!("20%@5".parse(), Ok(Of { share: Percent(20), number: 5 }));
        assert_eq!("100".parse(), Ok(Percent(100)));
        for odd in ["101", "-1", "", "1.5", "x"] {
            assert!(odd.parse::<Percent>().is_err(), "{odd}");
        }
        for odd in ["20", "20@", "20@0", "20@x", "@5", "101@5"] {
            assert!(odd.parse::<Of>().is_err(), "{odd}");
        }
        assert!(shares(80, "10@1", "10@1").fit() && !shares(81, "10@1", "10@1").fit());
    }
}
