//! Where the clients connect to.

/// The engine, or one of the proxies in front of it; in the order of the report's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Target {
    /// The engine itself: what the machine costs without a proxy.
    #[value(skip)]
    Direct,
    #[value(skip)]
    Nginx,
    Haproxy,
    Envoy,
    /// Pingora with nothing on top.
    #[value(skip)]
    Bare,
    Smg,
    VllmRouter,
    Litellm,
    #[value(skip)]
    Gateway,
}

impl Target {
    /// Those that run only when they are asked for.
    pub(crate) const INVITED: [Self; 5] =
        [Self::Haproxy, Self::Envoy, Self::Smg, Self::VllmRouter, Self::Litellm];

    /// As it stands in the JSON file, and below target/contenders.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
            Self::Bare => "bare",
            Self::Smg => "smg",
            Self::VllmRouter => "vllm-router",
            Self::Litellm => "litellm",
            Self::Gateway => "streamgate",
        }
    }

    /// As the table's head has it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Haproxy => "HAProxy",
            Self::Envoy => "Envoy",
            Self::Bare => "bare Pingora",
            Self::Litellm => "LiteLLM",
            _ => self.name(),
        }
    }

    /// Whether what goes wrong with it is a figure of its own, and no error of the run. Of the engine, of ours and of
    /// the two yardsticks every answer must be right, or the ratios to them are worth nothing.
    pub(crate) fn may_fail(self) -> bool {
        Self::INVITED.contains(&self)
    }
}
