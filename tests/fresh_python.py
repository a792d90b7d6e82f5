"""A Python that has imported transformers and nothing of hf_mwp, forked for each piece of code. Not a test."""

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


SERVER = """
import json, os, sys, traceback
import torch
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, pipeline

assert "hf_mwp" not in sys.modules
for line in sys.stdin:
    code, argv, out, err = json.loads(line)
    child = os.fork()
    if not child:
        status, sys.stdin = 1, open(os.devnull)
        for stream, name in ((1, out), (2, err)):
            os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY), stream)
        try:
            sys.argv = ["-c", *argv]
            exec(code, {"__name__": "__main__"})
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(os.waitpid(child, 0)[1], flush=True)
"""


# Begins a job in which hf_mwp cannot be imported, installed or not.
WITHOUT_HF_MWP = """
import sys

class NoHfMwp:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "hf_mwp":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoHfMwp())
"""


@functools.cache
def server(*variables):
    """The Python from which all jobs with these variables are forked, with a `HF_HOME` of its own."""
    home = tempfile.TemporaryDirectory()
    environment = {**os.environ, "HF_HOME": home.name, "HF_HUB_OFFLINE": "1", **dict(variables)}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        cwd=Path(__file__).parents[1],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    @atexit.register
    def end():
        process.stdin.close()
        process.wait()
        home.cleanup()

    return process


def run_fresh(folder, *jobs, **variables):
    """
    Runs jobs, each a program and its arguments, one after the other; returns what each wrote to its output, in lines,
    and to its errors. Both are files in `folder`. `variables` of the environment replace those of the tests.
    """
    python = server(*variables.items())
    results = []
    for number, (code, *arguments) in enumerate(jobs):
        output = folder / f"{number}.out"
        errors = folder / f"{number}.err"
        job = [code, [str(argument) for argument in arguments], str(output), str(errors)]
        python.stdin.write(json.dumps(job) + "\n")
        python.stdin.flush()
        status = python.stdout.readline().strip()
        assert status == "0", errors.read_text("utf-8")
        results.append((output.read_text("utf-8").splitlines(), errors.read_text("utf-8")))
    return results
