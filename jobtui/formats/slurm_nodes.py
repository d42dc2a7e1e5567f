"""What scontrol and sdiag print of a cluster: nodes, partitions, licenses, reservations, limits, controller.

Pure, and nothing here raises. Basis: Slurm 22.05.8 as run, one record a line (`--oneliner`), times in UTC.
Names of fields hold no blank; the reason of a node, which a person wrote, comes last in its line.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from jobtui.formats.slurm import fields_of_line, table_of, text_of, time_of, values_of
from jobtui.model.clock import Nanos, time_of_seconds
from jobtui.model.jobs import Limit, NodeTally
from jobtui.model.numbers import real, whole
from jobtui.model.slurm import LIMIT, SET_APART, Controller, Node, Partition, words_of

MOST_NODES = 100_000
MOST_REASONS = 5
"""Reasons for which nodes are down or drained that are named."""
_REASON_BY = re.compile(r" \[([^@\]]*)@([^\]]*)\]")
_LIST = re.compile(r"([^,\[]*)(?:\[([0-9,-]*)\])?([^,\[]*)(?:,|$)")
_TRES = re.compile(
    r"(?<![A-Za-z/_])([A-Za-z/_]+)=(N|\d+(?:\.\d+)?)?([KMGTP])?(?:\((\d+(?:\.\d+)?)([KMGTP])?\))?", re.ASCII
)
_EACH = re.compile(r"(?<!\S)([^\s{]+)=\{([^{}]*)\}")
_STAT = re.compile(r"^[ \t]*([A-Za-z][^:\n]*):[ \t]*(\S.*)$", re.MULTILINE)
_EPOCH = re.compile(r"\((\d{9,11})\)", re.ASCII)


NODE, PARTITION = table_of("node"), table_of("partition")
SDIAG, BACKFILL = table_of("sdiag"), table_of("backfill")


def expanded(nodes: str, most: int = MOST_NODES) -> list[str]:
    """The names in a list of nodes: `n1`, `n2`, `m07` of `n[1-2],m07`; no more than `most`."""
    found: list[str] = []
    for head, ranges, tail in _LIST.findall(nodes):
        if not head and not ranges and not tail:
            continue
        if not ranges:
            found.append(f"{head}{tail}")
            continue
        for part in ranges.split(","):
            low, _, high = part.partition("-")
            first, last = whole(low, 0), whole(high or low, 0)
            for number in range(first, min(last, first + most - len(found)) + 1):
                found.append(f"{head}{number:0{len(low)}d}{tail}")
    return found[:most]


def nodes_of(printed: bytes) -> tuple[Node, ...]:
    lines = printed.decode("utf-8", "replace").split("\n")
    return tuple(node for line in lines[:MOST_NODES] if (node := _node(line)) is not None)


def _node(line: str) -> Node | None:
    facts, _, why = line.partition(" Reason=")
    said = fields_of_line(facts)
    if "NodeName" not in said or "State" not in said:
        return None
    reason = why.partition(" Comment=")[0]
    by = _REASON_BY.fullmatch(reason, max(0, reason.rfind(" [")))
    features = text_of(said.get("ActiveFeatures", "")) or text_of(said.get("AvailableFeatures", ""))
    values = values_of(said, NODE) | {
        "features": features,
        "reason": text_of((reason[: by.start()] if by else reason).strip()),
        "by": by[1] if by else "",
        "since": time_of(by[2]) if by else None,
    }
    return msgspec.convert(values, Node)


def partitions_of(printed: bytes) -> tuple[Partition, ...]:
    return tuple(
        msgspec.convert({"state": "", **values_of(said, PARTITION)}, Partition)
        for said in map(fields_of_line, printed.decode("utf-8", "replace").split("\n"))
        if "PartitionName" in said
    )


def controller_of(printed: bytes) -> Controller:
    """The lines of `sdiag` on the load of slurmctld: first its main rounds, then those of backfill."""
    head, _, backfill = printed.decode("utf-8", "replace").partition("Backfilling stats")
    said, filled = (dict(reversed(_STAT.findall(part))) for part in (head, backfill.partition("Latency")[0]))
    at = _EPOCH.search(filled.get("Last cycle when", ""))
    values = values_of(said, SDIAG) | values_of(filled, BACKFILL)
    values["backfill_at"] = time_of_seconds(whole(at[1])) if at else None
    return msgspec.convert(values, Controller)


class NodeRequest(NamedTuple):
    """What a job asks for on each node, and which nodes it may use."""

    nodes: int = 1
    cpus: int = 1
    memory_mb: int = 0
    features: str = ""
    gres: str = ""
    partitions: frozenset[str] = frozenset()
    only: frozenset[str] = frozenset()
    reservation: str = ""
    is_exclusive: bool = False

    def allows(self, node: Node) -> bool:
        is_there = bool(self.partitions & set(node.partitions.split(",")))
        return is_there and (not self.only or node.name in self.only)


def wants_of(said: Mapping[str, str]) -> NodeRequest:
    """What a job asks for, by `scontrol show job`."""
    nodes = max(1, whole(said.get("NumNodes", "").partition("-")[0], 1))
    cpus_in_all = whole(said.get("NumCPUs", "").partition("-")[0], 1)
    cpus = max(cpus_in_all // nodes, whole(said.get("MinCPUsNode"), 1))
    return NodeRequest(
        nodes=nodes,
        cpus=max(1, cpus),
        memory_mb=megabytes(said.get("MinMemoryNode", "")) or cpus * megabytes(said.get("MinMemoryCPU", "")),
        features=text_of(said.get("Features", "")),
        gres=text_of(said.get("TresPerNode", "")),
        partitions=frozenset(said.get("Partition", "").split(",")),
        only=frozenset(expanded(text_of(said.get("ReqNodeList", "")))),
        reservation=text_of(said.get("Reservation", "")),
        is_exclusive=said.get("OverSubscribe") == "NO",
    )


def megabytes(text: str) -> int:
    number = real(text.rstrip("KMGT")) or 0.0
    power = {"K": -1, "G": 1, "T": 2}.get(text[-1:], 0)
    return round(number * 1024.0**power)


def gres_of(text: str) -> dict[str, int]:
    """How many there are of each: `gpu` and `gpu:a100` of `gpu:a100:4(S:0-1)`, `gres:gpu:2`, `gres/gpu:2`."""
    found: dict[str, int] = {}
    for part in re.sub(r"\([^()]*\)", "", text).split(","):
        name, *rest = part.removeprefix("gres:").removeprefix("gres/").replace("=", ":").split(":")
        kind = rest[0] if rest and whole(rest[0]) is None else ""
        count = whole(rest[-1], 1) if rest else 1
        for key in filter(None, (name, f"{name}:{kind}" if kind else "")):
            found[key] = found.get(key, 0) + count
    return found


def tally_of(mine: Sequence[Node], wants: NodeRequest) -> NodeTally:
    """How many of the nodes that a job may run on are unavailable, by reason; each counts once."""
    counts = Counter[str]()
    reasons: dict[str, list[str]] = {}
    for node in mine:
        how = _how(node, wants)
        counts[how] += 1
        if how in ("down", "drained"):
            reasons.setdefault(node.reason or "no reason is given", []).append(node.name)
    most = sorted(reasons.items(), key=lambda one: -len(one[1]))[:MOST_REASONS]
    return NodeTally(
        total=len(mine),
        wanted=wants.nodes,
        reasons=tuple((why, ", ".join(names[:MOST_REASONS])) for why, names in most),
        features=wants.features,
        gres=wants.gres,
        **counts,
    )


def _how(node: Node, wants: NodeRequest) -> str:
    if node.is_down:
        return "down"
    if node.is_drained:
        return "drained"
    if node.is_any(SET_APART) and not wants.reservation:
        return "reserved"
    if not has_features(node.features, wants.features):
        return "no_feature"
    asked, there, used = gres_of(wants.gres), gres_of(node.gres), gres_of(node.gres_used)
    if any(there.get(name, 0) < count for name, count in asked.items() if name):
        return "no_gres"
    if node.cpus < wants.cpus or node.memory_mb < wants.memory_mb:
        return "too_small"
    is_short = (
        node.cpus - node.cpus_used < wants.cpus or node.memory_mb - node.memory_used_mb < wants.memory_mb
    )
    lacks = any(there.get(name, 0) - used.get(name, 0) < count for name, count in asked.items() if name)
    return "full" if is_short or lacks or (wants.is_exclusive and node.cpus_used) else "free"


def has_features(has: str, wants: str) -> bool:
    """Whether a node has what a constraint asks for; one that counts nodes or has brackets passes."""
    if not wants or re.search(r"[][()*]", wants):
        return True
    own = set(has.split(","))
    return any(set(filter(None, re.split("[&,]", either))) <= own for either in wants.split("|"))


def limit_of_reason(printed: bytes, word: str, *, user: str, account: str, qos: str) -> Limit | None:
    """The limit that a reason is about, from `scontrol --oneliner show assoc_mgr`; None without one."""
    limit = LIMIT.fullmatch(word)
    if limit is None:
        return None
    begin = "Grp" if "Grp" in limit["whose"] else "Min" if limit["whose"] == "QOSMin" else "Max"
    counted = words_of("limit_counts", limit["what"])
    each = limit["each"] or ("Job" if counted == "Wall" and begin == "Max" else None)
    end = words_of("limit_of_each", each or "") or ""
    if counted is not None:
        name, resource = f"{begin}{counted}{end}", ""
    else:
        minutes = {"Minutes": "Mins", "RunMinutes": "RunMins", None: ""}[limit["minutes"]]
        each_end = "" if begin == "Grp" else end or "PJ"
        name, resource = f"{begin}TRES{minutes}{each_end}", words_of("limit_resources", limit["what"]) or ""
    owner = {"User": user, "Account": account}.get(each or "", "")
    for of, text in _records(printed, user=user, account=account, qos=qos if word.startswith("QOS") else ""):
        is_own, scope = True, text
        if owner and word.startswith("QOS"):
            # the limits of a QOS for this user or account; if it lists only another one, that has the same
            given = dict(_EACH.findall(text))
            own = next((said for who, said in given.items() if who.partition("(")[0] == owner), None)
            of_users = [said for said in given.values() if "PU=" in said]
            is_own, scope = (True, own) if own is not None else (len(of_users) == 1, "".join(of_users[:1]))
        if (found := _value(scope, name, resource)) is not None:
            most, used = found
            what = "minutes" if counted == "Wall" else words_of("resources", limit["what"]) or limit["what"]
            return Limit(of=of, name=name, what=what, most=most, used=used if is_own else None)
    return None


def _records(printed: bytes, *, user: str, account: str, qos: str) -> Iterator[tuple[str, str]]:
    """Whose limits, and the words for them: those of the QOS, else of the user, the account, those above."""
    lines = printed.decode("utf-8", "replace").split("\n")
    if qos:
        yield from ((f"QOS {qos}", line) for line in lines if line.startswith(f"QOS={qos}("))
        return
    rows = [(fields_of_line(line), line) for line in lines if line.startswith("ClusterName=")]
    for said, line in rows:
        if said.get("Account") == account and said.get("UserName", "").partition("(")[0] == user:
            yield f"user {user} in account {account}", line
    above, seen = account, set[str]()
    while above and above not in seen:
        seen.add(above)
        line_of = (
            (said, line) for said, line in rows if said.get("Account") == above and not said.get("UserName")
        )
        said, line = next(line_of, ({}, ""))
        yield f"account {above}", line
        above = said.get("ParentAccount", "").partition("(")[0]


def _value(text: str, name: str, resource: str) -> tuple[float, float | None] | None:
    """The limit of this name, and how much is taken; None if there is no limit."""
    found = re.search(rf"(?<!\S){name}=(\S*)", text)
    if found is None:
        return None
    limits = found[1] if resource else f"x={found[1]}"
    for part in _TRES.finditer(limits):
        if part[1].partition("/")[0] == (resource or "x") and (most := real(part[2] or "")) is not None:
            return most, real(part[4] or "")
    return None


def license_of(printed: bytes, name: str) -> Limit | None:
    """How many there are of a license, as `scontrol --oneliner show licenses` has it."""
    for line in printed.decode("utf-8", "replace").split("\n"):
        said = fields_of_line(line)
        if said.get("LicenseName") == name:
            most, used = real(said.get("Total")) or 0.0, real(said.get("Used"))
            return Limit(of="the cluster", name=name, what="licenses", most=most, used=used)
    return None


def reservation_of(printed: bytes) -> Nanos | None:
    """When a reservation begins, by `scontrol --oneliner show reservation NAME`."""
    return time_of(fields_of_line(printed.decode("utf-8", "replace")).get("StartTime", ""))
