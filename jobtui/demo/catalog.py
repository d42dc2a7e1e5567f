"""What people simulate: codes with their models, names they give, errors the codes print. Plain lists."""

from typing import NamedTuple


class Model(NamedTuple):
    """A computation that a code offers. Parallel ones report progress and frames."""

    app: str
    name: str
    parallel: bool
    typical_s: float


MODELS = (
    Model("myapp", "heightWeightReport", False, 1.2),
    Model("srw", "intensityReport", False, 3.0),
    Model("srw", "powerDensityReport", False, 4.5),
    Model("srw", "multiElectronAnimation", True, 900.0),
    Model("srw", "fluxAnimation", True, 260.0),
    Model("warpvnd", "fieldReport", False, 6.0),
    Model("warppba", "animation", True, 420.0),
    Model("elegant", "twissReport", False, 2.0),
    Model("elegant", "animation", True, 75.0),
    Model("jspec", "rateCalculationReport", False, 2.5),
    Model("jspec", "animation", True, 140.0),
    Model("opal", "animation", True, 520.0),
    Model("madx", "twissReport", False, 1.8),
    Model("madx", "animation", True, 30.0),
    Model("zgoubi", "twissReport", False, 5.5),
    Model("zgoubi", "animation", True, 110.0),
    Model("genesis", "animation", True, 330.0),
    Model("hellweg", "beamReport", False, 1.5),
)

SIMULATION_NAMES = (
    "Young's Double Slit",
    "NSLS-II CHX beamline",
    "Tabulated Undulator",
    "Beamline 7 survey",
    "fel scan 12",
    "LCLS-II SXR 800 eV",
    "bunch compressor, 3rd try",
    "booster ring v4",
    "Laser-Plasma stage 2",
    "EIC cooling 41 GeV",
    "SNS linac",
    "SOLEIL chromaticity",
    "quick check",
    "gun 2 emittance",
    "tracking A",
    "heights",
    "CHESS mirror tilt -0.2",
    "RHIC e-cooler",
    "undulator gap 7.2 mm",
    "thesis fig 4",
)

HOSTILE_NAMES = (
    "scan [bold red]3[/] [/nope]",
    "gap \x1b[31m7mm\x1b[0m \x1b]0;title\x07",
    "mirror \u202ekcab\u202c tilt",
    "ビームライン 7 調整",
    "e\u0301le\u0301ment\u200b test\tab\nnew line",
)
"""Names that would drive a careless terminal program: markup, escapes, bidi marks, wide characters."""

RAISED = (
    ("srw", "no such element: crystal3"),
    ("elegant", "error: unable to find element Q3F (check spelling)"),
    ("elegant", "track: beam lost at element B2"),
    ("opal", "Error> Cavity 'CAV1': field map RF.T7 not found"),
    ("madx", "+++ error: undefined variable: kqf"),
    ("zgoubi", "zgoubi did not finish: negative momentum"),
    ("genesis", "*** Error: QUADRUPOLE strength out of range at slice 412"),
    ("warppba", "RuntimeError: particle outside of grid"),
    ("jspec", "Invalid lattice: twiss not closed"),
    ("myapp", "a big ugly error"),
)
OTHER_ERROR = "non-zero exit code"
KILLED = "Terminated Process. Possibly ran out of memory"
PREPARE_ERROR = "no such breed"

LOG_LINES: dict[str, tuple[str, ...]] = {
    "srw": ("Reading beamline ...", "Setting up wavefront {n}", "Electron {n} of 100000: intensity averaged"),
    "elegant": (
        "This is elegant 2024.1",
        "pass {n}: transmission 0.998",
        "statistics: emittance ex 1.2e-9 m",
    ),
    "opal": ("OPAL> This is OPAL Version 2022.1", "OPAL> * Step {n} t= 1.2 [ns] E= 6.4 [MeV]"),
    "warppba": ("# Warp 4.5", "it = {n} zmin=1.2e-5 rate 0.21 s/step"),
    "genesis": ("Genesis 1.3 Version 4", "Slice {n}: power 1.3e9 W", "bunching 0.12"),
    "madx": ("  ++ MAD-X 5.09.00 (64 bit)", "twiss: tune {n}.31 {n}.32"),
    "zgoubi": ("Zgoubi, version 6.0.3", "Pass # {n}  particles 2000 left"),
    "jspec": ("Start dynamic simulation ...", "t= {n}.0 s  emit_x 5.1e-7"),
}
DEFAULT_LOG_LINES = ("started", "step {n} done")

PLANS = ("basic", "basic", "basic", "trial", "premium", "premium", "enterprise")
AGENT_TEXT = "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"
STATELESS_METHODS = (
    "global_resources",
    "calculate_bunch_parameters",
    "create_mirror_file",
    "enable_time_limit",
)


def model(app: str, name: str) -> Model:
    """The model of this name. Raises KeyError when there is none."""
    for candidate in MODELS:
        if (candidate.app, candidate.name) == (app, name):
            return candidate
    raise KeyError(f"{app}/{name}")
