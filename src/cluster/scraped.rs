//! An engine's `/metrics` page, as far as it says how loaded it is.
//!
//! Names are matched whole: `vllm:num_requests_waiting_by_reason` begins like another metric and counts the
//! same requests again. Series of several engines behind one address are summed.

use std::time::Instant;

use super::Reading;

/// Which figure a metric is: vLLM (docs/design/metrics.md; `gpu_cache_usage_perc` until 0.10), SGLang
/// (references/production_metrics) and llama.cpp (tools/server/README, `GET /metrics`).
fn figure(name: &str) -> Option<Figure> {
    Some(match name {
        "vllm:num_requests_running" | "sglang:num_running_reqs" | "llamacpp:requests_processing" => {
            Figure::Running
        }
        "vllm:num_requests_waiting" | "sglang:num_queue_reqs" | "llamacpp:requests_deferred" => {
            Figure::Waiting
        }
        "vllm:kv_cache_usage_perc"
        | "vllm:gpu_cache_usage_perc"
        | "sglang:token_usage"
        | "llamacpp:kv_cache_usage_ratio" => Figure::KvUsage,
        // The number of observations: one a step.
        "vllm:iteration_tokens_total_count" | "llamacpp:n_decode_total" => Figure::Steps,
        _ => return None,
    })
}

enum Figure {
    Running,
    Waiting,
    KvUsage,
    Steps,
}

impl Reading {
    /// Reads a page in Prometheus' text form. `None` when it says nothing of the load.
    pub fn of_page(page: &str, at: Instant) -> Option<Self> {
        let mut reading = Self { at, running: 0, waiting: 0, kv_usage: None, steps: None };
        let mut found = false;
        for (figure, value) in page.lines().filter_map(sample) {
            found = true;
            match figure {
                // A float becomes the nearest number that there is; one that is none becomes 0.
                Figure::Running => reading.running = reading.running.saturating_add(value as u32),
                Figure::Waiting => reading.waiting = reading.waiting.saturating_add(value as u32),
                Figure::KvUsage => {
                    let value = if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
                    reading.kv_usage = Some(reading.kv_usage.map_or(value, |known| known.max(value)));
                }
                Figure::Steps => {
                    reading.steps = Some(reading.steps.unwrap_or(0).saturating_add(value as u64));
                }
            }
        }
        found.then_some(reading)
    }
}

/// The figure of a line and its value; what follows the value is a time.
fn sample(line: &str) -> Option<(Figure, f64)> {
    let end = line.find(['{', ' ', '\t'])?;
    let figure = figure(&line[..end])?;
    let rest = if line[end..].starts_with('{') { after_labels(&line[end + 1..])? } else { &line[end..] };
    Some((figure, rest.split_ascii_whitespace().next()?.parse().ok()?))
}

/// What stands behind the closing brace; one within a label's value closes nothing.
fn after_labels(labels: &str) -> Option<&str> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in labels.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'}' if !quoted => return labels.get(at + 1..),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(page: &str) -> Option<(u32, u32, Option<f64>, Option<u64>)> {
        let reading = Reading::of_page(page, Instant::now())?;
        Some((reading.running, reading.waiting, reading.kv_usage, reading.steps))
    }

    #[test]
    fn engines_are_summed_and_the_fullest_cache_counts() {
        let page = "# HELP vllm:num_requests_running Requests.\n\
            vllm:num_requests_running{engine=\"0\",model_name=\"a}b \\\" c\"} 3.0\n\
            vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 4.0 1700000000000\n\
            vllm:num_requests_waiting{engine=\"0\"} 2\n\
            vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n\
            vllm:kv_cache_usage_perc{engine=\"1\"} 0.75\n\
            vllm:iteration_tokens_total_count{engine=\"0\"} 100.0\n\
            vllm:iteration_tokens_total_count{engine=\"1\"} 1.5e+02\n";
        assert_eq!(read(page), Some((7, 2, Some(0.75), Some(250))));
    }

    #[test]
    fn names_are_whole() {
        let page = "vllm:num_requests_waiting_by_reason{reason=\"capacity\"} 9\n\
            vllm:iteration_tokens_total_bucket{le=\"1\"} 9\n\
            vllm:num_requests_waiting 1\n";
        assert_eq!(read(page), Some((0, 1, None, None)));
    }

    #[test]
    fn older_names_and_other_engines_are_known() {
        assert_eq!(read("vllm:gpu_cache_usage_perc 0.5"), Some((0, 0, Some(0.5), None)));
        assert_eq!(read("sglang:num_running_reqs{} 2\nsglang:num_queue_reqs{} 3"), Some((2, 3, None, None)));
        let llamacpp = "llamacpp:requests_processing 1\nllamacpp:n_decode_total 40";
        assert_eq!(read(llamacpp), Some((1, 0, None, Some(40))));
    }

    #[test]
    fn what_is_no_page_of_an_engine_says_nothing() {
        for page in
            ["", "<html>", "up 1\n", "vllm:num_requests_running", "vllm:num_requests_running{a=\"", "{} 1"]
        {
            assert_eq!(read(page), None, "{page}");
        }
        assert_eq!(read("vllm:num_requests_running NaN\nvllm:kv_cache_usage_perc NaN"), {
            Some((0, 0, Some(0.0), None))
        });
        assert_eq!(read("vllm:num_requests_running -4"), Some((0, 0, None, None)));
    }
}
