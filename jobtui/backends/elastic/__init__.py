"""The setting of an index of Elasticsearch or OpenSearch; imports little, as every start reads it."""

from jobtui.model.specs import SourceSpec, parse_server
from jobtui.model.tables import tables_of


def parse(text: str) -> SourceSpec:
    """The source that `URL/INDEX[?preset=NAME]` names; its preset says which setting that is.

    Raises ValueError for anything else.
    """
    presets = tables_of("jobtui.backends.elastic", "presets")
    address, given, query = text.strip().partition("?")
    name = query.removeprefix("preset=") if given else "journald"
    if name not in presets:
        raise ValueError(f"expected ?preset= with one of {', '.join(presets)}")
    spec = parse_server(f"elastic_{presets[name]['gives']}", address, part="index")
    return spec._replace(target=f"{spec.target}?{query}" if given else spec.target, options=name)
