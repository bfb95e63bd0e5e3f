use super::*;
use crate::ledger::Ledger;
use crate::sse::EventKind;

/// Sees with `event` and `answer`, and has this to say of what it does not see.
struct Fake(Change, Unseen);

impl Observe for Fake {
    fn event(&mut self, event: &Event<'_>) -> Change {
        assert!(
            !event.raw.is_some_and(|raw| raw.windows(3).any(|bytes| bytes == b"[x]")),
            "what is cut is not shown"
        );
        self.0.clone()
    }

    fn answer(&mut self, body: &[u8]) -> Change {
        assert_eq!(body, b"{\"a\":1}");
        self.0.clone()
    }

    fn unseen(&self) -> Unseen {
        self.1
    }
}

/// Sees events only.
struct Blind(Unseen);

impl Observe for Blind {
    fn unseen(&self) -> Unseen {
        self.0
    }
}

fn whole(observer: impl Observe + 'static, room: &std::sync::Arc<Ledger>) -> Whole {
    Whole { observer: Box::new(observer), held: BytesMut::new(), reserved: room.open(), is_passing: false }
}

fn bytes(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

#[test]
fn a_json_answer_is_held_until_it_has_been_seen() {
    let replaced = Change::Replace(Bytes::from_static(b"{}"));
    for (change, want) in [
        (Change::Pass, Ok(bytes("{\"a\":1}"))),
        (Change::Drop, Ok(None)),
        (replaced, Ok(bytes("{}"))),
        (Change::Break, Err(Withheld)),
    ] {
        let room = Ledger::new(100);
        let mut answer = whole(Fake(change, Unseen::Break), &room);
        assert_eq!(answer.take(bytes("{\"a\""), false), Ok(None));
        assert_eq!(room.used(), 4, "what is held is counted");
        assert_eq!(answer.take(bytes(":1}"), true), want);
        drop(answer);
        assert_eq!(room.used(), 0);
    }
}

#[test]
fn an_answer_that_cannot_be_held_passes_or_not_as_its_observer_says() {
    let large = Bytes::from(vec![b'x'; ANSWER_MAX]);
    let (ample, narrow) = (Ledger::new(u64::MAX), Ledger::new(10));
    for (room, second) in [(&ample, &b"y"[..]), (&narrow, b"")] {
        let mut looks_on = whole(Fake(Change::Break, Unseen::Pass), room);
        let mut out = Vec::new();
        for chunk in [&large[..], second, b"z"] {
            let chunk = Some(Bytes::copy_from_slice(chunk));
            out.extend(looks_on.take(chunk, false).expect("it passes").into_iter().flatten());
        }
        assert_eq!(out, [&large[..], second, b"z"].concat());
        let mut protects = whole(Fake(Change::Pass, Unseen::Break), room);
        let first = protects.take(Some(large.clone()), false);
        let last = first.and_then(|out| {
            assert_eq!(out, None, "nothing goes out before it has been seen");
            protects.take(Some(Bytes::copy_from_slice(second)), true)
        });
        assert_eq!(last, Err(Withheld));
    }
}

#[test]
fn who_does_not_look_at_answers_has_not_seen_them() {
    let room = Ledger::new(100);
    assert_eq!(whole(Blind(Unseen::Break), &room).take(bytes("{}"), true), Err(Withheld));
    assert_eq!(whole(Blind(Unseen::Pass), &room).take(bytes("{}"), true), Ok(bytes("{}")));
}

fn event(raw: Option<&[u8]>) -> Event<'_> {
    Event { kind: EventKind::Data, raw, single: true, ends: None }
}

#[test]
fn what_we_cut_is_not_shown_and_stays_cut() {
    let part = Verdict::CutPart { from: 6, to: 9 };
    let shown = event(Some(b"data: [x]y\n"));
    let judged = |change, ours| Watch::new(Box::new(Fake(change, Unseen::Pass))).judge(&shown, ours);
    assert_eq!(judged(Change::Pass, part.clone()), part);
    assert_eq!(judged(Change::Drop, part.clone()), Verdict::Cut);
    let with = Change::Replace(Bytes::from_static(b"data: z"));
    assert_eq!(judged(with, part), Verdict::Replace(Bytes::from_static(b"data: z\n")));
    assert_eq!(judged(Change::Pass, Verdict::Cut), Verdict::Cut, "all of it is cut, and not shown at all");
}

#[test]
fn an_event_that_is_not_seen_ends_the_stream_of_who_protects() {
    for (unseen, is_withheld) in [(Unseen::Pass, false), (Unseen::Break, true)] {
        let mut watch = Watch::new(Box::new(Fake(Change::Pass, unseen)));
        assert_eq!(watch.judge(&event(None), Verdict::Pass), Verdict::Pass);
        assert_eq!(watch.is_withheld(), is_withheld);
    }
    let mut watch = Watch::new(Box::new(Fake(Change::Break, Unseen::Pass)));
    watch.judge(&event(Some(b"data: a\n")), Verdict::Pass);
    assert!(watch.is_withheld());
}
