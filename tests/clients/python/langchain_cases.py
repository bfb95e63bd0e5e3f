"""LangChain's ChatOpenAI against the gateway: chat/completions and Responses."""

import re

import openai
from langchain_openai import ChatOpenAI

from cases import GATEWAY, raises, run, stopped_after


def chat(model="sim-model", fault=None, **extra):
    headers = {"x-sim-fault": fault} if fault else {}
    return ChatOpenAI(
        model=model, base_url=GATEWAY + "/v1", api_key="k1", max_retries=0, timeout=30,
        default_headers=headers, **extra,
    )


def weather(city: str) -> str:
    """The weather in a city."""
    return "fine in " + city


def words(chunks):
    return re.findall(r"tok\d+", "".join(chunk.text for chunk in chunks))


def whole_answer():
    answer = chat(max_tokens=4).invoke("hi")
    assert answer.text.startswith("tok0 ") and answer.usage_metadata["output_tokens"] == 4, answer


def stream():
    assert words(chat(max_tokens=8).stream("hi")) == [f"tok{n}" for n in range(8)]


def usage():
    def figures(**extra):
        chunks = list(chat(max_tokens=5, **extra).stream("hi"))
        return [chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata]

    assert figures(stream_usage=True) == [5]
    assert figures(stream_usage=False) == [], "usage that nobody asked for"


def tool_call():
    model = chat().bind_tools([weather])
    whole = model.invoke("hi").tool_calls
    assert [call["name"] for call in whole] == ["weather"], whole
    total = None
    for chunk in model.stream("hi"):
        total = chunk if total is None else total + chunk
    assert [(c["name"], c["args"]) for c in total.tool_calls] == [(c["name"], c["args"]) for c in whole]


def cancel_mid_way():
    with stopped_after():
        answer = chat(max_tokens=5000).stream("hi")
        for _ in range(4):
            next(answer)
        answer.close()


def error_before_the_stream():
    with raises(openai.RateLimitError):
        list(chat(fault="status=429").stream("hi"))
    with raises(openai.NotFoundError) as raised:
        list(chat("no-such-model").stream("hi"))
    assert raised.error.code == "model_not_found", raised.error


def error_during_the_stream():
    for fault, code in [("reset_at=3", "upstream_disconnected"), ("stall_at=3", "idle_timeout")]:
        chunks = []
        with raises(openai.APIError) as raised:
            for chunk in chat(fault=fault, max_tokens=50).stream("hi"):
                chunks.append(chunk)
        assert words(chunks) == ["tok0", "tok1", "tok2"], chunks
        assert raised.error.code == code, raised.error


def responses():
    model = chat("vllm-responses", use_responses_api=True)
    assert model.invoke("hi").text == "Hello there!"
    chunks = list(model.stream("hi"))
    assert "".join(chunk.text for chunk in chunks) == "Hello there!"
    assert sum((chunk.usage_metadata or {}).get("total_tokens", 0) for chunk in chunks) == 13


def responses_failed():
    chunks = []
    with raises(ValueError) as raised:
        for chunk in chat("vllm-responses@cut=10", use_responses_api=True).stream("hi"):
            chunks.append(chunk)
    assert "".join(chunk.text for chunk in chunks) == "Hello there", chunks
    assert "upstream_disconnected" in str(raised.error), raised.error


run({
    "whole answer": whole_answer,
    "stream": stream,
    "usage": usage,
    "tool call": tool_call,
    "cancel mid-way": cancel_mid_way,
    "error before the stream": error_before_the_stream,
    "error during the stream": error_during_the_stream,
    "responses": responses,
    "responses failed": responses_failed,
})
