"""A stand-in for HTCondor's library, and an ad for it."""

from pathlib import Path

STAND_IN = """
import enum, os, resource, socket, sys, time
class ClassAdException(Exception): pass
class Value(enum.IntEnum):
    Error = 1
    Undefined = 2
class ClassAd(dict):
    def flatten(self, tree): return tree
class ExprTree:
    def __init__(self, text): self.text = text
    def __str__(self): return self.text
    def eval(self, ad):
        if self.text == "crash": os.kill(os.getpid(), 11)
        if self.text == "spin":
            while True: pass
        if self.text == "sleep": time.sleep(60)
        if self.text == "slow": return time.sleep(0.3) or 7
        if self.text == "eat": return len(bytearray(1 << 30))
        if self.text == "open": return os.open("/etc/passwd", os.O_RDONLY)
        if self.text == "connect": return socket.socket().fileno()
        if self.text == "process": return os.getpid()
        if self.text == "seconds": return resource.getrlimit(resource.RLIMIT_CPU)[0]
        if self.text == "babble": print("babble")
        return eval(self.text, {}, {name: tree.eval({}) for name, tree in ad.items()})
def version(): return "0"
"""
"""A `classad2` whose expressions are those of Python, and words that do what a library should not do."""

AD = """ClusterId = 7
ProcId = 0
GlobalJobId = "jobsub02.fnal.gov#7.0#1795168800"
JobStatus = 1
QDate = 1795168800
imagesize = 4096
RequestMemory = (imagesize + 1024) / 1024
PeriodicHold = imagesize > 5 || userHome()
Requirements = imagesize > 5000 && TARGET.Memory > 5
"""
"""An ad of a job that waits, with expressions that are those of Python as well."""
AS_WRITTEN = "(imagesize + 1024) / 1024"


def installed(place: Path, code: str = STAND_IN) -> str:
    """The directory in which the stand-in is now, as if it were installed there."""
    package = place / "classad2"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").write_text(code)
    return str(place)
