//! What a client asks for: the JSON body of a generating request, as far as the engine acts on it.
//!
//! Pure. Refuses what vLLM refuses, in its form; reads no prompt, only how long it is.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::answer::Refusal;
use super::endpoint::Work;
use super::plan::Wishes;

/// One generating request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) stream: bool,
    /// A usage event before `[DONE]`.
    pub(super) include_usage: bool,
    /// Running usage on each event.
    pub(super) continuous_usage: bool,
    pub(super) max_tokens: Option<u32>,
    /// The tool to call, where the request offers one.
    pub(super) tool: Option<String>,
    /// A guess: four bytes of body for a token.
    pub(super) prompt_tokens: u32,
    /// Texts to embed.
    pub(super) inputs: usize,
    pub(super) wishes: Wishes,
}

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    n: Option<u32>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    tools: Option<Vec<Tool>>,
    tool_choice: Option<Value>,
    messages: Option<IgnoredAny>,
    prompt: Option<IgnoredAny>,
    input: Option<Value>,
    #[serde(default)]
    sim: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

#[derive(Deserialize)]
struct Tool {
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
}

impl Ask {
    /// Reads the body of a request to an engine that serves `model`.
    pub(super) fn parse(work: Work, bytes: &[u8], model: &str) -> Result<Self, Refusal> {
        let body: Body = serde_json::from_slice(bytes)
            .map_err(|error| Refusal::bad_request(format!("the body is not understood: {error}"), None))?;
        body.check(work, model)?;
        let stream = body.stream.unwrap_or(false) && work != Work::Embeddings;
        let include_usage = body.stream_options.as_ref().is_some_and(|o| o.include_usage == Some(true));
        let running = body.stream_options.as_ref().is_some_and(|o| o.continuous_usage_stats == Some(true));
        Ok(Self {
            stream,
            include_usage,
            // vLLM gives running usage only together with the final one.
            continuous_usage: include_usage && running,
            max_tokens: body.max_tokens()?,
            tool: body.tool(),
            prompt_tokens: u32::try_from(bytes.len() / 4).unwrap_or(u32::MAX).max(1),
            inputs: body.inputs(),
            wishes: wishes(&body.sim)?,
        })
    }
}

impl Body {
    fn check(&self, work: Work, model: &str) -> Result<(), Refusal> {
        if let Some(wanted) = self.model.as_deref().filter(|wanted| *wanted != model) {
            return Err(Refusal::unknown_model(wanted));
        }
        let missing = match work {
            Work::Chat if self.messages.is_none() => "messages",
            Work::Completions if self.prompt.is_none() => "prompt",
            Work::Embeddings if self.input.is_none() => "input",
            _ => "",
        };
        if !missing.is_empty() {
            return Err(Refusal::bad_request(format!("the field `{missing}` is required"), Some(missing)));
        }
        if self.n.is_some_and(|n| n != 1) {
            return Err(Refusal::bad_request("this engine gives one choice only".to_owned(), Some("n")));
        }
        if self.stream_options.is_some() && self.stream != Some(true) {
            let message = "stream_options are for streams only".to_owned();
            return Err(Refusal::bad_request(message, Some("stream_options")));
        }
        Ok(())
    }

    fn max_tokens(&self) -> Result<Option<u32>, Refusal> {
        let Some(wanted) = self.max_completion_tokens.or(self.max_tokens) else { return Ok(None) };
        match u32::try_from(wanted) {
            Ok(wanted) if wanted > 0 => Ok(Some(wanted)),
            _ => Err(Refusal::bad_request(
                format!("max_tokens must be at least 1, got {wanted}"),
                Some("max_tokens"),
            )),
        }
    }

    fn tool(&self) -> Option<String> {
        let forbidden = self.tool_choice.as_ref().is_some_and(|choice| choice == "none");
        let first = self.tools.as_ref().filter(|_| !forbidden)?.first()?;
        Some(first.function.name.clone())
    }

    fn inputs(&self) -> usize {
        match &self.input {
            Some(Value::Array(items)) if items.iter().any(|item| !item.is_number()) => items.len(),
            _ => 1,
        }
    }
}

fn wishes(sim: &serde_json::Map<String, Value>) -> Result<Wishes, Refusal> {
    let mut wishes = Wishes::default();
    for (name, value) in sim {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(set) => u8::from(*set).to_string(),
            other => other.to_string(),
        };
        wishes
            .set(&name.replace('_', "-"), &text)
            .map_err(|wrong| Refusal::bad_request(wrong, Some("sim")))?;
    }
    Ok(wishes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<Ask, Refusal> {
        Ask::parse(Work::Chat, body.as_bytes(), "m")
    }

    #[test]
    fn the_fields_it_acts_on_are_read() {
        let ask = parse(
            r#"{"model":"m","messages":[],"stream":true,"max_tokens":9,"max_completion_tokens":5,
                "stream_options":{"include_usage":true,"continuous_usage_stats":true},
                "tools":[{"type":"function","function":{"name":"weather"}}],
                "sim":{"tokens":7,"stamp":true,"inter_token":"3ms"}}"#,
        )
        .unwrap();
        assert!(ask.stream && ask.include_usage && ask.continuous_usage);
        assert_eq!((ask.max_tokens, ask.tool.as_deref()), (Some(5), Some("weather")));
        assert_eq!((ask.wishes.tokens, ask.wishes.stamp), (Some(7), Some(true)));
    }

    #[test]
    fn what_vllm_refuses_is_refused() {
        let refused = |body: &str| parse(body).unwrap_err();
        assert_eq!(refused(r#"{"model":"other","messages":[]}"#).status, 404);
        assert_eq!(refused(r#"{"model":"m"}"#).param, Some("messages"));
        assert_eq!(refused(r#"{"messages":[],"max_tokens":0}"#).param, Some("max_tokens"));
        assert_eq!(refused(r#"{"messages":[],"stream_options":{}}"#).param, Some("stream_options"));
        assert_eq!(refused(r#"{"messages":[],"sim":{"inter_token":5}}"#).param, Some("sim"));
        assert_eq!(refused("{").status, 400);
    }
}
