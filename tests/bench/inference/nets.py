"""The networks of tools/nets through takt, against ONNX Runtime on the same files: numbers, memory, time.

usage: nets.py TAKT FOLDER [--untimed] NAME...

FOLDER holds NAME.onnx and two inputs, as tools/nets/export.py writes them. Prints a Markdown table, one row a network;
exit code 1 when a goal is missed:
- every tenth tensor that both have by name, and every output: takt's difference at most 1e-4 of the range that the
  tensor's values and zero span, integers equal. The peer runs the graph as it is, without its own rewriting.
- a TopK: scores that rounding cannot tell apart may come in another order. The peer's scores at takt's choices are its
  own best scores, as exactly as that; the tensors behind are compared with the peer going on from takt's choices
- outputs tell the two inputs apart: they move by at least 100 times that, 1e-2 of their range
- the arena is proved to be as small as the steps allow, or within 1 % of the lower bound
- resnet50 takes at most twice the peer's time, one thread each, in turn, on one core; the others are shown
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy
import onnx

from onnxruntime_peer import on_one_core, race, session_of

ERROR_MAX, MOVE_MIN, GAP_MAX, RATIO_MAX = 1e-4, 1e-2, 0.01, {"resnet50": 2.0}
EVERY, ROUNDS, ROUND_S = 10, 3, 1.5


def file_of(tensor):
    """As `takt plan run` names it."""
    return "".join(c if c.isascii() and (c.isalnum() or c in ".-") else "_" for c in tensor)[:200] + ".npy"


def range_of(values):
    """With zero: what rounds is the value, so the mean of a layer, nearly the same everywhere, has no smaller range."""
    return max(float(values.max()), 0.0) - min(float(values.min()), 0.0)


def difference(ours, theirs):
    """Largest difference over the range; infinite where shapes differ, and where integers do."""
    if ours.size != theirs.size:
        return float("inf")
    ours = ours.reshape(theirs.shape)
    if theirs.dtype != numpy.float32:
        return 0.0 if (ours == theirs).all() else float("inf")
    worst = float(numpy.abs(ours.astype(numpy.float64) - theirs).max())
    span = range_of(theirs)
    return worst / span if span > 0 else float("inf") if worst != 0 else 0.0


def peer_values(model, names, feed):
    """What ONNX Runtime computes for the tensors `names`."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    outputs = {o.name for o in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in outputs)
    session = session_of(model.SerializeToString(), optimised=False)
    return dict(zip(names, session.run(list(names), feed)))


def error_of_choice(node, ours, scores, best):
    """How far the peer's scores at our choices are from its best scores; infinite where something is chosen twice."""
    axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
    chosen = numpy.sort(ours, axis=axis)
    if (numpy.diff(chosen, axis=axis) == 0).any() or chosen.min() < 0 or chosen.max() >= scores.shape[axis]:
        return float("inf")
    return difference(numpy.take_along_axis(scores, ours, axis), best)


def with_choices(model, node, dump):
    """The model with the results of a TopK as inputs, and what to feed there: takt's."""
    graph = model.graph
    graph.node.remove(node)
    feed = {}
    for output in node.output:
        if any(output in other.input for other in graph.node):
            feed[output] = dump(output)
            kind = onnx.helper.np_dtype_to_tensor_dtype(feed[output].dtype)
            graph.input.append(onnx.helper.make_tensor_value_info(output, kind, feed[output].shape))
    return feed


def judge(takt, folder, name, timed):
    """A row of the table, and what was missed."""
    path = os.path.join(folder, name + ".onnx")
    with tempfile.TemporaryDirectory(prefix="takt-nets-") as work:
        plan = os.path.join(work, name + ".plan")
        compiled = subprocess.run([takt, "compile", path, "-o", plan], capture_output=True, text=True)
        if compiled.returncode != 0:
            return f"| {name} | does not compile |", [compiled.stderr.strip()]
        show = json.loads(subprocess.run([takt, "plan", "show", plan, "--json"], check=True, capture_output=True).stdout)
        inputs = {w: os.path.join(folder, f"{name}.{w}.npy") for w in "ab"}
        dumps = {w: os.path.join(work, w) for w in "ab"}
        for word in "ab":
            subprocess.run([takt, "plan", "run", plan, "--input", inputs[word], "--dump-tensors", dumps[word]],
                           check=True, capture_output=True)

        model = onnx.load(path)
        outputs = [o.name for o in model.graph.output]
        made = [o for node in model.graph.node for o in node.output if node.op_type not in ("Constant", "TopK")]
        dumped = set(os.listdir(dumps["a"]))
        common = [t for t in made if file_of(t) in dumped and t not in outputs]
        probes = common[EVERY - 1::EVERY] + [o for o in outputs if o in made]
        feed = {model.graph.input[0].name: numpy.load(inputs["a"])}

        def dump(tensor):
            return numpy.load(os.path.join(dumps["a"], file_of(tensor)))

        errors, given = {}, dict(feed)
        for node in [n for n in model.graph.node if n.op_type == "TopK"]:
            theirs = peer_values(model, [node.input[0], node.output[0]], given)
            ours = dump(node.output[1])
            errors[node.output[1]] = error_of_choice(node, ours, *theirs.values())
            given |= with_choices(model, node, dump)
        theirs = peer_values(model, probes, given)
        errors |= {t: difference(dump(t), theirs[t]) for t in probes}
        probes = list(errors)
        worst = max(errors, key=errors.get)
        moves = {}
        for output in outputs:
            a, b = (numpy.load(os.path.join(dumps[w], file_of(output))) for w in "ab")
            if a.dtype == numpy.float32:
                moves[output] = float(numpy.abs(a - b).max()) / range_of(a)
        moved = min(moves.values())

        arena, bound = show["arena_bytes"], show["lower_bound"]
        proved = show["proof"] == "optimal"
        gap = arena / bound - 1 if bound else 0.0
        missed = []
        if not errors[worst] <= ERROR_MAX:
            bad = [t for t in probes if not errors[t] <= ERROR_MAX]
            missed.append(f"{bad[0]} differs by {errors[bad[0]]:.2g} of its range ({len(bad)} of {len(probes)} tensors)")
        if not moved >= MOVE_MIN:
            missed.append(f"{min(moves, key=moves.get)} moves by {moved:.2g} of its range only")
        if not (proved or gap <= GAP_MAX):
            missed.append(f"the arena is {100 * gap:.1f} % above the lower bound")
        times = "| | |"
        if timed:
            session = session_of(path)
            start = time.perf_counter()
            session.run(None, feed)
            runs = max(3, min(60, int(ROUND_S / (time.perf_counter() - start))))
            result = race(takt, plan, session, feed, ROUNDS, runs)
            if not result["ratio"] <= RATIO_MAX.get(name, float("inf")):
                missed.append(f"takes {result['ratio']:.2f} times as long as ONNX Runtime")
            times = f"{result['ours_us'] / 1000:.1f} | {result['theirs_us'] / 1000:.1f} | {result['ratio']:.2f}"
        operators = show["statistics"]["operators_before"]
        row = (f"| {name} | {operators} | {len(show['steps'])} | {sum(s['flops'] for s in show['steps']) / 1e9:.1f} "
               f"| {arena / 1e6:.2f} | {bound / 1e6:.2f}{' proved' if proved else ''} | {len(probes)} "
               f"| {errors[worst]:.1e} | {moved:.2f} | {times} |")
        return row, missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("takt")
    parser.add_argument("folder")
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--untimed", action="store_true", help="numbers and memory alone")
    arguments = parser.parse_args()
    on_one_core()
    print("| network | operators | steps | GFLOP | arena MB | bound MB | tensors | worst error | outputs move "
          "| takt ms | ONNX Runtime ms | ratio |")
    print("| --- " * 12 + "|")
    failed = []
    for name in arguments.names:
        row, missed = judge(arguments.takt, arguments.folder, name, not arguments.untimed)
        print(row, flush=True)
        failed += [f"{name}: {text}" for text in missed]
    for text in failed:
        print("MISSED " + text, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
