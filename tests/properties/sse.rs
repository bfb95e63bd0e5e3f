//! The SSE reader and the reframer, for every input and every split.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use streamgate::sse::{DataWatch, Event, EventKind, Reframer, Verdict, decode, encode};

use crate::naive;

const HOLD: usize = 24;

/// Streams out of the pieces that matter, in any order.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&[u8]; 20] = [
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\r\r",
        b"\r\n\r\n",
        b"data: x",
        b"data:",
        b"data",
        b"dat",
        b"a: y",
        b"event: e",
        b": c",
        b":",
        b" ",
        b"\xef\xbb\xbf",
        b"\xef\xbb",
        b"\xff",
        "é😀".as_bytes(),
        b"data: twenty bytes and more of one line",
    ];
    prop_oneof![
        4 => vec(0..PIECES.len(), 0..24).prop_map(|picks| picks.iter().flat_map(|&i| PIECES[i]).copied().collect()),
        1 => vec(any::<u8>(), 0..64),
    ]
}

/// The stream with sizes of the chunks it comes in; zero-sized ones among them.
fn chunked() -> impl Strategy<Value = (Vec<u8>, Vec<Bytes>)> {
    (stream(), prop_oneof![Just(vec![1]), vec(0..12_usize, 1..12), Just(vec![1 << 20])]).prop_map(
        |(input, sizes)| {
            let mut rest = Bytes::from(input.clone());
            let mut chunks = Vec::new();
            for size in sizes.iter().cycle().take(4 * input.len().max(1)) {
                chunks.push(rest.split_to((*size).min(rest.len())));
            }
            chunks.push(rest);
            (input, chunks)
        },
    )
}

/// What the observer is told: kind, data, and whether it could look.
type Told = (EventKind, Option<Vec<u8>>, bool);

fn told(event: &Event<'_>) -> Told {
    (event.kind, event.data().map(|data| data.into_owned()), event.raw.is_some())
}

fn naive_told(event: naive::Event) -> Told {
    let fits = event.len <= HOLD;
    (event.kind, event.data.filter(|_| fits), fits)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn bytes_are_the_same_and_events_are_the_naive_ones((input, chunks) in chunked()) {
        let mut reframer = Reframer::new(HOLD);
        let (mut out, mut seen) = (Vec::new(), Vec::new());
        for chunk in chunks {
            out.extend(reframer.push(chunk, &mut |event| seen.push(told(&event))).into_iter().flatten());
        }
        out.extend(reframer.finish().into_iter().flatten());
        prop_assert_eq!(&out, &input);
        let want: Vec<Told> = naive::events(&input).0.into_iter().map(naive_told).collect();
        prop_assert_eq!(seen, want);
    }

    #[test]
    fn whole_events_are_never_late_and_parts_are_held_within_the_bound((input, chunks) in chunked()) {
        let mut reframer = Reframer::new(HOLD);
        let (mut arrived, mut out) = (0, 0);
        for chunk in chunks {
            arrived += chunk.len();
            out += reframer.push(chunk, &mut |_| {}).map_or(0, |out| out.len());
            prop_assert!(reframer.held() <= HOLD);
            prop_assert_eq!(out + reframer.held(), arrived);
            // What is unfinished is held, or has gone out because it is too large.
            let (_, boundary) = naive::events(&input[..arrived]);
            let unfinished = arrived - boundary;
            prop_assert_eq!(reframer.at_boundary(), out == boundary);
            prop_assert_eq!(reframer.held(), if unfinished > HOLD { 0 } else { unfinished });
        }
    }

    #[test]
    fn cutting_leaves_every_other_byte((input, chunks) in chunked(), modulus in 1..4_usize) {
        // Cutting what stands before a BOM makes it the stream's own to the naive reader.
        if input.windows(3).any(|bytes| bytes == b"\xef\xbb\xbf") {
            return Ok(());
        }
        let mut reframer = Reframer::new(HOLD);
        let (mut out, mut count) = (Vec::new(), 0);
        for chunk in chunks {
            let judge = &mut |event: Event<'_>| {
                count += 1;
                if event.raw.is_some() && count % modulus == 0 { Verdict::Cut } else { Verdict::Pass }
            };
            out.extend(reframer.filter(chunk, judge).into_iter().flatten());
        }
        out.extend(reframer.finish().into_iter().flatten());
        let kept = |(i, event): (usize, naive::Event)| {
            ((i + 1) % modulus != 0 || event.len > HOLD).then(|| naive_told(event))
        };
        let want: Vec<Told> = naive::events(&input).0.into_iter().enumerate().filter_map(kept).collect();
        let got: Vec<Told> = naive::events(&out).0.into_iter().map(naive_told).collect();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn replacing_gives_the_same_for_every_split((input, chunks) in chunked(), modulus in 1..4_usize) {
        let replaced = |chunks: Vec<Bytes>| {
            let mut reframer = Reframer::new(HOLD);
            let (mut out, mut count) = (Vec::new(), 0);
            let mut judge = |event: Event<'_>| {
                count += 1;
                // It must end as the lines did; a lone comment has no line end of its own here.
                let end = match event.raw {
                    Some([.., b'\r', b'\n']) => "\r\n",
                    Some([.., b'\r']) => "\r",
                    _ => "\n",
                };
                let with = Bytes::from(format!("data: {count}{end}"));
                if count % modulus == 0 { Verdict::Replace(with) } else { Verdict::Pass }
            };
            for chunk in chunks {
                out.extend(reframer.filter(chunk, &mut judge).into_iter().flatten());
            }
            out.extend(reframer.finish_with(&mut judge).into_iter().flatten());
            out
        };
        let out = replaced(chunks);
        prop_assert_eq!(&out, &replaced(vec![Bytes::from(input.clone())]));
        // What stands before a BOM at first, and is replaced, ends its being the stream's own to the naive reader.
        if input.windows(3).any(|bytes| bytes == b"\xef\xbb\xbf") {
            return Ok(());
        }
        // The line end that is added below to a tail without one was not there to be held.
        let whole = naive::events(&input).0.len();
        let has_added = |i: usize, event: &naive::Event| {
            i == whole && event.kind != EventKind::Comment && !input.ends_with(b"\n")
        };
        let tail = naive::events(&[&input[..], b"\n\n"].concat()).0;
        let want = tail.into_iter().enumerate().map(|(i, event)| match (i + 1) % modulus {
            0 if event.len - usize::from(has_added(i, &event)) <= HOLD => Some((i + 1).to_string().into_bytes()),
            _ => naive_told(event).1,
        });
        let got = naive::events(&[&out[..], b"\n\n"].concat()).0;
        let got = got.into_iter().map(|event| naive_told(event).1);
        prop_assert_eq!(got.collect::<Vec<_>>(), want.collect::<Vec<_>>());
    }

    #[test]
    fn the_watch_ends_with_the_first_data_event((input, chunks) in chunked()) {
        let mut watch = DataWatch::new(HOLD);
        let (mut arrived, mut committed) = (0, None);
        for chunk in &chunks {
            committed = watch.push(chunk).map(|at| arrived + at);
            arrived += chunk.len();
            if committed.is_some() {
                break;
            }
        }
        let (events, boundary) = naive::events(&input[..arrived]);
        match (committed, events.iter().find(|event| event.kind == EventKind::Data)) {
            // Cut after the CR of a CRLF, the event ends one byte before its line does.
            (Some(at), Some(event)) if at <= event.end => prop_assert!(at + 1 >= event.end),
            (Some(at), _) => prop_assert!(at == arrived && arrived - boundary > HOLD),
            (None, first) => prop_assert!(first.is_none() && arrived - boundary <= HOLD),
        }
    }

    #[test]
    fn what_is_encoded_is_decoded(data in "[a\u{e9}\u{1f600} :\r\n]{0,40}") {
        let event = encode::event(&data);
        let lines = data.replace("\r\n", "\n").replace('\r', "\n");
        let read = decode::data(&event);
        prop_assert_eq!(read.as_deref(), Some(lines.as_bytes()));
        prop_assert_eq!(naive::events(&event).0.len(), 1);
        let comment = encode::comment(&data);
        prop_assert!(naive::events(&comment).0.iter().all(|event| event.kind == EventKind::Comment));
    }

    #[test]
    fn the_decoder_agrees_with_the_naive_one(input in stream()) {
        let whole = [&input[..], b"\n\n"].concat();
        if let (Some(first), false) = (naive::events(&whole).0.first(), whole.starts_with(b"\xef\xbb\xbf")) {
            let got = decode::data(&whole[..first.end]).map(|data| data.into_owned());
            prop_assert_eq!(got, first.data.clone());
        }
    }
}
