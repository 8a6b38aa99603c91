#!/usr/bin/env python3
"""A worker of Pawl in Python's standard library: python3 worker.py http://127.0.0.1:7340

It registers, claims jobs by long poll, runs their handlers in threads, beats while they
run and says how they ended. Handlers are functions by kind, below. The environment has the
token: PAWL_TOKEN.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request

SERVER = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7340"
TOKEN = os.environ.get("PAWL_TOKEN", "")
SLOTS = int(os.environ.get("SLOTS", "4"))
QUEUES = os.environ.get("QUEUES", "default").split(",")
LEASE = os.environ.get("LEASE", "30s")

HANDLERS = {}


def handler(kind):
    """Names the function that runs jobs of a kind. What it returns is the job's result."""

    def keep(function):
        HANDLERS[kind] = function
        return function

    return keep


class Snooze(Exception):
    """Raised by a handler to run again later, without a burned attempt."""

    def __init__(self, delay, why=""):
        super().__init__(why)
        self.delay = delay


class Lost(Exception):
    """The server has declared this worker lost: its runs are not its own any more."""


class Refused(Exception):
    """The server does not take the request: sending it again is in vain."""


def say(*words, to=sys.stderr):
    """Prints a line at once, in one piece: threads speak at the same time."""
    to.write(" ".join(str(word) for word in words) + "\n")
    to.flush()


def call(method, path, body=None, timeout=30):
    """Sends a request and reads its answer. Faults of the way there are URLError."""
    request = urllib.request.Request(SERVER + "/api/v1" + path, method=method)
    request.add_header("Content-Type", "application/json")
    if TOKEN:
        request.add_header("Authorization", "Bearer " + TOKEN)
    try:
        with urllib.request.urlopen(request, json.dumps(body or {}).encode(), timeout) as answer:
            text = answer.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        problem = json.loads(error.read() or b"{}")
        if problem.get("kind") == "worker-lost":
            raise Lost(problem.get("detail", "")) from None
        if error.code >= 500 or error.code == 429:
            raise urllib.error.URLError(problem.get("detail", str(error))) from None
        raise Refused(f"{error.code} {problem.get('kind')}: {problem.get('detail')}") from None


class Worker:
    """One registration. It ends when the worker is stopped or lost."""

    def __init__(self):
        self.lock = threading.Lock()
        self.held = {}  # run by job id
        self.cancelled = set()
        self.free = threading.Semaphore(SLOTS)
        self.stopping = threading.Event()
        self.lost = threading.Event()
        self.registered = False

    def until_it_works(self, what):
        """Repeats a call while the server is away. True says that it was sent before."""
        pause, again = 0.1, False
        while not self.lost.is_set():
            try:
                return what(again)
            except (urllib.error.URLError, OSError) as error:
                if not again:
                    say("the server is away:", error)
                again = True
                if self.lost.wait(pause):
                    break
                pause = min(pause * 2, 5)
        raise Lost()

    def register(self):
        me = {"label": f"{socket.gethostname()}-py-{os.getpid()}", "host": socket.gethostname(), "version": "1", "slots": SLOTS,
              "queues": QUEUES, "kinds": list(HANDLERS), "lost_after": LEASE}
        answer = self.until_it_works(lambda _: call("POST", "/workers", me))
        self.path = f"/workers/{answer['worker']}"
        self.every = seconds(answer["beat_every"])
        say("worker", answer["worker"], "is registered", to=sys.stdout)

    def beat(self):
        while not self.lost.wait(self.every):
            try:
                for run in call("POST", self.path + "/beat", timeout=self.every)["cancels"]:
                    self.cancelled.add(run["id"])
            except Lost:
                self.lost.set()
            except (urllib.error.URLError, OSError, Refused) as error:
                say("beat:", error)

    def run(self, job):
        """Runs one job and stores how it ended."""
        say("begins", job["id"], "run", job["run"], to=sys.stdout)
        end = {"id": job["id"], "run": job["run"]}
        begin = time.monotonic()
        try:
            args = job.get("args", {}).get("json")
            end.update(outcome="done", result=HANDLERS[job["kind"]](args, lambda: job["id"] in self.cancelled))
        except Snooze as snooze:
            end.update(outcome="snoozed", delay=snooze.delay, message=str(snooze))
        except Exception as error:  # whatever a handler raises is a failure of its job
            if job["id"] in self.cancelled:
                end.update(outcome="cancelled")
            else:
                end.update(outcome="failed", message=repr(error), stack=traceback.format_exc())
                say("failed", job["id"], repr(error))
        end["took"] = f"{int((time.monotonic() - begin) * 1000)}ms"
        try:
            self.finish(end)
        except (Lost, Refused) as error:
            say("an end was not stored:", error)
        finally:
            with self.lock:
                self.held.pop(job["id"], None)
            self.free.release()

    def finish(self, end):
        while True:
            verdict = self.until_it_works(lambda again: call("POST", self.path + "/finish", {"ends": [dict(end, again=again)]}))
            if verdict["verdicts"][0] != "locked":
                return
            time.sleep(0.5)

    def work(self):
        """Claims and runs until it is stopped or lost."""
        threading.Thread(target=self.beat, daemon=True).start()
        while not self.stopping.is_set() and not self.lost.is_set():
            self.free.acquire()  # one slot at least
            slots = 1
            while slots < SLOTS and self.free.acquire(blocking=False):
                slots += 1
            jobs = []
            try:
                with self.lock:
                    held = [{"id": i, "run": r} for i, r in self.held.items()]
                jobs = call("POST", self.path + "/claim", {"limit": slots, "held": held, "wait": "2s"})["jobs"]
            except Lost:
                self.lost.set()
            except (urllib.error.URLError, OSError) as error:
                say("claim:", error)
                time.sleep(0.5)
            for job in jobs:
                with self.lock:
                    self.held[job["id"]] = job["run"]
                threading.Thread(target=self.run, args=(job,), daemon=True).start()
            for _ in range(slots - len(jobs)):
                self.free.release()
        for _ in range(SLOTS):  # what runs comes to its end
            self.free.acquire(timeout=30)
        if not self.lost.is_set():
            call("DELETE", self.path)


def seconds(text):
    """Reads a time such as 1m7.5s."""
    total, number = 0.0, ""
    units = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}
    unit = ""
    for c in text + "0":
        if c.isdigit() or c == ".":
            if unit:
                total += float(number) * units[unit]
                number, unit = "", ""
            number += c
        else:
            unit += c
    return total


@handler("sum")
def add(args, cancelled):
    """Adds up a list, or the values of an object."""
    return sum(args.values() if isinstance(args, dict) else args or [])


@handler("nap")
def nap(args, cancelled):
    until = time.monotonic() + (args or 1)
    while time.monotonic() < until:
        if cancelled():
            raise RuntimeError("asked to stop")
        time.sleep(0.02)
    return "slept"


@handler("fail")
def fail(args, cancelled):
    raise ValueError("it always does")


def main():
    stop = threading.Event()
    current = []

    def stopped(*_):
        stop.set()
        for worker in current:
            worker.stopping.set()
            if not worker.registered:
                worker.lost.set()

    signal.signal(signal.SIGTERM, stopped)
    signal.signal(signal.SIGINT, stopped)
    while not stop.is_set():
        worker = Worker()
        current[:] = [worker]
        try:
            worker.register()
        except Lost:  # it was stopped before the server answered
            continue
        worker.registered = True
        if stop.is_set():
            worker.stopping.set()
        worker.work()


main()
