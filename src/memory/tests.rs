//! The rules of the ladder, without a process around them.

use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::choose::{self, choose};
use super::*;

const LIMIT: u64 = 1000;

fn at(permille: u64) -> Reading {
    Reading { used: permille, promised: 0, limit: LIMIT }
}

#[test]
fn the_level_rises_at_its_marks_and_falls_five_percent_below_them() {
    let mut level = Level::Calm;
    let walk = [
        (799, Level::Calm),
        (800, Level::Short),
        (760, Level::Short),
        (899, Level::Short),
        (900, Level::Refuse),
        (949, Level::Refuse),
        (2000, Level::Cut),
        (900, Level::Cut),
        (899, Level::Refuse),
        (850, Level::Refuse),
        (849, Level::Short),
        (750, Level::Short),
        (749, Level::Calm),
        (950, Level::Cut),
        (0, Level::Calm),
    ];
    for (permille, wanted) in walk {
        level = level.next(at(permille));
        assert_eq!(level, wanted, "at {permille}");
    }
}

#[test]
fn for_what_is_only_promised_nothing_new_is_let_in_and_nobody_is_cut() {
    let soon = |used, promised| Reading { used, promised, limit: LIMIT };
    assert_eq!(Level::Calm.next(soon(700, 100)), Level::Short);
    assert_eq!(Level::Calm.next(soon(700, 200)), Level::Refuse);
    assert_eq!(Level::Calm.next(soon(700, u64::MAX)), Level::Refuse);
    assert_eq!(Level::Calm.next(soon(950, 50)), Level::Cut);
    assert_eq!(Level::Cut.next(soon(899, 900)), Level::Refuse);
    assert_eq!(Level::Refuse.next(soon(700, 150)), Level::Refuse, "with air");
    assert_eq!(Level::Refuse.next(soon(700, 149)), Level::Short);
}

#[test]
fn who_has_begun_within_a_second_and_is_there_is_counted_in_advance() {
    let (mut young, start) = (Young::default(), Instant::now());
    let at = |millis| start + Duration::from_millis(millis);
    let mut of = |begun, there, millis| young.promised(begun, there, at(millis)) / choose::STREAM;
    assert_eq!(of(1000, 400, 0), 0, "those from before are old");
    assert_eq!(of(1010, 410, 500), 10);
    assert_eq!(of(1015, 415, 1000), 15);
    assert_eq!(of(1015, 3, 1100), 3, "the others are gone");
    assert_eq!(of(1015, 415, 1499), 15);
    assert_eq!(of(1015, 415, 1500), 5);
    assert_eq!(of(1015, 415, 2000), 0);
}

#[test]
fn without_a_limit_all_is_calm() {
    assert_eq!(Level::Calm.next(Reading::default()), Level::Calm);
    assert_eq!(Level::Calm.next(Reading { used: u64::MAX, promised: u64::MAX, limit: 0 }), Level::Calm);
}

#[test]
fn levels_come_back_from_their_numbers() {
    for level in [Level::Calm, Level::Short, Level::Refuse, Level::Cut] {
        assert_eq!(Level::of(level as u8), level);
    }
}

#[test]
fn the_largest_are_cut_first_and_no_more_than_needed() {
    let held = [Holding::upload(300_000), Holding::upload(5_000_000), Holding::upload(1000), stalled(64_000)];
    assert_eq!(choose(&held, 0, 95), Vec::<usize>::new());
    assert_eq!(choose(&held, 1, 95), [1]);
    assert_eq!(choose(&held, 5_000_001, 95), [1, 0]);
    assert_eq!(choose(&held, u64::MAX, 95), [1, 0, 3, 2], "a stream costs more than what is counted on it");
}

#[test]
fn a_stream_that_flows_is_nobody_to_cut() {
    let waited = |millis| [Holding::stream(1 << 30, Duration::from_millis(millis))];
    for (percent, millis, is_cut) in [
        (95, 0, false),
        (95, 999, false),
        (95, 1000, true),
        (97, 99, false),
        (97, 100, true),
        (100, 0, false),
    ] {
        assert_eq!(
            choose(&waited(millis), u64::MAX, percent).len(),
            usize::from(is_cut),
            "{millis} at {percent}"
        );
    }
}

fn stalled(bytes: u64) -> Holding {
    Holding::stream(bytes, Duration::from_secs(1))
}

/// A reading with so much to come back: the tenth of its limit that is to be free is missing.
fn excess(bytes: u64) -> Reading {
    Reading { used: 900 + bytes, promised: 0, limit: LIMIT }
}

#[derive(Default)]
struct Upload {
    bytes: u64,
    cut: AtomicBool,
}

impl Holder for Upload {
    fn holding(&self, _now: Instant) -> Option<Holding> {
        (!self.cut.load(Ordering::Relaxed)).then(|| Holding::upload(self.bytes))
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}

#[test]
fn who_has_left_the_table_is_not_cut() {
    let memory = Arc::new(Memory::new(LIMIT));
    let holders = [10, 30, 20].map(|bytes| Arc::new(Upload { bytes, ..Upload::default() }));
    let [one, two, three] = holders.clone().map(|holder| memory.enter(holder));
    drop(two);
    assert_eq!(memory.cut(excess(1), &mut Leaving::default(), Instant::now()), [Holding::upload(20)]);
    assert_eq!(holders.map(|holder| holder.cut.load(Ordering::Relaxed)), [false, false, true]);
    drop((one, three));
    assert!(memory.holders.lock().is_empty());
}

#[test]
fn what_is_still_to_come_back_counts_as_back() {
    let (memory, now) = (Arc::new(Memory::new(LIMIT)), Instant::now());
    let mut leaving = Leaving::default();
    let holders = [40, 30, 20].map(|bytes| Arc::new(Upload { bytes, ..Upload::default() }));
    let mut entries: Vec<_> = holders.into_iter().map(|holder| memory.enter(holder)).collect();
    assert_eq!(memory.cut(excess(35), &mut leaving, now), [Holding::upload(40)]);
    assert_eq!(memory.cut(excess(35), &mut leaving, now), [], "it is on its way");
    assert_eq!(memory.cut(excess(45), &mut leaving, now), [Holding::upload(30)], "five more are too much");
    drop(entries.remove(0));
    assert_eq!(memory.cut(excess(30), &mut leaving, now), [], "the second one is hoped for");
    assert_eq!(memory.cut(excess(31), &mut leaving, now), [Holding::upload(20)]);
    assert_eq!(leaving.pending(now + Duration::from_secs(1)), 50);
    assert_eq!(leaving.pending(now + Duration::from_secs(2)), 0, "no longer");
}

#[test]
fn heads_are_counted_while_they_are_read() {
    let memory = Memory::new(LIMIT);
    let (mut one, mut two) = (memory.head(), memory.head());
    assert!(one.fit(50) && two.fit(7) && one.fit(55), "a sixteenth of the memory is theirs");
    assert!(!one.fit(56) && one.fit(55));
    assert_eq!(memory.heads(), 62);
    drop(one);
    assert_eq!(memory.heads(), 7);
    memory.note(at(900));
    assert!(!two.fit(8), "nothing new");
    drop(two);
    assert_eq!(memory.heads(), 0);
}

#[tokio::test(start_paused = true)]
async fn patience_is_a_tenth_from_the_moment_when_memory_is_short() {
    let memory = Arc::new(Memory::new(LIMIT));
    let began = tokio::time::Instant::now();
    memory.patience(Duration::from_secs(10)).await;
    assert_eq!(began.elapsed().as_secs(), 10);

    let (patient, began) = (Arc::clone(&memory), tokio::time::Instant::now());
    let waiting = tokio::spawn(async move { patient.patience(Duration::from_secs(100)).await });
    tokio::time::sleep(Duration::from_secs(5)).await;
    memory.note(at(800));
    waiting.await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 15);
    assert_eq!(memory.shortened(Duration::from_secs(10)), Duration::from_secs(1));
    assert_eq!(memory.above(Level::Calm).await, Level::Short);
}

fn holdings() -> impl Strategy<Value = Vec<Holding>> {
    let one = (any::<bool>(), 0..1_u64 << 34);
    let one =
        one.prop_map(|(is_upload, bytes)| if is_upload { Holding::upload(bytes) } else { stalled(bytes) });
    proptest::collection::vec(one, 0..40)
}

proptest! {
    /// Wherever it comes from, the level is never below what the reading demands, never above it by more than
    /// the gap, and stays where it is at the same reading.
    #[test]
    fn the_level_follows_the_memory(walk in proptest::collection::vec(0..1200_u64, 1..60)) {
        let mut level = Level::Calm;
        for permille in walk {
            let before = level;
            level = level.next(at(permille));
            prop_assert!(level >= Level::Calm.next(at(permille)));
            prop_assert!(level <= Level::Calm.next(at(permille + 50)).max(Level::Calm));
            prop_assert_eq!(level.next(at(permille)), level);
            // It moves only if it must.
            let fits = before >= Level::Calm.next(at(permille)) && before <= Level::Calm.next(at(permille + 50));
            prop_assert_eq!(fits, level == before);
        }
    }

    /// Enough comes back if there is enough; the last one was needed; whoever is spared is no larger than any who
    /// is cut.
    #[test]
    fn who_is_cut(held in holdings(), excess in 0..1_u64 << 38) {
        let chosen = choose(&held, excess, 95);
        let cost = |places: &[usize]| places.iter().map(|&at| held[at].cost()).sum::<u64>();
        let is_spared = |at: &usize| !chosen.contains(at);
        let spared: Vec<usize> = (0..held.len()).filter(is_spared).collect();
        prop_assert!(cost(&chosen) >= excess || spared.is_empty());
        if let Some((_, others)) = chosen.split_last() {
            prop_assert!(cost(others) < excess);
        }
        let smallest = chosen.iter().map(|&at| held[at].cost()).min();
        let largest = spared.iter().map(|&at| held[at].cost()).max();
        prop_assert!(smallest.zip(largest).is_none_or(|(cut, kept)| kept <= cut));
    }
}
