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

#[test]
fn what_cannot_be_opened_anew_stays_open() {
    let dir = tempfile::tempdir().unwrap();
    let (path, away) = (dir.path().join("usage.log"), dir.path().join("away.log"));
    let reopen = Reopen::default();
    let mut file = LogFile::open(&path, Some(Rotate { size: 10, keep: 1 }), reopen.clone()).unwrap();
    file.write_all(b"one\n").unwrap();
    fs::rename(&path, &away).unwrap();
    fs::create_dir(&path).unwrap();
    reopen.ask();
    // The last of them would be too much for one file.
    for line in ["two\n", "three\n", "four\n"] {
        file.write_all(line.as_bytes()).unwrap();
    }
    assert_eq!(read(&away).as_deref(), Some("one\ntwo\nthree\nfour\n"));
    assert!(path.is_dir() && !file.numbered(1).exists(), "the folder is nobody's log, and is not moved");
}

#[test]
fn a_file_is_known_by_any_name() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    symlink("folder", at("same-folder")).unwrap();
    symlink("a.log", at("link.log")).unwrap();
    symlink("link.log", at("link-of-link.log")).unwrap();
    symlink("same-folder/b.log", at("b.log")).unwrap();
    symlink("loop.log", at("loop.log")).unwrap();
    let alike = |one: &str, other: &str| (is_same(&at(one), &at(other)), is_same(&at(other), &at(one)));
    for made in [false, true] {
        assert_eq!(alike("a.log", "link-of-link.log"), (true, true), "made: {made}");
        assert_eq!(alike("folder/b.log", "b.log"), (true, true), "made: {made}");
        assert_eq!(alike("a.log", "b.log"), (false, false), "made: {made}");
        assert_eq!(alike("a.log", "other.log"), (false, false), "made: {made}");
        assert_eq!(alike("a.log", "loop.log"), (false, false), "made: {made}");
        fs::write(at("a.log"), "").unwrap();
        fs::write(at("folder/b.log"), "").unwrap();
    }
    fs::hard_link(at("a.log"), at("hard.log")).unwrap();
    assert_eq!(alike("link.log", "hard.log"), (true, true));
    assert!(!is_same(Path::new("/dev/null"), Path::new("/dev/null")));
}

#[test]
fn a_link_is_as_good_as_the_folder_that_it_leads_to() {
    let dir = tempfile::tempdir().unwrap();
    let (good, bad) = (dir.path().join("good.log"), dir.path().join("bad.log"));
    std::os::unix::fs::symlink("there.log", &good).unwrap();
    std::os::unix::fs::symlink("nowhere/there.log", &bad).unwrap();
    could_open(&good).unwrap();
    assert_eq!(could_open(&bad).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(!dir.path().join("there.log").exists(), "nothing is made");
}
