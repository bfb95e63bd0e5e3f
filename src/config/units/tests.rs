use super::*;
use proptest::prelude::*;

#[test]
fn quantities_read_with_their_unit() {
    for (text, ms) in [("0s", 0), ("250ms", 250), ("5s", 5000), ("10m", 600_000), ("1h", 3_600_000)] {
        assert_eq!(Duration::from_text(text), Ok(Duration(StdDuration::from_millis(ms))), "{text}");
    }
    for (text, bytes) in [("0B", 0), ("230B", 230), ("64KiB", 65536), ("32MiB", 32 << 20), ("2GiB", 2 << 30)]
    {
        assert_eq!(Size::from_text(text), Ok(Size(bytes)), "{text}");
    }
    let minute = Rate { count: 600, per: StdDuration::from_secs(60) };
    assert_eq!(Rate::from_text("600/min"), Ok(minute));
    assert_eq!(Percent::from_text("0.5%"), Ok(Percent(0.5)));
}

#[test]
fn what_is_no_quantity_is_refused_with_advice() {
    let fix = |text| Duration::from_text(text).unwrap_err().fix;
    assert_eq!(fix("30"), "write 30s or 30ms");
    assert_eq!(fix("9000h"), "write 8760h or less");
    for text in ["", "s", "-1s", "+1s", "1.5s", "1 s", "1S", "1s ", "٣s", "99999999999999999999s"] {
        assert_eq!(fix(text), "write for example 250ms, 5s, 10m or 1h", "{text}");
    }
    for text in ["64KB", "64kB", "64k", "64K", "64kib"] {
        assert_eq!(Size::from_text(text).unwrap_err().fix, "write 64KiB", "{text}");
    }
    assert_eq!(Size::from_text("50m").unwrap_err().fix, "write 50MiB");
    assert_eq!(Size::from_text("2g").unwrap_err().fix, "write 2GiB");
    assert_eq!(Size::from_text("17179869184GiB").unwrap_err().fix, "write less");
    for text in ["0/s", "10", "10/d", "/s", "10 / s"] {
        assert!(Rate::from_text(text).is_err(), "{text}");
    }
    for text in ["101%", "20", "inf%", "1e1%", ".5%", "-1%", "%", "1.2.3%"] {
        assert!(Percent::from_text(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(ms in 0..=8760_u64 * 3_600_000, bytes: u64, count in 1..u64::MAX, share in 0..=100_u8) {
        let span = Duration(StdDuration::from_millis(ms));
        prop_assert_eq!(Duration::from_text(&span.to_string()), Ok(span));
        prop_assert_eq!(Size::from_text(&Size(bytes).to_string()), Ok(Size(bytes)));
        for seconds in [1, 60, 3600] {
            let rate = Rate { count, per: StdDuration::from_secs(seconds) };
            prop_assert_eq!(Rate::from_text(&rate.to_string()), Ok(rate));
        }
        let share = Percent(share.into());
        prop_assert_eq!(Percent::from_text(&share.to_string()), Ok(share));
    }

    #[test]
    fn any_text_is_read_or_refused(text: String) {
        let read = (Duration::from_text(&text).is_ok(), Size::from_text(&text).is_ok());
        prop_assert!(read != (true, true));
    }
}
