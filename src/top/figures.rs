//! Figures as people read them: the same as on the page.

/// What is not known.
pub(super) const NONE: &str = "–";

/// 0, 7.2, 85, 4210, 31.5k, 2.1M.
pub(crate) fn count(value: f64) -> String {
    match value {
        _ if value >= 999_500.0 => format!("{:.1}M", value / 1e6),
        _ if value >= 9_999.5 => format!("{:.1}k", value / 1e3),
        _ if value >= 10.0 || value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.1}"),
    }
}

/// A count that may not be known.
pub(super) fn rate(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), count)
}

/// 0.8 ms, 48 ms, 1.25 s, 34 s.
pub(super) fn time(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else { return NONE.to_owned() };
    match seconds {
        _ if seconds < 0.009_5 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 0.999_5 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 9.95 => format!("{seconds:.2} s"),
        _ => format!("{seconds:.0} s"),
    }
}

/// 12 s, 4 min, 3 h 20 min, 9 d.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..90 => format!("{seconds} s"),
        90..5_400 => format!("{} min", (seconds + 30) / 60),
        5_400..172_800 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// 1 problem, 2 problems.
pub(super) fn plural(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// The last values of a series as a row of bars.
pub(super) fn bars(values: &[f64], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().fold(0.0, f64::max);
    let shown = &values[values.len().saturating_sub(width)..];
    let bar = |value: &f64| if most > 0.0 { BARS[(value / most * 7.0).round() as usize] } else { BARS[0] };
    shown.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_no_more_digits_than_anybody_reads() {
        let counts = [0.0, 7.25, 85.4, 4_210.0, 31_460.0, 2_100_000.0].map(count);
        assert_eq!(counts, ["0", "7.2", "85", "4210", "31.5k", "2.1M"]);
        let times = [Some(0.000_8), Some(0.048), Some(1.25), Some(34.2), None].map(time);
        assert_eq!(times, ["0.8 ms", "48 ms", "1.25 s", "34 s", "–"]);
        assert_eq!([12, 240, 12_000, 800_000].map(span), ["12 s", "4 min", "3 h 20 min", "9 d"]);
        assert_eq!(bars(&[9.0, 0.0, 4.0, 8.0], 3), "▁▄▇");
        assert_eq!(bars(&[0.0, 0.0], 3), "▁▁");
    }
}
