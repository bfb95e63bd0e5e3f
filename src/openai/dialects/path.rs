//! Which endpoint a path names.

use super::Dialect;

/// By the last segments of the path: whatever stands in front is a prefix or a version.
pub(super) fn dialect(path: &str) -> Dialect {
    let path = path.strip_suffix('/').unwrap_or(path);
    let last: [Option<&str>; 3] = {
        let mut segments = path.rsplit('/');
        [segments.next(), segments.next(), segments.next()]
    };
    match last {
        [Some("completions"), Some("chat"), _] => Dialect::Chat,
        [Some("completions"), ..] => Dialect::Completions,
        // Messages of OpenAI's threads: `/v1/threads/ID/messages`.
        [Some("messages"), _, Some("threads")] => Dialect::Other,
        [Some("messages"), ..] | [Some("count_tokens" | "batches"), Some("messages"), _] => Dialect::Messages,
        [Some("responses"), ..]
        | [_, Some("responses"), _]
        | [Some("cancel" | "input_items"), _, Some("responses")] => Dialect::Responses,
        _ => Dialect::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_known_by_their_path() {
        for (path, want) in [
            ("/v1/chat/completions", Dialect::Chat),
            ("/beta/chat/completions/", Dialect::Chat),
            ("/openai/v1/chat/completions", Dialect::Chat),
            ("/v1/completions", Dialect::Completions),
            ("/completions", Dialect::Completions),
            ("/v1/responses", Dialect::Responses),
            ("/v1/responses/", Dialect::Responses),
            ("/team-a/v2/responses", Dialect::Responses),
            ("/v1/responses/resp_1", Dialect::Responses),
            ("/v1/responses/resp_1/cancel", Dialect::Responses),
            ("/v1/responses/resp_1/input_items", Dialect::Responses),
            ("/v1/messages", Dialect::Messages),
            ("/anthropic/v1/messages", Dialect::Messages),
            ("/v1/messages/count_tokens", Dialect::Messages),
            ("/v1/messages/batches", Dialect::Messages),
            ("/v1/threads/thread_1/messages", Dialect::Other),
            ("/responses/v1/chat/completions", Dialect::Chat),
            ("/responses/v1/embeddings", Dialect::Other),
            ("/v1/chat/completions/batch", Dialect::Other),
            ("/v1/embeddings", Dialect::Other),
            ("/v2/rerank", Dialect::Other),
            ("/score", Dialect::Other),
            ("/v1/audio/transcriptions", Dialect::Other),
            ("/", Dialect::Other),
            ("", Dialect::Other),
        ] {
            assert_eq!(Dialect::of(path), want, "{path}");
        }
    }
}
