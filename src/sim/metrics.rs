//! `/metrics` in Prometheus' text form, under vLLM's names (vLLM, docs/design/metrics.md).
//!
//! `vllm:iteration_tokens_total_count` is the heartbeat of an engine's steps: it moves with each
//! write of tokens and while a prefill computes, and stands still in a stall.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use super::stats::Stats;

/// Requests that fill the cache of an engine without a bound on them.
const FULL_AT: u32 = 1_024;

/// The metrics of an engine with this `model` and so many `slots` (0: no bound).
pub(super) fn render(stats: &Stats, model: &str, slots: u32) -> String {
    let label = model.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let mut page =
        Page { text: String::with_capacity(2_048), labels: format!("model_name=\"{label}\",engine=\"0\"") };
    if stats.prefilling.load(Relaxed) > 0 {
        stats.steps.fetch_add(1, Relaxed);
    }
    let running = stats.running.load(Relaxed);
    let full_at = if slots == 0 { FULL_AT } else { slots };
    let usage = (running as f64 / f64::from(full_at)).min(1.0);
    let tokens = stats.tokens.load(Relaxed);
    page.metric("num_requests_running", "gauge", "Requests that run.", running);
    page.metric("num_requests_waiting", "gauge", "Requests that wait.", stats.waiting.load(Relaxed));
    page.metric("kv_cache_usage_perc", "gauge", "Use of the KV cache, 1 is full.", usage);
    page.metric("prompt_tokens_total", "counter", "Tokens of prompts.", stats.prompt_tokens.load(Relaxed));
    page.metric("generation_tokens_total", "counter", "Tokens generated.", tokens);
    page.head("request_success_total", "counter", "Requests that ended, by reason.");
    let reasons = [
        ("stop", &stats.stopped),
        ("length", &stats.length),
        ("abort", &stats.aborted),
        ("error", &stats.failed),
    ];
    for (reason, count) in reasons {
        page.line("request_success_total", &format!(",finished_reason=\"{reason}\""), count.load(Relaxed));
    }
    let steps = stats.steps.load(Relaxed);
    page.head("iteration_tokens_total", "histogram", "Tokens of a step.");
    page.line("iteration_tokens_total_bucket", ",le=\"+Inf\"", steps);
    page.line("iteration_tokens_total_sum", "", tokens);
    page.line("iteration_tokens_total_count", "", steps);
    page.text
}

struct Page {
    text: String,
    labels: String,
}

impl Page {
    fn metric(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.push(format_args!("# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}\n"));
    }

    fn line(&mut self, name: &str, more: &str, value: impl std::fmt::Display) {
        let labels = std::mem::take(&mut self.labels);
        self.push(format_args!("vllm:{name}{{{labels}{more}}} {value}\n"));
        self.labels = labels;
    }

    fn push(&mut self, text: std::fmt::Arguments<'_>) {
        let written = self.text.write_fmt(text);
        debug_assert!(written.is_ok(), "a String takes all it is given");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_vllms_names_and_labels() {
        let stats = Stats::default();
        let mut job = stats.job("r");
        job.runs();
        job.step(3);
        let page = render(&stats, "m", 4);
        for line in [
            "vllm:num_requests_running{model_name=\"m\",engine=\"0\"} 1\n",
            "vllm:kv_cache_usage_perc{model_name=\"m\",engine=\"0\"} 0.25\n",
            "vllm:generation_tokens_total{model_name=\"m\",engine=\"0\"} 3\n",
            "vllm:request_success_total{model_name=\"m\",engine=\"0\",finished_reason=\"abort\"} 0\n",
            "vllm:iteration_tokens_total_count{model_name=\"m\",engine=\"0\"} 1\n",
        ] {
            assert!(page.contains(line), "{line} in {page}");
        }
    }

    #[test]
    fn steps_go_on_while_a_prefill_computes() {
        let stats = Stats::default();
        let count = |page: String| page.lines().last().and_then(|line| line.rsplit(' ').next()?.parse().ok());
        assert_eq!(count(render(&stats, "m", 0)), Some(0));
        let _prefill = Stats::gauge(&stats.prefilling);
        assert_eq!(count(render(&stats, "m", 0)), Some(1));
        assert_eq!(count(render(&stats, "m", 0)), Some(2));
    }
}
