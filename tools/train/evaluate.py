"""Average precision of an exported network on labelled drives, at full and lite size.

    python3 tools/train/evaluate.py --model configs/models/sim_camera_full.yaml DRIVE.mcap...

A detection is right when it overlaps a not yet found object that counts (drives.py) by IoU >= 0.5, tried from the best
score down; one that overlaps only an ignored object is neither right nor wrong. AP is the area under the precision
envelope, over all pictures together. --checkpoint judges a training run instead of the model's file.
"""
import argparse
import os

import numpy as np
import torch
import yaml
from torch.nn import functional as F

import drives
import targets
from make_drives import RIG
from network import Network, work


def match(found, rows):
    """Per detection of one class in one picture: 1 right, 0 wrong, -1 neither."""
    verdict = np.zeros(len(found), int)
    counted, ignored = rows[rows[:, 5] > 0], rows[rows[:, 5] == 0]
    overlap = targets.iou(found, counted)
    spare = targets.iou(found, ignored).max(1, initial=0)
    free = np.ones(len(counted), bool)
    for i in range(len(found)):
        candidates = np.where(free, overlap[i], 0)
        if len(candidates) and candidates.max() >= 0.5:
            free[candidates.argmax()] = False
            verdict[i] = 1
        elif spare[i] >= 0.5:
            verdict[i] = -1
    return verdict


def average_precision(scores, verdicts, objects):
    order = np.argsort(-scores, kind="stable")
    right = verdicts[order]
    right = right[right >= 0]
    if not objects or not len(right):
        return float("nan") if not objects else 0.0
    recall = np.cumsum(right) / objects
    precision = np.cumsum(right) / np.arange(1, len(right) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(recall, prepend=0) * envelope))


def detect(network, picture, width, height, head):
    """Rows [left, top, right, bottom, score, class] in the picture's pixels."""
    image = torch.from_numpy(picture).permute(2, 0, 1)[None].float()
    image = F.interpolate(image, (height, width), mode="bilinear", align_corners=False) / 255
    heat, distances = network(image)
    rows = targets.decode(heat[0].numpy(), distances[0].numpy(), head["score_min"], head["nms_iou"],
                          head["objects_max"])
    rows[:, :4] *= [picture.shape[1] / width, picture.shape[0] / height] * 2
    rows[:, :4] = np.clip(rows[:, :4], 0, [picture.shape[1], picture.shape[0]] * 2)
    return rows


def judge(network, pictures, labels, width, height, head):
    """Per class (AP50, objects, recall and precision at the head's score_min)."""
    scores, verdicts = [[] for _ in drives.CLASSES], [[] for _ in drives.CLASSES]
    for picture, rows in zip(pictures, labels):
        found = detect(network, picture, width, height, dict(head, score_min=0.02))
        for kind in range(len(drives.CLASSES)):
            some = found[found[:, 5] == kind]
            scores[kind].append(some[:, 4])
            verdicts[kind].append(match(some, rows[rows[:, 4] == kind]))
    result = []
    for kind in range(len(drives.CLASSES)):
        score, verdict = np.concatenate(scores[kind]), np.concatenate(verdicts[kind])
        objects = sum(int(((rows[:, 4] == kind) & (rows[:, 5] > 0)).sum()) for rows in labels)
        shown = verdict[score >= head["score_min"]]
        right, wrong = (shown == 1).sum(), (shown == 0).sum()
        result.append((average_precision(score, verdict, objects), objects, right / max(1, objects),
                       right / max(1, right + wrong)))
    return result


def from_onnx(path):
    """The weights of an exported file in the network's own layers: what is judged is what is shipped."""
    import onnx
    from onnx import numpy_helper

    network = Network(len(drives.CLASSES))
    stored = {w.name: torch.from_numpy(numpy_helper.to_array(w).copy()) for w in onnx.load(path).graph.initializer}
    wanted = {k: v for k, v in network.state_dict().items() if not k.endswith("num_batches_tracked")}
    missing = sorted(set(wanted) - set(stored))
    if missing:
        raise SystemExit(f"evaluate.py: {path} lacks {', '.join(missing)}")
    network.load_state_dict({k: stored[k] for k in wanted}, strict=False)
    network.box_scale = None
    return network.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, nargs="+", help="model contracts, one a size")
    parser.add_argument("--checkpoint", help="RUN/checkpoint.pt instead of the models' file")
    parser.add_argument("drives", nargs="+")
    options = parser.parse_args()

    torch.set_num_threads(1)
    with open(RIG, encoding="utf-8") as file:
        rig = yaml.safe_load(file)
    pictures, labels = [], []
    for path in options.drives:
        some, rows = drives.load(path, rig)
        pictures += list(some)
        labels += rows
    print(f"{len(options.drives)} drives, {len(pictures)} pictures")
    for path in options.model:
        with open(path, encoding="utf-8") as file:
            model = yaml.safe_load(file)
        if options.checkpoint:
            network = Network(len(drives.CLASSES)).eval()
            network.load_state_dict(torch.load(options.checkpoint)["mean"])
        else:
            network = from_onnx(os.path.join(os.path.dirname(path), model["file"]))
        head, size = model["head"], model["input"]
        print(f"{model['name']}: {sum(p.numel() for p in network.parameters())} parameters, "
              f"{work(network, size['height'], size['width']) / 1e6:.1f} MFLOP")
        assert head["stride"] == targets.STRIDE and list(model["classes"]) == list(drives.CLASSES)
        with torch.no_grad():
            result = judge(network, pictures, labels, size["width"], size["height"], head)
        for kind, (ap, objects, recall, precision) in zip(drives.CLASSES, result):
            print(f"{model['name']:18} {size['width']}x{size['height']} {kind:11} AP50 {ap:.3f}  ({objects} objects)  "
                  f"at score {head['score_min']}: recall {recall:.3f} precision {precision:.3f}")


if __name__ == "__main__":
    main()
