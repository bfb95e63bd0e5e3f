//! `docker/compose.yaml`: the services find each other, and the files that they are given.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::{end_of, read, shipped, sound, yaml};

fn services() -> Value {
    yaml("docker/compose.yaml")["services"].clone()
}

/// What is mounted into a service: files of the repository, each with its place inside.
fn mounts(service: &Value) -> Vec<(PathBuf, String)> {
    let volumes = service["volumes"].as_array().expect("volumes");
    let parts = volumes.iter().map(|volume| volume.as_str().unwrap().split(':').collect::<Vec<_>>());
    parts
        .map(|parts| {
            assert_eq!(parts[2], "ro");
            let outside = shipped("docker").join(parts[0]);
            (
                outside.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", parts[0])),
                parts[1].to_owned(),
            )
        })
        .collect()
}

/// The port inside that is published as this one outside.
fn published(service: &Value, outside: &str) -> String {
    let ports = service["ports"].as_array().expect("ports").iter().map(|port| port.as_str().unwrap());
    let inside = ports.filter_map(|port| port.rsplit_once(':')).find(|(before, _)| *before == outside);
    inside.unwrap_or_else(|| panic!("{outside} is not published")).1.to_owned()
}

#[test]
fn the_gateway_finds_its_file_and_its_engines() {
    let services = services();
    let gateway = &services["gateway"];
    let config = sound(&read("docker/compose/gateway/streamgate.yaml"));
    let (outside, inside) = mounts(gateway).remove(0);
    // The image's command reads it there.
    assert_eq!((outside, inside.as_str()), (shipped("docker/compose/gateway"), "/etc/streamgate"));
    let admin = config.server.admin.listen.to_string();
    assert_eq!(admin, format!("0.0.0.0:{}", published(gateway, "127.0.0.1:9090")));
    let listen = config.server.listen[0].address.to_string();
    assert_eq!(listen, format!("0.0.0.0:{}", published(gateway, "8080")));
    let token = yaml("docker/compose/gateway/streamgate.yaml")["server"]["admin"]["token_file"].clone();
    let token = token.as_str().unwrap().strip_prefix("/etc/streamgate/").expect("in the folder");
    assert!(!read(&format!("docker/compose/gateway/{token}")).trim().is_empty());
    let grace = gateway["stop_grace_period"].as_str().unwrap().strip_suffix('s').unwrap();
    assert!(Duration::from_secs(grace.parse().unwrap()) > end_of(&config), "{grace}");

    let awaited: BTreeSet<&str> =
        gateway["depends_on"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let file = yaml("docker/compose/gateway/streamgate.yaml");
    let mut asked = BTreeSet::new();
    for backend in file["clusters"]["sim"]["backends"].as_array().unwrap() {
        let url = backend["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let (host, port) = url.split_once(':').unwrap();
        asked.insert(host);
        let command: Vec<&str> =
            services[host]["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        assert_eq!(command, ["sim", "--name", host, "--listen", &format!("0.0.0.0:{port}")]);
        assert_eq!(services[host]["healthcheck"]["disable"], true, "the image's would ask a gateway");
        assert_eq!(services[host]["image"], gateway["image"]);
    }
    assert_eq!((asked.len(), &asked), (3, &awaited));
}

#[test]
fn prometheus_and_grafana_find_what_they_show() {
    let services = services();
    let config = sound(&read("docker/compose/gateway/streamgate.yaml"));
    let admin = config.server.admin.listen.to_string();
    let prometheus = yaml("docker/compose/prometheus.yaml");
    let job = &prometheus["scrape_configs"][0];
    assert_eq!(job["static_configs"][0]["targets"][0], admin.replace("0.0.0.0", "gateway"));
    let alerts = read("deploy/prometheus/alerts.yaml");
    assert!(alerts.contains(&format!("up{{job=\"{}\"}}", job["job_name"].as_str().unwrap())));
    let inside = mounts(&services["prometheus"]);
    assert!(
        inside
            .contains(&(shipped("docker/compose/prometheus.yaml"), "/etc/prometheus/prometheus.yml".into()))
    );
    let (_, rules) = inside.iter().find(|(outside, _)| *outside == shipped("deploy/prometheus")).unwrap();
    assert_eq!(prometheus["rule_files"][0], format!("{rules}/*.yaml"));

    let port = published(&services["prometheus"], "127.0.0.1:9091");
    let source = yaml("docker/compose/grafana/datasource.yaml");
    assert_eq!(source["datasources"][0]["url"], format!("http://prometheus:{port}"));
    assert_eq!(source["datasources"][0]["type"], "prometheus");
    let grafana = &services["grafana"];
    let inside = mounts(grafana);
    for (outside, folder) in [("datasource", "datasources"), ("dashboards", "dashboards")] {
        let outside = shipped(&format!("docker/compose/grafana/{outside}.yaml"));
        assert!(inside.contains(&(outside, format!("/etc/grafana/provisioning/{folder}/streamgate.yaml"))));
    }
    let (_, folder) = inside.iter().find(|(outside, _)| *outside == shipped("deploy/grafana")).unwrap();
    assert_eq!(&yaml("docker/compose/grafana/dashboards.yaml")["providers"][0]["options"]["path"], folder);
    let home = &grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"];
    assert_eq!(home, &format!("{folder}/streamgate.json"));
}
