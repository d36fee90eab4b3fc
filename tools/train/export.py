"""Writes a trained network as ONNX (opset 11, batch 1, symbolic height and width, BatchNorm left for the compiler) and
the model contracts of its two sizes."""
import os
import warnings

import torch
import xxhash

import drives
from network import deployed
from targets import STRIDE

SIZES = {"full": (416, 256), "lite": (288, 160)}  # width, height
SCORE_MIN, NMS_IOU = 0.35, 0.5  # best F1 of both sizes on 40 training pictures

_CONTRACT = """\
# The {word} size of takt's own camera network, trained on simulated drives: sim_camera.md.
name: sim_camera_{word}
file: sim_camera.onnx
hash: {hash}
licence: part of takt
input:
  tensor: image
  width: {width}
  height: {height}
  colour: rgb
  resize: plain
  scale: 0.00392156862745098          # 1 / 255
  mean: [0, 0, 0]
  std: [1, 1, 1]
head:
  type: centre
  heatmap: heatmap
  box: box
  stride: {stride}
  score_min: {score_min}
  nms_iou: {nms_iou}
  objects_max: 64
classes: {{{classes}}}
"""


def write(network, folder):
    """FOLDER/sim_camera.onnx, sim_camera_full.yaml and sim_camera_lite.yaml."""
    network = deployed(network).to(memory_format=torch.contiguous_format)
    path = os.path.join(folder, "sim_camera.onnx")
    picture, cells = {2: "height", 3: "width"}, {2: "rows", 3: "columns"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PRESERVE: evaluation mode without folding BatchNorm
        torch.onnx.export(network, torch.zeros(1, 3, 256, 416), path + ".part", opset_version=11,
                          input_names=["image"], output_names=["heatmap", "box"],
                          training=torch.onnx.TrainingMode.PRESERVE,
                          dynamic_axes={"image": picture, "heatmap": cells, "box": cells})
    os.replace(path + ".part", path)
    with open(path, "rb") as file:
        digest = xxhash.xxh3_128_hexdigest(file.read())
    for word, (width, height) in SIZES.items():
        with open(os.path.join(folder, f"sim_camera_{word}.yaml"), "w", encoding="utf-8") as file:
            file.write(_CONTRACT.format(word=word, hash=digest, width=width, height=height, stride=STRIDE,
                                        score_min=SCORE_MIN, nms_iou=NMS_IOU,
                                        classes=", ".join(f"{c}: {c}" for c in drives.CLASSES)))
