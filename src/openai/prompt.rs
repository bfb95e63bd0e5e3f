//! The prompt of a request as its engine will cache it: what is rendered first stands first.
//!
//! The JSON text itself stands for the prompt. Decoding it would cost a copy and change nothing: a client
//! that repeats a conversation writes it again with the same library.

use super::members::Members;

/// Members that make the prompt, in the order in which chat templates and engines render them.
const PARTS: [&str; 6] = ["tools", "system", "instructions", "messages", "prompt", "input"];

/// The pieces of the prompt of a JSON object, in their order. Each is without the brackets or quotes that end
/// it, so that one with a further message begins with the bytes of the one before.
pub fn prompt(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = std::str::from_utf8(body).unwrap_or_default();
    let parts = Members::read(text, PARTS).map_or([None; PARTS.len()], |members| members.values);
    parts.into_iter().flatten().filter(|part| part.get() != "null").map(|part| {
        let part = part.get().as_bytes();
        part.strip_suffix(b"]").or_else(|| part.strip_suffix(b"\"")).unwrap_or(part).trim_ascii_end()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(body: &str) -> String {
        String::from_utf8(prompt(body.as_bytes()).collect::<Vec<_>>().concat()).expect("UTF-8")
    }

    #[test]
    fn a_conversation_that_grows_begins_as_it_did() {
        let turns = [
            r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"[1]"} ],"model":"m"}"#,
            r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"[1]"},{"role":"assistant"}]}"#,
        ];
        let [one, two] = turns.map(whole);
        assert!(one.starts_with(r#"[{"role":"system""#) && two.starts_with(&one), "{one} {two}");
        assert!(whole(r#"{"prompt":"ab"}"#).starts_with(&whole(r#"{"prompt":"a"}"#)));
    }

    #[test]
    fn what_is_rendered_first_stands_first() {
        let body = r#"{"messages":[1],"input":null,"system":"s","tools":[{}],"seed":7}"#;
        assert_eq!(whole(body), "[{}\"s[1");
        assert_eq!(whole(r#"{"input":["a","b"],"instructions":"i"}"#), "\"i[\"a\",\"b\"");
    }

    #[test]
    fn what_is_no_object_has_no_prompt() {
        for body in ["", "[]", "{", "\"prompt\"", "{\"model\":\"m\"}"] {
            assert_eq!(whole(body), "", "{body}");
        }
        assert_eq!(prompt(b"\xff{}").count(), 0);
    }
}
