//! Event streams: every byte comes out again in its order, and the events are the same however the stream is cut.
use bytes::Bytes;
use streamgate::openai::{Dialect, Observer};
use streamgate::sse::{Event, EventKind, Reframer};

const HOLD: usize = 64;

/// Kind and data of an event.
type Told = (EventKind, Option<Vec<u8>>);

fn reframed(stream: &[u8], piece: usize, dialect: Dialect) -> (Vec<u8>, Vec<Told>) {
    let (mut reframer, mut observer) = (Reframer::new(HOLD), Observer::new(dialect));
    let (mut out, mut told) = (Vec::new(), Vec::new());
    for chunk in stream.chunks(piece) {
        let see = &mut |event: Event<'_>| {
            observer.event(&event);
            told.push((event.kind, event.data().map(|data| data.into_owned())));
        };
        out.extend(reframer.push(Bytes::copy_from_slice(chunk), see).into_iter().flatten());
        assert!(reframer.held() <= HOLD);
    }
    out.extend(reframer.finish().into_iter().flatten());
    (out, told)
}

/// Reframes one input.
pub(crate) fn run(input: &[u8]) {
    let Some((&first, stream)) = input.split_first() else { return };
    let dialect =
        [Dialect::Chat, Dialect::Responses, Dialect::Messages, Dialect::Other][usize::from(first >> 6)];
    let (out, told) = reframed(stream, stream.len().max(1), dialect);
    assert_eq!(out, stream);
    let cut = reframed(stream, usize::from(first & 63) + 1, dialect);
    assert_eq!(cut, (out, told));
}
