//! Every configuration file of the repository: those we ship load without a word of complaint, the
//! sound ones load, and the broken ones are refused with the very text beside them.
//!
//! `UPDATE_GOLDEN=1` rewrites the `.err` files; read the difference before committing it.

#[path = "config/machine.rs"]
mod machine;
mod support;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use machine::ENVIRONMENT;
use streamgate::config::{Address, Auth, Cluster, Config, Loaded, Problems, Streaming, Trust, load};
use streamgate::keys::Digest;

/// Every YAML file of a folder, by name. An empty folder would prove nothing.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no files in {}", folder.display());
    files
}

fn loaded(path: &Path) -> Loaded {
    load(path, &ENVIRONMENT).unwrap_or_else(|problems| panic!("{problems}"))
}

/// What `load` says of a file, without the folder.
fn told(path: &Path) -> String {
    let name = path.file_name().expect("files have names").to_string_lossy();
    match load(path, &ENVIRONMENT) {
        Ok(_) => panic!("{name} was accepted"),
        Err(problems) => format!("{}\n", problems.in_file(name)),
    }
}

#[test]
fn files_that_we_ship_load() {
    for path in files("conf").into_iter().chain(files("conf/examples")) {
        loaded(&path);
    }
}

#[test]
fn the_first_file_of_a_newcomer_has_no_warnings() {
    let start = loaded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/streamgate.yaml"));
    assert!(start.warnings.is_empty(), "{:?}", start.warnings);
    assert_eq!((start.config.clusters[0].backends.len(), start.config.sim.len()), (3, 3));
    // A terminal gets its prompt back at once, and no line on descriptors comes first.
    assert!(start.config.server.shutdown.lame_duck.is_zero());
    assert_eq!(start.config.server.connections_max, Some(1000));
}

#[test]
fn sound_files_load() {
    for path in files("tests/config/valid") {
        loaded(&path);
    }
}

#[test]
fn broken_files_are_refused_with_place_and_reason() {
    let mut differing = Vec::new();
    for path in files("tests/config/invalid") {
        let (told, golden) = (told(&path), path.with_extension("err"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&golden, &told).unwrap();
        }
        let wanted = fs::read_to_string(&golden).unwrap_or_default();
        if told != wanted {
            differing.push(format!("{}\n--- wanted\n{wanted}--- told\n{told}", golden.display()));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn values_of_the_environment_are_read_as_what_the_setting_is() {
    let config =
        loaded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/valid/environment.yaml")).config;
    assert_eq!((config.server.threads, config.server.request.body_bytes), (2, 2 << 20));
    let addresses: Vec<_> = config.server.listen.iter().map(|listen| listen.address.clone()).collect();
    assert_eq!(addresses, [Address::Tcp("127.0.0.1:0".parse().unwrap())]);
    let route = &config.routes[0];
    assert_eq!((route.stream.heartbeat, route.stream.window), (None, 128 << 10));
    assert_eq!((route.timeouts.idle, route.streaming), (Duration::from_secs(7), Streaming::Required));
    assert_eq!(&*route.name, "${WORD} ${WORD} \"}]");
    let backend = &config.clusters[0].backends[0];
    assert_eq!((&*backend.name, &*backend.host, backend.drain), ("gpu-1", "gpu-1", true));
}

/// Where the values of a file stand: what follows a colon, a list as one.
fn values(text: &str) -> Vec<Range<usize>> {
    let value = |(at, colon): (usize, &str)| {
        let begin = at + colon.len();
        let rest = &text[begin..];
        let length = match rest.as_bytes()[0] {
            b'{' if !rest.starts_with("{}") => return None,
            b'{' => 2,
            b'[' => rest.find(']')? + 1,
            b'"' => rest[1..].find('"')? + 2,
            _ => rest.find([',', '}', '\n'])?,
        };
        Some(begin..begin + length)
    };
    text.match_indices(": ").filter_map(value).collect()
}

#[test]
fn no_message_repeats_a_value_of_the_environment() {
    let full = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/valid/full.yaml"))
        .unwrap();
    let values = values(&full);
    assert!(values.len() > 80, "only {} settings were tried", values.len());
    let mut refused = 0;
    for value in values {
        let text = format!("{}\"${{TEXT}}\"{}", &full[..value.start], &full[value.end..]);
        if let Err(problems) = parse(&text) {
            refused += 1;
            let told = problems.to_string();
            assert!(!told.contains("canary"), "{told}");
        }
    }
    assert!(refused > 60, "only {refused} settings were refused");
}

#[test]
fn credentials_are_read_where_the_file_says_and_not_printed() {
    let loaded = loaded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/valid/credentials.yaml"));
    let sent = |cluster: &Cluster| match &cluster.auth {
        Auth::Own(own) => {
            Some((own.header.as_str().to_owned(), own.value.header_value().to_str().unwrap().to_owned()))
        }
        Auth::Pass | Auth::None => None,
    };
    let own = |header: &str, value: &str| Some((header.to_owned(), value.to_owned()));
    assert_eq!(
        loaded.config.clusters.iter().map(sent).collect::<Vec<_>>(),
        [
            own("authorization", "Bearer canary-token"),
            own("authorization", "Bearer canary-token"),
            own("x-api-key", "canary-token"),
            own("authorization", "canary-token"),
            None,
            None,
        ]
    );
    assert!(!format!("{loaded:?}").contains("canary"));
}

#[test]
fn a_backend_is_checked_by_the_name_that_it_is_reached_by() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/valid/credentials.yaml");
    let Loaded { config, warnings, .. } = loaded(&path);
    let tls: Vec<_> = config.clusters.iter().map(|cluster| cluster.backends[0].tls.as_deref()).collect();
    let names: Vec<_> = tls.iter().map(|tls| tls.map(|tls| tls.name.to_string())).collect();
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(
        names,
        [named("llm.example.com"), named("10.0.0.1"), named("c.example.com"), None, named("b"), None]
    );
    assert!(matches!(tls[1].unwrap().trust, Trust::Authorities(_)));
    assert_eq!((&tls[0].unwrap().trust, &tls[4].unwrap().trust), (&Trust::System, &Trust::Anyone));
    assert_eq!(config.clusters[0].backends[0].port, 443);
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(
        warnings[0]
            .starts_with("line 8: clusters.e.tls.verify: certificates of the backends are not checked")
    );
    assert!(warnings[1].starts_with("line 9: clusters.f.tls: no backend of the cluster is reached over TLS"));
}

#[test]
fn keys_are_read_and_known_by_their_digests_alone() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/valid/keys.yaml");
    let Loaded { config, warnings, .. } = loaded(&path);
    let [a, b, weak] = &config.keys[..] else { panic!("three keys: {:?}", config.keys) };
    assert_eq!(
        (&*a.name, a.digest, a.models.as_deref()),
        ("team-a", Digest::of(b"abc"), Some(&["qwen*".to_owned(), "exact".to_owned()][..]))
    );
    // FIPS 180-2, appendix B.2.
    let longer = b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    assert_eq!((&*b.name, b.digest, &b.models), ("Team B, all models", Digest::of(longer), &None));
    assert_eq!(weak.digest, Digest::of(b"test"));
    assert!(config.clusters.iter().all(|cluster| cluster.auth == Auth::None));
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "line 9: keys[2].sha256: the digest of a word that everybody tries (make a key with `streamgate key new`)"
        ]
    );
}

#[test]
fn backends_that_are_the_gateway_itself_are_warned_of() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/valid/loop.yaml");
    let warnings: Vec<String> = loaded(&path).warnings.iter().map(ToString::to_string).collect();
    let told = |line: u32, backend: usize, value: &str| {
        format!(
            "line {line}: clusters.c.backends[{backend}].url: {value}this is a listener of the gateway itself: a \
             request would come back for ever (name the address of an engine)"
        )
    };
    let of_the_environment = "\"https://localhost:${NUMBER}\": ";
    assert_eq!(warnings, [told(9, 0, ""), told(10, 1, ""), told(11, 2, of_the_environment)]);
}

#[test]
fn the_whole_file_loads_without_a_warning() {
    let full = loaded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/valid/full.yaml"));
    assert!(full.warnings.is_empty(), "{:?}", full.warnings);
}

/// Generous: a debug build on a busy machine. The bounds inside are sizes and counts, not time.
const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn hostile_texts_are_refused_soon() {
    let lines = |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    let texts = [
        ("over 32 MiB", "#".repeat((32 << 20) + 1)),
        ("lists in lists", "[".repeat(100_000)),
        ("maps in maps", "{a: ".repeat(100_000)),
        ("block lists", "- ".repeat(100_000)),
        ("indented maps", lines(2000, &|i| format!("{}a:\n", " ".repeat(i)))),
        ("many nodes", format!("a: [{}]", "1,".repeat(1 << 20))),
        ("many keys", lines(300_000, &|i| format!("k{i}: 1\n"))),
        ("the same key", "k: 1\n".repeat(40_000)),
        ("unknown keys", lines(4000, &|i| format!("k{i}: 1\n"))),
        ("wrong elements", format!("routes: [{}]", "1,".repeat(4000))),
        (
            "wrong clusters",
            format!("clusters:\n{}", lines(4000, &|i| format!("  c{i}: {{ backends: 1, a: b }}\n"))),
        ),
        ("anchors", lines(20_000, &|i| format!("- &a{i} x\n"))),
        ("aliases", format!("- &a x\n{}", "- *a\n".repeat(90_000))),
        ("doubling", format!("- &a0 [x, x]\n{}", lines(60, &|i| format!("- &a{} [*a{i}, *a{i}]\n", i + 1)))),
        ("a long key", format!("{}: 1", "k".repeat(1 << 20))),
        ("long quotes", format!("log: {{ level: \"{}\" }}", "\\x00".repeat(1 << 19))),
        ("an open quote", format!("a: \"{}", "x\n".repeat(1 << 20))),
        ("a block scalar", format!("a: |\n{}", "  x\n".repeat(1 << 19))),
        ("documents", "--- a\n".repeat(100_000)),
        ("questions", "? ".repeat(50_000)),
        ("tags", "!a ".repeat(100_000)),
    ];
    for (name, text) in texts {
        let begin = Instant::now();
        let problems = Config::parse(&text, &ENVIRONMENT).map(|_| ()).unwrap_err();
        assert!(begin.elapsed() < DEADLINE, "{name} took {:?}", begin.elapsed());
        assert!(problems.to_string().len() < 64 << 10, "{name}: the answer is too long");
    }
}

fn parse(text: &str) -> Result<Loaded, Problems> {
    Config::parse(text, &ENVIRONMENT)
}

#[test]
fn a_file_cut_anywhere_is_read_or_refused() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/valid/full.yaml"))
        .unwrap();
    assert!(text.is_ascii());
    for end in (0..text.len()).step_by(7) {
        if let Err(problems) = parse(&text[..end]) {
            assert!(problems.iter().len() > 0, "cut at {end}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}|[-a-z0-9:{}\\[\\]&*!|>'\"%#\n\t ,?]{0,200}") {
        if let Err(problems) = parse(&text) {
            proptest::prop_assert!(problems.iter().len() > 0);
        }
    }
}
