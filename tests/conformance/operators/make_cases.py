#!/usr/bin/env python3
"""Cases for every operator that takt reads, in every form it has had from operator set 7 to 23, in f32 and, where the
form allows it, f16: make_cases.py FOLDER.

Each case is a folder as ONNX's own tests have it (model.onnx, test_data_set_0/*.pb). The expected outputs come from ONNX
Runtime: of the model itself; where it has no kernel for that, of the operator's form before, if that differs in the allowed
types alone; where it has none in f16, in f32 on the same numbers, rounded. A case without any of these is an error. Needs
onnx, onnxruntime and numpy.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OLDEST, NEWEST = 7, 23
F = np.float32
I = np.int64


def ramp(*shape, low=-2.0, high=2.0):
    """Distinct values in a scattered order, none on a rounding boundary."""
    n = int(np.prod(shape)) if shape else 1
    order = (np.arange(n) * 7919) % n if n % 7919 else np.arange(n)
    return (low + (high - low) * (order + 0.37) / n).reshape(shape).astype(F)


class Case:
    """Inputs in order (None: absent); names in `fixed` are initializers; `form` distinguishes cases of one operator."""

    def __init__(self, inputs, attrs=None, fixed=(), outputs=1, form="", since=1, until=NEWEST):
        self.inputs, self.attrs, self.fixed = inputs, dict(attrs or {}), set(fixed)
        self.outputs, self.form, self.since, self.until = outputs, form, since, until


def unary(low=-2.0, high=2.0, **attrs):
    return lambda v: [Case([ramp(2, 3, 4, low=low, high=high)], attrs)]


def binary(low=-2.0, high=2.0):
    def make(v):
        a, b = ramp(2, 3, 4, low=low, high=high), ramp(2, 3, 4, low=low, high=high)[:, ::-1].copy()
        return [Case([a, b]), Case([a, ramp(3, 1, low=low, high=high)], form="broadcast"),
                Case([ramp(1, low=low, high=high), b], form="scalar")]
    return make


def logical(v):
    a = np.array([[True, False], [True, True]])
    return [Case([a, np.array([True, False])])]


def compare(v):
    a, b = np.array([[1, 2, 3], [3, 2, 1]]), np.array([[1, 3, 3]])
    return [Case([a.astype(F), b.astype(F)], form="" if v >= 9 else "before"), Case([a, b], form="whole", since=9)]


def equal(v):
    return [case for case in compare(v) if v >= 11 or case.form == "whole"] if v >= 9 else [
        Case([np.array([[1, 2, 3]], np.int32), np.array([[1, 3, 3]], np.int32)], form="whole")]


def variadic(v):
    third = [ramp(1, 3)] if v >= 8 else [ramp(2, 3)]
    return [Case([ramp(2, 3), ramp(2, 3)[::-1].copy()] + third), Case([ramp(2, 3)], form="one")]


def bits(v):
    return [Case([np.array([0b1100, 7, -1], np.int32), np.array([0b1010, 8, 5], np.int32)])]


def reduction(v):
    x = ramp(2, 3, 4, low=0.5, high=2.0)
    as_input = v >= 18
    cases = []
    for form, axes, keep in (("all", None, 1), ("one", [1], 0), ("two", [0, 2], 1), ("last", [-1], 0)):
        attrs, inputs, fixed = {"keepdims": keep}, [x], ()
        if axes is not None and as_input:
            inputs, fixed = [x, np.array(axes, I)], (1,)
        elif axes is not None:
            attrs["axes"] = axes
        cases.append(Case(inputs, attrs, fixed, form=form))
    return cases


def reduce_sum(v):
    cases = reduction(13)
    if v >= 13:
        for case in cases:
            if "axes" in case.attrs:
                case.inputs.append(np.array(case.attrs.pop("axes"), I))
                case.fixed = {1}
    return cases


def arg(v):
    x = ramp(2, 3, 4)
    return [Case([x], {"axis": 1, "keepdims": 0}), Case([x], {"axis": 2}, form="kept")]


def softmax(v):
    return [Case([ramp(2, 3, 4)], {"axis": 1}, form="axis1"), Case([ramp(2, 3, 4)], {"axis": 2}, form="axis2"),
            Case([ramp(2, 3, 4)], form="default")]


def clip(v):
    x = ramp(2, 3, 4)
    if v < 11:
        return [Case([x], {"min": -0.5, "max": 1.0}), Case([x], {"max": 0.25}, form="upper")]
    return [Case([x, F(-0.5), F(1.0)], fixed=(1, 2)), Case([x, None, F(0.25)], fixed=(2,), form="upper"),
            Case([x, F(-0.5), F(1.0)], form="run_time")]


def conv(v):
    x, w, b = ramp(1, 4, 7, 6), ramp(6, 2, 3, 3), ramp(6)
    wide = {"strides": [2, 1], "pads": [1, 0, 2, 1], "group": 2}
    return [Case([x, w, b], wide, fixed=(1, 2)), Case([x, ramp(5, 4, 2, 2)], {"auto_pad": "SAME_LOWER"}, fixed=(1,), form="same"),
            Case([x, ramp(4, 1, 3, 3)], {"group": 4, "dilations": [2, 1]}, fixed=(1,), form="depthwise"),
            Case([ramp(2, 3, 9), ramp(4, 3, 3), ramp(4)], {"pads": [1, 2], "strides": [2]}, fixed=(1, 2), form="1d"),
            Case([ramp(1, 2, 4, 5, 3), ramp(3, 2, 2, 3, 1)], {"pads": [1, 0, 0, 0, 1, 0]}, fixed=(1,), form="3d"),
            Case([x, w, b], wide, form="run_time")]


def conv_transpose(v):
    x, w = ramp(1, 4, 4, 3), ramp(4, 3, 3, 2)
    return [Case([x, w, ramp(3)], {"strides": [2, 2], "pads": [1, 0, 1, 1], "output_padding": [1, 0]}, fixed=(1, 2)),
            Case([x, ramp(4, 2, 3, 3)], {"group": 2, "dilations": [1, 2]}, fixed=(1,), form="group"),
            Case([ramp(1, 2, 5), ramp(2, 3, 3)], {"strides": [2]}, fixed=(1,), form="1d"),
            Case([ramp(1, 2, 2, 3, 2), ramp(2, 1, 2, 2, 2)], fixed=(1,), form="3d")]


def pool(v):
    x = ramp(1, 3, 7, 6)
    cases = [Case([x], {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
             Case([x], {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}, form="same"),
             Case([ramp(2, 3, 9)], {"kernel_shape": [3], "strides": [2]}, form="1d"),
             Case([ramp(1, 2, 4, 5, 3)], {"kernel_shape": [2, 3, 2]}, form="3d")]
    if v >= 10:
        cases.append(Case([x], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, form="ceil"))
    return cases


def average_pool(v):
    x = ramp(1, 3, 7, 6)
    return pool(v) + [Case([x], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}, form="padding")]


def max_pool(v):
    x = ramp(1, 3, 7, 6)
    cases = pool(v)
    if v >= 8:
        cases.append(Case([x], {"kernel_shape": [3, 2], "strides": [2, 2]}, outputs=2, form="indices"))
    if v >= 10:
        cases.append(Case([x], {"kernel_shape": [2, 2], "dilations": [2, 1]}, form="dilated"))
    return cases


def lp_pool(v):
    return [Case([ramp(1, 3, 7, 6)], {"kernel_shape": [3, 2], "strides": [2, 2], "p": p}, form=f"p{p}") for p in (1, 2)]


def global_pool(v):
    return [Case([ramp(2, 3, 5, 4)]), Case([ramp(2, 3, 5)], form="1d"), Case([ramp(1, 2, 3, 4, 2)], form="3d")]


def gemm(v):
    a, b, c = ramp(3, 4), ramp(4, 5), ramp(3, 5)
    return [Case([a, b, c]), Case([a.T.copy(), b.T.copy(), ramp(5)], {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0},
                                  form="all"), Case([a, b, ramp(5)], fixed=(1, 2), form="layer")]


def matmul(v):
    return [Case([ramp(3, 4), ramp(4, 5)]), Case([ramp(2, 3, 4), ramp(2, 4, 5)], form="batch"),
            Case([ramp(4), ramp(2, 4, 5)], form="vector"), Case([ramp(2, 1, 3, 4), ramp(3, 4, 2)], form="broadcast")]


def batch_normalization(v):
    return [Case([ramp(2, 3, *rest), ramp(3, low=0.5), ramp(3), ramp(3), ramp(3, low=0.3)], {"epsilon": 0.01},
                 fixed=(1, 2, 3, 4), form=f"{len(rest)}d") for rest in ((4, 5), (4,), (2, 3, 2))]


def instance_normalization(v):
    return [Case([ramp(2, 3, 4, 5), ramp(3, low=0.5), ramp(3)], {"epsilon": 0.01}, fixed=(1, 2))]


def layer_normalization(v):
    return [Case([ramp(2, 3, 4), ramp(4), ramp(4)], {"axis": -1}, fixed=(1, 2)),
            Case([ramp(2, 3, 4), ramp(3, 4)], {"axis": 1, "epsilon": 0.01}, fixed=(1,), form="axis1")]


def group_normalization(v):
    n = 2 if v < 21 else 4
    return [Case([ramp(2, 4, 3, 2), ramp(n, low=0.5), ramp(n)], {"num_groups": 2}, fixed=(1, 2))]


def rms_normalization(v):
    return [Case([ramp(2, 3, 4), ramp(4)], {"axis": -1}, fixed=(1,))]


def resize(v):
    x = ramp(1, 2, 4, 5)
    if v < 11:
        return [Case([x, np.array([1, 1, 2, 1.5], F)], {"mode": mode}, fixed=(1,), form=mode) for mode in ("nearest", "linear")]
    none, cases = np.array([], F), []
    for mode in ("nearest", "linear", "cubic"):
        for where in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
            if where == "align_corners":  # with scales ONNX Runtime takes the rounded length, ONNX the exact one
                sizes = np.array([1, 2, 6, 3], I)
                cases.append(Case([x, none, none, sizes], {"mode": mode, "coordinate_transformation_mode": where},
                                  fixed=(1, 2, 3), form=f"{mode}_{where}"))
                continue
            for scale in (1.7, 0.6):
                cases.append(Case([x, none, np.array([1, 1, scale, scale], F)],
                                  {"mode": mode, "coordinate_transformation_mode": where}, fixed=(1, 2),
                                  form=f"{mode}_{where}_{scale}"))
    cases.append(Case([x, none, none, np.array([1, 2, 7, 3], I)], {"mode": "linear"}, fixed=(1, 2, 3), form="sizes"))
    cases.append(Case([x, np.array([0, 0, 0.1, 0.2, 1, 1, 0.9, 1.1], F), none, np.array([1, 2, 5, 6], I)],
                      {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0},
                      fixed=(1, 2, 3), form="crop"))
    if v >= 18:
        for mode in ("linear", "cubic"):
            cases.append(Case([ramp(1, 1, 8, 8), none, np.array([1, 1, 0.6, 0.4], F)], {"mode": mode, "antialias": 1},
                              fixed=(1, 2), form=f"antialias_{mode}"))
        cases.append(Case([x, none, none, np.array([6, 6], I)], {"axes": [2, 3], "mode": "nearest"}, fixed=(1, 2, 3), form="axes"))
    return cases


def upsample(v):
    x, scales = ramp(1, 2, 3, 4), [1.0, 1.0, 2.0, 2.0]
    if v < 9:
        return [Case([x], {"mode": m, "scales": scales}, form=m) for m in ("nearest", "linear")]
    return [Case([x, np.array(scales, F)], {"mode": m}, fixed=(1,), form=m) for m in ("nearest", "linear")]


def grid_sample(v):
    linear, cubic = ("bilinear", "bicubic") if v < 20 else ("linear", "cubic")
    grid = ramp(2, 3, 4, 2, low=-1.3, high=1.3)
    return [Case([ramp(2, 2, 4, 5), grid], {"mode": mode, "padding_mode": pad, "align_corners": corners},
                 form=f"{mode}_{pad}_{corners}")
            for mode in (linear, "nearest", cubic) for pad in ("zeros", "border", "reflection") for corners in (0, 1)]


def roi_align(v):
    rois = np.array([[0, 0, 6, 6], [1, 2, 4.5, 7], [2, 2, 2.4, 2.6]], F)
    base = {"output_height": 3, "output_width": 2, "sampling_ratio": 2, "spatial_scale": 0.5}
    return [Case([ramp(2, 2, 8, 8), rois, np.array([0, 1, 1], I)], dict(base, mode=mode), form=mode) for mode in ("avg", "max")] + [
        Case([ramp(2, 2, 8, 8), rois, np.array([0, 1, 1], I)], dict(base, sampling_ratio=0), form="adaptive")]


def pad(v):
    x, cases = ramp(1, 2, 4, 5), []
    for mode in ("constant", "edge", "reflect") + (("wrap",) if v >= 19 else ()):
        for name, pads in (("image", [0, 0, 1, 2, 0, 0, 2, 1]), ("channels", [0, 1, 0, 0, 0, 1, 1, 0])):
            if v < 11:
                cases.append(Case([x], {"mode": mode, "pads": pads}, form=f"{mode}_{name}"))
            else:
                cases.append(Case([x, np.array(pads, I)], {"mode": mode}, fixed=(1,), form=f"{mode}_{name}"))
    if v >= 11:
        cases.append(Case([x, np.array([0, 0, 1, 0, 0, 0, 0, 1], I), F(3.5)], fixed=(1, 2), form="value"))
    return cases


def with_axes(op_axes, x):
    return lambda v: [Case([x], {"axes": op_axes}) if v < 13 else Case([x, np.array(op_axes, I)], fixed=(1,))]


def slice_(v):
    x = ramp(3, 5, 4)
    if v < 10:
        return [Case([x], {"starts": [1, 0], "ends": [3, -1], "axes": [0, 2]})]
    lists = [np.array(l, I) for l in ([1, 4], [3, 0], [0, 1], [1, -2])]
    return [Case([x] + lists, fixed=(1, 2, 3, 4))]


def split(v):
    x = ramp(2, 6)
    if v < 13:
        return [Case([x], {"axis": 1, "split": [2, 4]}, outputs=2), Case([x], {"axis": 1}, outputs=3, form="even")]
    cases = [Case([x, np.array([2, 4], I)], {"axis": 1}, fixed=(1,), outputs=2)]
    return cases + [Case([x], {"axis": 1, **({"num_outputs": 3} if v >= 18 else {})}, outputs=3, form="even")]


def top_k(v):
    x = ramp(3, 7)
    if v < 10:
        return [Case([x], {"k": 3, "axis": 1}, outputs=2)]
    more = {"largest": 0} if v >= 11 else {}
    return [Case([x, np.array([3], I)], {"axis": 1}, fixed=(1,), outputs=2),
            Case([x, np.array([2], I)], {"axis": 0, **more}, fixed=(1,), outputs=2, form="axis0")]


# Operators whose result has as many rows as the data decide.
def compress(v):
    return [Case([ramp(4, 3), np.array([True, False, True, False])], {"axis": 0}),
            Case([ramp(2, 3), np.array([False, True, True, False, True])], form="flat")]


def non_zero(v):
    x = ramp(3, 4)
    x[0, 1] = x[2, 3] = x[1, 0] = 0
    return [Case([x]), Case([np.array([[True, False], [False, True]])], form="bool")]


def unique(v):
    x = np.array([2, 1, 1, 3, 4, 3], F)
    rows = np.array([[1, 0, 0], [1, 0, 0], [2, 3, 4]], F)
    return [Case([x], outputs=4), Case([x], {"sorted": 0}, outputs=4, form="unsorted"),
            Case([rows], {"axis": 0}, outputs=4, form="rows")]


def non_max_suppression(v):
    corners = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]], F)
    scores = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3], [0.2, 0.1, 0.8, 0.4, 0.7, 0.05]]], F)
    limits = [np.array([2], I), np.array([0.5], F), np.array([0.15], F)]
    y, x, bottom, right = np.moveaxis(corners, -1, 0)
    centres = np.stack([(x + right) / 2, (y + bottom) / 2, right - x, bottom - y], -1).astype(F)
    return [Case([corners, scores, *limits], fixed=(2, 3, 4)),
            Case([centres, scores, *limits], {"center_point_box": 1}, fixed=(2, 3, 4), form="centres")]


def scatter_elements(v):
    x, at, new = ramp(3, 4), np.array([[0, 2, 1, 0], [2, 0, 0, 1]], I), ramp(2, 4, low=3, high=4)
    cases = [Case([x, at, new], {"axis": 0})]
    if v >= 16:
        cases += [Case([x, at, new], {"axis": 0, "reduction": r}, form=r) for r in ("add", "mul") + (("min", "max") if v >= 18 else ())]
    return cases


def scatter_nd(v):
    x, at, new = ramp(4, 3), np.array([[1], [3], [1]], I), ramp(3, 3, low=3, high=4)
    cases = [Case([x, at[:2], new[:2]])]
    if v >= 16:
        cases += [Case([x, at, new], {"reduction": r}, form=r) for r in ("add", "mul") + (("min", "max") if v >= 18 else ())]
    return cases


def gather_nd(v):
    cases = [Case([ramp(3, 4, 2), np.array([[0, 1], [2, 3]], I)])]
    if v >= 12:
        cases.append(Case([ramp(2, 4, 2), np.array([[1], [3]], I)], {"batch_dims": 1}, form="batch"))
    return cases


def one_hot(v):
    return [Case([np.array([0, 2, -1], I), np.array([4], I), np.array([0.5, 3.0], F)], {"axis": axis}, fixed=(1, 2), form=f"axis{axis}")
            for axis in (-1, 0)]


def recurrent(op):
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]

    def make(v):
        cases = []
        for direction, n in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            h = 3
            inputs = [ramp(4, 2, 3), ramp(n, gates * h, 3, low=-0.6, high=0.6), ramp(n, gates * h, h, low=-0.6, high=0.6),
                      ramp(n, 2 * gates * h, low=-0.3, high=0.3), np.array([4, 2], np.int32), ramp(n, 2, h, low=-0.5, high=0.5)]
            attrs = {"direction": direction, "hidden_size": h}
            if op == "LSTM":
                inputs += [ramp(n, 2, h, low=-0.4, high=0.4), ramp(n, 3 * h, low=-0.2, high=0.2)]
            cases.append(Case(inputs, attrs, fixed=(1, 2, 3), outputs=3 if op == "LSTM" else 2, form=direction))
        cases.append(Case([ramp(4, 2, 3), ramp(1, gates * 3, 3), ramp(1, gates * 3, 3)], {"hidden_size": 3}, fixed=(1, 2),
                          outputs=1, form="plain"))
        if op == "GRU":
            cases.append(Case([ramp(4, 2, 3), ramp(1, 9, 3), ramp(1, 9, 3), ramp(1, 18)],
                              {"hidden_size": 3, "linear_before_reset": 1}, fixed=(1, 2, 3), outputs=2, form="linear"))
        return cases
    return make


def quantize(v):
    x = ramp(2, 3, 4, low=-6, high=6)
    cases = [Case([x, F(0.05), np.uint8(128)], fixed=(1, 2)), Case([x, F(0.04), np.int8(-3)], fixed=(1, 2), form="s8")]
    if v >= 13:
        cases.append(Case([x, np.array([0.1, 0.05, 0.2], F), np.array([0, 100, 200], np.uint8)], {"axis": 1}, fixed=(1, 2), form="axis"))
    return cases


def dequantize(v):
    x = ((np.arange(24) * 37) % 256).reshape(2, 3, 4).astype(np.uint8)
    cases = [Case([x, F(0.05), np.uint8(128)], fixed=(1, 2)), Case([x.astype(np.int32), F(0.5)], fixed=(1,), form="i32")]
    if v >= 13:
        cases.append(Case([x, np.array([0.1, 0.05, 0.2], F), np.array([0, 100, 200], np.uint8)], {"axis": 1}, fixed=(1, 2), form="axis"))
    return cases


def levels(*shape, signed=False):
    n = int(np.prod(shape))
    u = ((np.arange(n) * 37 + 11) % 256).reshape(shape)
    return (u - 128).astype(np.int8) if signed else u.astype(np.uint8)


def qlinear_conv(v):
    return [Case([levels(1, 3, 5, 5), F(0.02), np.uint8(120), levels(4, 3, 3, 3, signed=True), np.array([0.01, 0.02, 0.03, 0.04], F),
                  np.zeros(4, np.int8), F(0.5), np.uint8(100), np.array([100, -200, 50, 0], np.int32)],
                 {"pads": [1, 1, 1, 1]}, fixed=range(1, 9))]


def nll(v):
    x, t = ramp(2, 4, 3), np.array([[0, 1, 3], [2, 2, 0]], I)
    return [Case([x, t], {"reduction": r}, form=r) for r in ("none", "mean", "sum")] + [
        Case([x, t, ramp(4, low=0.5)], {"ignore_index": 2}, form="weights")]


def einsum(v):
    return [Case([ramp(2, 3, 4), ramp(2, 4, 5)], {"equation": "bij,bjk->bik"}, form="bmm"),
            Case([ramp(2, 3, 4, 2), ramp(2, 5, 4, 2)], {"equation": "bihd,bjhd->bhij"}, form="attention"),
            Case([ramp(3, 3)], {"equation": "ii->i"}, form="diagonal"), Case([ramp(2, 3, 4)], {"equation": "...k->..."}, form="sum"),
            Case([ramp(2, 3), ramp(3, 4), ramp(4, 2)], {"equation": "ij,jk,kl->il"}, form="three"),
            Case([ramp(3), ramp(4)], {"equation": "i,j"}, form="outer")]


def attention(v):
    q, k, x = ramp(2, 4, 3, 5), ramp(2, 4, 6, 5, low=-1), ramp(2, 4, 6, 7)
    mask = np.tril(np.ones((3, 6), bool), 2)
    return [Case([q, k, x]), Case([q, k, x, mask], form="mask"), Case([q, k, x, ramp(3, 6)], {"scale": 0.3, "softcap": 2.0}, form="bias"),
            Case([q, ramp(2, 2, 3, 5), ramp(2, 2, 3, 5)], {"is_causal": 1}, form="groups"),
            Case([ramp(2, 3, 20), ramp(2, 6, 10), ramp(2, 6, 10)], {"q_num_heads": 4, "kv_num_heads": 2}, form="flat"),
            Case([q, k, x, mask[:, :1] | np.ones((3, 8), bool), ramp(2, 4, 2, 5), ramp(2, 4, 2, 7)], outputs=3, form="past")]


def constant(v):
    value = numpy_helper.from_array(ramp(2, 3), "value")
    return [Case([], {"value": value})]


def shape(v):
    cases = [Case([ramp(2, 3, 4)])]
    return cases + ([Case([ramp(2, 3, 4)], {"start": 1, "end": -1}, form="part")] if v >= 15 else [])


def dropout(v):
    return [Case([ramp(2, 3)]), Case([ramp(2, 3)], outputs=2, form="mask", since=12)]


MAKERS = {
    "Abs": unary(), "Acos": unary(-0.9, 0.9), "Acosh": unary(1.1, 5), "Add": binary(), "And": logical, "ArgMax": arg, "ArgMin": arg,
    "Asin": unary(-0.9, 0.9), "Asinh": unary(), "Atan": unary(), "Atanh": unary(-0.9, 0.9), "Attention": attention, "AveragePool": average_pool,
    "BatchNormalization": batch_normalization, "BitwiseAnd": bits, "BitwiseOr": bits, "BitwiseXor": bits,
    "BitShift": lambda v: [Case([np.array([1, 6, 200], np.uint8), np.array([3, 1, 2], np.uint8)], {"direction": d}, form=d) for d in ("LEFT", "RIGHT")],
    "BitwiseNot": lambda v: [Case([np.array([0, 5, -3], np.int32)])],
    "Cast": lambda v: [Case([ramp(2, 3)], {"to": t}, form=TensorProto.DataType.Name(t).lower())
                       for t in (TensorProto.INT32, TensorProto.INT64, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BOOL)],
    "CastLike": lambda v: [Case([ramp(2, 3), np.array([1], np.int32)])], "Ceil": unary(), "Celu": unary(alpha=0.7), "Clip": clip,
    "CenterCropPad": lambda v: [Case([ramp(5, 4), np.array([3, 7], I)], fixed=(1,))],
    "Concat": lambda v: [Case([ramp(2, 3, 2), ramp(2, 1, 2)], {"axis": 1})], "Constant": constant,
    "ConstantOfShape": lambda v: [Case([np.array([2, 3], I)], fixed=(0,))], "Conv": conv, "ConvTranspose": conv_transpose,
    "ConvInteger": lambda v: [Case([levels(1, 2, 4, 4), levels(3, 2, 2, 2), np.uint8(5), np.uint8(7)], {"pads": [1, 0, 0, 1]}, fixed=(1, 2, 3))],
    "Cos": unary(), "Cosh": unary(), "CumSum": lambda v: [Case([ramp(2, 3, 4), np.array(1, I)], {"exclusive": e, "reverse": r}, fixed=(1,), form=f"{e}{r}") for e in (0, 1) for r in (0, 1)],
    "DepthToSpace": lambda v: [Case([ramp(1, 8, 2, 3)], {"blocksize": 2})] + ([Case([ramp(1, 8, 2, 3)], {"blocksize": 2, "mode": "CRD"}, form="crd")] if v >= 11 else []),
    "DequantizeLinear": dequantize, "Det": lambda v: [Case([ramp(2, 3, 3)])], "Div": binary(0.5, 3), "Dropout": dropout,
    "DynamicQuantizeLinear": lambda v: [Case([ramp(2, 3)], outputs=3)], "Einsum": einsum, "Elu": unary(alpha=0.7), "Equal": equal,
    "Erf": unary(), "Exp": unary(), "Expand": lambda v: [Case([ramp(3, 1), np.array([2, 3, 4], I)], fixed=(1,))],
    "EyeLike": lambda v: [Case([ramp(3, 4)], {"k": 1})], "Flatten": lambda v: [Case([ramp(2, 3, 4)], {"axis": a}, form=f"axis{a}") for a in (0, 1, 2)],
    "Floor": unary(), "GRU": recurrent("GRU"), "Gather": lambda v: [Case([ramp(4, 3), np.array([[0, 3], [1, 1]], I)], {"axis": 0}), Case([ramp(4, 3), np.array([2, 0], I)], {"axis": 1}, fixed=(1,), form="fixed")],
    "GatherElements": lambda v: [Case([ramp(3, 4), np.array([[0, 2, 1, 0], [2, 0, 0, 1]], I)], {"axis": 0})], "GatherND": gather_nd,
    "Gelu": lambda v: [Case([ramp(2, 3)], {"approximate": a}, form=a) for a in ("none", "tanh")], "Gemm": gemm, "GlobalAveragePool": global_pool,
    "GlobalLpPool": lambda v: [Case([ramp(2, 3, 5, 4)], {"p": 2})], "GlobalMaxPool": global_pool, "Greater": compare, "GreaterOrEqual": compare,
    "GridSample": grid_sample, "GroupNormalization": group_normalization, "HardSigmoid": unary(), "HardSwish": unary(-4, 4), "Hardmax": softmax,
    "Identity": unary(), "InstanceNormalization": instance_normalization,
    "IsInf": lambda v: [Case([np.array([1, np.inf, -np.inf, np.nan], F)]), Case([np.array([1, np.inf, -np.inf], F)], {"detect_negative": 0}, form="positive")],
    "IsNaN": lambda v: [Case([np.array([1, np.inf, np.nan], F)])], "LRN": lambda v: [Case([ramp(1, 5, 3, 3)], {"size": 3, "alpha": 0.1, "beta": 0.6, "bias": 1.5})],
    "LSTM": recurrent("LSTM"), "LayerNormalization": layer_normalization, "LeakyRelu": unary(alpha=0.2), "Less": compare, "LessOrEqual": compare,
    "Log": unary(0.1, 4), "LogSoftmax": softmax, "LpNormalization": lambda v: [Case([ramp(2, 3, 4)], {"axis": 1, "p": p}, form=f"p{p}") for p in (1, 2)],
    "LpPool": lp_pool, "MatMul": matmul, "MatMulInteger": lambda v: [Case([levels(3, 4), levels(4, 2), np.uint8(12), np.uint8(3)])],
    "Max": variadic, "MaxPool": max_pool,
    "MaxUnpool": lambda v: [Case([ramp(1, 1, 2, 2), np.array([[[[5, 7], [13, 15]]]], I)], {"kernel_shape": [2, 2], "strides": [2, 2]})],
    "Mean": variadic, "MeanVarianceNormalization": lambda v: [Case([ramp(2, 3, 4, 5)])],
    "Min": variadic, "Mish": unary(),
    "Mod": lambda v: [Case([ramp(2, 3), ramp(2, 3, low=0.5)], {"fmod": 1}), Case([np.array([7, -7], I), np.array([3, 3], I)], form="whole")], "Mul": binary(),
    "NonMaxSuppression": non_max_suppression, "NonZero": non_zero, "Unique": unique, "Compress": compress,
    "Neg": unary(), "NegativeLogLikelihoodLoss": nll, "Not": lambda v: [Case([np.array([True, False])])], "OneHot": one_hot, "Or": logical,
    "PRelu": lambda v: [Case([ramp(2, 3, 4), ramp(3, 1)], fixed=(1,))], "Pad": pad, "Pow": binary(0.5, 3),
    "QLinearConv": qlinear_conv,
    "QLinearMatMul": lambda v: [Case([levels(3, 4), F(0.02), np.uint8(100), levels(4, 2), F(0.03), np.uint8(120), F(0.2), np.uint8(90)], fixed=range(1, 8))],
    "QuantizeLinear": quantize, "RMSNormalization": rms_normalization, "RNN": recurrent("RNN"),
    "Range": lambda v: [Case([F(1), F(5), F(1.5)], fixed=(0, 1, 2))], "Reciprocal": unary(0.5, 3), "Relu": unary(), "Reshape": lambda v: [Case([ramp(2, 3, 4), np.array([0, -1], I)], fixed=(1,))],
    "Resize": resize, "ReverseSequence": lambda v: [Case([ramp(4, 3, 2), np.array([4, 2, 1], I)], {"time_axis": 0, "batch_axis": 1}), Case([ramp(3, 4), np.array([4, 2, 1], I)], {"time_axis": 1, "batch_axis": 0}, form="batch")],
    "RoiAlign": roi_align, "Round": lambda v: [Case([np.array([0.5, 1.5, -0.5, 2.3, -1.7], F)])], "Scatter": lambda v: [Case([ramp(3, 4), np.array([[0, 2, 1, 0]], I), ramp(1, 4)], {"axis": 0})],
    "ScatterElements": scatter_elements, "ScatterND": scatter_nd, "Selu": unary(), "Shape": shape, "Shrink": unary(lambd=0.6, bias=0.3), "Sigmoid": unary(),
    "Sign": unary(), "Sin": unary(), "Sinh": unary(), "Size": unary(), "Slice": slice_, "Softmax": softmax, "SoftmaxCrossEntropyLoss": nll, "Softplus": unary(), "Softsign": unary(),
    "SpaceToDepth": lambda v: [Case([ramp(1, 2, 4, 6)], {"blocksize": 2})], "Split": split, "Sqrt": unary(0.1, 4), "Squeeze": with_axes([0, 2], ramp(1, 3, 1, 2)), "Sub": binary(),
    "Sum": variadic, "Tan": unary(-1.2, 1.2), "Tanh": unary(), "ThresholdedRelu": unary(alpha=0.5),
    "Tile": lambda v: [Case([ramp(2, 3), np.array([2, 3], I)], fixed=(1,))], "TopK": top_k, "Transpose": lambda v: [Case([ramp(2, 3, 4)], {"perm": [2, 0, 1]}), Case([ramp(2, 3, 4)], form="default")],
    "Trilu": lambda v: [Case([ramp(4, 5)], {"upper": u}, form=f"u{u}") for u in (0, 1)], "Unsqueeze": with_axes([0, 2], ramp(3, 2)), "Upsample": upsample,
    "Where": lambda v: [Case([np.array([[True], [False]]), ramp(2, 3), ramp(1, 3)])], "Xor": logical,
}
for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare"):
    MAKERS["Reduce" + name] = reduction
MAKERS["ReduceSum"] = reduce_sum
# Numbers in front of operators that quantise or count are not of the operator's own type.
NO_HALF = {"Constant", "Range", "OneHot", "DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear"}

# Forms that differ from an earlier one in the allowed element types alone.
SAME_AS = {("GlobalLpPool", 22): 2, ("RoiAlign", 22): 16}


def forms(op):
    versions = sorted({s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op and s.domain == ""})
    at = [v for v in versions if v <= NEWEST]
    old = [v for v in at if v <= OLDEST]
    kept = ([OLDEST] if old else []) + [v for v in at if v > OLDEST]
    return [v for v in kept if not onnx.defs.get_schema(op, v, "").deprecated]


def halves(op, version):
    if op in NO_HALF:
        return False
    schema = onnx.defs.get_schema(op, version, "")
    if not schema.inputs:
        return False
    kind = schema.inputs[0].type_str
    return any(c.type_param_str == kind and "tensor(float16)" in c.allowed_type_strs for c in schema.type_constraints)


def model_of(op, version, case, half):
    attrs = dict(case.attrs)
    inputs, fixed, names, feeds = [], [], [], []
    schema = onnx.defs.get_schema(op, version, "")
    narrow = schema.inputs[0].type_str if half else None
    for i, value in enumerate(case.inputs):
        if value is None:
            names.append("")
            continue
        value = np.asarray(value)
        formal = schema.inputs[min(i, len(schema.inputs) - 1)] if schema.inputs else None
        if half and value.dtype == F and formal is not None and formal.type_str == narrow:
            value = value.astype(np.float16)
        name = f"x{i}"
        names.append(name)
        if i in case.fixed:
            fixed.append(numpy_helper.from_array(value, name))
        else:
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
            feeds.append((name, value))
    outputs = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(op, names, outputs, name="node", **attrs)
    graph = helper.make_graph([node], op, inputs, [onnx.ValueInfoProto(name=y) for y in outputs], fixed)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    model.ir_version = 8 if version < 21 else 10
    return model, feeds, outputs


def describe(model, outputs, values):
    del model.graph.output[:]
    for name, value in zip(outputs, values):
        model.graph.output.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))


def expected(model, feeds, outputs):
    """Of ONNX Runtime without its own optimisations; None where it does not run the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
        if len(inferred.graph.output) != len(outputs) or not all(o.HasField("type") for o in inferred.graph.output):
            inferred = model
        session = onnxruntime.InferenceSession(inferred.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return [np.asarray(y) for y in session.run(outputs, dict(feeds))], ""
    except Exception as error:  # noqa: BLE001: whatever it says, the case has no oracle here
        return None, str(error).splitlines()[0][:160]


def oracle(op, version, case, half, feeds, outputs):
    """Expected outputs and how they came about; None and why not."""
    model, _, _ = model_of(op, version, case, half)
    values, why = expected(model, feeds, outputs)
    if values is not None:
        return values, "itself"
    form = SAME_AS.get((op, version), version)
    if form != version:
        values, _ = expected(model_of(op, form, case, half)[0], feeds, outputs)
        if values is not None:
            return values, "the form before"
    if half:
        wide = [(name, x.astype(F) if x.dtype == np.float16 else x) for name, x in feeds]
        as_half = Case([None if x is None else np.asarray(x) for x in case.inputs], case.attrs, case.fixed, case.outputs)
        as_half.inputs = [x.astype(np.float16).astype(F) if x is not None and x.dtype == F else x for x in as_half.inputs]
        values, _ = expected(model_of(op, form, as_half, False)[0], wide, outputs)
        if values is not None:
            return [y.astype(np.float16) if y.dtype == F else y for y in values], "f32, rounded"
    return None, why


def main(folder):
    root = pathlib.Path(folder)
    counts, missing = {}, []
    for op in sorted(MAKERS):
        for version in forms(op):
            for half in (False, True) if halves(op, version) else (False,):
                for case in MAKERS[op](version):
                    if not case.since <= version <= case.until:
                        continue
                    name = f"{op}_{version}_{'f16' if half else 'f32'}{'_' + case.form if case.form else ''}"
                    model, feeds, outputs = model_of(op, version, case, half)
                    values, how = oracle(op, version, case, half, feeds, outputs)
                    if values is None:
                        missing.append(f"{name}: {how}")
                        continue
                    counts[how] = counts.get(how, 0) + 1
                    describe(model, outputs, values)
                    at = root / name / "test_data_set_0"
                    at.mkdir(parents=True, exist_ok=True)
                    (root / name / "model.onnx").write_bytes(model.SerializeToString())
                    for i, (_, value) in enumerate(feeds):
                        (at / f"input_{i}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())
                    for i, value in enumerate(values):
                        (at / f"output_{i}.pb").write_bytes(numpy_helper.from_array(value).SerializeToString())
    by = ", ".join(f"{n} by {how}" for how, n in sorted(counts.items()))
    print(f"{sum(counts.values())} cases of {len(MAKERS)} operators; ONNX Runtime {onnxruntime.__version__}: {by}")
    for line in missing:
        print("no expected values:", line)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
