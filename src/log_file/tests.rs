use super::*;

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

#[test]
fn a_full_file_is_moved_away_and_the_oldest_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage.log");
    let rotate = Some(Rotate { size: 10, keep: 2 });
    let mut file = LogFile::open(&path, rotate, Reopen::default()).unwrap();
    for line in ["one\n", "two\n", "three\n", "four\nfive\nsix\n", "seven\n"] {
        file.write_all(line.as_bytes()).unwrap();
    }
    let numbered = |n| read(&file.numbered(n));
    assert_eq!(read(&path).as_deref(), Some("seven\n"));
    assert_eq!(numbered(1).as_deref(), Some("four\nfive\nsix\n"), "what is written at once stays together");
    assert_eq!(numbered(2).as_deref(), Some("three\n"));
    assert_eq!(numbered(3), None);
}

#[test]
fn what_another_process_wrote_counts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage.log");
    fs::write(&path, "before\n").unwrap();
    let rotate = Some(Rotate { size: 10, keep: 1 });
    let mut file = LogFile::open(&path, rotate, Reopen::default()).unwrap();
    file.write_all(b"after\n").unwrap();
    assert_eq!(read(&path).as_deref(), Some("after\n"));
    assert_eq!(read(&file.numbered(1)).as_deref(), Some("before\n"));
}

#[test]
fn a_file_that_cannot_be_moved_away_grows_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage.log");
    let mut file = LogFile::open(&path, Some(Rotate { size: 4, keep: 1 }), Reopen::default()).unwrap();
    fs::create_dir(file.numbered(1)).unwrap();
    for line in ["one\n", "two\n"] {
        file.write_all(line.as_bytes()).unwrap();
    }
    assert_eq!(read(&path).as_deref(), Some("one\ntwo\n"));
}

#[test]
fn a_file_that_was_moved_away_is_opened_anew_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let (path, away) = (dir.path().join("a.log"), dir.path().join("b.log"));
    let reopen = Reopen::default();
    let mut file = LogFile::open(&path, None, reopen.clone()).unwrap();
    file.write_all(b"one\n").unwrap();
    fs::rename(&path, &away).unwrap();
    file.write_all(b"two\n").unwrap();
    reopen.ask();
    file.write_all(b"three\n").unwrap();
    assert_eq!((read(&away).as_deref(), read(&path).as_deref()), (Some("one\ntwo\n"), Some("three\n")));
}

#[test]
fn a_pipe_that_nobody_reads_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let error = LogFile::open(&path, None, Reopen::default()).unwrap_err();
    assert_eq!(error.to_string(), "nobody reads this pipe");
    let reader = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    LogFile::open(&path, None, Reopen::default()).unwrap().write_all(b"line\n").unwrap();
    drop(reader);
}

#[test]
fn half_a_line_is_ended_before_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    // As a process that was killed leaves it.
    fs::write(&path, "hal").unwrap();
    let mut file = LogFile::open(&path, None, Reopen::default()).unwrap();
    file.write_all(b"whole\n").unwrap();
    file.write_all(b"more\n").unwrap();
    assert_eq!(read(&path).as_deref(), Some("hal\nwhole\nmore\n"));
}
