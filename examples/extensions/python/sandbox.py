#!/usr/bin/env python3
"""A sandboxer extension: each sandbox is a folder of this machine, and commands run in it.

It shows the contract and isolates nothing. A keeper, one small process for each sandbox, ends it at its deadline.
"""
import fcntl, json, os, shutil, signal, struct, subprocess, sys, threading, time
from contextlib import suppress
from datetime import datetime, timezone

MARK = "SANDBOX_FOLDER"  # in the environment of every process inside


class Refused(Exception):
    """A failure that sandboxer understands: a kind of the contract, and words for people."""


def seconds(text):
    """RFC 3339 in UTC as seconds since 1970."""
    whole, _, rest = text.rstrip("Z").partition(".")
    return datetime.strptime(whole + "+0000", "%Y-%m-%dT%H:%M:%S%z").timestamp() + float("0." + (rest or "0"))


def rfc3339(at):
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Sandbox:
    """One folder: record.json, env.json, deadline, perhaps ended, and the workspace."""

    def __init__(self, base, ref):
        self.ref, self.folder = ref, os.path.join(base, ref)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        with suppress(FileNotFoundError), open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def write(self, name, text):
        """All of it or nothing, for nobody else."""
        with open(os.open(self.path(name + ".part"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as f:
            f.write(text)
        os.rename(self.path(name + ".part"), self.path(name))

    def record(self):
        return json.loads(self.read("record.json") or "null")

    def describe(self):
        record, deadline = self.record(), self.read("deadline")
        if record is None or deadline is None:
            return {"phase": "absent"}
        out = {"ref": self.ref, "labels": record["labels"], "phase": "ready", "workdir": self.path("workspace"),
               "started_at": record["started_at"], "deadline": deadline}
        ended = self.read("ended")
        if ended or seconds(deadline) <= time.time():
            out.update(phase="expired", reason="its deadline has passed", ended_at=ended or deadline)
        return out

    def processes(self):
        mark = f"{MARK}={self.folder}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as f:  # it may have ended, or may not be ours
                if mark in f.read().split(b"\0"):
                    yield int(pid)

    def kill(self):
        while alive := list(self.processes()):
            for pid in alive:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def keep(self):
        """Leave the keeper behind: in a session of its own, without our streams."""
        if os.fork():
            return
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        while (deadline := self.read("deadline")) is not None:
            if seconds(deadline) <= time.time():
                self.kill()
                self.write("ended", rfc3339(time.time()))
                break
            time.sleep(0.1)
        os._exit(0)


def provision(request, base):
    box = Sandbox(base, request["id"])
    os.makedirs(box.path("workspace"), mode=0o700, exist_ok=True)
    with open(box.path("lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if box.record() is None:  # else the call is repeated: adopt the sandbox
            box.write("deadline", request["deadline"])
            box.write("env.json", json.dumps({**request.get("env", {}), **request.get("secrets", {})}))
            box.write("record.json", json.dumps({"labels": request["labels"], "started_at": rfc3339(time.time())}))
            lock.close()
            box.keep()
    return {"sandboxes": [box.describe()]}


def status(request, base):
    if "sandboxes" in request:
        return {"sandboxes": [Sandbox(base, asked["ref"]).describe() for asked in request["sandboxes"]]}
    every = [Sandbox(base, ref).describe() for ref in (sorted(os.listdir(base)) if os.path.isdir(base) else [])]
    return {"sandboxes": [s for s in every if s["phase"] != "absent"]}


def find(request, base):
    found = Sandbox(base, request["id"]).describe()
    return {"sandboxes": [] if found["phase"] == "absent" else [found]}


def owned(request, base):
    """What the request means, or None if it is gone. The label says whose it is, not the name."""
    box = Sandbox(base, request["ref"])
    record = box.record()
    if record and record["labels"]["sandboxer.id"] != request["id"]:
        raise Refused("conflict", "the folder belongs to another sandbox")
    return box if record else None


def live(request, base):
    box = owned(request, base)
    if box is None or box.describe()["phase"] != "ready":
        raise Refused("not_found", "there is no such sandbox, or it has ended")
    return box


def teardown(request, base):
    box = owned(request, base)
    if box is None:
        return {"report": {"already_gone": True}}
    seen = box.describe()
    if seen["phase"] != "absent":
        os.remove(box.path("deadline"))  # so the keeper ends
    box.kill()
    shutil.rmtree(box.folder)
    return {"report": {"removed": ["folder"], "started_at": seen.get("started_at", "0001-01-01T00:00:00Z"),
                       "ended_at": seen.get("ended_at", rfc3339(time.time()))}}


def extend(request, base):
    box = live(request, base)
    box.write("deadline", request["deadline"])
    return {"sandboxes": [box.describe()]}


def frame(kind, payload, turn=threading.Lock()):
    with turn:
        sys.stdout.buffer.write(kind + struct.pack(">I", len(payload)) + payload)
        sys.stdout.buffer.flush()


def execute(request, base):
    box = live(request, base)
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": box.path("workspace"), **json.loads(box.read("env.json")), MARK: box.folder}
    child = subprocess.Popen(request["argv"], cwd=box.path("workspace"), env=env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pumps = [threading.Thread(target=pump, args=args, daemon=True) for args in ((child.stdout, b"o"), (child.stderr, b"r"))]
    for thread in [*pumps, threading.Thread(target=feed, args=(child.stdin,), daemon=True)]:
        thread.start()
    code = child.wait()
    for thread in pumps:
        thread.join(0.5)  # processes that the command left may hold its streams
    return {"exit": code if code >= 0 else 128 - code}


def pump(stream, kind):
    while chunk := stream.read1(32768):
        frame(kind, chunk)


def feed(to):
    with suppress(BrokenPipeError):  # a command need not read
        while len(head := sys.stdin.buffer.read(5)) == 5 and head[:1] != b"e":
            to.write(sys.stdin.buffer.read(struct.unpack(">I", head[1:])[0]))
            to.flush()
        to.close()


request = json.loads(sys.stdin.buffer.readline())
try:
    if request["contract"] != 1:
        raise Refused("unavailable", "this extension speaks contract 1")
    verb = {"exec": execute, "provision": provision, "status": status, "find": find, "teardown": teardown, "extend": extend}[request["verb"]]
    answer = verb(request, os.path.join(request["state_dir"], request["account"].replace("/", "_")))
except Refused as why:
    answer = {"error": {"kind": why.args[0], "message": why.args[1]}}
if request["verb"] == "exec":
    frame(b"x", json.dumps(answer).encode())
else:
    print(json.dumps({"contract": 1, **answer}), flush=True)
os._exit(0)  # threads that still wait for streams end too
