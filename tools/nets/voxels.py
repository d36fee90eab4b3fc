"""Writes a network like SECOND with a centre head as ONNX: takt's sparse operators from points to boxes.

usage: python3 tools/nets/voxels.py OUT.onnx [KEY=VALUE ...]     (keys and defaults: SIZES below)

The same network as compiler/nets/voxels.cpp, value by value and weight by weight (splitmix64), written a second time so
that each checks the other. Architecture, not accuracy: Yan et al. 2018 (sparse backbone), Yin et al. 2021 (head).
Needs numpy and onnx only.
"""
from onnx import TensorProto

from pillars import Net, command

SIZES = dict(
    seed=1, points=1, columns=5, range=[-54.0, -54.0, -5.0, 54.0, 54.0, 3.0], voxel=[0.075, 0.075, 0.2],
    points_per_voxel=10, capacities=[90000, 90000, 60000, 30000], channels=[16, 32, 64, 128], blocks=2,
    flat_cells=20000, map_channels=[128, 256], map_convs=[3, 3], neck=64, classes=3, boxes=200, score=0.1,
    nms_m=[2.0, 0.5, 1.0])


class Sparse:
    """The cells of one resolution, their features, the map of its submanifold layers."""

    def __init__(self, net, cells, rows, grid, channels):
        self.net, self.cells, self.rows, self.grid, self.channels = net, cells, rows, grid, channels
        self.map = None

    def conv(self, x, taken, map_, taps, channels, name):
        w = self.net.weights(f"{name}.weight", [taps, taken, channels], max(taken * taps // 6, 1))
        b = self.net.weights(f"{name}.bias", [channels], 300)
        self.net.node("takt.SparseConv", [x, w, map_, b], [f"{name}.sum"])
        return f"{name}.sum"

    def submanifold(self, name):
        self.map = f"{name}.map"
        self.net.node("takt.SparseMap", [self.cells, self.cells], [self.map], kernel=[3, 3, 3], padding=[1, 1, 1])

    def residual_block(self, name):
        x, c = self.rows, self.channels
        first = self.net.node("Relu", [self.conv(x, c, self.map, 27, c, f"{name}.0")], [f"{name}.0"])[0]
        self.net.node("Add", [self.conv(first, c, self.map, 27, c, f"{name}.1"), x], [f"{name}.1"])
        self.rows = self.net.node("Relu", [f"{name}.1"], [name])[0]

    def strided(self, kernel, stride, padding, capacity, channels, name):
        window = dict(kernel=kernel, stride=stride, padding=padding)
        self.net.node("takt.SparseCells", [self.cells], [f"{name}.cells", f"{name}_count", f"{name}_dropped"],
                      grid=self.grid, capacity=capacity, **window)
        grid = [(g + 2 * p - k) // s + 1 for g, k, s, p in zip(self.grid, kernel, stride, padding)]
        self.net.node("takt.SparseMap", [self.cells, f"{name}.cells"], [f"{name}.down"], **window)
        taps = kernel[0] * kernel[1] * kernel[2]
        y = self.conv(self.rows, self.channels, f"{name}.down", taps, channels, f"{name}.in")
        self.net.node("Relu", [y], [f"{name}.in"])
        return Sparse(self.net, f"{name}.cells", f"{name}.in", grid, channels)


def voxel_network(n):
    net = Net(n["seed"])
    points = net.counted_input("points", TensorProto.FLOAT, [n["points"], n["columns"]])
    counters = ["voxels", "kept", "points_dropped"]
    net.node("takt.Voxelise", [points], ["cells", "ends", "members", *counters], range=n["range"], size=n["voxel"],
             capacity=n["capacities"][0], points=n["points_per_voxel"], keep="near")
    net.node("takt.VoxelMean", [points, "ends", "members"], ["mean"])
    grid = [round((n["range"][d + 3] - n["range"][d]) / n["voxel"][d]) for d in (2, 1, 0)]
    level = Sparse(net, "cells", "mean", grid, n["columns"])
    for i, (capacity, channels) in enumerate(zip(n["capacities"], n["channels"])):
        name = f"level{i}"
        if i > 0:
            level = level.strided([3] * 3, [2] * 3, [1] * 3, capacity, channels, name)
            counters += [f"{name}_count", f"{name}_dropped"]
        level.submanifold(name)
        if i == 0:
            x = level.conv(level.rows, level.channels, level.map, 27, channels, "in")
            level.rows, level.channels = net.node("Relu", [x], ["in"])[0], channels
        for b in range(n["blocks"]):
            level.residual_block(f"{name}.{b}")
    level = level.strided([3, 1, 1], [2, 1, 1], [0, 0, 0], n["flat_cells"], n["channels"][-1], "flat")
    counters += ["flat_count", "flat_dropped"]

    x = net.node("takt.ScatterBev", [level.rows, level.cells], ["map"], grid=level.grid)[0]
    net.channels[x] = level.channels * level.grid[0]
    levels = []
    for b, (channels, convs) in enumerate(zip(n["map_channels"], n["map_convs"])):
        x = net.conv(x, channels, 3, 1 if b == 0 else 2, True, f"block{b}.0")
        for i in range(convs):
            x = net.conv(x, channels, 3, 1, True, f"block{b}.{i + 1}")
        levels.append(net.upsampled(x, n["neck"], 2**b, f"up{b}"))
    net.node("Concat", levels, ["joined"], axis=1)
    net.channels["joined"] = n["neck"] * len(levels)
    head = net.conv("joined", n["neck"], 3, 1, True, "head")
    scale = 2 ** (len(n["channels"]) - 1)
    net.node("takt.TopKDecode", net.centre_head(head, n["classes"]),
             ["best_boxes", "best_scores", "best_classes", "best_cells", "boxes_dropped", "best_count"],
             capacity=n["boxes"], score=n["score"], origin=n["range"][:2], cell=[scale * side for side in n["voxel"][:2]])
    net.node("takt.CircleNms", ["best_boxes", "best_scores", "best_classes"],
             ["boxes", "scores", "classes", "index", "count"], limit=n["nms_m"])

    results = ["boxes", "scores", "classes", "count", *counters, "best_count", "boxes_dropped"]
    return net.model("voxels", results, {"boxes": TensorProto.FLOAT, "scores": TensorProto.FLOAT})


if __name__ == "__main__":
    command(__doc__, SIZES, voxel_network)
