//! The live page: one HTML document, the same for everybody, which asks for nothing but its events.
//!
//! What it shows comes from `GET /live/events` and goes into the document as text. Its policy allows the one style and
//! the one script that are in it, known by their digests, connections to this listener, and nothing else; so
//! whatever name a client has made up cannot become part of the page.

use std::sync::LazyLock;

use http::HeaderValue;
use http::header::CONTENT_SECURITY_POLICY;
use openssl::base64;
use sha2::{Digest, Sha256};

use super::answer::{Answer, reply};

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: [&str; 3] = [include_str!("parts.js"), include_str!("page.js"), include_str!("watch.js")];

/// The document and its policy.
struct Document {
    html: String,
    policy: HeaderValue,
}

static DOCUMENT: LazyLock<Document> = LazyLock::new(|| {
    let script = SCRIPT.concat();
    let html = HTML.replace("/*STYLE*/", STYLE).replace("/*SCRIPT*/", &script);
    let policy = format!(
        "default-src 'none'; connect-src 'self'; img-src data:; style-src '{}'; script-src '{}'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
        digest(STYLE),
        digest(&script)
    );
    Document { html, policy: HeaderValue::from_str(&policy).expect("words and base64") }
});

/// What the policy knows a style or a script by (CSP level 3, 8.5).
fn digest(text: &str) -> String {
    format!("sha256-{}", base64::encode_block(&Sha256::digest(text)))
}

/// The page.
pub(super) fn answer() -> Answer {
    let mut answer = reply(200, "text/html; charset=utf-8", DOCUMENT.html.as_str());
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, DOCUMENT.policy.clone());
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    headers.insert("x-frame-options", HeaderValue::from_static("DENY"));
    headers.insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything is inside, where the policy expects it, and nothing is fetched from elsewhere.
    #[test]
    fn the_page_is_whole_and_asks_nobody_else() {
        let html = &DOCUMENT.html;
        assert!(html.contains(&format!("<style>{STYLE}</style>")));
        assert!(html.contains(&format!("<script>{}</script>", SCRIPT.concat())));
        for outside in ["http://", "https://", "src=", "@import", "url(", "innerHTML", "style=\"", " onclick"]
        {
            let inside = html.replace("http://www.w3.org/2000/svg", "");
            assert!(!inside.contains(outside), "{outside}");
        }
    }
}
