"""`config`: what holds, and why."""

from pathlib import Path

import pytest

from tests.commands.running import Runner


def test_every_setting_has_its_value_and_where_it_came_from(
    plain_environment: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = plain_environment / ".config" / "jobtui" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('since = "2h"\n[profiles.prod]\nsrdb = ["/srv/db"]\n[profiles.dev]\n')
    monkeypatch.setenv("JOBTUI_LOG", "server=/a.log;/b.log")
    ran = run("config", "--json", "--profile", "prod")
    assert ran.code == 0
    settings = {row["name"]: (row["value"], row["origin"]) for row in ran.json["settings"]}
    assert settings["srdb"] == (["/srv/db"], f"{path}:3")
    assert settings["log"] == (["server=/a.log", "/b.log"], "JOBTUI_LOG")
    assert settings["since"] == ("2h", f"{path}:1")
    assert settings["until"] == (None, "default")
    assert settings["profile"] == ("prod", "--profile")
    assert (ran.json["file"], ran.json["profiles"]) == (str(path), ["prod", "dev"])
    table = run("config", "--plain", "--profile", "prod").out
    assert f"configuration file {path}, profile prod of prod, dev" in table


def test_a_wrong_file_is_one_line_and_exit_2(plain_environment: Path, run: Runner) -> None:
    path = plain_environment / ".config" / "jobtui" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("srbd = '/db'\n")
    for command in ("config", "jobs"):
        ran = run(command)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == f'jobtui: {path}:1:1: unknown key "srbd"; did you mean "srdb"?\n'


def test_entries_of_tables_are_shown_with_their_lines_and_logins_are_not(
    plain_environment: Path, run: Runner
) -> None:
    path = plain_environment / ".config" / "jobtui" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(
        '[keys]\ncopy = ["y", "F5"]\n[colors]\nstatus.failed = "red"\n[hosts]\n"v7.x" = "ssh://v7"\n'
        '[servers."https://j.example.org"]\nbearer = "hunter2hunter2"\nca_file = "/ca.pem"\n'
        '[profiles.p.columns]\njobs = ["state"]\n[profiles.q.columns]\njobs = ["age"]\n'
    )
    path.chmod(0o600)
    ran = run("config", "--json", "--profile", "p")
    rows = {row["name"]: (row["value"], row["origin"].removeprefix(f"{path}:")) for row in ran.json["tables"]}
    assert rows == {
        'hosts."v7.x"': ("ssh://v7", "6"),
        'servers."https://j.example.org".bearer': ("given", "8"),
        'servers."https://j.example.org".ca_file': ("/ca.pem", "9"),
        "keys.copy": ("y F5", "2"),
        "columns.jobs": ("state", "11"),
        "colors.status.failed": ("red", "4"),
    }
    table = run("config", "--plain", "--profile", "p").out
    assert "y F5" in table
    assert "hunter2" not in table
