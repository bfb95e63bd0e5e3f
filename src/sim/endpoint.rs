//! What the engine serves, by path.

/// One endpoint of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    Work(Work),
    Page(Page),
}

/// An endpoint that costs the engine work: its faults strike here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Chat,
    Completions,
    Embeddings,
}

/// An endpoint about the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    Models,
    Health,
    Metrics,
    Stats,
    Proofs,
    Reset,
    Faults,
}

impl Endpoint {
    /// The endpoint at `target`, whose query is ignored.
    pub(super) fn find(target: &str) -> Option<Self> {
        let path = target.split('?').next().unwrap_or_default();
        Some(match path {
            "/v1/chat/completions" => Self::Work(Work::Chat),
            "/v1/completions" => Self::Work(Work::Completions),
            "/v1/embeddings" => Self::Work(Work::Embeddings),
            "/v1/models" => Self::Page(Page::Models),
            "/health" => Self::Page(Page::Health),
            "/metrics" => Self::Page(Page::Metrics),
            "/sim/stats" => Self::Page(Page::Stats),
            "/sim/proofs" => Self::Page(Page::Proofs),
            "/sim/reset" => Self::Page(Page::Reset),
            "/sim/faults" => Self::Page(Page::Faults),
            _ => return None,
        })
    }

    /// The one method it takes, besides HEAD where this is GET.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Work(_) | Self::Page(Page::Reset | Page::Faults) => "POST",
            Self::Page(_) => "GET",
        }
    }

    /// It takes this method.
    pub(super) fn takes(self, method: &str) -> bool {
        method == self.method() || (method == "HEAD" && self.method() == "GET")
    }
}
