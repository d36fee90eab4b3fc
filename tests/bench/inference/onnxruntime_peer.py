"""A plan against ONNX Runtime on the same model, one thread each, in turn, on one core; one line of JSON.

usage: onnxruntime_peer.py TAKT MODEL.onnx PLAN ROUNDS

Each round times ONNX Runtime, then `takt plan bench`; of both the best single run of all rounds counts, so that other
load on the machine, which hits both alike, falls out.
"""
import json
import os
import subprocess
import sys
import time

import numpy
import onnxruntime

RUNS = 60


def session_of(model, optimised=True):
    """`model`: a path or the bytes of a model."""
    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def on_one_core():
    """For this process and its children; the last core, since interrupts tend to go to the first."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def race(takt, plan, session, feed, rounds, runs):
    """Microseconds of the best run: {"ours_us", "theirs_us", ...}."""
    theirs, ours = [], []
    for _ in range(rounds):
        for _ in range(runs):
            start = time.perf_counter_ns()
            session.run(None, feed)
            theirs.append(time.perf_counter_ns() - start)
        command = [takt, "plan", "bench", plan, "--runs", str(runs), "--json"]
        bench = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        ours.append(bench["minimum_us"])
        target = bench["target"]
    return {
        "target": target,
        "ours_us": round(min(ours), 1),
        "theirs_us": round(min(theirs) / 1000, 1),
        "ratio": round(min(ours) * 1000 / min(theirs), 3),
        "onnxruntime": onnxruntime.__version__,
    }


def main(takt, model, plan, rounds):
    on_one_core()
    session = session_of(model)
    entry = session.get_inputs()[0]
    show = subprocess.run([takt, "plan", "show", plan, "--json"], check=True, capture_output=True)
    shape = json.loads(show.stdout)["inputs"][0]["shape"]  # the model's own may have symbolic dimensions
    image = {entry.name: numpy.random.default_rng(1).random(shape, dtype=numpy.float32)}
    print(json.dumps(race(takt, plan, session, image, rounds, RUNS)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
