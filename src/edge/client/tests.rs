//! What the streams of one connection share of it.

use super::*;
use crate::forwarded::Peer;

const NOWHERE: Entry = Entry { peer: Peer::Unknown, redirect_https: None };

#[test]
fn a_connection_is_as_patient_as_its_most_patient_stream() {
    let connection = Arc::new(Client::new(NOWHERE));
    let (short, long) = (Client::stream_of(&connection), Client::stream_of(&connection));
    let at = Instant::now();
    short.limit(Duration::from_secs(1), at, 1);
    assert_eq!(connection.limits().stall, Duration::from_secs(1));
    long.limit(Duration::from_secs(9), at, 1);
    long.limit(Duration::from_secs(9), at, 1);
    drop(short);
    assert_eq!(connection.limits().stall, Duration::from_secs(9));
    drop(long);
    assert_eq!(connection.limits().stall, Duration::from_secs(9), "what is left to write has no longer");
    Client::stream_of(&connection).limit(Duration::from_secs(2), at, 1);
    assert_eq!(connection.limits().stall, Duration::from_secs(2));
}

#[test]
fn what_cuts_the_connection_cuts_its_streams_and_no_stream_cuts_another() {
    let connection = Arc::new(Client::new(NOWHERE));
    let (one, other) = (Client::stream_of(&connection), Client::stream_of(&connection));
    one.set_cut(Cut::Total);
    assert_eq!((one.cut(), other.cut(), connection.cut()), (Some(Cut::Total), None, None));
    connection.set_cut(Cut::Stalled);
    assert_eq!((one.cut(), other.cut()), (Some(Cut::Total), Some(Cut::Stalled)));
}
