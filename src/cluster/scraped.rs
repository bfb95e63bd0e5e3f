//! An engine's `/metrics` page, as far as it says how loaded it is.
//!
//! Names are matched whole: `vllm:num_requests_waiting_by_reason` begins like another metric and counts the
//! same requests again. Series of several engines behind one address are summed.
//!
//! The page of a vLLM has some hundred KiB, nearly all of it buckets of histograms, and comes from each backend every
//! few seconds, so lines that are of no interest are left at their first bytes.

use std::time::Instant;

use memchr::{memchr_iter, memchr3};

use super::Reading;

/// Which figure a metric is: vLLM (docs/design/metrics.md; `gpu_cache_usage_perc` until 0.10), SGLang
/// (references/production_metrics) and llama.cpp (tools/server/README, `GET /metrics`).
fn figure(name: &[u8]) -> Option<Figure> {
    Some(match name {
        b"vllm:num_requests_running" | b"sglang:num_running_reqs" | b"llamacpp:requests_processing" => {
            Figure::Running
        }
        b"vllm:num_requests_waiting" | b"sglang:num_queue_reqs" | b"llamacpp:requests_deferred" => {
            Figure::Waiting
        }
        b"vllm:kv_cache_usage_perc"
        | b"vllm:gpu_cache_usage_perc"
        | b"sglang:token_usage"
        | b"llamacpp:kv_cache_usage_ratio" => Figure::KvUsage,
        // The number of observations: one a step.
        b"vllm:iteration_tokens_total_count" | b"llamacpp:n_decode_total" => Figure::Steps,
        _ => return None,
    })
}

/// Longer than any of the names.
const NAME_MAX: usize = 64;

enum Figure {
    Running,
    Waiting,
    KvUsage,
    Steps,
}

impl Reading {
    /// Reads a page in Prometheus' text form. `None` when it says nothing of the load.
    pub fn of_page(page: &[u8], at: Instant) -> Option<Self> {
        let mut reading = Self { at, running: 0, waiting: 0, kv_usage: None, steps: None };
        let mut found = false;
        for (figure, value) in lines(page).filter_map(sample) {
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

/// The last one may have no end.
fn lines(page: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut from = 0;
    memchr_iter(b'\n', page).chain([page.len()]).map(move |end| {
        let line = &page[from..end];
        from = end + 1;
        line
    })
}

/// The figure of a line and its value; what follows the value is a time.
fn sample(line: &[u8]) -> Option<(Figure, f64)> {
    if !matches!(line.first()?, b'v' | b's' | b'l') {
        return None;
    }
    let end = memchr3(b'{', b' ', b'\t', &line[..line.len().min(NAME_MAX)])?;
    let figure = figure(&line[..end])?;
    let rest = if line[end] == b'{' { after_labels(&line[end + 1..])? } else { &line[end..] };
    let value = std::str::from_utf8(rest).ok()?.split_ascii_whitespace().next()?;
    // Infinite is no number of requests, but a page that went wrong.
    let value = value.parse().ok().filter(|value: &f64| !value.is_infinite())?;
    Some((figure, value))
}

/// What stands behind the closing brace; one within a label's value closes nothing.
fn after_labels(labels: &[u8]) -> Option<&[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, &byte) in labels.iter().enumerate() {
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
        let reading = Reading::of_page(page.as_bytes(), Instant::now())?;
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
    fn lines_end_with_or_without_a_return_and_other_bytes_harm_only_theirs() {
        let page = b"vllm:num_requests_running 2\r\n\xff{ 1\nvllm:num_requests_waiting{a=\"\xff\"} 3";
        let reading = Reading::of_page(page, Instant::now()).unwrap();
        assert_eq!((reading.running, reading.waiting), (2, 3));
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
        assert_eq!(read("vllm:num_requests_waiting +Inf"), None);
    }
}
