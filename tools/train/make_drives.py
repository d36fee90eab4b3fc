"""Makes the drives that the camera network is trained and judged on: scenes, `takt simulate`, labels.

    python3 tools/train/make_drives.py --takt build/takt --out drives [--jobs 2]

Goes on where it stopped. OUT/train/*.mcap are trained on, OUT/held_out/*.mcap never.
"""
import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import yaml

import drives
import scenes

HERE = os.path.dirname(os.path.abspath(__file__))
RIG = os.path.join(HERE, "../../configs/rigs/sim.yaml")
FIRST_HELD_OUT = 100000  # seeds from here on are never trained on


def plan(train, held_out):
    """(split, family, seed) of every scene, families in turn so that any prefix is balanced."""
    for seed in range(train):
        yield from (("train", family, seed) for family in scenes.TRAINED)
    for i in range(held_out):
        yield from (("held_out", family, FIRST_HELD_OUT + i) for family in scenes.TRAINED)
        # As many drives through streets of a kind never seen.
        yield from (("held_out", family, FIRST_HELD_OUT + i * len(scenes.TRAINED) + k) for family in scenes.HELD_OUT
                    for k in range(len(scenes.TRAINED)))


def write_yaml(path, content):
    with open(path, "w", encoding="utf-8") as file:
        yaml.safe_dump(content, file, sort_keys=False)


def make(takt, out, rig, split, family, seed):
    base = os.path.join(out, split, f"{family}_{seed}")
    if not os.path.exists(base + ".mcap"):
        write_yaml(base + ".yaml", scenes.scene(seed, family, "../rig.yaml"))
        done = subprocess.run([takt, "simulate", base + ".yaml", "-o", base + ".mcap"], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            raise RuntimeError(f"{base}.yaml: takt simulate: {done.stderr.strip() or done.stdout.strip()}")
    _, labels = drives.load(base + ".mcap", rig)
    return len(labels), sum(int(rows[:, 5].sum()) for rows in labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--takt", required=True, help="the takt program")
    parser.add_argument("--out", required=True, help="folder for drives; outside of the project")
    parser.add_argument("--train", type=int, default=60, help="training scenes per family (60)")
    parser.add_argument("--held-out", type=int, default=5, help="held-out scenes per trained family (5)")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()

    with open(RIG, encoding="utf-8") as file:
        rig = yaml.safe_load(file)
    for split in ("train", "held_out"):
        os.makedirs(os.path.join(options.out, split), exist_ok=True)
    write_yaml(os.path.join(options.out, "rig.yaml"), scenes.sparse_rig(rig))
    begin, pictures, objects = time.time(), 0, 0
    todo = list(plan(options.train, options.held_out))
    with ThreadPoolExecutor(options.jobs) as pool:
        made = pool.map(lambda item: make(options.takt, options.out, rig, *item), todo)
        for i, (n, counted) in enumerate(made):
            pictures, objects = pictures + n, objects + counted
            if sys.stderr.isatty() or i % 25 == 24:
                print(f"{i + 1}/{len(todo)} drives, {pictures} pictures, {objects} objects that count, "
                      f"{time.time() - begin:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
