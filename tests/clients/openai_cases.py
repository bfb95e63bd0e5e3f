"""The official openai package against the gateway, with a simulated engine behind it.

Usage: openai_cases.py GATEWAY_URL ENGINE_URL. Prints one line a case; any failure ends with status 1.
"""

import json
import re
import sys
import time
import urllib.request

import openai

GATEWAY, ENGINE = sys.argv[1], sys.argv[2]
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


def engine(path):
    with urllib.request.urlopen(ENGINE + path) as answer:
        return json.load(answer)


def stats():
    return engine("/sim/stats")


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
    before = stats()["aborted"]
    answer = chat(True, max_tokens=5000)
    for seen, _ in enumerate(answer):
        if seen == 3:
            break
    answer.close()
    deadline = time.monotonic() + 10
    while stats()["aborted"] != before + 1 or stats()["running"] != 0:
        assert time.monotonic() < deadline, stats()
    assert stats()["tokens_after_close"] == 0, stats()


def error_before_the_stream():
    try:
        chat(True, "status=429;retry_after=7")
    except openai.RateLimitError as error:
        assert error.response.headers["retry-after"] == "7"
        assert error.response.headers["content-type"].startswith("application/json")
    else:
        raise AssertionError("a 429 was not raised")
    try:
        client.chat.completions.create(model="no-such-model", messages=HI, stream=True)
    except openai.NotFoundError as error:
        assert error.code == "model_not_found", error.code
    else:
        raise AssertionError("a 404 was not raised")


def error_during_the_stream(fault, code):
    chunks = []
    try:
        for chunk in chat(True, fault, max_tokens=50):
            chunks.append(chunk)
    except openai.APIError as error:
        assert error.code == code, (error.code, error.message)
    else:
        raise AssertionError(f"{fault}: no error was raised")
    words = re.findall(r"tok\d+", text(chunks))
    assert words == ["tok0", "tok1", "tok2"], words


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
}

failed = 0
for name, case in CASES.items():
    try:
        case()
        print(f"ok: {name}")
    except Exception as error:  # every case is reported, whatever it raised
        failed += 1
        print(f"failed: {name}: {type(error).__name__}: {error}")
sys.exit(1 if failed else 0)
