"""Writes the networks of docs/nets.md as ONNX with random weights.

usage: /usr/bin/python3 tools/nets/export.py --out FOLDER [--missing] [NAME ...]     (all of them by default)

Architecture, not accuracy: the weights are random and seeded, BatchNorm statistics are estimated from made-up pictures so
that activations have unit variance. No network is taken from a package: each is written out from its paper, in the
file that NETWORKS names. Of each NAME: FOLDER/NAME.onnx, and two inputs NAME.a.npy and NAME.b.npy. Prints the names.
"""
import argparse
import dataclasses
import os
import warnings

import numpy
import torch

import birdseye
import classifiers
import light
import transformers
import yolo
from layers import pictures, randomise, settle


@dataclasses.dataclass(frozen=True)
class Network:
    build: object  # without arguments: the module
    outputs: tuple
    shape: tuple = (3, 640, 640)  # of one input without the batch
    opset: int = 11
    keep_norms: bool = False  # BatchNormalization in the file; otherwise folded, as exporters do by default


NETWORKS = {
    "mobilenetv2": Network(classifiers.MobileNetV2, ("logits",), (3, 224, 224), 13),
    "mobilenetv2_bn": Network(classifiers.MobileNetV2, ("logits",), (3, 224, 224), 13, keep_norms=True),
    "resnet50": Network(classifiers.ResNet50, ("logits",), (3, 224, 224), 13),
    "mobilenetv3": Network(classifiers.MobileNetV3, ("logits",), (3, 224, 224), 17),
    "yolox_s": Network(yolo.YoloX, ("output", "logits"), opset=11),
    "yolov8n": Network(yolo.YoloV8, ("output", "logits"), opset=17),
    "yolo11n": Network(yolo.Yolo11, ("output", "logits"), opset=17),
    "nanodet": Network(light.NanoDetLike, ("output",), (3, 320, 320), 11),
    "efficientdet_d0": Network(light.EfficientDet, ("classes", "boxes"), (3, 512, 512), 13),
    "detr": Network(transformers.Detr, ("logits", "boxes"), (3, 480, 640), 12),
    "rtdetr_r18": Network(transformers.RtDetr, ("scores", "logits", "boxes"), opset=17),
    "pointpillars": Network(birdseye.PointPillars, ("classes", "boxes", "directions"), (64, 496, 432), 11),
    "centerpoint": Network(birdseye.CenterPoint, tuple(f"{what}{i}" for i in range(6) for what in ("heat", "box")),
                           (64, 512, 512), 11),
}


def export(name, folder):
    entry = NETWORKS[name]
    network = entry.build()
    randomise(network, seed=1)
    channels, height, width = entry.shape
    for module in network.modules():
        if hasattr(module, "finish"):
            module.finish()
    settle(network, (pictures(4, channels, height, width, seed=2),))
    for word, seed in (("a", 3), ("b", 4)):
        numpy.save(os.path.join(folder, f"{name}.{word}.npy"), pictures(1, channels, height, width, seed).numpy())
    path = os.path.join(folder, name + ".onnx")
    mode = torch.onnx.TrainingMode.PRESERVE if entry.keep_norms else torch.onnx.TrainingMode.EVAL
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, torch.zeros(1, *entry.shape), path + ".part", opset_version=entry.opset,
                          input_names=["input"], output_names=list(entry.outputs), training=mode)
    os.replace(path + ".part", path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(NETWORKS))
    parser.add_argument("--out", required=True, metavar="FOLDER")
    parser.add_argument("--missing", action="store_true", help="keep what is there and newer than this folder's files")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in NETWORKS]
    if unknown:
        parser.error(f"no network {unknown[0]}; there are {', '.join(NETWORKS)}")
    os.makedirs(arguments.out, exist_ok=True)
    here = os.path.dirname(os.path.abspath(__file__))
    changed = max(os.path.getmtime(os.path.join(here, file)) for file in os.listdir(here) if file.endswith(".py"))
    for each in arguments.names or NETWORKS:
        written = os.path.join(arguments.out, each + ".onnx")
        if not (arguments.missing and os.path.exists(written) and os.path.getmtime(written) > changed):
            export(each, arguments.out)
        print(each, flush=True)
