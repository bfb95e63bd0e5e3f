//! What is read and where it goes, without a gateway around it.

use http::HeaderValue;

use super::*;
use crate::openai::{Pointer, request::peek};

fn map(from: &[&str], to: &[&str]) -> SessionMap {
    let mut map = SessionMap::default();
    let mut place = |text: &&str| {
        let (kind, name) = text.split_once(':').expect("KIND:NAME");
        let kind = match kind {
            "header" => Kind::Header(name.parse().expect("a header")),
            "cookie" => Kind::Cookie(name.to_owned()),
            _ => Kind::Body(map.pointers.add(Pointer::parse(name).expect("a pointer"))),
        };
        Place { text: Arc::from(*text), kind }
    };
    let (from, to) = (from.iter().map(&mut place).collect(), to.iter().map(&mut place).collect());
    SessionMap { from, to, ..map }
}

fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let line = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    lines.iter().map(line).collect()
}

fn read(map: &SessionMap, lines: &[(&'static str, &'static str)], body: Option<&str>) -> Session {
    let peeked = body.map(|body| peek(body.as_bytes(), &map.pointers.clone().into()).expect("valid"));
    let body = body.zip(peeked.as_ref()).map(|(body, peek)| (body.as_bytes(), &peek.places));
    Session::read(map, Request { headers: &headers(lines), nominated: &["x-hop".to_owned()], body })
}

/// Where it came from, what it is, and where it goes.
fn told(session: &Session, map: &SessionMap) -> (String, String, Vec<String>) {
    let source = session.source(map).map_or("-", |place| &place.text);
    let added = session.added(map).map(|place| place.text.to_string()).collect();
    (source.to_owned(), session.id.clone().unwrap_or_default(), added)
}

#[test]
fn the_first_usable_place_wins() {
    let map = map(&["header:x-session-id", "cookie:sid", "body:/s"], &[]);
    let body = Some(r#"{"s":"from-body"}"#);
    let cookie = ("cookie", "a=1; sid=from-cookie;b=2");
    for (lines, body, source, id) in [
        (&[("x-session-id", "h"), cookie][..], body, "header:x-session-id", "h"),
        (&[cookie], body, "cookie:sid", "from-cookie"),
        (&[("cookie", "Sid=x; xsid=y")], body, "body:/s", "from-body"),
        (&[("cookie", "a=1"), ("cookie", "sid=\"q\"")], None, "cookie:sid", "q"),
        (&[("x-session-id", "two words"), cookie], body, "cookie:sid", "from-cookie"),
        (&[("x-session-id", "a"), ("x-session-id", "a"), cookie], body, "cookie:sid", "from-cookie"),
        (&[("x-session-id", ""), ("cookie", "sid=a; sid=b")], body, "body:/s", "from-body"),
        (&[("cookie", "sid=; sidx=1")], Some("{}"), "-", ""),
        (&[], None, "-", ""),
    ] {
        let session = read(&map, lines, body);
        assert_eq!(told(&session, &map), (source.into(), id.into(), vec![]), "{lines:?} {body:?}");
    }
}

#[test]
fn only_visible_ascii_in_a_string_is_an_id() {
    let map = map(&["body:/s"], &["header:x-s"]);
    let longest = format!("\"{}\"", "a".repeat(256));
    let escaped = format!("\"{}\"", "\\u0061".repeat(256));
    let too_long = format!("\"{}\"", "a".repeat(257));
    let (a256, quote) = ("a".repeat(256), r#""\u0022\/\\""#);
    for (json, id) in [
        (r#""s-1""#, "s-1"),
        (quote, r#""/\"#),
        (&longest, &a256),
        (&escaped, &a256),
        (&too_long, ""),
        ("\"\"", ""),
        ("\"a b\"", ""),
        ("\"é\"", ""),
        ("\"\\ud800\"", ""),
        ("\"\\n\"", ""),
        ("7", ""),
        ("true", ""),
        ("[\"a\"]", ""),
        ("{\"a\":\"b\"}", ""),
        ("null", ""),
    ] {
        let session = read(&map, &[], Some(&format!("{{\"s\": {json} }}")));
        assert_eq!(session.id.as_deref().unwrap_or_default(), id, "{json}");
        assert_eq!(session.added(&map).count(), usize::from(!id.is_empty()), "{json}");
        let state = match (id, json) {
            ("", "null") => State::Absent,
            ("", _) => State::Odd,
            _ => State::Usable,
        };
        assert_eq!(session.state(0), state, "{json}");
    }
}

#[test]
fn what_the_client_filled_is_left_even_if_it_is_odd() {
    let map = map(&["header:x-a"], &["header:x-b", "cookie:c", "body:/d", "body:/e/f"]);
    let all: Vec<String> = map.to.iter().map(|place| place.text.to_string()).collect();
    let added = |lines: &[(&'static str, &'static str)], body| told(&read(&map, lines, body), &map).2;
    let id = ("x-a", "1");
    assert_eq!(added(&[id], Some("{}")), all);
    assert_eq!(added(&[id], Some(r#"{"d":null,"e":null}"#)), all, "null says nothing");
    assert_eq!(added(&[id], None), all[..2], "there is no body to put it in");
    assert_eq!(added(&[id, ("x-b", ""), ("cookie", "c=x y")], Some(r#"{"d":7,"e":{"f":[]}}"#)), all[..0]);
    assert_eq!(added(&[("x-b", "1")], Some("{}")), all[..0], "there is no id");
    assert_eq!(added(&[id, ("x-hop", "1")], Some(r#"{"e":{"g":1}}"#)), all);
}

#[test]
fn a_header_of_the_connection_is_not_the_requests() {
    let map = map(&["header:x-hop", "header:x-a"], &["header:x-hop"]);
    let session = read(&map, &[("x-hop", "h"), ("x-a", "1")], None);
    assert_eq!(told(&session, &map), ("header:x-a".into(), "1".into(), vec!["header:x-hop".into()]));
}

#[test]
fn what_cannot_hold_an_id_is_told() {
    let map = map(&["header:x-a"], &["cookie:c", "body:/l/x", "body:/t/x"]);
    let blocked = |id, body| {
        let session = read(&map, &[("x-a", id)], Some(body));
        session.blocked(&map).map(|place| place.text.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(blocked("1", r#"{"l":[],"t":"x"}"#), ["body:/l/x", "body:/t/x"]);
    assert_eq!(blocked("a;admin=1", "{}"), ["cookie:c"]);
    assert_eq!(blocked("1", "{}"), [""; 0]);
}

#[test]
fn no_debug_output_has_the_id() {
    let session = read(&map(&["header:x-a"], &[]), &[("x-a", "s3cret")], None);
    assert!(!format!("{session:?}").contains("s3cret"));
}
