//! `deploy/kubernetes`: what Kubernetes is told fits what the gateway does.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::not_run;
use crate::{end_of, read, shipped, sound, yaml};

/// The documents of the manifest.
fn documents() -> Vec<Value> {
    let text = read("deploy/kubernetes/streamgate.yaml");
    text.split("\n---\n").map(|text| serde_saphyr::from_str(text).expect("a document is YAML")).collect()
}

fn of_kind<'d>(documents: &'d [Value], kind: &str) -> &'d Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap_or_else(|| panic!("no {kind}"))
}

/// The time to end, the probes, the ports, the folder of the file.
#[test]
fn the_manifests_for_kubernetes_are_sound() {
    let documents = documents();
    let of_kind = |kind: &str| of_kind(&documents, kind);
    for kind in ["ConfigMap", "Secret", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"] {
        assert_eq!(of_kind(kind)["metadata"]["name"], "streamgate");
    }
    let text = of_kind("ConfigMap")["data"]["streamgate.yaml"].as_str().unwrap();
    assert!(text.contains("/etc/streamgate-secrets/admin-token"));
    let config = sound(text);

    let pod = &of_kind("Deployment")["spec"]["template"]["spec"];
    let grace = Duration::from_secs(pod["terminationGracePeriodSeconds"].as_u64().unwrap());
    assert!(grace > end_of(&config), "{grace:?}");
    assert!(!config.server.shutdown.lame_duck.is_zero(), "endpoints take a while to lose a pod");
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let container = &pod["containers"][0];
    let ports: Vec<u64> =
        [0, 1].iter().map(|i: &usize| container["ports"][*i]["containerPort"].as_u64().unwrap()).collect();
    let listens = [config.server.listen[0].address.to_string(), config.server.admin.listen.to_string()];
    for (port, address) in ports.iter().zip(&listens) {
        assert_eq!(address, &format!("0.0.0.0:{port}"));
    }
    for (probe, path) in
        [("readinessProbe", "/readyz"), ("livenessProbe", "/livez"), ("startupProbe", "/livez")]
    {
        assert_eq!(
            (&container[probe]["httpGet"]["path"], &container[probe]["httpGet"]["port"]),
            (&path.into(), &"admin".into())
        );
    }
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().all(|mount| mount.get("subPath").is_none()), "a file under subPath never changes");
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert!(container["resources"]["limits"]["cpu"].is_null(), "a throttled gateway holds up every stream");
}

/// Whoever picks the pods picks those of the Deployment, by ports that they have.
#[test]
fn selectors_and_ports_name_what_there_is() {
    let documents = documents();
    let of_kind = |kind: &str| of_kind(&documents, kind);
    let monitor = yaml("deploy/kubernetes/podmonitor.yaml");
    let labels = &of_kind("Deployment")["spec"]["template"]["metadata"]["labels"];
    for selector in [
        &of_kind("Deployment")["spec"]["selector"]["matchLabels"],
        &of_kind("Service")["spec"]["selector"],
        &of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        &of_kind("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        &monitor["spec"]["selector"]["matchLabels"],
    ] {
        assert_eq!(selector, labels);
    }
    let ports =
        of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0]["ports"].as_array().unwrap();
    let names: Vec<&Value> = ports.iter().map(|port| &port["name"]).collect();
    assert_eq!(names, ["http", "admin"]);
    let ingress = &of_kind("NetworkPolicy")["spec"]["ingress"];
    assert_eq!((&ingress[0]["ports"][0]["port"], &ingress[0]["from"]), (&"http".into(), &Value::Null));
    assert_eq!(ingress[1]["ports"][0]["port"], "admin");
    assert!(ingress[1]["from"].is_array(), "the admin listener is not for everybody");
    assert_eq!(of_kind("Service")["spec"]["ports"][0]["targetPort"], "http");
    assert_eq!(monitor["spec"]["podMetricsEndpoints"][0]["port"], "admin");
    // The alerts look for this name.
    assert_eq!(labels[monitor["spec"]["jobLabel"].as_str().unwrap()], "streamgate");
}

/// The image of the kustomization is the one of the Deployment, and of this version.
#[test]
fn the_kustomization_is_of_these_files() {
    let kustomization = yaml("deploy/kubernetes/kustomization.yaml");
    for file in kustomization["resources"].as_array().unwrap() {
        assert!(shipped("deploy/kubernetes").join(file.as_str().unwrap()).exists(), "{file}");
    }
    let image = &kustomization["images"][0];
    let documents = documents();
    let container = &of_kind(&documents, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    let named = format!("{}:{}", image["name"].as_str().unwrap(), image["newTag"].as_str().unwrap());
    assert_eq!(container["image"], named);
    assert_eq!(image["newTag"], env!("CARGO_PKG_VERSION"));
    match Command::new("kubectl").arg("kustomize").arg(shipped("deploy/kubernetes")).output() {
        Err(error) => not_run("the_kustomization_is_of_these_files", &format!("kubectl: {error}")),
        Ok(output) => {
            let made = String::from_utf8_lossy(&output.stdout);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
            assert_eq!(made.matches("\nkind: ").count(), documents.len(), "{made}");
        }
    }
}
