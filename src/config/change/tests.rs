use super::*;
use crate::config::Environment;

const OLD: &str = "\
server: { listen: [ { address: 127.0.0.1:0 } ], threads: 2 }
clusters:
  c:
    backends: [ { name: a, url: http://h:1 }, { name: b, url: http://h:2 } ]
    keepalive: 2s
routes:
  - { name: one, match: { path: /v1/a }, cluster: c }
  - { name: two, match: { path: /v1/b }, cluster: c }
";

fn told(new: &str) -> Vec<String> {
    let load = |text| Config::parse(text, &Environment::bare(2, 1 << 30)).unwrap();
    changes(load(OLD).version(), load(new).version()).iter().map(ToString::to_string).collect()
}

#[test]
fn what_means_the_same_is_no_change() {
    assert!(told(OLD).is_empty());
    assert!(told(&OLD.replace("2s", "2000ms")).is_empty());
    assert!(told(&OLD.replace("threads: 2", "threads: 2, pool: { max_idle: 1024 }")).is_empty());
    assert!(told(&OLD.replace("clusters:", "# a remark\nclusters:")).is_empty());
}

#[test]
fn members_are_told_by_name() {
    let new = OLD.replace("{ name: a, url: http://h:1 }", "{ name: x, url: http://h:9 }");
    assert_eq!(told(&new), ["+ clusters.c.backends.x", "- clusters.c.backends.a"]);
    let new = OLD.replace("h:2 }", "h:2, drain: true }");
    assert_eq!(told(&new), ["+ clusters.c.backends.b.drain"]);
    let (one, two) = OLD.split_once("  - { name: one").unwrap();
    let (first, second) = two.split_once('\n').unwrap();
    assert_eq!(told(&format!("{one}{second}  - {{ name: one{first}\n")), ["~ routes"]);
}

#[test]
fn what_is_settled_at_the_start_is_marked_and_refused() {
    let new = OLD.replace("threads: 2", "threads: 3").replace("keepalive: 2s", "keepalive: 3s");
    assert_eq!(told(&new), ["~ server.threads (needs a restart)", "~ clusters.c.keepalive"]);
    let load = |text| Config::parse(text, &Environment::bare(2, 1 << 30)).unwrap();
    let refused = needs_restart(&load(OLD).config, &load(&new)).unwrap_err().in_file("f.yaml").to_string();
    assert!(refused.starts_with("f.yaml:1: server.threads: differs from what is running"), "{refused}");
    assert!(needs_restart(&load(OLD).config, &load(OLD)).is_ok());
}

#[test]
fn a_store_of_limits_is_settled_at_the_start_and_other_limits_are_not() {
    let limits = "limits: { store: memory, per_ip: { requests: 5/s } }\n";
    assert_eq!(told(&format!("{OLD}{limits}")), ["+ limits"]);
    let load = |text: &str| Config::parse(text, &Environment::bare(2, 1 << 30)).unwrap();
    let (old, new) = (format!("{OLD}{limits}"), limits.replace("memory", "redis://h:1"));
    let new = load(&format!("{OLD}{new}"));
    let refused = needs_restart(&load(&old).config, &new).unwrap_err().in_file("f.yaml").to_string();
    assert!(refused.starts_with("f.yaml:9: limits.store: differs"), "{refused}");
    let paths: Vec<_> =
        changes(load(&old).version(), new.version()).iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["~ limits.store (needs a restart)"]);
}

#[test]
fn what_a_store_is_reached_with_belongs_to_it() {
    let environment = Environment { file: |_| Ok(b"canary".to_vec()), ..Environment::bare(2, 1 << 30) };
    let load = |file: &str| {
        let limits = format!("limits: {{ store: \"redis://h:1\", store_password_file: {file} }}\n");
        Config::parse(&format!("{OLD}{limits}"), &environment).unwrap()
    };
    let (old, new) = (load("/a"), load("/b"));
    assert!(needs_restart(&old.config, &load("/a")).is_ok());
    let refused = needs_restart(&old.config, &new).unwrap_err().in_file("f.yaml").to_string();
    assert!(refused.starts_with("f.yaml:9: limits.store: differs"), "{refused}");
    let paths: Vec<_> = changes(old.version(), new.version()).iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["~ limits.store_password_file (needs a restart)"]);
}

#[test]
fn the_last_key_does_not_go_while_it_runs() {
    let load = |text: &str| Config::parse(text, &Environment::bare(2, 1 << 30)).unwrap();
    let digest = "a".repeat(64);
    let key = |name: &str, digit: &str| {
        format!("  - {{ name: {name}, sha256: \"{}\" }}\n", digest.replacen('a', digit, 1))
    };
    let two = load(&format!("{OLD}keys:\n{}{}", key("x", "b"), key("y", "c")));
    let one = load(&format!("{OLD}keys:\n{}", key("x", "b")));
    assert!(needs_restart(&two.config, &one).is_ok());
    let refused = needs_restart(&one.config, &load(OLD)).unwrap_err().in_file("f.yaml").to_string();
    assert!(
        refused.contains("keys: there is none any more, and everybody could use the engines"),
        "{refused}"
    );
}
