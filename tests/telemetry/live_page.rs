//! The live page: what it is, to whom it shows anything, and what an operator does there.

use std::fs;

use crate::support;
use crate::support::browser::Page;
use crate::support::wire::{CHAT_PATH, Request};
use crate::support::{Engine, Gateway, Settings, checks, one_engine};
use serde_json::json;

const EVENTS: &str = "/live/events";

/// The page is one document, the same for everybody, and may load nothing but itself.
#[tokio::test]
async fn the_page_is_one_document_that_may_load_nothing_else() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = folder.path().join("token");
    fs::write(&file, "t0ken").expect("write");
    let (gateway, _engine) =
        one_engine(|settings| settings.set("server.admin.token_file", file.to_str().expect("UTF-8"))).await;
    let page = gateway.admin_get("/").await;
    assert_eq!((page.status(), page.head.get("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.head.get("content-security-policy").expect("a policy");
    for rule in ["default-src 'none'", "connect-src 'self'", "script-src 'sha256-", "frame-ancestors 'none'"]
    {
        assert!(policy.contains(rule), "{rule}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.head.get("x-content-type-options"), Some("nosniff"));
    // It says nothing of the gateway; what does wants the token.
    assert!(!page.text().contains("u1"));
    assert_eq!(gateway.admin_get(EVENTS).await.status(), 401);
    let post = Request::bare("POST", EVENTS).without("host").header("Host: localhost");
    let post = gateway.admin_ask(&post.header("Authorization: Bearer t0ken")).await;
    assert_eq!((post.status(), post.head.get("allow")), (405, Some("GET")));
}

/// With the token, the page of this very listener may act; no other page may, token or not.
#[tokio::test]
async fn only_the_page_of_this_listener_may_act() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = folder.path().join("token");
    fs::write(&file, "t0ken").expect("write");
    let (gateway, _engine) =
        one_engine(|settings| settings.set("server.admin.token_file", file.to_str().expect("UTF-8"))).await;
    let own = format!("http://{}", gateway.admin);
    let ask = async |origin: &str, token: bool| {
        let request = Request::bare("POST", "/drain/c/u1").without("host");
        let request =
            request.header(&format!("Host: {}", gateway.admin)).header(&format!("Origin: {origin}"));
        let request = if token { request.header("Authorization: Bearer t0ken") } else { request };
        gateway.admin_ask(&request).await.status()
    };
    assert_eq!(ask("http://evil.test", true).await, 403);
    assert_eq!(ask(&own, false).await, 401);
    assert_eq!(ask(&own, true).await, 200);
}

/// An operator in front of the page: what clients write stays text, and a drain
/// is made with the keyboard alone, asked for twice, and only with the token.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_uses_the_page() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = folder.path().join("token");
    fs::write(&file, "t0ken").expect("write");
    let (one, two) = (Engine::start().await, Engine::start().await);
    let settings = Settings::new(&[one.addr, two.addr])
        .set("routes.0.match.model", "m")
        .set("server.admin.token_file", file.to_str().expect("UTF-8"));
    let gateway = Gateway::start(settings).await;
    let Some(mut page) = Page::open(&format!("http://{}/", gateway.admin)).await else {
        return support::not_run("an_operator_uses_the_page", "this machine has no Chromium");
    };

    page.until("document.getElementById('ask')?.open === true").await;
    for letter in "t0ken".chars() {
        page.press(&letter.to_string()).await;
    }
    page.press("Enter").await;
    page.until("document.querySelectorAll('#list tbody tr').length === 2").await;
    assert_eq!(page.value("document.querySelector('#headline').textContent").await, "All well");

    // What a client calls its model is shown, and is nothing but text.
    let hostile = "<img src=x onerror=alert(1)>";
    let ask = json!({ "model": hostile, "messages": [] }).to_string();
    checks::rejected(&gateway.ask(&Request::post(CHAT_PATH, &ask)).await, 404, "model_not_found");
    page.until("document.querySelector('#refused summary').textContent.startsWith('1 exchange ')").await;
    let why = page.value("document.querySelector('#refused .why').textContent").await;
    assert!(why.as_str().expect("a text").contains(hostile), "{why}");
    assert_eq!(page.value("document.images.length").await, 0);

    page.value("document.querySelectorAll('#list tbody tr')[1].querySelector('button').focus()").await;
    page.press("Enter").await;
    page.until("document.getElementById('confirm').open").await;
    page.press("Enter").await;
    page.until("!document.getElementById('confirm').open").await;
    let status = Request::bare("GET", "/status").without("host").header("Host: localhost");
    let status = status.header("Authorization: Bearer t0ken");
    let state = gateway.admin_ask(&status).await.json()["clusters"][0]["backends"][1]["state"].clone();
    assert_eq!(state, "serving", "the first button is Cancel");
    page.press("Enter").await;
    page.until("document.getElementById('confirm').open").await;
    page.press("Tab").await;
    page.press("Enter").await;
    page.until("document.getElementById('said').textContent === 'c/u2 is drained.'").await;
    page.until("document.querySelector('#problems').textContent.includes('drained by an operator')").await;
    let focus = page.value("document.activeElement.getAttribute('aria-label')").await;
    assert_eq!(focus, "Undrain c/u2", "the keyboard is where it was, though the row has moved");
}
