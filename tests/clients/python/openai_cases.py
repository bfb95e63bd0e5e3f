"""The official openai package against the gateway: chat and completions, and Responses."""

import json
import re

import openai

from cases import GATEWAY, raises, run, stopped_after

HI = [{"role": "user", "content": "hi"}]
TOOLS = [{
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}]

client = openai.OpenAI(base_url=GATEWAY + "/v1", api_key="k1", max_retries=0, timeout=30)


def chat(stream, fault=None, **extra):
    headers = {"x-sim-fault": fault} if fault else {}
    return client.chat.completions.create(
        model="sim-model", messages=HI, stream=stream, extra_headers=headers, **extra
    )


def text(chunks):
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


def stream():
    chunks = list(chat(True, max_tokens=8))
    words = re.findall(r"tok\d+", text(chunks))
    assert words == [f"tok{n}" for n in range(8)], words
    assert chunks[-1].choices[0].finish_reason == "length"


def no_stream():
    answer = chat(False, max_tokens=4)
    assert answer.choices[0].message.content.startswith("tok0 ")
    assert answer.usage.completion_tokens == 4


def usage_chunk():
    chunks = list(chat(True, max_tokens=5, stream_options={"include_usage": True}))
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 5
    assert all(c.usage is None for c in list(chat(True, max_tokens=5)))


def tool_calls():
    arguments, name = "", None
    for chunk in chat(True, tools=TOOLS):
        for call in chunk.choices[0].delta.tool_calls or []:
            name = name or call.function.name
            arguments += call.function.arguments or ""
    assert name == "weather", name
    json.loads(arguments)
    whole = chat(False, tools=TOOLS).choices[0].message.tool_calls[0]
    json.loads(whole.function.arguments)


def models():
    assert [model.id for model in client.models.list()] == ["sim-model"]
    assert client.models.retrieve("sim-model").id == "sim-model"


def embeddings():
    answer = client.embeddings.create(model="sim-model", input="hi")
    assert len(answer.data[0].embedding) > 0


def cancel_mid_way():
    with stopped_after():
        answer = chat(True, max_tokens=5000)
        for seen, _ in enumerate(answer):
            if seen == 3:
                break
        answer.close()


def error_before_the_stream():
    with raises(openai.RateLimitError) as raised:
        chat(True, "status=429;retry_after=7")
    assert raised.error.response.headers["retry-after"] == "7"
    assert raised.error.response.headers["content-type"].startswith("application/json")
    with raises(openai.NotFoundError) as raised:
        client.chat.completions.create(model="no-such-model", messages=HI, stream=True)
    assert raised.error.code == "model_not_found", raised.error.code


def error_during_the_stream(fault, code):
    chunks = []
    with raises(openai.APIError) as raised:
        for chunk in chat(True, fault, max_tokens=50):
            chunks.append(chunk)
    assert raised.error.code == code, (raised.error.code, raised.error.message)
    words = re.findall(r"tok\d+", text(chunks))
    assert words == ["tok0", "tok1", "tok2"], words


def respond(model, stream=True):
    return client.responses.create(model=model, input="hi", stream=stream)


def responses_stream():
    events = list(respond("vllm-responses"))
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == "Hello there!"
    last = events[-1]
    assert last.type == "response.completed" and last.response.usage.total_tokens == 13, last
    whole = respond("vllm-responses", stream=False)
    assert whole.output_text == "Hello there!" and whole.usage.input_tokens_details.cached_tokens == 4


def responses_tool_call():
    call = respond("vllm-responses-tool-call", stream=False).output[0]
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "weather", {"city": "Paris"})
    deltas = [e.delta for e in respond("vllm-responses-tool-call") if e.type == "response.function_call_arguments.delta"]
    assert json.loads("".join(deltas)) == {"city": "Paris"}


def responses_cancel():
    answer = respond("vllm-responses@endless=9")
    for seen, _ in enumerate(answer):
        if seen == 20:
            break
    answer.close()


def responses_failed():
    for end, code in [("cut=10", "upstream_disconnected"), ("stall=10", "idle_timeout")]:
        events = list(respond("vllm-responses@" + end))
        last = events[-1]
        assert last.type == "response.failed", last
        assert [e.sequence_number for e in events] == list(range(11)), events
        assert (last.response.status, last.response.error.code) == ("failed", code), last
        assert (last.response.id, last.response.model) == ("resp_a1", "qwen3-32b"), last
    with raises(openai.NotFoundError) as raised:
        respond("unknown")
    assert raised.error.code == "model_not_found", raised.error.code


CASES = {
    "stream": stream,
    "no stream": no_stream,
    "usage chunk": usage_chunk,
    "tool calls": tool_calls,
    "models": models,
    "embeddings": embeddings,
    "cancel mid-way": cancel_mid_way,
    "error before the stream": error_before_the_stream,
    "reset during the stream": lambda: error_during_the_stream("reset_at=3", "upstream_disconnected"),
    "cut chunk during the stream": lambda: error_during_the_stream("truncated_chunk_at=3", "upstream_disconnected"),
    "stall during the stream": lambda: error_during_the_stream("stall_at=3", "idle_timeout"),
    "responses stream": responses_stream,
    "responses tool call": responses_tool_call,
    "responses cancel": responses_cancel,
    "responses failed": responses_failed,
}

run(CASES)
