"""Writes a network like PointPillars with a centre head as ONNX: takt's own operators from a sweep's payload to boxes.

usage: python3 tools/nets/pillars.py OUT.onnx [KEY=VALUE ...]     (keys and defaults: SIZES below)

The same network as compiler/nets/pillars.cpp, value by value and weight by weight (splitmix64), written a second time so
that each checks the other. Architecture, not accuracy: Lang et al. 2019 (pillars, backbone), Yin et al. 2021 (head).
Needs numpy and onnx only.
"""
import ast
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

SIZES = dict(
    seed=1, payload_bytes=0, points=110000, poses=16, sweeps=1,
    vehicle_from_sensor=[1.0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0],
    range=[-51.2, -51.2, -3.0, 51.2, 51.2, 5.0], ego=[-1.5, -1.1, -1.0, 4.2, 1.1, 3.0], pillar=[0.32, 0.32],
    pillars=20000, points_per_pillar=20, channels=[32, 32, 64], convs=[1, 2, 2], neck=16, classes=3, boxes=200, score=0.1,
    nms_m=[2.0, 0.5, 1.0])


class Net:
    """Nodes, weights and inputs in the order of calls."""

    def __init__(self, seed):
        self.drawn = 0
        self.seed = seed
        self.nodes, self.weights_, self.inputs, self.next_values = [], [], [], []
        self.properties, self.channels = {}, {}

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def counted_input(self, name, dtype, shape):
        self.input(name, dtype, shape)
        self.properties[f"takt.count:{name}"] = self.input(f"{name}_count", TensorProto.INT32, [])
        return name

    def state(self, name, dtype, shape, next_value):
        self.properties[f"takt.state:{name}"] = next_value
        self.next_values.append(next_value)
        return self.input(name, dtype, shape)

    def constant(self, name, array):
        self.weights_.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, name, shape, fan_in):
        count = int(numpy.prod(shape))
        with numpy.errstate(over="ignore"):
            steps = numpy.arange(self.drawn + 1, self.drawn + count + 1, dtype=numpy.uint64)
            z = numpy.uint64(self.seed) + steps * numpy.uint64(0x9E3779B97F4A7C15)
            z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
            z = z ^ (z >> numpy.uint64(31))
        self.drawn += count
        unit = (z >> numpy.uint64(40)).astype(numpy.float32) * numpy.float32(2.0**-23) - numpy.float32(1)
        return self.constant(name, (unit * numpy.float32(numpy.sqrt(3.0 / fan_in))).reshape(shape))

    def node(self, op, inputs, outputs, **attributes):
        own = op.startswith("takt.")
        self.nodes.append(helper.make_node(op.removeprefix("takt."), inputs, outputs, name=outputs[0],
                                           domain="takt" if own else "", **attributes))
        return outputs

    def conv(self, x, channels, kernel, stride, relu, name):
        taken = self.channels[x]
        pad = kernel // 2
        w = self.weights(f"{name}.weight", [channels, taken, kernel, kernel], max(taken * kernel * kernel // 2, 1))
        b = self.weights(f"{name}.bias", [channels], 300)
        y = f"{name}.sum" if relu else name
        self.node("Conv", [x, w, b], [y], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
        if relu:
            self.node("Relu", [y], [name])
        self.channels[name] = channels
        return name

    def upsampled(self, x, channels, factor, name):
        taken = self.channels[x]
        w = self.weights(f"{name}.weight", [taken, channels, factor, factor], max(taken // 2, 1))
        b = self.weights(f"{name}.bias", [channels], 300)
        self.node("ConvTranspose", [x, w, b], [f"{name}.sum"], kernel_shape=[factor] * 2, strides=[factor] * 2)
        self.node("Relu", [f"{name}.sum"], [name])
        self.channels[name] = channels
        return name

    def centre_head(self, x, classes):
        return [self.conv(x, channels, 1, 1, False, name)
                for name, channels in (("heat", classes), ("offset", 2), ("height", 1), ("size", 3), ("rotation", 2),
                                       ("velocity", 2))]

    def model(self, name, results, kinds):
        """`kinds` by result; the others are i32."""
        graph = helper.make_graph(self.nodes, name, self.inputs,
                                  [helper.make_tensor_value_info(result, kinds.get(result, TensorProto.INT32), None)
                                   for result in results], self.weights_)
        model = helper.make_model(graph, producer_name="takt", opset_imports=[helper.make_opsetid("", 17),
                                                                              helper.make_opsetid("takt", 1)])
        model.ir_version = 8
        helper.set_model_props(model, self.properties)
        return model


def points_of(net, n):
    # Of sensors::PointCloud: a header, five arrays of four bytes a point, one of two; each begins at a multiple of 64.
    aligned = [-(-n["points"] * size // 64) * 64 for size in (4, 4, 4, 4, 4, 2)]
    cloud = net.input("cloud", TensorProto.UINT8, [n["payload_bytes"] or 64 + sum(aligned)])
    poses = net.counted_input("poses", TensorProto.DOUBLE, [n["poses"], 8])
    sensor = net.constant("vehicle_from_sensor",
                          numpy.array(n["vehicle_from_sensor"], numpy.float64).reshape(3, 4))
    net.node("takt.Cloud", [cloud], ["raw", "raw_count"], capacity=n["points"])
    net.node("takt.Deskew", ["raw", poses, sensor], ["straight", "held"], extrapolate=0.1)
    net.node("takt.Crop", ["straight"], ["seen", "rejected", "crop_dropped", "seen_count"], range=n["range"],
             ego=n["ego"])
    if n["sweeps"] == 0:
        return "seen", ["raw_count", "held", "seen_count", "rejected", "crop_dropped"]
    net.input("stamp", TensorProto.INT64, [1])
    net.input("pose", TensorProto.DOUBLE, [7])
    net.state("past", TensorProto.FLOAT, [n["sweeps"], n["points"], 4], "next_past")
    net.state("past_poses", TensorProto.DOUBLE, [n["sweeps"], 7], "next_past_poses")
    net.state("past_sweeps", TensorProto.INT64, [n["sweeps"], 2], "next_past_sweeps")
    net.node("takt.Sweeps", ["seen", "stamp", "pose", "past", "past_sweeps", "past_poses"],
             ["all", "next_past", "next_past_sweeps", "next_past_poses", "forgotten", "points_dropped", "all_count"],
             age_ms=1000, gap_ms=150)
    return "all", ["raw_count", "held", "seen_count", "rejected", "all_count", "forgotten", "points_dropped"]


def pillar_network(n):
    net = Net(n["seed"])
    points, counters = points_of(net, n)
    size = n["pillar"] + [float(numpy.float32(n["range"][5]) - numpy.float32(n["range"][2]))]
    net.node("takt.Voxelise", [points],
             ["cells", "ends", "members", "pillars", "members_count", "pillar_points_dropped"], range=n["range"],
             size=size, capacity=n["pillars"], points=n["points_per_pillar"], keep="near")
    features = 5 + 3 + 3
    spread = 400  # of coordinates, m^2: activations begin with a variance near 1
    w = net.weights("encode.weight", [features, n["channels"][0]], features * spread)
    b = net.weights("encode.bias", [n["channels"][0]], 300)
    net.node("takt.PillarEncode", [points, "cells", "ends", "members", w, b], ["encoded"], range=n["range"], size=size,
             points=n["points_per_pillar"], columns=5, centre=3)
    grid = [1] + [round((n["range"][d + 3] - n["range"][d]) / n["pillar"][d]) for d in (1, 0)]
    x = net.node("takt.ScatterBev", ["encoded", "cells"], ["map"], grid=grid)[0]
    net.channels[x] = n["channels"][0]
    levels = []
    for block, (channels, convs) in enumerate(zip(n["channels"], n["convs"])):
        x = net.conv(x, channels, 3, 2, True, f"block{block}.0")
        for i in range(convs):
            x = net.conv(x, channels, 3, 1, True, f"block{block}.{i + 1}")
        levels.append(net.upsampled(x, n["neck"], 2**block, f"up{block}"))
    net.node("Concat", levels, ["joined"], axis=1)
    net.channels["joined"] = n["neck"] * len(levels)
    head = net.conv("joined", n["neck"], 3, 1, True, "head")
    net.node("takt.TopKDecode", net.centre_head(head, n["classes"]),
             ["best_boxes", "best_scores", "best_classes", "best_cells", "boxes_dropped", "best_count"],
             capacity=n["boxes"], score=n["score"], origin=n["range"][:2], cell=[2 * side for side in n["pillar"]])
    net.node("takt.CircleNms", ["best_boxes", "best_scores", "best_classes"],
             ["boxes", "scores", "classes", "index", "count"], limit=n["nms_m"])

    results = ["boxes", "scores", "classes", "count", *counters, "pillars", "members_count", "pillar_points_dropped", "best_count",
               "boxes_dropped", *net.next_values]
    kinds = {"boxes": TensorProto.FLOAT, "scores": TensorProto.FLOAT, "next_past": TensorProto.FLOAT,
             "next_past_poses": TensorProto.DOUBLE, "next_past_sweeps": TensorProto.INT64}
    return net.model("pillars", results, kinds)


def command(doc, sizes, network):
    """NAME.onnx [KEY=VALUE...]: writes network(sizes) with those sizes."""
    if len(sys.argv) < 2:
        sys.exit(doc)
    sizes = dict(sizes)
    for argument in sys.argv[2:]:
        key, _, value = argument.partition("=")
        if key not in sizes:
            sys.exit(f"{sys.argv[0]}: no size is called '{key}'; there are {', '.join(sizes)}")
        sizes[key] = ast.literal_eval(value)
    onnx.save(network(sizes), sys.argv[1])


if __name__ == "__main__":
    command(__doc__, SIZES, pillar_network)
