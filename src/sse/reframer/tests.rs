//! What goes out for chunks, however a stream was cut into them.

use super::*;

/// Pushes chunks and gives what went out after each.
fn push_all(reframer: &mut Reframer, chunks: &[&str]) -> Vec<Option<Bytes>> {
    let chunks = chunks.iter().map(|chunk| Bytes::copy_from_slice(chunk.as_bytes()));
    chunks.map(|chunk| reframer.push(chunk, &mut |_| {})).collect()
}

fn some(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

#[test]
fn a_chunk_of_whole_events_is_not_copied() {
    let chunk = Bytes::from_static(b"data: a\n\ndata: b\n\n");
    let out = Reframer::new(64).push(chunk.clone(), &mut |_| {}).expect("two whole events");
    assert_eq!(out.as_ptr(), chunk.as_ptr());
    assert_eq!(out, chunk);
}

#[test]
fn a_partial_event_waits_for_its_end() {
    let mut reframer = Reframer::new(64);
    let out = push_all(&mut reframer, &["data: a\n\nda", "ta: b\n", "\ndata: c"]);
    assert_eq!(out, [some("data: a\n\n"), None, some("data: b\n\n")]);
    assert!(reframer.at_boundary());
    assert_eq!((reframer.held(), reframer.finish()), (7, some("data: c")));
    assert_eq!(reframer.finish(), None);
}

#[test]
fn a_cut_upstream_drops_the_partial_event() {
    let mut reframer = Reframer::new(64);
    push_all(&mut reframer, &["data: a\n\ndata: ha"]);
    assert_eq!((reframer.discard(), reframer.held(), reframer.finish()), (8, 0, None));
}

#[test]
fn an_event_over_the_hold_streams_through() {
    let mut reframer = Reframer::new(8);
    let mut seen = Vec::new();
    let mut states = Vec::new();
    for chunk in ["data: ab", "cd", "ef", "\n\n", "data: x\n\n"] {
        let out = reframer.push(Bytes::from_static(chunk.as_bytes()), &mut |event| {
            seen.push((event.kind, event.raw.map(<[u8]>::len)));
        });
        states.push((out, reframer.at_boundary()));
    }
    assert_eq!(
        states,
        [
            (None, true),
            (some("data: abcd"), false),
            (some("ef"), false),
            (some("\n\n"), true),
            (some("data: x\n\n"), true),
        ]
    );
    assert_eq!(seen, [(EventKind::Data, None), (EventKind::Data, Some(8))]);
}

#[test]
fn cr_cr_goes_out_at_once_and_a_late_lf_is_no_event() {
    let mut reframer = Reframer::new(64);
    let mut events = 0;
    let mut push = |chunk: &'static str| {
        let out = reframer.push(Bytes::from_static(chunk.as_bytes()), &mut |_| events += 1);
        (out, reframer.at_boundary())
    };
    assert_eq!(push("data: a\r\n\r"), (some("data: a\r\n\r"), true));
    assert_eq!(push("\n"), (some("\n"), true));
    assert_eq!(push("data: b\r\r"), (some("data: b\r\r"), true));
    assert_eq!(events, 2);
}

#[test]
fn a_comment_line_passes_at_once() {
    let mut reframer = Reframer::new(64);
    let out = push_all(&mut reframer, &[": keep-alive\n", "\n", "data: a\n: no\n"]);
    assert_eq!(out, [some(": keep-alive\n"), some("\n"), None]);
}

#[test]
fn a_part_is_cut_wherever_its_event_was_split() {
    let mut judge = |event: Event<'_>| {
        let find = |byte| event.raw.and_then(|raw| memchr::memchr(byte, raw));
        match (find(b'('), find(b')')) {
            (Some(from), Some(last)) => Verdict::CutPart { from, to: last + 1 },
            _ => Verdict::Pass,
        }
    };
    let stream = "\u{feff}data: a(b)c\n\ndata: d\n\ndata: (e)f\n\n";
    for split in 0..stream.len() {
        let mut reframer = Reframer::new(64);
        let (one, two) = stream.as_bytes().split_at(split);
        let mut out = Vec::new();
        for chunk in [one, two] {
            out.extend_from_slice(
                &reframer.filter(Bytes::copy_from_slice(chunk), &mut judge).unwrap_or_default(),
            );
        }
        let want = "\u{feff}data: ac\n\ndata: d\n\ndata: f\n\n";
        assert_eq!(String::from_utf8_lossy(&out), want, "split at {split}");
    }
}

#[test]
fn an_event_is_replaced_wherever_it_was_split() {
    let mut judge = |event: Event<'_>| match event.data() {
        Some(data) if data.starts_with(b"no") => {
            let end = if event.raw.is_some_and(|raw| raw.ends_with(b"\r\n")) { "\r\n" } else { "\n" };
            Verdict::Replace(format!("data: longer than before{end}").into())
        }
        _ => Verdict::Pass,
    };
    let stream = "\u{feff}data: no1\r\n\r\ndata: a\n\n: c\ndata: no2\n\ndata: no3";
    let want = "\u{feff}data: longer than before\r\n\r\ndata: a\n\n: c\ndata: longer than before\n\n\
                data: longer than before\n";
    for split in 0..stream.len() {
        let mut reframer = Reframer::new(64);
        let (one, two) = stream.as_bytes().split_at(split);
        let mut out = Vec::new();
        for chunk in [one, two] {
            let chunk = Bytes::copy_from_slice(chunk);
            out.extend(reframer.filter(chunk, &mut judge).into_iter().flatten());
        }
        out.extend(reframer.finish_with(&mut judge).into_iter().flatten());
        assert_eq!(String::from_utf8_lossy(&out), want, "split at {split}");
    }
}

#[test]
fn an_event_that_is_partly_out_cannot_be_replaced() {
    let mut reframer = Reframer::new(8);
    let mut judge = |_: Event<'_>| Verdict::Replace(Bytes::from_static(b"data: x\n"));
    let mut push = |chunk: &'static str| reframer.filter(Bytes::from_static(chunk.as_bytes()), &mut judge);
    assert_eq!(push("data: larger than that"), some("data: larger than that"));
    assert_eq!(push("\n\ndata: a\n\n"), some("\n\ndata: x\n\n"));
}

#[test]
fn a_cut_event_leaves_its_neighbours_alone() {
    let mut reframer = Reframer::new(64);
    let mut judge = |event: Event<'_>| match event.data() {
        Some(data) if data.starts_with(b"no") => Verdict::Cut,
        _ => Verdict::Pass,
    };
    let mut push = |chunk: &'static str| reframer.filter(Bytes::from_static(chunk.as_bytes()), &mut judge);
    assert_eq!(push("data: a\n\ndata: n"), some("data: a\n\n"));
    assert_eq!(push("o\n\ndata: b\n\ndata: no\n\ndata: c\n\nda"), some("data: b\n\ndata: c\n\n"));
    assert_eq!(push("ta: no\n\n"), None);
}

#[test]
fn raw_has_no_bom_and_no_blank_line() {
    let mut raws = Vec::new();
    let chunk = Bytes::from_static("\u{feff}data: a\r\n\r\ndata: b\n\n".as_bytes());
    Reframer::new(64).push(chunk, &mut |event| raws.push(event.raw.unwrap_or_default().to_vec()));
    assert_eq!(raws, [&b"data: a\r\n"[..], b"data: b\n"]);
}
