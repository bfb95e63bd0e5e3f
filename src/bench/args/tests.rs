use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn plan(args: &[&str]) -> Result<Plan, String> {
    let all = [&["bench", "http://h:8080/v1"], args].concat();
    let cli = Cli::try_parse_from(all).map_err(|error| error.to_string())?;
    Plan::try_from(cli.args).map_err(|error| error.to_string())
}

#[test]
fn a_url_is_enough() {
    let plan = plan(&[]).unwrap();
    assert_eq!((plan.concurrency, plan.bound, plan.rate), (10, Bound::Requests(100), None));
    assert_eq!((plan.max_tokens, plan.prompt_bytes, plan.shares), (64, 256, Shares::default()));
    assert!(plan.usage && !plan.way.http2 && !plan.way.keepalive && plan.headers.is_empty());
    assert_eq!(plan.way.trust, Trust::System);
}

#[test]
fn arguments_become_a_plan() {
    let plan = plan(&[
        "--header",
        "x-a: 1",
        "--header",
        "X-A:2",
        "--duration",
        "30s",
        "--rate",
        "2.5",
        "--cancel",
        "20@5",
        "--reload-url",
        "http://127.0.0.1:9090/reload",
        "--reload-every",
        "500ms",
        "--insecure",
        "--h2",
    ])
    .unwrap();
    let values: Vec<_> = plan.headers.get_all("x-a").iter().collect();
    assert_eq!(values, ["1", "2"]);
    assert_eq!((plan.bound, plan.rate), (Bound::Time(Duration::from_secs(30)), Some(2.5)));
    assert_eq!(plan.concurrency, CONCURRENCY_AT_RATE);
    assert_eq!(plan.shares.cancel, Some(Of { share: Percent(20), number: 5 }));
    assert_eq!(plan.reload.unwrap().every, Duration::from_millis(500));
    assert!(plan.way.http2 && plan.way.trust == Trust::Anyone);
}

#[test]
fn wrong_arguments_say_what_is_wrong() {
    let wrong = |args: &[&str]| plan(args).unwrap_err();
    assert!(wrong(&["--unary", "60", "--cancel", "50@1"]).contains("more than 100 percent"));
    assert!(wrong(&["--header", "Authorization: Bearer k"]).contains("--key-env"));
    assert!(wrong(&["--header", "novalue"]).contains("'name: value'"));
    assert!(wrong(&["--key-env", "STREAMGATE_BENCH_NO_SUCH"]).contains("no such environment variable"));
    assert!(wrong(&["--requests", "5", "--duration", "5s"]).contains("cannot be used with"));
    assert!(wrong(&["--requests", "0"]).contains("above 0"));
    assert!(wrong(&["--duration", "30"]).contains("has no unit"));
    assert!(wrong(&["--rate", "inf"]).contains("is no number"));
    assert!(wrong(&["--reload-url", "http://h/reload"]).contains("--reload-every"));
    assert!(wrong(&["--reload-url", "http://h/reload", "--reload-every", "0s"]).contains("no time at all"));
    for option in ["--duration", "--timeout"] {
        assert!(wrong(&[option, "0s"]).contains("no time at all"), "{option}");
    }
    for header in ["content-length: x", "Transfer-Encoding: chunked", "x-request-id: a"] {
        assert!(wrong(&["--header", header]).contains("set by this client itself"), "{header}");
    }
    assert!(plan(&["--header", "host: other"]).is_ok());
    assert!(wrong(&["--cancel", "20@65"]).contains("no more than 64"));
    assert!(plan(&["--cancel", "20@64"]).is_ok());
    assert!(wrong(&["--ca", "/nowhere.pem"]).contains("--ca /nowhere.pem"));
    assert!(wrong(&["--ca", "a", "--insecure"]).contains("cannot be used with"));
}
