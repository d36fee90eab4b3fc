"""The backbone of bench_operators by the CPU package of spconv, on the same cells: python spconv_peer.py CELLS [RUNS].

CELLS is what bench_operators --coordinates wrote. Random weights, no bias or activation (its CPU form has none), inference, one thread, processor time, best of RUNS;
maps are built in each run, once for each resolution (indice_key). Prints one line of JSON.
"""

import json
import sys
import time

import numpy
import torch

import spconv
import spconv.pytorch as sp


def submanifold(c_in, c_out, key):
    return sp.SubMConv3d(c_in, c_out, 3, padding=1, bias=False, indice_key=key)


def strided(c_in, c_out, kernel, stride, padding):
    return sp.SparseConv3d(c_in, c_out, kernel, stride, padding, bias=False)


def backbone():
    layers = [submanifold(5, 16, "1")] + [submanifold(16, 16, "1") for _ in range(4)]
    layers += [strided(16, 32, 3, 2, 1)] + [submanifold(32, 32, "2") for _ in range(4)]
    layers += [strided(32, 64, 3, 2, 1)] + [submanifold(64, 64, "3") for _ in range(4)]
    layers += [strided(64, 128, 3, 2, [0, 1, 1])] + [submanifold(128, 128, "4") for _ in range(4)]
    layers += [strided(128, 128, (3, 1, 1), (2, 1, 1), 0)]
    return sp.SparseSequential(*layers).eval()


def main():
    cells = torch.from_numpy(numpy.fromfile(sys.argv[1], numpy.int32).reshape(-1, 3).copy())
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    torch.set_num_threads(1)
    torch.manual_seed(1)
    indices = torch.cat([torch.zeros(len(cells), 1, dtype=torch.int32), cells], 1)
    net = backbone()
    features = torch.randn(len(cells), 5)
    best = None
    with torch.no_grad():
        for _ in range(runs):
            x = sp.SparseConvTensor(features, indices, [40, 1440, 1440], 1)
            start = time.process_time()
            y = net(x)
            seconds = time.process_time() - start
            best = seconds if best is None else min(best, seconds)
    print(json.dumps({"spconv": spconv.__version__, "torch": torch.__version__, "cells": len(cells),
                      "cells_out": int(y.features.shape[0]), "backbone_ms": round(best * 1e3, 2)}))


if __name__ == "__main__":
    main()
