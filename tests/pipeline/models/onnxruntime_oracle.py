#!/usr/bin/env python3
"""`takt model try` with FastestDet against ONNX Runtime on the same picture, decoded here a second time from
the rules of docs/model_format.md: boxes within 2 % of the picture, scores within 0.02.

usage: onnxruntime_oracle.py TAKT CONTRACT MODEL PICTURE [PICTURE ...]      (needs onnxruntime, numpy, pillow)
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
from PIL import Image

SIZE, SCORE_MIN, NMS_IOU = 352, 0.5, 0.45
NAMES = ["person", "bicycle", "car", "motorbike", "aeroplane", "bus", "train", "truck"]


def bilinear(picture, height, width):
    """Half-pixel centres, clamped, no averaging: what OpenCV calls INTER_LINEAR."""
    def taps(target, source):
        at = np.clip((np.arange(target) + 0.5) * source / target - 0.5, 0, source - 1)
        first = np.minimum(np.floor(at).astype(int), source - 2)
        return first, at - first
    y, fy = taps(height, picture.shape[0])
    x, fx = taps(width, picture.shape[1])
    rows = picture[y] * (1 - fy)[:, None, None] + picture[y + 1] * fy[:, None, None]
    return rows[:, x] * (1 - fx)[None, :, None] + rows[:, x + 1] * fx[None, :, None]


def iou(a, b):
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    if w <= 0 or h <= 0:
        return 0.0
    return w * h / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h)


def detect(session, rgb):
    """(class, score, box as shares of the picture), best first. Everything with four wheels is one class."""
    bgr = bilinear(rgb.astype(np.float64), SIZE, SIZE)[:, :, ::-1] / 255
    out = session.run(None, {"input.1": bgr.transpose(2, 0, 1)[None].astype(np.float32)})[0][0]
    _, rows, columns = out.shape
    found = []
    for row in range(rows):
        for column in range(columns):
            obj, tx, ty, tw, th = (float(v) for v in out[:5, row, column])
            best = int(np.argmax(out[5:, row, column]))
            score = obj * float(out[5 + best, row, column])
            if score < SCORE_MIN or best >= len(NAMES) or NAMES[best] == "aeroplane":
                continue
            x, y = (column + np.tanh(tx)) / columns, (row + np.tanh(ty)) / rows
            w, h = 1 / (1 + np.exp(-tw)), 1 / (1 + np.exp(-th))
            found.append((NAMES[best], score, (x - w / 2, y - h / 2, x + w / 2, y + h / 2)))
    kind = {"car": "v", "bus": "v", "train": "v", "truck": "v", "bicycle": "c", "motorbike": "c", "person": "p"}
    kept = []
    for d in sorted(found, key=lambda f: -f[1]):
        if all(kind[d[0]] != kind[k[0]] or iou(d[2], k[2]) <= NMS_IOU for k in kept):
            kept.append(d)
    return kept


def main(takt, contract, model, pictures):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    faults, compared = [], 0
    for path in pictures:
        rgb = np.asarray(Image.open(path).convert("RGB"))
        height, width, _ = rgb.shape
        with tempfile.TemporaryDirectory() as folder:
            # As PNG, so that both sides start from the same pixels.
            png = str(pathlib.Path(folder) / "picture.png")
            Image.fromarray(rgb).save(png)
            answer = subprocess.run([takt, "model", "try", contract, png, "--file", model, "--json"],
                                    check=True, capture_output=True, text=True)
        ours = json.loads(answer.stdout)["boxes"]
        theirs = detect(session, rgb)
        print(f"{path}: {len(ours)} boxes, ONNX Runtime {len(theirs)}")
        if len(ours) != len(theirs):
            faults.append(f"{path}: {len(ours)} boxes, ONNX Runtime finds {len(theirs)}")
        for a, (name, score, box) in zip(ours, theirs):
            box = np.clip(box, 0, 1)
            mine = np.array(a["box"]) / [width, height, width, height]
            off = float(np.abs(mine - box).max())
            print(f"  {a['class']:10s} {a['score']:.4f}  {name:10s} {score:.4f}  largest difference of an edge {off:.5f}")
            compared += 1
            if a["class"] != name or abs(a["score"] - score) > 0.02 or off > 0.02:
                faults.append(f"{path}: {a} against {name} {score} {box}")
    if compared == 0:
        faults.append("nothing was compared")
    print("\n".join(faults) or f"{compared} boxes agree")
    return 1 if faults else 0


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
