//! What a file means: defaults, overrides, inheritance.

use std::time::Duration;

use super::*;
use crate::session_map::{Kind, Place};
use http::HeaderName;

const ENVIRONMENT: Environment = Environment::bare(4, 8 << 30);
const SMALLEST: &str = include_str!("../../tests/config/valid/smallest.yaml");

fn loaded(text: &str) -> Loaded {
    Config::parse(text, &ENVIRONMENT).unwrap_or_else(|problems| panic!("{problems}"))
}

fn told(text: &str) -> String {
    Config::parse(text, &ENVIRONMENT).unwrap_err().to_string()
}

fn warnings(loaded: &Loaded) -> Vec<String> {
    loaded.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_smallest_file_gets_every_default() {
    let Config { server, log, telemetry, clusters, routes, session, cors, wanted, keys, limits, sim } =
        loaded(SMALLEST).config;
    assert_eq!((keys, limits), (Vec::new(), Limits::default()));
    assert_eq!((telemetry.otlp, telemetry.sample), (None, 0.01));
    assert_eq!((log.access_sample, &log.usage, log.slow), (1.0, &None, None));
    let address = Address::Tcp("127.0.0.1:0".parse().unwrap());
    assert_eq!(
        server.listen,
        [Listen { address, transport: Transport::Plain, proxy_protocol: false, redirect_https: None }]
    );
    assert!(!cors.is_on());
    assert_eq!(server.admin.listen, AdminListen::Tcp("127.0.0.1:9090".parse().unwrap()));
    assert_eq!(server.admin.token, None);
    assert_eq!((server.threads, server.pool_max_idle), (4, 1024));
    assert_eq!((server.request.body_bytes, server.request.buffered_bytes), (32 << 20, 2 << 30));
    assert_eq!((server.request.body_timeout, server.request.keepalive), (seconds(60), seconds(75)));
    assert_eq!((server.shutdown.lame_duck, server.shutdown.drain), (seconds(5), seconds(600)));
    assert_eq!(
        (log.level, log.format, log.access),
        (log::LevelFilter::Info, LogFormat::Text, AccessTarget::Stdout)
    );

    let cluster = &clusters[0];
    let backend = Backend {
        name: "b".into(),
        host: "localhost".into(),
        port: 8000,
        authority: "localhost:8000".into(),
        tls: None,
        prefix: String::new(),
        weight: 1,
        max_inflight: None,
        drain: false,
    };
    assert_eq!((cluster.profile, &cluster.backends[..]), (Profile::Openai, &[backend][..]));
    assert_eq!((cluster.retry.attempts, &cluster.auth, cluster.keepalive), (2, &Auth::Pass, seconds(4)));

    assert_eq!(wanted, session.pointers.clone().into());
    let route = &routes[0];
    assert_eq!(route.guard, None);
    assert_eq!(&*route.name, "/v1/chat/completions");
    assert!(matches!(route.action, Action::Proxy(0)));
    assert_eq!((route.streaming, route.include_usage, route.body_bytes), (Streaming::Any, true, 32 << 20));
    let stream = Stream {
        heartbeat: Some(seconds(15)),
        hold_headers: seconds(5),
        early_headers: None,
        window: 65536,
        event_hold: 16384,
        write_stall: seconds(30),
        half_close: HalfClose::Abort,
        failure_end: FailureEnd::Clean,
    };
    assert_eq!(route.stream, stream);
    let timeouts = Timeouts {
        connect: seconds(5),
        first_event: seconds(120),
        unary: seconds(600),
        idle: seconds(60),
        total: seconds(1800),
        queue: seconds(30),
    };
    assert_eq!(route.timeouts, timeouts);
    assert!(sim.is_empty());

    let texts: Vec<&str> = session.from.iter().map(|place| &*place.text).collect();
    assert_eq!(texts, ["header:X-Session-Id", "cookie:session_id", "body:/session_id"]);
    assert!(session.to.is_empty() && !session.required);
    assert!(cluster.headers.set.is_empty() && cluster.headers.remove.is_empty() && route.headers.is_empty());
}

#[test]
fn sessions_and_headers_are_read() {
    let loaded = loaded(include_str!("../../tests/config/valid/sessions.yaml"));
    let Config { clusters, routes, session, .. } = &loaded.config;
    let kinds = |places: &[Place]| places.iter().map(|place| place.kind.clone()).collect::<Vec<_>>();
    let header = |name: &'static str| Kind::Header(HeaderName::from_static(name));
    assert_eq!(kinds(&session.from), [header("x-session-id"), Kind::Cookie("Sid".into()), Kind::Body(0)]);
    assert_eq!(
        kinds(&session.to),
        [header("x-session-id"), Kind::Cookie("sid".into()), Kind::Body(1), Kind::Body(2)]
    );
    assert!(session.required);
    let rules = &clusters[0].headers;
    assert_eq!(rules.remove, ["cookie", "x-debug"]);
    assert_eq!(rules.set.len(), 2);
    assert_eq!((rules.set[1].0.as_str(), rules.set[1].1.as_bytes()), ("x-token", &b"s3cret"[..]));
    assert!(!format!("{loaded:?}").contains("s3cret"), "a set value may be a secret");
    let patterns = [
        (HeaderName::from_static("x-team"), "a*".to_owned()),
        (HeaderName::from_static("host"), "*".to_owned()),
    ];
    assert_eq!(routes[0].headers, patterns);
    assert!(
        loaded.warnings.iter().all(|warning| !warning.path.starts_with("routes")),
        "the second route is reached"
    );
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn a_file_with_every_default_written_out_is_the_same_as_one_without() {
    let full = loaded(include_str!("../../tests/config/valid/full.yaml")).config;
    let small = loaded(SMALLEST).config;
    assert_eq!(full.routes[0].stream, small.routes[0].stream);
    assert_eq!(full.routes[0].timeouts, small.routes[0].timeouts);
    assert_eq!(format!("{:?}", full.server.request), format!("{:?}", small.server.request));
    assert_eq!(format!("{:?}", full.log), format!("{:?}", small.log));
}

#[test]
fn the_route_wins_over_its_cluster_and_the_cluster_over_the_rest() {
    let config = loaded(include_str!("../../tests/config/valid/overrides.yaml")).config;
    let (a, b) = (&config.routes[0], &config.routes[1]);
    let times = |route: &Route| [route.timeouts.first_event, route.timeouts.idle, route.timeouts.total];
    assert_eq!(times(a), [seconds(10), seconds(21), seconds(32)]);
    assert_eq!(times(b), [seconds(10), seconds(11), seconds(12)]);
    assert_eq!((a.stream.heartbeat, b.stream.heartbeat), (Some(seconds(5)), None));
    assert_eq!((a.body_bytes, b.body_bytes), (1 << 20, 32 << 20));
}

#[test]
fn a_smaller_window_takes_the_inherited_event_hold_with_it() {
    let config = loaded(include_str!("../../tests/config/valid/overrides.yaml")).config;
    let sizes = |route: &Route| (route.stream.window, route.stream.event_hold);
    assert_eq!(sizes(&config.routes[0]), (16 << 10, 16 << 10));
    assert_eq!(sizes(&config.routes[1]), (128 << 10, 32 << 10));
}

#[test]
fn backends_keep_their_prefix_without_its_slash() {
    let config = loaded(include_str!("../../tests/config/valid/models.yaml")).config;
    assert_eq!(config.clusters[1].backends[0].prefix, "/deepseek");
    assert_eq!(config.clusters[1].auth, Auth::None);
    assert_eq!(config.routes[2].aliases["4"], "qwen3-8b");
}

#[test]
fn what_is_hardly_meant_is_warned_of() {
    let loaded = loaded(include_str!("../../tests/config/valid/warnings.yaml"));
    assert_eq!(
        warnings(&loaded),
        [
            "line 2: keys: no keys: everyone who reaches 0.0.0.0:0 may use the engines (name the clients in \
             keys, listen on a loopback address, or let only trusted networks reach it)",
            "line 3: stream.half_close: finish without a heartbeat: a client that leaves in silence keeps its engine \
             busy (set a heartbeat, as in 15s)",
            "line 6: clusters.doubled.backends[1].url: the path of a url comes before the client's: \
             /v1/chat/completions would be asked as /v1/v1/chat/completions (drop /v1)",
            "line 7: clusters.unused: no route leads here (name it in a route, or drop it)",
            "line 10: routes[1]: never reached: an earlier route takes its paths, whatever the model \
             (give the earlier route a match.model, such as \"qwen*\", or move this one up)",
        ]
    );
}

#[test]
fn a_warning_does_not_repeat_a_value_of_the_environment() {
    let environment = Environment { variable: |_| Ok("203.0.113.9:80".to_owned()), ..ENVIRONMENT };
    let text = SMALLEST.replace("127.0.0.1:0", "\"${ADDRESS}\"");
    let warnings = warnings(&Config::parse(&text, &environment).unwrap());
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("everyone who reaches server.listen[0].address may use"), "{warnings:?}");
}

/// Keys need a way on which nobody reads them: TLS, a proxy that has it, or this machine alone.
#[test]
fn keys_over_plain_http_are_warned_of() {
    let keys = format!("keys: [ {{ name: a, sha256: \"{}\" }} ]\n", "5c1f".repeat(16));
    let warned = |listen: &str, proxies: &str| {
        let server = format!("server: {{ listen: [ {listen} ], trusted_proxies: [ {proxies} ] }}\n");
        let rest: String = SMALLEST
            .lines()
            .filter(|line| !line.starts_with("server:"))
            .map(|line| format!("{line}\n"))
            .collect();
        warnings(&loaded(&format!("{server}{rest}{keys}")))
    };
    let open = "{ address: 0.0.0.0:80 }";
    assert_eq!(
        warned(open, ""),
        [
            "line 1: server.listen[0].address: keys can be read on their way: 0.0.0.0:80 is plain HTTP (give the \
             listener tls, or put a proxy that has TLS in front and name it in server.trusted_proxies)"
        ]
    );
    assert_eq!(
        warned("{ address: 127.0.0.1:81 }, { address: \"[::]:80\", h2c: true }", "\"unix:\"").len(),
        1
    );
    let tls = "{ address: 0.0.0.0:80, tls: { certificates: [ { cert: a, key: b } ] } }";
    for (listen, proxies) in [
        (open, "10.0.0.0/8"),
        (tls, ""),
        ("{ address: 127.0.0.1:80 }", ""),
        ("{ address: \"unix:/run/a.sock\" }", ""),
        ("{ address: 0.0.0.0:80, redirect_https: 443 }", ""),
    ] {
        assert_eq!(warned(listen, proxies), [""; 0], "{listen} {proxies}");
    }
}

#[test]
fn a_heartbeat_may_come_after_the_first_event_is_due() {
    assert!(
        loaded(&format!("{SMALLEST}stream: {{ hold_headers: 60s }}\ntimeouts: {{ first_event: 5s }}\n"))
            .warnings
            .is_empty()
    );
}

#[test]
fn another_method_on_the_same_path_is_reached() {
    let text = SMALLEST.replace(
        "routes: [",
        "routes: [{ name: post, match: { path: /v1/chat/completions, methods: [POST] }, cluster: c }, ",
    );
    assert!(loaded(&text).warnings.is_empty());
}

#[test]
fn a_problem_knows_its_column() {
    let problems = Config::parse(&SMALLEST.replace("name: b", "nam: b"), &ENVIRONMENT).unwrap_err();
    let places: Vec<_> =
        problems.iter().map(|problem| (&*problem.path, problem.line, problem.column)).collect();
    assert_eq!(
        places,
        [
            ("clusters.c.backends[0].name", Some(2), Some(29)),
            ("clusters.c.backends[0].nam", Some(2), Some(31)),
        ]
    );
}

#[test]
fn more_problems_than_anyone_reads_are_counted() {
    let many: String = (0..300).map(|i| format!("k{i}: 1\n")).collect();
    assert!(told(&format!("{SMALLEST}{many}")).ends_with("... and 100 more"));
}
