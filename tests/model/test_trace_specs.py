import pytest

from jobtui.model.trace_specs import (
    is_loopback,
    listen_place,
    parse_jaeger,
    parse_otlp_listen,
    parse_tempo,
)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("http://localhost:16686", "http://localhost:16686"),
        (" HTTPS://jaeger.example.org/jaeger/ ", "https://jaeger.example.org/jaeger"),
        ("http://[::1]:3200", "http://[::1]:3200"),
    ],
)
def test_an_address_of_a_server(text: str, target: str) -> None:
    assert (parse_jaeger(text).target, parse_jaeger(text).setting) == (target, "jaeger")
    assert (parse_tempo(text).target, parse_tempo(text).setting) == (target, "tempo")


@pytest.mark.parametrize(
    "text", ["", "host:1", "ftp://h", "http://", "http://h?x=1", "http://h/a b", "http:///x"]
)
def test_what_is_no_address_of_a_server(text: str) -> None:
    with pytest.raises(ValueError, match="expected http://host:port"):
        parse_jaeger(text)


def test_a_login_in_an_address_is_not_taken_and_not_repeated() -> None:
    with pytest.raises(ValueError, match="JOBTUI_TEMPO_BASIC") as raised:
        parse_tempo("http://ann:s3cr3t@host")
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "place", "is_here"),
    [
        ("4318", ("127.0.0.1", 4318), True),
        (":9", ("127.0.0.1", 9), True),
        (":", ("127.0.0.1", 4318), True),
        ("localhost:0", ("localhost", 0), True),
        ("[::1]:4318", ("::1", 4318), True),
        ("0.0.0.0:4318", ("0.0.0.0", 4318), False),
        ("*:4318", ("*", 4318), False),
        ("host.example.org:1", ("host.example.org", 1), False),
    ],
)
def test_an_address_to_listen_at_is_on_loopback_unless_it_says_otherwise(
    text: str, place: tuple[str, int], is_here: bool
) -> None:
    found = listen_place(parse_otlp_listen(text).target)
    assert found == place
    assert is_loopback(found[0]) is is_here


@pytest.mark.parametrize("text", ["", "host", "host:99999", "http://h:1", "a b:1", ":x", "\0:1"])
def test_what_is_no_address_to_listen_at(text: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        parse_otlp_listen(text)
