//! Times and numbers as people read them. Pure.
//!
//! `top` rounds times to what a screen wants that changes each second; a table of percentiles wants a digit more.

/// A time in microseconds: 0.43 ms, 20.1 ms, 1.52 s.
pub(super) fn time(micros: u32) -> String {
    let ms = f64::from(micros) / 1e3;
    match ms {
        _ if ms < 9.995 => format!("{ms:.2} ms"),
        _ if ms < 999.95 => format!("{ms:.1} ms"),
        _ => format!("{:.2} s", ms / 1e3),
    }
}

/// `1 stream`, `2 streams`.
pub(super) fn many(number: u64, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_as_many_digits_as_are_of_use() {
        assert_eq!([0, 430, 9_994, 20_149].map(time), ["0.00 ms", "0.43 ms", "9.99 ms", "20.1 ms"]);
        assert_eq!([999_900, 1_520_000, 61_000_000].map(time), ["999.9 ms", "1.52 s", "61.00 s"]);
        assert_eq!((many(1, "stream"), many(0, "stream")), ("1 stream".into(), "0 streams".into()));
    }
}
