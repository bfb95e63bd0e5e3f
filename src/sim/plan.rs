//! What one request gets: settings, its own wishes and the faults that strike it, as one plan.
//!
//! Pure. Faults become a `Script` with a place for each thing that can go wrong, so the code that
//! answers asks "what now" and never walks a list of faults.

use std::time::Duration;

use super::fault::{Fault, FaultKind};
use super::{Settings, units};

/// A request's own wishes, from its headers or from its body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    pub(super) faults: Option<Vec<Fault>>,
    pub(super) first_event: Option<Duration>,
    pub(super) inter_token: Option<Duration>,
    pub(super) tokens: Option<u32>,
    pub(super) event_bytes: Option<usize>,
    pub(super) stamp: Option<bool>,
}

impl Wishes {
    /// Sets the wish called `name` (`first-event`); the error is a sentence for the client.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let wrong = |error: &dyn std::fmt::Display| format!("x-sim-{name}: {error}");
        match name {
            "fault" => self.faults = Some(Fault::list(value).map_err(|error| wrong(&error))?),
            "first-event" => self.first_event = Some(units::duration(value).map_err(|error| wrong(&error))?),
            "inter-token" => self.inter_token = Some(units::duration(value).map_err(|error| wrong(&error))?),
            "tokens" => self.tokens = Some(value.parse().map_err(|error| wrong(&error))?),
            "event-bytes" => self.event_bytes = Some(units::bytes(value).map_err(|error| wrong(&error))?),
            "stamp" => self.stamp = Some(value != "0"),
            _ => return Err(format!("x-sim-{name} is no wish of this engine")),
        }
        Ok(())
    }

    /// These wishes, and where they are silent the other ones.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            faults: self.faults.or(other.faults),
            first_event: self.first_event.or(other.first_event),
            inter_token: self.inter_token.or(other.inter_token),
            tokens: self.tokens.or(other.tokens),
            event_bytes: self.event_bytes.or(other.event_bytes),
            stamp: self.stamp.or(other.stamp),
        }
    }
}

/// What comes in the place of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instead {
    Status { code: u16, retry_after: Option<u32> },
    Stall,
    Reset,
    Fin,
    Garbage,
    Switch,
    TooLarge,
}

/// How an answer that has begun is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Stall,
    Reset,
    Fin,
    TruncatedChunk,
    Error { done: bool },
}

/// Where it is cut. N counts tokens of a stream, bytes of any other body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutAt {
    Head,
    Count(u32),
}

/// The faults of one request, each at its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) instead: Option<Instead>,
    pub(super) health: Option<u16>,
    pub(super) interim: u32,
    pub(super) head_trickle: bool,
    pub(super) big_head: bool,
    pub(super) cut: Option<(CutAt, Cut)>,
    pub(super) comments_only: bool,
    pub(super) blank_lines: bool,
    pub(super) crlf: bool,
    pub(super) no_done: bool,
    pub(super) short_content_length: bool,
    pub(super) extra_bytes: bool,
    pub(super) ignore_cancel: bool,
}

impl Script {
    fn add(&mut self, kind: FaultKind) {
        let mut cut = |at, how| self.cut = Some((at, how));
        match kind {
            FaultKind::Status { code, retry_after } => {
                self.instead = Some(Instead::Status { code, retry_after });
            }
            FaultKind::Refuse | FaultKind::ResetBeforeHead => self.instead = Some(Instead::Reset),
            FaultKind::StallBeforeHead => self.instead = Some(Instead::Stall),
            FaultKind::FinBeforeHead => self.instead = Some(Instead::Fin),
            FaultKind::Garbage => self.instead = Some(Instead::Garbage),
            FaultKind::Unsolicited101 => self.instead = Some(Instead::Switch),
            FaultKind::Early413 => self.instead = Some(Instead::TooLarge),
            FaultKind::StallAfterHead => cut(CutAt::Head, Cut::Stall),
            FaultKind::ResetAfterHead => cut(CutAt::Head, Cut::Reset),
            FaultKind::FinAfterHead => cut(CutAt::Head, Cut::Fin),
            FaultKind::StallAt(n) => cut(CutAt::Count(n), Cut::Stall),
            FaultKind::ResetAt(n) => cut(CutAt::Count(n), Cut::Reset),
            FaultKind::FinAt(n) => cut(CutAt::Count(n), Cut::Fin),
            FaultKind::TruncatedChunkAt(n) => cut(CutAt::Count(n), Cut::TruncatedChunk),
            FaultKind::ErrorAt(n) => cut(CutAt::Count(n), Cut::Error { done: false }),
            FaultKind::ErrorThenDone(n) => cut(CutAt::Count(n), Cut::Error { done: true }),
            FaultKind::Health(code) => self.health = Some(code),
            FaultKind::Interim(n) => self.interim = n,
            FaultKind::HeadTrickle => self.head_trickle = true,
            FaultKind::BigHead => self.big_head = true,
            FaultKind::CommentsOnly => self.comments_only = true,
            FaultKind::BlankLines => self.blank_lines = true,
            FaultKind::Crlf => self.crlf = true,
            FaultKind::NoDone => self.no_done = true,
            FaultKind::ShortContentLength => self.short_content_length = true,
            FaultKind::ExtraBytes => self.extra_bytes = true,
            FaultKind::IgnoreCancel => self.ignore_cancel = true,
        }
    }

    /// Something goes wrong with the answer whatever becomes of it. A cut counts where it is made, a cancel that is
    /// ignored when there is one, and an ill health where it is asked for.
    pub(super) fn strikes_at_once(&self) -> bool {
        let later = Self { cut: None, ignore_cancel: false, health: None, ..self.clone() };
        later != Self::default()
    }

    /// How the answer is cut once `count` tokens or bytes have gone.
    pub(super) fn cut_at(&self, count: u32) -> Option<Cut> {
        self.cut.filter(|(at, _)| *at == CutAt::Count(count)).map(|(_, how)| how)
    }

    /// The count at which it is cut.
    pub(super) fn cut_count(&self) -> Option<u32> {
        match self.cut {
            Some((CutAt::Count(count), _)) => Some(count),
            Some((CutAt::Head, _)) | None => None,
        }
    }

    /// How the answer is cut right behind its head.
    pub(super) fn cut_after_head(&self) -> Option<Cut> {
        self.cut.filter(|(at, _)| *at == CutAt::Head).map(|(_, how)| how)
    }
}

/// What one request gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) first_event: Duration,
    pub(super) inter_token: Duration,
    pub(super) tokens: u32,
    pub(super) event_bytes: usize,
    pub(super) batch: u32,
    pub(super) early_200: bool,
    pub(super) stamp: bool,
    pub(super) proof: bool,
    /// Between two comments or blank lines.
    pub(super) keep_alive_every: Duration,
    pub(super) script: Script,
}

/// Bytes per write of an engine that sends as fast as it can.
const BATCH_BYTES: usize = 16 << 10;
/// Between two comments or blank lines, unless the request names an `inter_token`.
const KEEP_ALIVE_EVERY: Duration = Duration::from_millis(500);

impl Plan {
    /// The plan of the engine's `number`th request (from 1); 0 is one that its faults spare.
    pub(super) fn new(settings: &Settings, engine_faults: &[Fault], number: u64, wishes: &Wishes) -> Self {
        let mut script = Script::default();
        let own = wishes.faults.as_deref();
        let (faults, number) = own.map_or((engine_faults, number), |own| (own, 1));
        for fault in faults {
            if fault.strikes(number) || matches!(fault.kind, FaultKind::Health(_)) {
                script.add(fault.kind);
            }
        }
        let inter_token = wishes.inter_token.unwrap_or(settings.inter_token);
        let event_bytes = wishes.event_bytes.unwrap_or(settings.event_bytes);
        Self {
            first_event: wishes.first_event.unwrap_or(settings.first_event),
            inter_token,
            tokens: wishes.tokens.unwrap_or(settings.tokens),
            event_bytes,
            batch: batch(settings.batch, inter_token, event_bytes),
            early_200: settings.early_200,
            stamp: wishes.stamp.unwrap_or(false),
            proof: settings.proof,
            keep_alive_every: wishes.inter_token.unwrap_or(KEEP_ALIVE_EVERY).max(Duration::from_millis(1)),
            script,
        }
    }
}

fn batch(wanted: u32, inter_token: Duration, event_bytes: usize) -> u32 {
    if inter_token > Duration::ZERO || wanted > 1 {
        return wanted.max(1);
    }
    // An event has at least some 200 bytes of JSON, whatever its settings say.
    u32::try_from(BATCH_BYTES / event_bytes.max(200)).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(faults: &str, number: u64, wishes: &Wishes) -> Plan {
        Plan::new(&Settings::default(), &Fault::list(faults).unwrap(), number, wishes)
    }

    #[test]
    fn the_header_wins_over_the_body() {
        let mut header = Wishes::default();
        header.set("tokens", "3").unwrap();
        let mut body = Wishes::default();
        body.set("tokens", "9").unwrap();
        body.set("first-event", "7ms").unwrap();
        let plan = plan("", 1, &header.or(body));
        assert_eq!((plan.tokens, plan.first_event), (3, Duration::from_millis(7)));
    }

    #[test]
    fn a_fault_with_a_period_strikes_every_nth_request() {
        let struck = |number| plan("status=503;p=3", number, &Wishes::default()).script.instead.is_some();
        let requests: Vec<u64> = (0..8).filter(|number| struck(*number)).collect();
        assert_eq!(requests, [3, 6]);
    }

    #[test]
    fn a_requests_own_faults_replace_the_engines() {
        let mut wishes = Wishes::default();
        wishes.set("fault", "").unwrap();
        assert_eq!(plan("status=503", 1, &wishes).script, Script::default());
    }

    #[test]
    fn a_bad_wish_names_its_header() {
        let error = Wishes::default().set("inter-token", "5").unwrap_err();
        assert_eq!(error, "x-sim-inter-token: `5` has no unit; write 5ms, 5s or 5m");
    }

    #[test]
    fn an_engine_without_pauses_writes_in_batches() {
        assert_eq!(batch(1, Duration::ZERO, 230), 71);
        assert_eq!(batch(1, Duration::ZERO, 1 << 20), 1);
        assert_eq!(batch(1, Duration::from_millis(1), 230), 1);
        assert_eq!(batch(8, Duration::from_millis(1), 230), 8);
    }
}
