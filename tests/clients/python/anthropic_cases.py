"""The official anthropic package against the gateway."""

import anthropic

from cases import GATEWAY, raises, run

HI = [{"role": "user", "content": "hi"}]

client = anthropic.Anthropic(base_url=GATEWAY, api_key="k1", max_retries=0, timeout=30)


def ask(model, stream=False, **extra):
    return client.messages.create(model=model, max_tokens=50, messages=HI, stream=stream, **extra)


def whole_answer():
    message = ask("vllm-messages")
    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[1].text == "Hello there!"
    assert (message.stop_reason, message.usage.input_tokens, message.usage.output_tokens) == ("end_turn", 7, 6)


def stream():
    with client.messages.stream(model="vllm-messages", max_tokens=50, messages=HI) as answer:
        assert "".join(answer.text_stream) == "Hello there!"
        message = answer.get_final_message()
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 6)


def pings():
    types = [event.type for event in ask("anthropic-messages-cache", stream=True)]
    assert types[0] == "message_start" and types[-1] == "message_stop", types


def tool_call():
    call = ask("vllm-messages-tool-call").content[0]
    assert (call.type, call.name, call.input) == ("tool_use", "weather", {"city": "Paris"})
    with client.messages.stream(model="vllm-messages-tool-call", max_tokens=50, messages=HI) as answer:
        call = answer.get_final_message().content[0]
    assert (call.name, call.input) == ("weather", {"city": "Paris"})


def count_tokens():
    assert client.messages.count_tokens(model="vllm-messages", messages=HI).input_tokens == 7


def cancel_mid_way():
    answer = ask("vllm-messages@endless=3", stream=True)
    for seen, _ in enumerate(answer):
        if seen == 20:
            break
    answer.close()


def error_before_the_stream():
    with raises(anthropic.NotFoundError) as raised:
        ask("unknown", stream=True)
    error = raised.error
    assert (error.type, error.error_code) == ("not_found_error", "model_not_found"), error
    assert error.api_message == "the model `unknown` is not served here", error
    assert error.request_id == error.response.headers["x-request-id"], error
    with raises(anthropic.InternalServerError) as raised:
        ask("vllm-messages@status=529", stream=True)
    assert raised.error.type == "overloaded_error", raised.error


def error_during_the_stream():
    for end, kind, code in [
        ("cut=8", "api_error", "upstream_disconnected"),
        ("stall=8", "timeout_error", "idle_timeout"),
    ]:
        got = []
        with raises(anthropic.APIStatusError) as raised:
            for event in ask("vllm-messages@" + end, stream=True):
                if event.type == "content_block_delta" and event.delta.type == "text_delta":
                    got.append(event.delta.text)
        assert got == ["Hello", " there"], got
        assert (raised.error.type, raised.error.error_code) == (kind, code), raised.error
    with raises(anthropic.APIStatusError) as raised:
        list(ask("vllm-messages-error", stream=True))
    assert raised.error.type == "internal_error", raised.error


run({
    "whole answer": whole_answer,
    "stream": stream,
    "pings": pings,
    "tool call": tool_call,
    "count tokens": count_tokens,
    "cancel mid-way": cancel_mid_way,
    "error before the stream": error_before_the_stream,
    "error during the stream": error_during_the_stream,
})
