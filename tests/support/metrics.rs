//! Reading the Prometheus text of the admin listener.

/// Sum of all series of `name` that carry every label of `labels`; 0 when there is none.
pub(crate) fn value(text: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    let wanted: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
    text.lines()
        .filter_map(|line| line.strip_prefix(name))
        .filter_map(split)
        .filter(|(series, _)| wanted.iter().all(|label| series.contains(label.as_str())))
        .map(|(_, value)| value)
        .sum()
}

/// Labels and value of what follows a metric's name; `None` when the name only began the same.
fn split(rest: &str) -> Option<(&str, f64)> {
    let (series, value) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_once("} ")?,
        None => ("", rest.strip_prefix(' ')?),
    };
    Some((series, value.trim().parse().ok()?))
}
