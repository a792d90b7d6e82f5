"""A Python that has imported transformers and nothing of hf_mwp, forked for each piece of code. Not a test."""

import json
import os
import subprocess
import sys


START = """
import json, os, sys, traceback
import torch
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, pipeline

assert "hf_mwp" not in sys.modules
for number, (code, *argv) in enumerate(json.loads(sys.argv[2])):
    child = os.fork()
    if not child:
        status = 1
        for stream, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{sys.argv[1]}/{number}.{name}", os.O_CREAT | os.O_WRONLY), stream)
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
    assert os.waitpid(child, 0)[1] == 0, number
"""


def run_fresh(folder, *jobs):
    """
    Runs jobs, each a program and its arguments, one after the other, in a folder that is also their `HF_HOME`; returns
    what each wrote to its output, in lines, and to its errors.
    """
    environment = {**os.environ, "HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", START, str(folder), json.dumps([[str(part) for part in job] for job in jobs])]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    outputs, errors = (
        [path.read_text("utf-8") for path in sorted(folder.glob(f"[0-9].{name}"))] for name in ("out", "err")
    )
    assert process.returncode == 0, process.stderr + "".join(errors)
    return [(output.splitlines(), error) for output, error in zip(outputs, errors, strict=True)]
